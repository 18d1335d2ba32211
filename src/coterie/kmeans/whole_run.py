"""Lloyd's algorithm for tables of medium size: a whole run in one call of compiled code.

Between two iterations of a table of some thousand rows, preparing the next call of compiled code takes as long as the
iteration itself. Here the loop around the kernels of the lazy engine is compiled too. It returns to Python only to fill
an empty cluster, by the rule that all engines share.
"""

import numpy as np

from coterie import threads
from coterie.kmeans.iteration import Result, settled, sq_moves
from coterie.kmeans.kernel_input import check_centers, check_cost, check_lengths
from coterie.kmeans.lazy import single_bound
from coterie.kmeans.lazy.distances import add_rows, inertia_of, own_sq_distances
from coterie.kmeans.lazy.engine import REFRESH
from coterie.kmeans.lazy.kernel import Changes
from coterie.kmeans.lazy.lanes import vector_bits
from coterie.kmeans.lazy.single_bound import Bounds, Room, Table, arrange, assign
from coterie.kmeans.refill import refill
from coterie.kmeans.statistics import Statistics
from coterie.threads import kernel

_MOST_VALUES = 2**19  # of a table; larger ones are worth several threads

_settled = kernel()(settled)


def suits(X: np.ndarray, n_clusters: int) -> bool:
    """Whether a run of so many clusters is fastest in one call."""
    return X.size <= _MOST_VALUES and single_bound.suits(X, n_clusters)


def run(
    X: np.ndarray, starts, *, sample_weight=None, max_iter: int, tol: float, n_threads: int | None = None
) -> list[Result]:
    """One result per start (k, d). Several runs are divided among the threads.

    The parameters are those of :func:`coterie.kmeans.lazy.run`.
    """
    weights = np.empty(0) if sample_weight is None else np.ascontiguousarray(sample_weight, dtype=np.float64)
    check_lengths(len(X), sample_weight=None if sample_weight is None else weights)
    table = Table.of(X, weights)
    return threads.run(lambda r: _run(table, starts[r], max_iter, tol), len(starts), threads.count(n_threads))


def _run(table: Table, start: np.ndarray, max_iter: int, tol: float) -> Result:
    X = table.X
    centers = np.array(np.asarray(start, dtype=X.dtype), dtype=np.float64, order="C")
    check_centers(X, centers)
    k, d = centers.shape
    kept = Bounds.of(np.full(len(X), -1, np.int32), centers, X.dtype)
    room = Room.of(table, kept)
    total = Changes(np.zeros((k, d)), np.zeros(k), np.zeros(k, np.int64), np.zeros(3, np.int64))
    n_iter, converged = 0, False
    while n_iter < max_iter and not converged:
        n_done, converged, centers = _iterate(table, kept, room, total, centers, n_iter, max_iter, tol)
        n_iter += n_done
        if n_iter < max_iter and not converged:  # there is an empty cluster
            old, centers = centers, _refilled(table, kept, total, centers)
            converged = bool(settled(sq_moves(old, centers), total.work[0], tol))
            n_iter += 1
    rounded = centers.astype(X.dtype)
    _assign_all(table, kept, room, total, rounded.astype(np.float64))  # labels of the final centres
    inertia = inertia_of(X, table.weights, 0, len(X), rounded, kept.labels)
    check_cost(inertia)
    engine = f"lazy, one call, vectors of {vector_bits()} bits"
    return Result(rounded, kept.labels, float(inertia), n_iter, converged, engine=engine)


def _refilled(table: Table, kept: Bounds, total: Changes, centers: np.ndarray) -> np.ndarray:
    """The next centres if there are empty clusters."""
    costs = np.empty(len(table.X))
    own_sq_distances(table.X, 0, len(costs), centers, kept.labels, costs)
    sums, counts = total.sums.copy(), total.counts.copy()
    refill(table.X, kept.labels, costs, sums, counts, table.weights if len(table.weights) else None)
    return Statistics(sums, counts).centers(centers)


@kernel()
def _assign_all(table, kept, room, total, centers):
    """Assign all rows to these centres, and update the sums. ``total.work[0]`` is the number of rows that moved."""
    total.work[0] = 0
    assign(table, 0, len(table.X), kept, arrange(table, kept, centers), room, total)
    for c in range(len(centers)):
        if total.members[c] == 0:
            total.sums[c] = 0.0
            total.counts[c] = 0.0


@kernel()
def _iterate(table, kept, room, total, centers, n_before, max_iter, tol):
    """Iterate until the run has settled, or until a cluster is empty: that iteration is left without its update.

    Return the number of finished iterations, whether the run has settled, and the centres.
    """
    for number in range(n_before, max_iter):
        _assign_all(table, kept, room, total, centers)
        if total.work[0] and table.X.itemsize == 8 and (number + 1) % REFRESH == 0:
            total.sums[:] = 0.0
            total.counts[:] = 0.0
            add_rows(table.X, table.weights, 0, len(table.X), kept.labels, total.sums, total.counts)
        if (total.members == 0).any():
            return number - n_before, False, centers
        means = np.empty_like(centers)
        moves = 0.0
        for c in range(len(centers)):
            for j in range(centers.shape[1]):
                means[c, j] = total.sums[c, j] / total.counts[c]
                moves += (means[c, j] - centers[c, j]) ** 2
        centers = means
        if _settled(moves, total.work[0], tol):
            return number + 1 - n_before, True, centers
    return max_iter - n_before, False, centers
