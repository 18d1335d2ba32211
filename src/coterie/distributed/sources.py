"""How a worker gets a block: what makes it is folded into the task that uses it, so that rows stay where they are read.

A block that another task computed might be moved to another worker before it is used. Folding is right where each block
is made of tasks of its own; blocks that share work, or are held by the cluster already, stay tasks for themselves.
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
    """The tasks that make one block. Opaque to Dask, which would otherwise look inside."""

    def __init__(self, graph: dict, key: Any):
        self.graph, self.key = graph, key

    def __call__(self) -> Any:
        return dask.get(self.graph, self.key)


def delayed_blocks(collection: Any) -> list[Any]:
    """The blocks of a Dask array, dataframe or series, in order. Optimising would lose blocks that a cluster holds."""
    return list(np.ravel(collection.to_delayed(optimize_graph=not _held(collection))))


def fold(delayed: Sequence[Any]) -> tuple[list[Any], HighLevelGraph]:
    """For each delayed block a recipe, or its key; and the graph that the keys need."""
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
