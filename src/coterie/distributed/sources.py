"""How a worker gets a block: the tasks that produce it are merged into the task that uses it.

Rows are therefore never sent. A block that was computed by another task could be moved to another worker before it is
used. Merging requires that each block has tasks of its own. Blocks that share tasks, or that the cluster already holds,
remain separate tasks.
"""

import sys
from collections.abc import Sequence
from typing import Any

import cloudpickle
import dask
import numpy as np
from dask.core import get_dependencies
from dask.highlevelgraph import HighLevelGraph
from dask.utils import ensure_dict

_MOST_BYTES = 2**16  # of a folded block's recipe: it is sent with every pass


class Recipe:
    """The tasks that produce one block, hidden from Dask, which would otherwise inspect them."""

    def __init__(self, graph: dict, key: Any):
        self.graph, self.key = graph, key

    def __call__(self) -> Any:
        return dask.get(self.graph, self.key)


def delayed_blocks(collection: Any) -> list[Any]:
    """The blocks of a Dask array, DataFrame or Series, in order. Blocks that a cluster holds are not optimised away."""
    return list(np.ravel(collection.to_delayed(optimize_graph=not _held(collection))))


def fold(delayed: Sequence[Any]) -> tuple[list[Any], HighLevelGraph]:
    """A recipe or a key for each delayed block, and the graph that the keys need."""
    merged = HighLevelGraph.merge(*(one.dask for one in delayed))
    keys = [one.key for one in delayed]
    graph = ensure_dict(merged)
    recipes = _recipes(graph, keys)
    return (keys, merged) if recipes is None else (recipes, HighLevelGraph({}, {}))


def _recipes(graph: dict, keys: list[Any]) -> list[Any] | None:
    if _held(graph):
        return None
    recipes, seen = [], 0
    for key in keys:
        own = _needed(graph, key)
        seen += len(own)
        if seen > len(graph):  # some task belongs to two blocks
            return None
        recipes.append(Recipe(own, key))
    return recipes if len(cloudpickle.dumps(recipes[0])) <= _MOST_BYTES else None


def _needed(graph: dict, key: Any) -> dict:
    found: dict = {}
    waiting = [key]
    while waiting:
        one = waiting.pop()
        if one not in found:
            found[one] = graph[one]
            waiting.extend(get_dependencies(graph, one))
    return found


def _held(collection: Any) -> bool:
    """Whether blocks of a collection, or tasks of a graph, are results that a cluster holds."""
    if "distributed" not in sys.modules:
        return False
    from distributed.client import futures_of

    from distributed import Future

    if isinstance(collection, dict):
        return any(isinstance(task, Future) for task in collection.values())
    return bool(futures_of(collection))
