"""Where centres begin: greedy k-means++, random rows, the spectral start, a neighbour graph, an array or a callable.

A start is a function of the distinct rows and their total weights: permuting the rows changes nothing, and a
row of weight 2 is the same as the row twice. Rows are therefore drawn in the order of a 64-bit hash of their
values, which does not depend on where a row stands, on its dtype or on whether it is stored sparse.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, eigsh

from coterie import em, neighbours, threads
from coterie.threads import kernel

_BUCKET_BITS = 12
_ROWS_PER_BLOCK = 16_384


def choose(X, n_clusters, init, rng, sample_weight=None, n_threads=None, trim=0.0) -> np.ndarray:
    """Choose the first centres.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d), float32 or float64, C-contiguous
    n_clusters : int
    init : {"k-means++", "random", "spectral", "neighbour graph"}, array of shape (n_clusters, d) or callable
        "k-means++" is greedy: the best of ``2 + int(log(n_clusters))`` candidates a round. "random" draws
        distinct rows by weight. "spectral" clusters the projections on the top ``min(n_clusters, d)``
        eigenvectors of the second moment and returns the means of the original rows. "neighbour graph" returns the
        means of the clusters of :func:`by_neighbours`. A callable gets ``(X, n_clusters, random_state)``.
    rng : numpy.random.RandomState
    sample_weight : array of shape (n,), optional
        Positive weights.
    n_threads : int, optional
        The result does not depend on it.
    trim : float, default=0.0
        Share of the rows that may be outliers. "k-means++" then never draws among the farthest of them, and does
        not count how far away they are.

    Returns
    -------
    centers : array of shape (n_clusters, d), dtype of ``X``
    """
    require_distinct_rows(X, n_clusters)
    if callable(init):
        return checked(init(X, n_clusters, random_state=rng), n_clusters, X.shape[1], X.dtype)
    if not isinstance(init, str):
        return checked(init, n_clusters, X.shape[1], X.dtype)
    if init not in _STARTS:
        raise ValueError(f"init must be one of {sorted(_STARTS)}, an array or a callable; got {init!r}.")
    weights = np.ones(X.shape[0]) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if init == "k-means++" and trim > 0:
        return _trimmed_plus_plus(X, n_clusters, rng, weights, threads.count(n_threads), trim).astype(X.dtype)
    return _STARTS[init](X, n_clusters, rng, weights, threads.count(n_threads))


def require_distinct_rows(X, n_clusters: int) -> None:
    """Raise ValueError if ``X`` has fewer distinct rows than there are clusters."""
    head = 4 * n_clusters + 64  # nearly always enough to know
    for rows in (X[:head], X):
        distinct = count_distinct_rows(rows)
        if distinct >= n_clusters:
            return
    raise ValueError(
        f"n_clusters={n_clusters} needs at least that many distinct rows, but X has only {distinct} distinct "
        f"row{'s' if distinct != 1 else ''} (n_samples={X.shape[0]}): set n_clusters to {distinct} or less."
    )


def count_distinct_rows(X) -> int:
    """Number of different rows of ``X``."""
    hashes = np.sort(hash_rows(X, threads.count()))
    return int(np.count_nonzero(hashes[1:] != hashes[:-1])) + (len(hashes) > 0)


def _require_spread(total: float, X) -> None:
    """Raise ValueError where different rows are so near that all squared distances are zero."""
    if not total > 0:
        raise ValueError(
            f"The rows of X differ by so little that their squared distances are zero in {X.dtype}: scale the "
            "columns, for example with sklearn.preprocessing.StandardScaler."
        )


def checked(centers, n_clusters: int, n_features: int, dtype) -> np.ndarray:
    """Starting centres that a user gave, or a ValueError."""
    centers = centers.toarray() if sparse.issparse(centers) else np.asarray(centers)
    if centers.shape != (n_clusters, n_features):
        raise ValueError(
            f"init must have shape (n_clusters, n_features) = ({n_clusters}, {n_features}); "
            f"got an array of shape {centers.shape}."
        )
    centers = np.array(centers, dtype=dtype, order="C")
    if not np.isfinite(centers).all():
        raise ValueError("init has NaN or infinite values; every starting centre must be finite.")
    return centers


# --- the canonical order ----------------------------------------------------------------------------------


@kernel()
def _mix(z):
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel()
def _hash_dense(X, start, stop, hashes):
    n_features = X.shape[1]
    values = np.empty(n_features, np.float64)
    bits = values.view(np.uint64)
    for i in range(start, stop):
        for j in range(n_features):
            values[j] = X[i, j]
        total = np.uint64(0)
        for j in range(n_features):
            # zeros, of either sign, add nothing: a sparse row hashes as its dense copy
            term = _mix(bits[j] + np.uint64(j + 1) * np.uint64(0x9E3779B97F4A7C15))
            total += term if values[j] != 0.0 else np.uint64(0)
        hashes[i] = _mix(total)


@kernel()
def _hash_sparse(data, indices, indptr, start, stop, hashes):
    value = np.empty(1, np.float64)
    bits = value.view(np.uint64)
    for i in range(start, stop):
        total = np.uint64(0)
        for p in range(indptr[i], indptr[i + 1]):
            value[0] = data[p]
            if value[0] != 0.0:
                total += _mix(bits[0] + np.uint64(indices[p] + 1) * np.uint64(0x9E3779B97F4A7C15))
        hashes[i] = _mix(total)


def hash_rows(X, n_threads: int) -> np.ndarray:
    """(n,) uint64: equal rows have equal hashes, wherever they stand."""
    hashes = np.empty(X.shape[0], np.uint64)
    cuts = threads.blocks(X.shape[0], _ROWS_PER_BLOCK)

    def task(b):
        if sparse.issparse(X):
            _hash_sparse(X.data, X.indices, X.indptr, *cuts[b], hashes)
        else:
            _hash_dense(X, *cuts[b], hashes)

    threads.run(task, len(cuts), n_threads)
    return hashes


@dataclass(frozen=True)
class _Order:
    """Rows in canonical order, sorted only as far as the top bits of the hash: the buckets."""

    hashes: np.ndarray  # (n,)
    bucket: np.ndarray  # (n,) bucket of each row
    rows: np.ndarray  # (n,) rows by bucket
    begin: np.ndarray  # (buckets + 1,) where each bucket begins in rows

    @classmethod
    def of(cls, hashes):
        bucket = (hashes >> np.uint64(64 - _BUCKET_BITS)).astype(np.uint16)
        begin = np.zeros(2**_BUCKET_BITS + 1, np.int64)
        np.cumsum(np.bincount(bucket, minlength=2**_BUCKET_BITS), out=begin[1:])
        return cls(hashes, bucket, np.argsort(bucket, kind="stable"), begin)

    def draw(self, mass, bucket_mass, targets):
        """For each target the row in which the cumulative mass, in canonical order, crosses it."""
        cumulative = np.cumsum(bucket_mass)
        found = []
        for target in targets:
            b = min(int(np.searchsorted(cumulative, target, side="right")), len(cumulative) - 1)
            while b > 0 and bucket_mass[b] <= 0:  # the target was rounded up to the very end
                b -= 1
            rows = self.rows[self.begin[b] : self.begin[b + 1]]
            rows = rows[np.argsort(self.hashes[rows], kind="stable")]
            inner = np.cumsum(mass(rows))
            at = np.searchsorted(inner, target - (cumulative[b] - bucket_mass[b]), side="right")
            last = np.searchsorted(inner, inner[-1], side="left")  # the last row with any mass
            found.append(rows[min(at, last)])
        return np.array(found)


def _distinct(hashes, weights):
    """One row of each kind in canonical order, and the total weights."""
    rows = np.argsort(hashes, kind="stable")
    starts = np.flatnonzero(np.r_[True, hashes[rows[1:]] != hashes[rows[:-1]]])
    return rows[starts], np.add.reduceat(weights[rows], starts)


# --- greedy k-means++ -------------------------------------------------------------------------------------


@kernel(fastmath=True)
def _sq_distance_dense(X, i, z):
    total = X[i, 0] * 0
    for j in range(X.shape[1]):
        difference = X[i, j] - z[j]
        total += difference * difference
    return total


@kernel()
def _gains_dense(X, weights, start, stop, candidates, quarter, nearest, sq_nearest, gains):
    """How much each candidate would lower the potential. ``quarter`` is (its distance to a centre / 2)²: a
    candidate twice as far from a row's centre as the row itself cannot be nearer (triangle inequality)."""
    for i in range(start, stop):
        current = sq_nearest[i]
        for c in range(candidates.shape[0]):
            if quarter[c, nearest[i]] < current:
                new = _sq_distance_dense(X, i, candidates[c])
                if new < current:
                    gains[c] += weights[i] * (current - new)


