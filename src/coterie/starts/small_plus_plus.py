"""Greedy k-means++ by array operations, without compiled code: for small tables, and for data with outliers."""

import numpy as np
from scipy.spatial.distance import cdist

from coterie.starts.row_order import distinct, hash_rows, hash_small, require_spread


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


def trimmed(X, n_clusters, rng, weights, n_threads, trim):
    """Greedy k-means++ on capped distances: the farthest rows, a share ``trim`` of the weight, are never drawn."""
    rows, totals = distinct(hash_rows(X, n_threads), weights)
    originals = X[rows]
    X = np.asarray(originals, dtype=np.float64)
    share = np.cumsum(totals) / totals.sum()
    chosen = [int(np.searchsorted(share, rng.random_sample(), side="right"))]
    sq_nearest = ((X - X[chosen[0]]) ** 2).sum(axis=1)
    for _ in range(1, n_clusters):
        order = np.argsort(sq_nearest, kind="stable")
        kept = np.cumsum(totals[order]) <= (1.0 - trim) * totals.sum()
        cap = sq_nearest[order[max(int(np.count_nonzero(kept)) - 1, 0)]]
        mass = totals * sq_nearest * (sq_nearest <= cap)
        if not mass.any():  # nothing but outliers is left
            mass, cap = totals * sq_nearest, np.inf
            require_spread(mass.sum(), X)
        targets = rng.random_sample(2 + int(np.log(n_clusters))) * mass.sum()
        drawn = np.minimum(np.searchsorted(np.cumsum(mass), targets, side="right"), np.flatnonzero(mass)[-1])
        closer = [np.minimum(sq_nearest, ((X - X[row]) ** 2).sum(axis=1)) for row in drawn]
        costs = np.array([totals @ np.minimum(sq, cap) for sq in closer])
        best = int(np.argmax(costs <= costs.min() + 1e-12 * abs(costs).max()))
        chosen.append(int(drawn[best]))
        sq_nearest = closer[best]
    return originals[chosen]
