"""Lloyd's algorithm for small tables: all runs of a fit in one batch of array operations, without compiled code.

A small table is clustered in less time than it takes to prepare a call of compiled code, let alone to load it.
Distances are computed from differences in double precision, so labels are those of the other engines.
"""

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

from coterie.kmeans.iteration import Result, settled, sq_moves
from coterie.kmeans.refill import refill
from coterie.kmeans.sphere import on_sphere

LIMIT = 2**17  # coordinates that one assignment compares


def suits(X, n_clusters: int) -> bool:
    """Whether array operations are the fastest way to compare these rows with so many centres."""
    return not sparse.issparse(X) and X.size * n_clusters <= LIMIT


def sq_distances(X: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """The squared distances (n, k) as float64, from the differences."""
    return cdist(X, centers, "sqeuclidean")


def choose(X: np.ndarray, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The nearest centre of every row as int32, the lowest index in a tie, and the squared distance to it."""
    sq = sq_distances(X, centers)
    labels = sq.argmin(axis=1)
    return labels.astype(np.int32), sq[np.arange(len(sq)), labels]


def costs(X: np.ndarray, centers: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The squared distance (n,) of every row to the centre of its label as float64, from the differences."""
    return ((X.astype(np.float64) - centers[labels]) ** 2).sum(axis=1)


def run(
    X: np.ndarray, starts: np.ndarray, *, spherical: bool, sample_weight, max_iter: int, tol: float
) -> list[Result]:
    """One result per start of ``starts`` (runs, k, d). The parameters are those of :func:`coterie.kmeans.lazy.run`."""
    rows = np.asarray(X, dtype=np.float64)
    weights = np.ones(len(rows)) if sample_weight is None else sample_weight
    length = np.sqrt(np.einsum("nd,nd->n", rows, rows))
    centers = np.asarray(starts, dtype=X.dtype).astype(np.float64)
    members = np.zeros((*centers.shape[:2], len(rows)), bool)
    n_iter = np.zeros(len(centers), np.int64)
    converged = np.zeros(len(centers), bool)
    running = np.arange(len(centers))
    while running.size and n_iter[running[0]] < max_iter:
        old = centers[running]
        now = _members(rows, length, old)
        new = _means(rows, weights, old, now)
        if spherical:  # a cluster whose rows cancel has no direction: its centre stays
            new = np.where(np.any(new, axis=2, keepdims=True), _on_spheres(new), old)
        stop = settled(sq_moves(old, new), (now != members[running]).any(axis=(1, 2)), tol)
        centers[running], members[running] = new, now
        n_iter[running] += 1
        converged[running] = stop
        running = running[~stop]
    results = []
    for r, places in enumerate(centers.astype(X.dtype)):
        labels, sq = choose(rows, places)
        inertia = float(sq @ weights) * (0.5 if spherical else 1.0)
        results.append(
            Result(places, labels, inertia, int(n_iter[r]), bool(converged[r]), engine="array operations (small table)")
        )
    return results


def _members(rows, length, centers):
    """Which rows belong to which centre (runs, k, n) of ``centers`` (runs, k, d).

    Scores |c|²/2 - x·c find the nearest centre. Rows that have two scores within rounding of each other are decided by
    their distances.
    """
    n_runs, k, d = centers.shape
    half_sq = 0.5 * np.einsum("rkd,rkd->rk", centers, centers)
    scores = half_sq[:, :, None] - (centers.reshape(n_runs * k, d) @ rows.T).reshape(n_runs, k, -1)
    best = scores.min(axis=1, keepdims=True)
    reach = np.sqrt(2 * half_sq.max(axis=1))[:, None]
    slack = (d + 8) * np.finfo(np.float64).eps * reach * (length + reach)
    near = scores <= best + 2 * slack[:, None]
    if np.count_nonzero(near) > n_runs * len(rows):
        for r in np.flatnonzero(np.count_nonzero(near, axis=(1, 2)) > len(rows)):
            close = np.flatnonzero(np.count_nonzero(near[r], axis=0) > 1)
            nearest, _ = choose(rows[close], centers[r])
            near[r, :, close] = nearest[:, None] == np.arange(k)
    return near


def _means(rows, weights, centers, members):
    shares = members * weights
    sums, counts = shares @ rows, shares.sum(axis=2)
    for r in np.flatnonzero((counts == 0).any(axis=1)):
        labels, sq = choose(rows, centers[r])
        refill(rows, labels, sq, sums[r], counts[r], weights)
    filled = counts[:, :, None] > 0
    return np.where(filled, sums / np.where(filled, counts[:, :, None], 1.0), centers)


def _on_spheres(centers):
    return on_sphere(centers.reshape(-1, centers.shape[2])).reshape(centers.shape)
