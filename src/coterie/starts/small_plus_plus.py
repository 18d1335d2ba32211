"""Greedy k-means++ for small tables: all runs in one batch of array operations, without compiled code."""

import numpy as np
from scipy.spatial.distance import cdist

from coterie.starts.row_order import hash_small, require_spread


def plus_plus(X: np.ndarray, n_clusters: int, rng, weights: np.ndarray, n_runs: int) -> np.ndarray:
    """The starts (n_runs, n_clusters, d) that as many calls of ``kmeans_plus_plus`` draw, up to rounding."""
    order = np.argsort(hash_small(X), kind="stable")
    rows, weights = np.asarray(X[order], dtype=np.float64), weights[order]
    n_candidates = 2 + int(np.log(n_clusters))
    sizes = [1] + [n_candidates] * (n_clusters - 1)
    draws = np.array([np.concatenate([rng.random_sample(size) for size in sizes]) for _ in range(n_runs)])
    runs = np.arange(n_runs)
    chosen = np.empty((n_runs, n_clusters), np.int64)
    chosen[:, :1] = _drawn(np.broadcast_to(weights, (n_runs, len(rows))), draws[:, :1])
    sq_nearest = cdist(rows[chosen[:, 0]], rows, "sqeuclidean")
    for c in range(1, n_clusters):
        mass = weights * sq_nearest
        total = mass.sum(axis=1)
        require_spread(total.min(), X)
        drawn = _drawn(mass, draws[:, 1 + (c - 1) * n_candidates : 1 + c * n_candidates])
        sq = cdist(rows[drawn.ravel()], rows, "sqeuclidean").reshape(n_runs, n_candidates, len(rows))
        np.minimum(sq, sq_nearest[:, None], out=sq)
        costs = sq @ weights
        # the first candidate within rounding of the best: summation order must not decide
        best = np.argmax(costs <= costs.min(axis=1, keepdims=True) + 1e-12 * total[:, None], axis=1)
        chosen[:, c] = drawn[runs, best]
        sq_nearest = sq[runs, best]
    return X[order[chosen]]


def _drawn(mass: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """For each run and share (runs, draws), the row at which the cumulative mass (runs, n) exceeds the share of all."""
    cumulative = np.cumsum(mass, axis=1)
    total = cumulative[:, -1:]
    last = np.argmax(cumulative == total, axis=1)  # the last row with any mass
    found = (cumulative[:, None] <= (shares * total)[:, :, None]).sum(axis=2)
    return np.minimum(found, last[:, None])