@kernel()
def _add_dense(X, weights, start, stop, center, quarter, index, nearest, sq_nearest, bucket, bucket_mass):
    for i in range(start, stop):
        if quarter[nearest[i]] < sq_nearest[i]:
            new = _sq_distance_dense(X, i, center)
            if new < sq_nearest[i]:
                sq_nearest[i] = new
                nearest[i] = index
        bucket_mass[bucket[i]] += weights[i] * sq_nearest[i]


@kernel()
def _sq_distance_sparse(data, indices, indptr, i, z, sq_norm):
    """Direct differences where the row has values; exactly 0 for equal rows."""
    total = 0.0
    shared = 0.0
    for p in range(indptr[i], indptr[i + 1]):
        value = z[indices[p]]
        difference = data[p] - value
        total += difference * difference
        shared += value * value
    return total + max(sq_norm - shared, 0.0)


@kernel()
def _gains_sparse(
    data, indices, indptr, weights, start, stop, candidates, sq_norms, quarter, nearest, sq_nearest, gains
):
    for i in range(start, stop):
        current = sq_nearest[i]
        for c in range(candidates.shape[0]):
            if quarter[c, nearest[i]] < current:
                new = _sq_distance_sparse(data, indices, indptr, i, candidates[c], sq_norms[c])
                if new < current:
                    gains[c] += weights[i] * (current - new)


