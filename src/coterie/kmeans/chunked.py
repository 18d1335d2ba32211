"""Passes over chunks of rows, which are read again in every pass."""

from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from coterie.kmeans.block_statistics import Block
from coterie.kmeans.scaling import scaled
from coterie.kmeans.sphere import on_sphere


class ChunkPasses:
    """Passes over chunks in this process, with one chunk in memory at a time."""

    def __init__(
        self, chunks: Iterable[Any], weight: np.ndarray | None = None, spherical: bool = False, exponent: int = 0
    ):
        self.chunks, self.weight, self.spherical, self.exponent = chunks, weight, spherical, exponent

    def blocks(self) -> Iterator[Block]:
        first = 0
        for number, X in enumerate(self.chunks):
            n = X.shape[0]
            weight = None if self.weight is None else self.weight[first : first + n]
            yield Block(number, on_sphere(X) if self.spherical else scaled(X, -self.exponent), weight, n)
            first += n

    def total(self, function: Callable[[Block, Any], Any], state: Any) -> Any:
        return reduce(add, (function(block, state) for block in self.blocks()))
