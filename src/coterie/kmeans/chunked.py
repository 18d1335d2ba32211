"""Fits on chunks of rows that are read again in every pass, and the incremental update of ``partial_fit``.

A pass adds the statistics of its chunks, so the centres agree with those of the engines in memory up to rounding.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np

from coterie import starts, threads
from coterie.kmeans import single_pass
from coterie.kmeans.algorithm import Algorithm
from coterie.kmeans.block_engine import BlockEngine, begin
from coterie.kmeans.block_statistics import Block
from coterie.kmeans.iteration import Moments, OnIteration, Result, moments
from coterie.kmeans.scaling import largest_value, scaled
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


def run(
    passes: ChunkPasses,
    centers: np.ndarray,
    algorithm: Algorithm,
    device: str = "cpu",
    n_threads: int | None = None,
    *,
    max_iter: int = 300,
    tol: float = 0.0,
    on_iteration: OnIteration | None = None,
) -> Result:
    """Fit an algorithm, reading the chunks once in every pass. ``tol`` is absolute. The labels are left empty.

    Only one chunk and O(k d) numbers are in memory.
    """
    options: dict[str, Any] = {"watched": on_iteration is not None, "device": device, "n_threads": n_threads}
    algorithm, state = begin(passes, algorithm, centers, device, n_threads)
    engine = BlockEngine(passes, algorithm, centers.dtype, **options)
    return engine.run(state, max_iter=max_iter, tol=tol, on_iteration=on_iteration)


class Sample(NamedTuple):
    """The distinct rows with the smallest hashes, how often each occurs, and statistics of all rows."""

    rows: np.ndarray
    times: np.ndarray
    n_rows: int
    mean_variance: float  # of the columns
    largest: float  # absolute value


def sample(chunks: Iterable[np.ndarray], n_clusters: int, n_threads=None, spherical: bool = False) -> Sample:
    """Collect in one pass what a start needs, for ``spherical`` algorithms of the rows as unit vectors.

    If all distinct rows fit into the sample, a start from the sample equals the start from all rows.
    """
    size = max(SAMPLE, 20 * n_clusters)
    count = threads.count(n_threads)
    rows: np.ndarray | None = None
    hashes: np.ndarray = np.empty(0, np.uint64)
    times: np.ndarray = np.empty(0)
    found: Moments | None = None
    n, largest = 0, 0.0
    for X in chunks:
        n, largest = n + len(X), max(largest, largest_value(X))
        X = on_sphere(X) if spherical else X
        with np.errstate(over="ignore", invalid="ignore"):  # the caller refuses such values
            found = moments(X, before=found)
        rows = X if rows is None else np.concatenate([rows, X])
        hashes = np.concatenate([hashes, starts.hash_rows(X, count)])
        times = np.concatenate([times, np.ones(len(X))])
        hashes, firsts, group = np.unique(hashes, return_index=True, return_inverse=True)
        times = np.bincount(group, weights=times)[:size]
        hashes, rows = hashes[:size], rows[firsts[:size]]
    if rows is None or found is None:
        raise ValueError("X has no rows: every chunk is empty.")
    return Sample(np.ascontiguousarray(rows), times, n, float(np.mean(found.variance)), largest)


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