@kernel()
def _add_sparse(
    data,
    indices,
    indptr,
    weights,
    start,
    stop,
    center,
    sq_norm,
    quarter,
    index,
    nearest,
    sq_nearest,
    bucket,
    bucket_mass,
):
    for i in range(start, stop):
        if quarter[nearest[i]] < sq_nearest[i]:
            new = _sq_distance_sparse(data, indices, indptr, i, center, sq_norm)
            if new < sq_nearest[i]:
                sq_nearest[i] = new
                nearest[i] = index
        bucket_mass[bucket[i]] += weights[i] * sq_nearest[i]


class _Potential:
    """Squared distance of every row to its nearest chosen centre, kept while centres are added."""

    def __init__(self, X, weights, bucket, n_clusters, n_threads):
        n, d = X.shape
        self.X, self.weights, self.bucket, self.n_threads = X, weights, bucket, n_threads
        self.cuts = threads.blocks(n, _ROWS_PER_BLOCK, most=8)
        self.centers = np.empty((n_clusters, d), X.dtype)
        self.n_chosen = 0
        self.nearest = np.zeros(n, np.int32)
        self.sq_nearest = np.full(n, np.inf, X.dtype)
        self.bucket_mass = np.zeros(2**_BUCKET_BITS)

    def rows(self, rows):
        return self.X[rows].toarray() if sparse.issparse(self.X) else self.X[rows]

    def _quarter(self, candidates):
        """A little less than a quarter of the squared distances to the centres: safe against rounding."""
        if not self.n_chosen:
            return np.zeros((len(candidates), 1), self.X.dtype)
        chosen = self.centers[: self.n_chosen]
        difference = [np.sum((chosen - z) ** 2, axis=1) for z in candidates.astype(np.float64)]
        return (np.array(difference) * 0.24999).astype(self.X.dtype)

    def _sq_norms(self, candidates):
        # summed in the order in which a sparse row is walked, so that equal rows cancel exactly
        return np.array([np.cumsum(z.astype(np.float64) ** 2)[-1] for z in candidates])

    def gains(self, candidates):
        quarter, gains = self._quarter(candidates), np.zeros((len(self.cuts), len(candidates)))
        sq_norms = self._sq_norms(candidates) if sparse.issparse(self.X) else None
        X, state = self.X, (quarter, self.nearest, self.sq_nearest)

        def task(b):
            if sparse.issparse(X):
                arrays = (X.data, X.indices, X.indptr)
                _gains_sparse(*arrays, self.weights, *self.cuts[b], candidates, sq_norms, *state, gains[b])
            else:
                _gains_dense(X, self.weights, *self.cuts[b], candidates, *state, gains[b])

        threads.run(task, len(self.cuts), self.n_threads)
        return gains.sum(axis=0)

    def add(self, center):
        quarter = self._quarter(center[None])[0]
        masses = np.zeros((len(self.cuts), len(self.bucket_mass)))
        sq_norm = self._sq_norms(center[None])[0] if sparse.issparse(self.X) else 0.0
        X, state = self.X, (quarter, self.n_chosen, self.nearest, self.sq_nearest, self.bucket)

        def task(b):
            if sparse.issparse(X):
                arrays = (X.data, X.indices, X.indptr)
                _add_sparse(*arrays, self.weights, *self.cuts[b], center, sq_norm, *state, masses[b])
            else:
                _add_dense(X, self.weights, *self.cuts[b], center, *state, masses[b])

        threads.run(task, len(self.cuts), self.n_threads)
        self.bucket_mass = masses.sum(axis=0)
        self.centers[self.n_chosen] = center
        self.n_chosen += 1

    def mass(self, rows):
        return self.weights[rows] * self.sq_nearest[rows]


