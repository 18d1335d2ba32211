"""Lloyd's algorithm for small tables: all runs of a fit in one batch of array operations, without compiled code.

A small table is clustered in less time than it takes to prepare a call of compiled code, let alone to load it.
Distances are computed from differences in double precision, so labels are those of the other engines.
"""

import math
from typing import NamedTuple

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
    centers = np.asarray(starts, dtype=X.dtype).astype(np.float64)
    table = _Table.of(X, sample_weight, centers)
    n_iter = np.full(len(centers), max_iter)
    converged = np.zeros(len(centers), bool)
    running, old = np.arange(len(centers)), centers  # runs that have not stopped, and their centres
    before = np.zeros((*centers.shape[:2], len(X)), bool)
    for number in range(1, max_iter + 1):
        members = _members(table, old)
        new = _means(table, old, members)
        if spherical:  # a cluster whose rows cancel has no direction: its centre stays
            unit = on_sphere(new.reshape(-1, new.shape[2])).reshape(new.shape)
            new = np.where(np.any(new, axis=2, keepdims=True), unit, old)
        stop = settled(sq_moves(old, new), (members != before).any(axis=(1, 2)), tol)
        old, before = new, members
        if stop.any():
            centers[running], n_iter[running[stop]], converged[running[stop]] = new, number, True
            running, old, before = running[~stop], new[~stop], members[~stop]
            if not running.size:
                break
    centers[running] = old
    results = []
    for r, places in enumerate(centers.astype(X.dtype)):
        labels, sq = choose(table.rows, places)
        inertia = float(sq @ table.weights) * (0.5 if spherical else 1.0)
        results.append(
            Result(places, labels, inertia, int(n_iter[r]), bool(converged[r]), engine="array operations (small table)")
        )
    return results


class _Table(NamedTuple):
    """Rows in double precision, as the runs of a small table read them."""

    rows: np.ndarray  # (n, d)
    weights: np.ndarray  # (n,)
    columns: np.ndarray  # (d + 1, n) the rows, and ones
    weighted: np.ndarray  # (n, d + 1) the rows times their weights, and the weights
    slack: float  # rounding error of a score

    @classmethod
    def of(cls, X: np.ndarray, sample_weight, starts: np.ndarray) -> "_Table":
        n, d = X.shape
        columns = np.ones((d + 1, n))
        columns[:d] = X.T
        weighted = np.ascontiguousarray(columns.T)
        rows = np.ascontiguousarray(weighted[:, :d])
        weights = np.ones(n) if sample_weight is None else sample_weight
        if sample_weight is not None:
            weighted *= weights[:, None]
        # means of rows are not longer than the longest row
        reach = math.sqrt(max(np.einsum("nd,nd->n", part, part).max() for part in (rows, starts.reshape(-1, d))))
        return cls(rows, weights, columns, weighted, (d + 8) * np.finfo(np.float64).eps * 2 * reach * reach)


def _members(table: _Table, centers: np.ndarray) -> np.ndarray:
    """Which rows belong to which centre (runs, k, n) of ``centers`` (runs, k, d).

    Scores |c|²/2 - x·c find the nearest centre. Rows that have two scores within rounding of each other are decided by
    their distances.
    """
    n_runs, k, d = centers.shape
    keys = np.empty((n_runs, k, d + 1))
    np.negative(centers, out=keys[:, :, :d])
    np.multiply(np.einsum("rkd,rkd->rk", centers, centers), 0.5, out=keys[:, :, d])
    scores = keys @ table.columns
    best = scores.min(axis=1, keepdims=True)
    best += 2 * table.slack
    near = scores <= best
    rows = table.rows
    if np.count_nonzero(near) > n_runs * len(rows):
        for r in np.flatnonzero(np.count_nonzero(near, axis=(1, 2)) > len(rows)):
            close = np.flatnonzero(np.count_nonzero(near[r], axis=0) > 1)
            nearest, _ = choose(rows[close], centers[r])
            near[r, :, close] = nearest[:, None] == np.arange(k)
    return near


def _means(table: _Table, centers: np.ndarray, members: np.ndarray) -> np.ndarray:
    totals = members.astype(np.float64) @ table.weighted
    sums, counts = totals[:, :, :-1], totals[:, :, -1]
    if counts.all():
        return sums / counts[:, :, None]
    for r in np.flatnonzero((counts == 0).any(axis=1)):
        labels, sq = choose(table.rows, centers[r])
        refill(table.rows, labels, sq, sums[r], counts[r], table.weights)
    filled = counts[:, :, None] > 0
    return np.where(filled, sums / np.where(filled, counts[:, :, None], 1.0), centers)
