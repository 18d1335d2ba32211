"""Greedy k-means++ for data with outliers."""

import numpy as np

from coterie.starts.row_order import distinct, hash_rows, require_spread


def trimmed_plus_plus(X, n_clusters, rng, weights, n_threads, trim):
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