def _kmeans_plus_plus(X, n_clusters, rng, weights, n_threads, hashes=None):
    order = _Order.of(hash_rows(X, n_threads) if hashes is None else hashes)
    potential = _Potential(X, weights, order.bucket, n_clusters, n_threads)
    bucket_mass = np.bincount(order.bucket, weights=weights, minlength=2**_BUCKET_BITS)
    first = order.draw(weights.__getitem__, bucket_mass, rng.random_sample(1) * bucket_mass.sum())
    potential.add(potential.rows(first)[0])
    n_candidates = 2 + int(np.log(n_clusters))
    for _ in range(1, n_clusters):
        total = potential.bucket_mass.sum()
        _require_spread(total, X)
        targets = rng.random_sample(n_candidates) * total
        candidates = potential.rows(order.draw(potential.mass, potential.bucket_mass, targets))
        gains = potential.gains(candidates)
        # the first candidate within rounding of the best: summation order must not decide
        best = int(np.argmax(gains >= gains.max() - 1e-12 * total))
        potential.add(candidates[best])
    return potential.centers


def _trimmed_plus_plus(X, n_clusters, rng, weights, n_threads, trim):
    """Greedy k-means++ on capped distances: the farthest ``trim`` of the weight is neither drawn nor looked after."""
    rows, totals = _distinct(hash_rows(X, n_threads), weights)
    X = np.asarray(X[rows], dtype=np.float64)
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
            _require_spread(mass.sum(), X)
        targets = rng.random_sample(2 + int(np.log(n_clusters))) * mass.sum()
        drawn = np.minimum(np.searchsorted(np.cumsum(mass), targets, side="right"), np.flatnonzero(mass)[-1])
        closer = [np.minimum(sq_nearest, ((X - X[row]) ** 2).sum(axis=1)) for row in drawn]
        costs = np.array([totals @ np.minimum(sq, cap) for sq in closer])
        best = int(np.argmax(costs <= costs.min() + 1e-12 * abs(costs).max()))
        chosen.append(int(drawn[best]))
        sq_nearest = closer[best]
    return X[chosen]


# --- the other starts -------------------------------------------------------------------------------------


def _random(X, n_clusters, rng, weights, n_threads):
    rows, totals = _distinct(hash_rows(X, n_threads), weights)
    # The k largest u ** (1 / w) are k draws by weight without replacement (Efraimidis and Spirakis).
    keys = np.log(1.0 - rng.random_sample(len(rows))) / totals
    chosen = rows[np.argsort(-keys, kind="stable")[:n_clusters]]
    return X[chosen].toarray() if sparse.issparse(X) else X[chosen]


