"""Greedy k-means++ for dense and sparse rows, compiled."""

import numpy as np
from numba import types
from numba.extending import overload
from scipy import sparse

from coterie import threads
from coterie.starts.row_order import BUCKET_BITS, ROWS_PER_BLOCK, Order, require_spread
from coterie.threads import kernel


@kernel(fastmath=True)
def _sq_distance_dense(X, i, z):
    total = X[i, 0] * 0
    for j in range(X.shape[1]):
        difference = X[i, j] - z[j]
        total += difference * difference
    return total


@kernel()
def _sq_distance_sparse(data, indices, indptr, i, z, sq_norm):
    """Squared distance from the differences at the non-zero values of the row; exactly 0 for equal rows."""
    total = 0.0
    shared = 0.0
    for p in range(indptr[i], indptr[i + 1]):
        value = z[indices[p]]
        difference = data[p] - value
        total += difference * difference
        shared += value * value
    return total + max(sq_norm - shared, 0.0)


def _sq_distance(rows, i, z, sq_norm):
    """The squared distance of row ``i`` to z, whose squared norm is needed for the three arrays of sparse rows."""
    if isinstance(rows, np.ndarray):
        return _sq_distance_dense(rows, i, z)
    return _sq_distance_sparse(*rows, i, z, sq_norm)


@overload(_sq_distance)
def _compiled_sq_distance(rows, i, z, sq_norm):
    if isinstance(rows, types.Array):
        return lambda rows, i, z, sq_norm: _sq_distance_dense(rows, i, z)
    return lambda rows, i, z, sq_norm: _sq_distance_sparse(rows[0], rows[1], rows[2], i, z, sq_norm)


@kernel()
def _gains(rows, weights, start, stop, candidates, sq_norms, quarter, nearest, sq_nearest, gains):
    """How much each candidate would lower the potential.

    ``quarter`` is (its distance to a centre / 2)². A candidate that is twice as far from the centre of a row as the row
    itself cannot be nearer to the row (triangle inequality).
    """
    for i in range(start, stop):
        current = sq_nearest[i]
        for c in range(candidates.shape[0]):
            if quarter[c, nearest[i]] < current:
                new = _sq_distance(rows, i, candidates[c], sq_norms[c])
                if new < current:
                    gains[c] += weights[i] * (current - new)


@kernel()
def _add(rows, weights, start, stop, center, sq_norm, quarter, index, nearest, sq_nearest, bucket, bucket_mass):
    for i in range(start, stop):
        if quarter[nearest[i]] < sq_nearest[i]:
            new = _sq_distance(rows, i, center, sq_norm)
            if new < sq_nearest[i]:
                sq_nearest[i] = new
                nearest[i] = index
        bucket_mass[bucket[i]] += weights[i] * sq_nearest[i]


class _Potential:
    """The squared distance of every row to its nearest centre, updated while centres are added."""

    def __init__(self, X, weights, bucket, n_clusters, n_threads):
        n, d = X.shape
        self.X, self.weights, self.bucket, self.n_threads = X, weights, bucket, n_threads
        self.arrays = (X.data, X.indices, X.indptr) if sparse.issparse(X) else X
        self.cuts = threads.blocks(n, ROWS_PER_BLOCK, most=8)
        self.centers = np.empty((n_clusters, d), X.dtype)
        self.n_chosen = 0
        self.nearest = np.zeros(n, np.int32)
        self.sq_nearest = np.full(n, np.inf, X.dtype)
        self.bucket_mass = np.zeros(2**BUCKET_BITS)

    def rows(self, rows):
        return self.X[rows].toarray() if sparse.issparse(self.X) else self.X[rows]

    def _quarter(self, candidates):
        """A quarter of the squared distances to the centres, reduced a little as a margin for rounding."""
        if not self.n_chosen:
            return np.zeros((len(candidates), 1), self.X.dtype)
        chosen = self.centers[: self.n_chosen]
        difference = [np.sum((chosen - z) ** 2, axis=1) for z in candidates.astype(np.float64)]
        return (np.array(difference) * 0.24999).astype(self.X.dtype)

    def _sq_norms(self, candidates):
        if not sparse.issparse(self.X):
            return np.zeros(len(candidates))  # not needed
        # summed in the order in which a sparse row is walked, so that equal rows cancel exactly
        return np.array([np.cumsum(z.astype(np.float64) ** 2)[-1] for z in candidates])

    def gains(self, candidates):
        gains = np.zeros((len(self.cuts), len(candidates)))
        sq_norms = self._sq_norms(candidates)
        state = self._quarter(candidates), self.nearest, self.sq_nearest

        def task(b):
            _gains(self.arrays, self.weights, *self.cuts[b], candidates, sq_norms, *state, gains[b])

        threads.run(task, len(self.cuts), self.n_threads)
        return gains.sum(axis=0)

    def add(self, center):
        quarter = self._quarter(center[None])[0]
        masses = np.zeros((len(self.cuts), len(self.bucket_mass)))
        sq_norm = self._sq_norms(center[None])[0]
        state = quarter, self.n_chosen, self.nearest, self.sq_nearest, self.bucket

        def task(b):
            _add(self.arrays, self.weights, *self.cuts[b], center, sq_norm, *state, masses[b])

        threads.run(task, len(self.cuts), self.n_threads)
        self.bucket_mass = masses.sum(axis=0)
        self.centers[self.n_chosen] = center
        self.n_chosen += 1

    def mass(self, rows):
        return self.weights[rows] * self.sq_nearest[rows]


def kmeans_plus_plus(X, n_clusters, rng, weights, n_threads, order: Order):
    potential = _Potential(X, weights, order.bucket, n_clusters, n_threads)
    bucket_mass = np.bincount(order.bucket, weights=weights, minlength=2**BUCKET_BITS)
    first = order.draw(weights.__getitem__, bucket_mass, rng.random_sample(1) * bucket_mass.sum())
    potential.add(potential.rows(first)[0])
    n_candidates = 2 + int(np.log(n_clusters))
    for _ in range(1, n_clusters):
        total = potential.bucket_mass.sum()
        require_spread(total, X)
        targets = rng.random_sample(n_candidates) * total
        candidates = potential.rows(order.draw(potential.mass, potential.bucket_mass, targets))
        gains = potential.gains(candidates)
        # the first candidate within rounding of the best: summation order must not decide
        best = int(np.argmax(gains >= gains.max() - 1e-12 * total))
        potential.add(candidates[best])
    return potential.centers
