"""Passes over the blocks: a function of every block, whose values are added in a tree.

With a ``distributed.Client`` the tasks run on its cluster, otherwise on Dask's scheduler in this process. A pass that
fails because workers died repeatedly or the scheduler was restarted is repeated. It depends only on the blocks and on
the centres, and both are still available.
"""

import operator
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph, MaterializedLayer

from coterie.distributed.blocks import Blocks, Layout, open_block
from coterie.distributed.cluster import PATIENCE, ClusterError, client, compute, lost_errors, workers
from coterie.distributed.sources import Recipe, fold
from coterie.kmeans.block_statistics import Block
from coterie.kmeans.kernel_input import NotFiniteError

FAN_IN = 16  # values that one task of the tree adds
ATTEMPTS = 5  # of one pass
SHARE = 0.25  # of the memory of all workers, for blocks that they hold; Dask begins to write blocks to disk at 0.6


class Passes:
    """Passes over one set of blocks."""

    def __init__(self, blocks: Blocks, patience: float = PATIENCE):
        self.layout, self.patience, self.exponent = blocks.layout, patience, 0
        self.n_passes = 0  # the first of which checks every value
        self._use(blocks)

    def _use(self, blocks: Blocks) -> None:
        self._origin = blocks.origin
        self._rows, graph = fold(blocks.rows)
        self._weights = None
        if blocks.weights is not None:
            self._weights, more = fold(blocks.weights)
            graph = HighLevelGraph.merge(graph, more)
        self._layers, self._dependencies = dict(graph.layers), dict(graph.dependencies)

    def total(self, function: Callable[[Block, Any], Any], state: Any) -> Any:
        """The sum of ``function(block, state)`` over all blocks that have rows, or None if there are none."""
        check = not self.n_passes
        lost: BaseException | None = None
        for _ in range(ATTEMPTS):
            try:
                self.n_passes += 1
                return compute(self._graph(function, state, check), self.patience)
            except lost_errors() as error:
                lost = error
                if self._origin is not None:  # what the cluster held may be lost with it
                    self._use(self._origin)
        raise ClusterError(
            f"A pass over the data failed {ATTEMPTS} times ({lost}). Workers that die repeatedly usually run out of "
            "memory: use smaller blocks, or give the workers more memory."
        ) from lost

    def _graph(self, function, state, check) -> Delayed:
        name = f"coterie-{function.__name__}-{uuid.uuid4().hex}"
        shared = f"{name}-state"
        layout = replace(self.layout, exponent=self.exponent)
        layer: dict = {shared: (_Shared(layout, state, function, check),)}
        for b, rows in enumerate(self._rows):
            weight = None if self._weights is None else self._weights[b]
            layer[(name, 0, b)] = (_run_block, rows, weight, b, shared)
        level, keys = 0, [(name, 0, b) for b in range(len(self._rows))]
        while len(keys) > 1 or level == 0:
            level += 1
            groups = [keys[i : i + FAN_IN] for i in range(0, len(keys), FAN_IN)]
            keys = [(f"{name}-sum", level, g) for g in range(len(groups))]
            layer.update({key: (_add, group) for key, group in zip(keys, groups)})
        graph = HighLevelGraph(
            {**self._layers, name: MaterializedLayer(layer)},
            {**self._dependencies, name: set(self._layers)},
        )
        return Delayed(keys[0], graph, layer=name)


class _Shared:
    """What all blocks of a pass need, as a separate task that is sent once to each worker. A call returns itself."""

    def __init__(self, layout: Layout, state: Any, function: Callable, check: bool):
        self.layout, self.state, self.function, self.check = layout, state, function, check

    def __call__(self):
        return self


def _run_block(raw, weight, number: int, shared: _Shared):
    raw, weight = (one() if isinstance(one, Recipe) else one for one in (raw, weight))
    block = open_block(raw, weight, number, shared.layout, check=shared.check)
    if not block.n_rows or not len(block.X):
        return None
    try:
        return shared.function(block, shared.state)
    except NotFiniteError:
        open_block(raw, weight, number, shared.layout, check=True)  # says which row of which block
        raise


def _add(values: list) -> Any:
    present = [value for value in values if value is not None]
    return reduce(operator.add, present) if present else None


@contextmanager
def held(blocks: Blocks) -> Iterator[Blocks]:
    """The same blocks, kept by the workers of the cluster until the end if they fit into a quarter of its memory.

    Without a cluster, for blocks of unknown sizes and for larger tables, every pass computes or reads the blocks anew.
    """
    here = client()
    if here is None or not _fits(blocks, here):
        yield blocks
        return
    from distributed.client import futures_of

    rows = here.persist(list(blocks.rows), optimize_graph=False)
    try:
        yield replace(blocks, rows=rows, origin=blocks)
    finally:
        for future in futures_of(rows):
            future.release()


def _fits(blocks: Blocks, here) -> bool:
    if blocks.n_rows is None or here.status != "running":
        return False
    n_bytes = blocks.n_rows * blocks.layout.n_features * np.dtype(blocks.layout.dtype).itemsize
    limits = [worker.get("memory_limit") or 0 for worker in workers(here).values()]
    return all(limits) and n_bytes <= SHARE * sum(limits)