def _spectral(X, n_clusters, rng, weights, n_threads, max_iter=100):
    hashes = hash_rows(X, n_threads)
    rows, totals = _distinct(hashes, weights)
    projected = np.ascontiguousarray((X @ _top_eigenvectors(X, weights, min(n_clusters, X.shape[1])))[rows])
    centers = _kmeans_plus_plus(projected, n_clusters, rng, totals, n_threads, hashes[rows])

    def e_step(centers):
        scores = projected @ centers.T
        scores *= -2
        scores += np.einsum("kd,kd->k", centers, centers)
        return np.argmin(scores, axis=1)

    def m_step(centers, labels):
        means, counts = _means(projected, labels, totals, n_clusters)
        return np.where(counts[:, None] > 0, means, centers).astype(centers.dtype)

    run = em.run(centers, e_step, m_step, max_iter=max_iter, stop=lambda old, new, labels: np.array_equal(old, new))
    means, counts = _means(X[rows], run.expectation, totals, n_clusters)
    # A cluster that lost its rows keeps, of its projected centre, the nearest row.
    for k in np.flatnonzero(counts == 0):
        nearest = np.argmin(((projected - run.state[k]) ** 2).sum(axis=1))
        means[k] = X[[rows[nearest]]].toarray()[0] if sparse.issparse(X) else X[rows[nearest]]
    return means.astype(X.dtype)


def by_neighbours(X, n_clusters: int, rng, n_threads: int = 1) -> np.ndarray:
    """Cluster of every row by the graph of nearest neighbours of its first principal coordinates."""
    require_distinct_rows(X, n_clusters)
    if n_clusters == 1:
        return np.zeros(X.shape[0], dtype=np.int64)
    graph, node_of_row = neighbour_graph(X, n_threads)
    return neighbours.partition(graph, n_clusters, rng)[node_of_row]


def neighbour_graph(X, n_threads: int = 1, n_components: int = 50) -> tuple[sparse.csr_matrix, np.ndarray]:
    """The graph of the distinct rows, and every row's node in it. Time grows with the square of the rows."""
    hashes = hash_rows(X, n_threads)
    rows, totals = _distinct(hashes, np.ones(X.shape[0]))
    nodes = X[rows]
    if X.shape[1] > n_components or sparse.issparse(X):
        nodes = nodes @ _top_eigenvectors(nodes, totals, min(n_components, X.shape[1]))
    return neighbours.graph_of(np.asarray(nodes), n_threads), np.searchsorted(hashes[rows], hashes)


def _neighbour_graph(X, n_clusters, rng, weights, n_threads):
    labels = by_neighbours(X, n_clusters, rng, n_threads)
    return _means(X, labels, weights, n_clusters)[0].astype(X.dtype)


def _means(X, labels, weights, n_clusters):
    membership = sparse.csr_matrix((weights, (labels, np.arange(len(labels)))), shape=(n_clusters, len(labels)))
    counts = np.bincount(labels, weights=weights, minlength=n_clusters)
    sums = membership @ X
    sums = sums.toarray() if sparse.issparse(sums) else sums
    return sums / np.where(counts > 0, counts, 1.0)[:, None], counts


def _top_eigenvectors(X, weights, n_vectors):
    """Top eigenvectors of the weighted second moment, as columns, in the dtype of ``X``."""
    d = X.shape[1]
    if d <= 2_000:
        weighted = X.multiply(weights[:, None]).tocsr() if sparse.issparse(X) else X * weights[:, None]
        moment = X.T @ weighted
        moment = moment.toarray() if sparse.issparse(moment) else np.asarray(moment, dtype=np.float64)
        return np.linalg.eigh(moment)[1][:, d - n_vectors :].astype(X.dtype)
    operator = LinearOperator((d, d), matvec=lambda v: X.T @ (weights * (X @ v.ravel())), dtype=np.float64)
    if n_vectors >= d - 1:
        return np.eye(d, dtype=X.dtype)  # a rotation of everything changes no distance
    return eigsh(operator, k=n_vectors, v0=np.ones(d))[1].astype(X.dtype)


_STARTS = {
    "k-means++": _kmeans_plus_plus,
    "random": _random,
    "spectral": _spectral,
    "neighbour graph": _neighbour_graph,
}
