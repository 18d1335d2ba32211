"""Lloyd's algorithm over chunks of rows that are read again in every pass, and the incremental update.

A pass adds up the plain statistics of its chunks, so its M-step is that of the in-memory engines: centres agree
with theirs to the rounding of the sums.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie import em, starts, threads
from coterie.kmeans.engine import Centers
from coterie.kmeans.lazy import Assigner
from coterie.kmeans.refill import refill
from coterie.kmeans.result import Result
from coterie.kmeans.statistics import Statistics


@dataclass(frozen=True)
class Seen:
    """The part of an E-step that progress is told of. No labels are kept."""

    labels: None
    objective: float
    moved: float | None = None


SAMPLE = 50_000  # distinct rows that a start looks at, at least


def statistics_of(X, centers, sample_weight=None, n_threads=None) -> tuple[Statistics, np.ndarray]:
    """Statistics and labels of one chunk for these centres."""
    assigner = Assigner(X, sample_weight, n_threads)
    labels = assigner.assign(centers)
    found = assigner.statistics
    return Statistics(found.sums, found.counts, assigner.inertia()), labels


def update(
    statistics: Statistics | None, centers: np.ndarray, X, sample_weight=None, n_threads=None
) -> tuple[Statistics, np.ndarray, np.ndarray]:
    """One ``partial_fit``: add a chunk to all that was seen before.

    Returns
    -------
    statistics : Statistics
        Of all chunks so far, each assigned by the centres of its time; the inertia is that of this chunk.
    centers : array of shape (k, d)
        Their means. A cluster that no row has come to yet stays where it is.
    labels : int32 array
        Of this chunk, by the centres before the update.
    """
    new, labels = statistics_of(X, centers, sample_weight, n_threads)
    total = new if statistics is None else Statistics(statistics.sums, statistics.counts) + new
    return total, total.centers(centers), labels


def run(
    chunks: Iterable[np.ndarray],
    centers: np.ndarray,
    *,
    max_iter: int = 300,
    tol: float = 0.0,
    n_threads: int | None = None,
    on_iteration: Callable[[em.Iteration], Any] | None = None,
) -> Result:
    """Lloyd's algorithm where every pass reads ``chunks`` once more; stops as :func:`coterie.kmeans.lazy.run` does.

    Labels that repeat give the same sums to the last bit, hence a move of exactly 0: no labels need be kept. Only
    one chunk and O(k d) are in memory, and at the end the labels.
    """
    dtype = np.asarray(centers).dtype

    def e_step(centers):
        total = Statistics.zero(*centers.shape)
        for X in chunks:
            total = total + statistics_of(X, centers, None, n_threads)[0]
        return total

    def m_step(centers, statistics):
        if (statistics.counts <= 0).any():
            _refill(chunks, centers, statistics, n_threads)
        return statistics.centers(centers)

    def stop(old, new, statistics):
        return float(((new - old) ** 2).sum()) <= tol

    def report(done: em.Iteration) -> Any:
        assert on_iteration is not None
        seen = Seen(None, done.expectation.inertia)
        return on_iteration(em.Iteration(done.number, done.max_iter, Centers(done.state), seen))

    start = np.array(centers, dtype=np.float64, order="C")
    watch = report if on_iteration is not None else None
    outcome = em.run(start, e_step, m_step, max_iter=max_iter, stop=stop, on_iteration=watch)
    final = outcome.state.astype(dtype)
    labels, inertia = [], 0.0
    for X in chunks:
        found, block_labels = statistics_of(X, final, None, n_threads)
        labels.append(block_labels)
        inertia += found.inertia
    return Result(final, np.concatenate(labels), inertia, outcome.n_iter, outcome.converged)


def _refill(chunks, centers, statistics, n_threads) -> None:
    """The shared refill on the farthest rows of all chunks, with all copies of each."""
    wanted = 2 * len(centers) + 1  # groups of equal rows that the refill may have to look at
    rows, labels, distances = np.empty((0, centers.shape[1])), np.empty(0, np.int32), np.empty(0)
    for X in chunks:
        assigner = Assigner(X, None, n_threads)
        assigner.assign(centers)
        own = assigner.sq_distances()
        distances = np.concatenate([distances, own])
        different = np.unique(distances)
        far = distances >= different[max(0, len(different) - wanted)]
        seen = len(rows)
        rows = np.concatenate([rows[far[:seen]], X[far[seen:]]])
        labels = np.concatenate([labels[far[:seen]], assigner.labels[far[seen:]]])
        distances = distances[far]
    refill(rows, labels, distances, statistics.sums, statistics.counts)


def sample(chunks: Iterable[np.ndarray], n_clusters: int, n_threads=None) -> tuple[np.ndarray, np.ndarray, int]:
    """Distinct rows with the smallest hashes, how often each occurs, and the number of all rows.

    Where all distinct rows fit, that is all of them, and a start made from the sample is the start of the whole.
    """
    size = max(SAMPLE, 20 * n_clusters)
    count = threads.count(n_threads)
    rows: np.ndarray | None = None
    hashes: np.ndarray = np.empty(0, np.uint64)
    times: np.ndarray = np.empty(0)
    n = 0
    for X in chunks:
        n += len(X)
        rows = X if rows is None else np.concatenate([rows, X])
        hashes = np.concatenate([hashes, starts.hash_rows(X, count)])
        times = np.concatenate([times, np.ones(len(X))])
        hashes, firsts, group = np.unique(hashes, return_index=True, return_inverse=True)
        times = np.bincount(group, weights=times)[:size]
        hashes, rows = hashes[:size], rows[firsts[:size]]
    if rows is None:
        raise ValueError("There are no rows: every chunk is empty.")
    return np.ascontiguousarray(rows), times, n
