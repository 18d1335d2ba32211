"""Starting centres: greedy k-means++, random rows, a spectral start, an array or a callable.

A start is a function of the distinct rows and their total weights. It does not depend on the order of the rows, and a
row of weight 2 is equivalent to two copies of the row. Rows are therefore drawn in the order of a 64-bit key of their
values, which depends neither on their position nor on their dtype nor on whether they are stored as sparse. A power of
two by which X is multiplied does not change the order either.
"""

from collections.abc import Iterator

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, eigsh

from coterie import em, threads
from coterie.starts import small_plus_plus
from coterie.starts.row_order import SMALL, Order, distinct, has_distinct_rows, hash_rows

N_COMPONENTS = 50  # of rows, between which nearest neighbours are looked for


def choose(X, n_clusters, init, rng, sample_weight=None, n_threads=None, trim=0.0) -> np.ndarray:
    """The starting centres (n_clusters, d), in the dtype of X; some are repeated if X has fewer distinct rows.

    "k-means++" is greedy: it takes the best of ``2 + int(log(n_clusters))`` candidates in each round. With ``trim``, it
    neither draws the farthest rows of this share nor counts their distances. "random" draws distinct rows by weight.
    "spectral" clusters the projections on the top ``min(n_clusters, d)`` eigenvectors of the second moment and returns
    the means of the original rows. An array is taken as it is, and a callable is called as ``init(X, n_clusters,
    random_state)``.
    """
    return next(several(X, n_clusters, init, rng, 1, sample_weight, n_threads, trim))


def several(
    X, n_clusters, init, rng, n_runs: int, sample_weight=None, n_threads=None, trim=0.0
) -> Iterator[np.ndarray]:
    """The starts of ``n_runs`` runs, which share what does not depend on ``rng``. Parameters as for :func:`choose`."""
    if not isinstance(init, str):
        for _ in range(n_runs):
            centers = init(X, n_clusters, random_state=rng) if callable(init) else init
            yield checked(centers, n_clusters, X.shape[1], X.dtype)
        return
    names = ["k-means++", *_OTHERS]
    if init not in names:
        raise ValueError(f"init must be one of {sorted(names)}, an array or a callable; got {init!r}.")
    weights = np.ones(X.shape[0]) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    count = threads.count(n_threads)
    if not has_distinct_rows(X, n_clusters):
        rows, _ = distinct(hash_rows(X, count), weights)
        yield from (_dense(X, np.resize(rows, n_clusters)) for _ in range(n_runs))
    elif init == "k-means++":
        yield from _plus_plus(X, n_clusters, rng, n_runs, weights, count, trim)
    else:
        yield from (_OTHERS[init](X, n_clusters, rng, weights, count) for _ in range(n_runs))


def _plus_plus(X, n_clusters, rng, n_runs, weights, n_threads, trim):
    if trim > 0:
        return (small_plus_plus.trimmed(X, n_clusters, rng, weights, n_threads, trim) for _ in range(n_runs))
    if not sparse.issparse(X) and X.size <= SMALL:
        return iter(small_plus_plus.plus_plus(X, n_clusters, rng, weights, n_runs))
    from coterie.starts.plus_plus import kmeans_plus_plus

    order = Order.of(hash_rows(X, n_threads))
    return (kmeans_plus_plus(X, n_clusters, rng, weights, n_threads, order) for _ in range(n_runs))


def checked(centers, n_clusters: int, n_features: int, dtype) -> np.ndarray:
    """Validate starting centres given by the user."""
    centers = centers.toarray() if sparse.issparse(centers) else np.asarray(centers)
    if centers.shape != (n_clusters, n_features):
        raise ValueError(
            f"init must have shape (n_clusters, n_features) = ({n_clusters}, {n_features}); "
            f"got an array of shape {centers.shape}."
        )
    centers = np.array(centers, dtype=dtype, order="C")
    if not np.isfinite(centers).all():
        raise ValueError("init contains NaN or infinity: every starting centre must be finite.")
    return centers


def _dense(X, rows) -> np.ndarray:
    return X[rows].toarray() if sparse.issparse(X) else X[rows]


def _random(X, n_clusters, rng, weights, n_threads):
    rows, totals = distinct(hash_rows(X, n_threads), weights)
    # The k largest u ** (1 / w) are k draws by weight without replacement (Efraimidis and Spirakis).
    keys = np.log(1.0 - rng.random_sample(len(rows))) / totals
    return _dense(X, rows[np.argsort(-keys, kind="stable")[:n_clusters]])


def _spectral(X, n_clusters, rng, weights, n_threads, max_iter=100):
    from coterie.starts.plus_plus import kmeans_plus_plus

    hashes = hash_rows(X, n_threads)
    rows, totals = distinct(hashes, weights)
    projected = np.ascontiguousarray((X @ _top_eigenvectors(X, weights, min(n_clusters, X.shape[1])))[rows])
    centers = kmeans_plus_plus(projected, n_clusters, rng, totals, n_threads, Order.of(hashes[rows]))

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
        means[k] = _dense(X, rows[[nearest]])[0]
    return means.astype(X.dtype)


def neighbour_graph(X, n_threads: int = 1) -> tuple[sparse.csr_matrix, np.ndarray]:
    """The graph of the distinct rows, and the node of every row. The time is quadratic in the number of rows."""
    from coterie.geometry import neighbours

    hashes = hash_rows(X, n_threads)
    rows, totals = distinct(hashes, np.ones(X.shape[0]))
    nodes = X[rows]
    if X.shape[1] > N_COMPONENTS or sparse.issparse(X):
        nodes = nodes @ _top_eigenvectors(nodes, totals, min(N_COMPONENTS, X.shape[1]))
    return neighbours.graph_of(np.asarray(nodes), n_threads), np.searchsorted(hashes[rows], hashes)


def _means(X, labels, weights, n_clusters):
    membership = sparse.csr_matrix((weights, (labels, np.arange(len(labels)))), shape=(n_clusters, len(labels)))
    counts = np.bincount(labels, weights=weights, minlength=n_clusters)
    sums = membership @ X
    sums = sums.toarray() if sparse.issparse(sums) else sums
    return sums / np.where(counts > 0, counts, 1.0)[:, None], counts


def _top_eigenvectors(X, weights, n_vectors):
    """The leading eigenvectors of the weighted second moment as columns, in the dtype of ``X``."""
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


_OTHERS = {"random": _random, "spectral": _spectral}
