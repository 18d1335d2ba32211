"""Lloyd's algorithm with bounds: an assigner that keeps bounds on distances, and the engine around it."""

import numpy as np

from coterie import threads
from coterie.kmeans import iteration
from coterie.kmeans.iteration import Centers, OnIteration, Result
from coterie.kmeans.kernel_input import check_centers, check_lengths
from coterie.kmeans.lazy import distances, kernel
from coterie.kmeans.lazy.group_bounds import GroupBounds
from coterie.kmeans.lazy.lanes import vector_bits
from coterie.kmeans.lazy.projected_bounds import ProjectedBounds, directions_of
from coterie.kmeans.lazy.single_bound import SingleBound
from coterie.kmeans.lazy.single_bound import suits as suits_single_bound
from coterie.kmeans.refill import refill
from coterie.kmeans.sphere import on_sphere
from coterie.kmeans.statistics import Statistics

_ROWS_PER_PART = 2_048
_PARTS = 8  # parts of the rows, each with its own sums: memory and the order of the reduction depend on them
REFRESH = 25  # iterations after which sums of double-precision rows are made anew


class Assigner:
    """Assigns the same rows to moving centres repeatedly, and skips what small moves of the centres cannot change.

    ``labels`` are int32, and ``statistics`` the sums and counts of the current assignment, without its inertia.
    ``work`` counts the rows that moved in the last call and, over all calls, the scores computed, those of plain Lloyd,
    and the rows that needed exact distances. The number of threads changes no bit.
    """

    def __init__(self, X: np.ndarray, sample_weight=None, n_threads: int | None = None):
        n = X.shape[0]
        self.X = X
        self.weights = np.empty(0) if sample_weight is None else np.ascontiguousarray(sample_weight, dtype=np.float64)
        check_lengths(n, sample_weight=None if sample_weight is None else self.weights)
        self.n_threads = threads.count(n_threads)
        self.parts = threads.blocks(n, _ROWS_PER_PART, most=_PARTS)
        self.labels = np.full(n, -1, np.int32)
        self.centers: np.ndarray | None = None
        self.n_calls = 0
        self.work = {"moved": 0, "scores": 0, "plain": 0, "settled": 0}

    def _begin(self, centers):
        k, d = centers.shape
        given = self.X, self.weights, self.labels, centers
        self.bounds: SingleBound | GroupBounds | ProjectedBounds
        if suits_single_bound(self.X, k):
            self.bounds = SingleBound(*given)
        elif (directions := directions_of(self.X, k)) is not None:
            self.bounds = ProjectedBounds(*given, directions)
        else:
            self.bounds = GroupBounds(*given)
        self.statistics = Statistics.zero(k, d)
        self.members = np.zeros(k, np.int64)
        self._sums = np.zeros((len(self.parts), k, d))

    def assign(self, centers: np.ndarray) -> np.ndarray:
        """The labels of all rows for these centres (k, d), the lowest index in a tie."""
        centers = np.ascontiguousarray(centers, dtype=np.float64)
        check_centers(self.X, centers)
        if self.centers is None:
            self._begin(centers)
        self.bounds.prepare(centers, self.n_threads)
        self.centers = centers
        k = len(centers)
        counts = np.zeros((len(self.parts), k))
        members = np.zeros((len(self.parts), k), np.int64)
        work = np.zeros((len(self.parts), 3), np.int64)
        self._sums.fill(0.0)

        def task(p, start, stop):
            self.bounds.assign(start, stop, kernel.Changes(self._sums[p], counts[p], members[p], work[p]))

        self._in_parts(task)
        self._update(counts, members, work)
        return self.labels

    def _in_parts(self, task) -> list:
        """``task(part, start, stop)`` of every part of the rows."""
        return threads.run(lambda p: task(p, *self.parts[p]), len(self.parts), self.n_threads)

    def _update(self, counts, members, work):
        moved, scores, settled = work.sum(axis=0)
        self.work["moved"] = int(moved)
        self.work["scores"] += int(scores)
        self.work["plain"] += self.X.shape[0] * len(self.members)
        self.work["settled"] += int(settled)
        self.members += members.sum(axis=0)
        self.n_calls += 1
        if moved and self.X.dtype == np.float64 and self.n_calls % REFRESH == 0:
            self.statistics = self.fresh_statistics()
            return
        change = Statistics(self._sums.sum(axis=0), counts.sum(axis=0))
        self.statistics = self.statistics + change
        empty = self.members == 0
        self.statistics.sums[empty] = 0.0
        self.statistics.counts[empty] = 0.0

    def fresh_statistics(self, weights: np.ndarray | None = None) -> Statistics:
        """Sums and counts of the current labels, computed from all rows so that no rounding errors accumulate.

        ``weights`` (n,) replace the sample weights.
        """
        weights = self.weights if weights is None else weights
        counts = np.zeros((len(self.parts), len(self.members)))
        self._sums.fill(0.0)

        self._in_parts(
            lambda p, *rows: distances.add_rows(self.X, weights, *rows, self.labels, self._sums[p], counts[p])
        )
        return Statistics(self._sums.sum(axis=0), counts.sum(axis=0))

    def sq_distances(self) -> np.ndarray:
        """The squared distance of every row to its own centre, from differences in double precision."""
        out = np.empty(self.X.shape[0])
        self._in_parts(lambda p, *rows: distances.own_sq_distances(self.X, *rows, self.centers, self.labels, out))
        return out

    def inertia(self) -> float:
        """The weighted sum of squared distances to the own centres."""
        assert self.centers is not None
        near = self.centers.astype(self.X.dtype)
        parts = self._in_parts(lambda p, *rows: distances.inertia_of(self.X, self.weights, *rows, near, self.labels))
        return float(sum(parts))

    def means(self) -> np.ndarray:
        """The next centres: the means of the clusters, after empty clusters have been filled."""
        assert self.centers is not None
        statistics = self.statistics
        if (self.members == 0).any():
            statistics = Statistics(statistics.sums.copy(), statistics.counts.copy())
            weights = self.weights if len(self.weights) else None
            refill(self.X, self.labels, self.sq_distances(), statistics.sums, statistics.counts, weights)
        return statistics.centers(self.centers)


