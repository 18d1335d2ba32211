"""Passes over chunks of rows, which are read again in every pass, and the incremental update of ``partial_fit``."""

from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from coterie.kmeans import single_pass
from coterie.kmeans.block_statistics import Block
from coterie.kmeans.scaling import scaled
from coterie.kmeans.sphere import on_sphere
from coterie.kmeans.statistics import Statistics

SAMPLE = 50_000  # distinct rows that a start is made from, at least


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


def update(
    statistics: Statistics, centers: np.ndarray, X, sample_weight=None, n_threads=None
) -> tuple[Statistics, np.ndarray, np.ndarray]:
    """Add one chunk to the running means, as ``partial_fit`` does.

    Returns
    -------
    statistics : Statistics
        The statistics of all chunks so far, each assigned with the centres at its time. The inertia is that of this
        chunk.
    centers : array of shape (k, d)
        The means. The centre of a cluster without rows does not move.
    labels : int32 array
        The labels of this chunk with the centres before the update.
    """
    labels = np.empty(len(X), np.int32)
    new = single_pass.statistics(X, centers, sample_weight, n_threads, labels)
    total = Statistics(statistics.sums, statistics.counts) + new
    return total, total.centers(centers), labels
