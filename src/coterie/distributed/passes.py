"""Passes over the blocks: a function of every block, whose values are added in a tree.

With a ``distributed.Client`` the tasks run on its cluster, otherwise on Dask's scheduler in this process. A pass that
fails because workers died repeatedly or the scheduler was restarted is repeated. It depends only on the blocks and on
the centres, and both are still available.
"""

import operator
import sys
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import reduce
from typing import Any

import dask
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph, MaterializedLayer

from coterie.distributed.blocks import BadBlock, Blocks, Layout, open_block
from coterie.distributed.sources import Recipe, fold
from coterie.kmeans.block_statistics import Block
from coterie.kmeans.kernel_input import NotFiniteError

FAN_IN = 16  # values that one task of the tree adds
ATTEMPTS = 5  # of one pass
PATIENCE = 60.0  # seconds to wait for a scheduler to come back, or for a worker to join


class ClusterError(RuntimeError):
    """Raised if a cluster cannot continue. The message says what to do."""


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
                return _compute(self._graph(function, state, check), self.patience)
            except _lost_errors() as error:
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


# --- whatever runs Dask -----------------------------------------------------------------------------------


def local(n_workers: int, **options: Any) -> Any:
    """A cluster of processes with one thread each on this machine, on the loopback interface and with no dashboard."""
    import distributed

    quiet = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}
    return distributed.LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address=None,
        scheduler_kwargs=quiet,
        silence_logs=50,
        **options,
    )


def client() -> Any:
    """The active distributed client, or None."""
    if "distributed" not in sys.modules:
        return None
    import distributed

    try:
        return distributed.get_client()
    except ValueError:
        return None


def _lost_errors() -> tuple[type[BaseException], ...]:
    if "distributed" not in sys.modules:
        return ()
    from asyncio import CancelledError as LoopCancelled
    from concurrent.futures import CancelledError

    from distributed.client import FutureCancelledError
    from distributed.comm import CommClosedError

    from distributed import KilledWorker

    return (KilledWorker, FutureCancelledError, CancelledError, LoopCancelled, CommClosedError)


def _compute(value: Delayed, patience: float) -> Any:
    here = client()
    if here is None:
        return dask.compute(value, optimize_graph=False)[0]
    _await_scheduler(here, patience)
    future = here.compute(value, optimize_graph=False)
    idle_since = None
    while not future.done():
        _wait(future, 1.0)
        if future.done() or here.status != "running" or here.nthreads():
            idle_since = None
            continue
        idle_since = idle_since or time.monotonic()
        if time.monotonic() - idle_since > patience:
            future.cancel()
            raise ClusterError(
                f"The scheduler at {here.scheduler.address} has had no worker for {patience:.0f} s: start one with "
                f"dask worker {here.scheduler.address}"
            )
    return future.result()


def _wait(future, seconds: float) -> None:
    import distributed

    with suppress(TimeoutError, distributed.TimeoutError):  # in Python 3.10 these are two
        distributed.wait([future], timeout=seconds)


def _await_scheduler(here, patience: float) -> None:
    until = time.monotonic() + patience
    while here.status != "running":
        if here.status in ("closed", "closing") or time.monotonic() > until:
            raise ClusterError(
                "The Dask scheduler does not answer. If the fit ran inside coterie.distributed.checkpoint(...), the "
                "centres of the last iteration are in the checkpoint: reconnect and fit with resume=True."
            )
        time.sleep(0.1)


__all__ = ["BadBlock", "ClusterError", "Passes", "client", "local"]