class Seen:
    """The result of an E-step. The objective is computed only on request."""

    def __init__(self, assigner: Assigner, spherical: bool):
        self._assigner, self._spherical = assigner, spherical
        self.labels = assigner.labels
        self.moved = assigner.work["moved"] / len(assigner.labels)

    @property
    def objective(self) -> float:
        return self._assigner.inertia() * (0.5 if self._spherical else 1.0)  # 1 - ⟨x, c⟩ = ‖x - c‖²/2 on the sphere


class Lazy:
    """Lloyd's algorithm as an engine, with centres in double precision for any precision of the rows."""

    labels_decide = True

    def __init__(self, assigner: Assigner, spherical: bool):
        self.assigner, self.spherical = assigner, spherical

    def e_step(self, state: Centers) -> Seen:
        self.assigner.assign(state.places)
        return Seen(self.assigner, self.spherical)

    def m_step(self, state: Centers, seen: Seen) -> Centers:
        means = self.assigner.means()
        if self.spherical:  # a cluster whose rows cancel has no direction: its centre stays
            means = np.where(np.any(means, axis=1, keepdims=True), on_sphere(means), state.places)
        return Centers(means)


def run(
    X: np.ndarray,
    centers: np.ndarray,
    *,
    spherical: bool = False,
    sample_weight=None,
    max_iter: int = 300,
    tol: float = 0.0,
    n_threads: int | None = None,
    on_iteration: OnIteration | None = None,
) -> Result:
    """Lloyd's algorithm from the given centres, with the iterations and stopping rules of scikit-learn's ``lloyd``.

    Single-precision rows are clustered as if they were in double precision, without a copy: sums and centres are in
    double precision, and exact distances decide where rounding could. Only the final centres are rounded.

    The parameters are those of :func:`coterie.kmeans.engines.run`. If ``spherical``, the rows are unit vectors, centres
    are normalised after every update, and the inertia is the sum of 1 - ⟨x, c⟩.
    """
    assigner = Assigner(X, sample_weight, n_threads)
    lazy = Lazy(assigner, spherical)
    start = np.array(np.asarray(centers, dtype=X.dtype), dtype=np.float64, order="C")
    ran = iteration.iterate(lazy, Centers(start), max_iter=max_iter, tol=tol, on_iteration=on_iteration)
    rounded = ran.state.places.astype(X.dtype)
    if ran.n_iter == 0 or assigner.work["moved"] or X.dtype != np.float64:
        assigner.assign(rounded)  # labels of the final centres
    else:
        assigner.centers = rounded
    engine = f"lazy, vectors of {vector_bits()} bits"
    objective = Seen(assigner, spherical).objective
    return Result(rounded, assigner.labels, objective, ran.n_iter, ran.converged, engine=engine)
