"""k-means under constraints: rows with given labels keep them, linked rows share a cluster, separated rows do not.

Lloyd's algorithm with two changes. A group of rows that must share a cluster moves as one point, its weighted mean,
and starts from given labels where there are some (Basu, Banerjee and Mooney 2002, "Semi-supervised clustering by
seeding"). Groups that must be apart choose their centres one after another, each the nearest that is still allowed
(Wagstaff et al. 2001, "Constrained k-means clustering with background knowledge").
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

from coterie.constraints import Constraints
from coterie.kmeans import engines
from coterie.kmeans.algorithm import Algorithm
from coterie.kmeans.iteration import Centers, OnIteration, Result, iterate
from coterie.kmeans.refill import refill
from coterie.kmeans.statistics import Statistics


class Assigned(NamedTuple):
    labels: np.ndarray  # (n,)
    costs: np.ndarray  # (n,)
    statistics: Statistics
    moved: float | None

    @property
    def objective(self) -> float:
        return self.statistics.inertia


class ConstrainedEngine:
    """Lloyd's algorithm on rows, some of which are bound. ``options`` are those of :func:`engines.choose`."""

    labels_decide = True

    def __init__(self, X, algorithm: Algorithm, weight: np.ndarray | None, **options):
        assert algorithm.constraints is not None
        self.X, self.algorithm, self.options = X, algorithm, options
        self.weight = np.ones(X.shape[0]) if weight is None else weight
        self.known: Constraints = algorithm.constraints
        self.bound = np.flatnonzero(self.known.group >= 0)
        self.separated = [self.known.separated_from(group) for group in range(self.known.n_groups)]
        self.last: np.ndarray | None = None

    def e_step(self, state: Centers) -> Assigned:
        labels, costs = engines.choose(self.X, state.places, self.algorithm, **self.options)
        rows = self.X[self.bound]
        if sparse.issparse(rows):
            sq_BK = engines.distances(rows, state.places, self.algorithm, **self.options).astype(np.float64) ** 2
        else:
            sq_BK = cdist(rows, state.places, "sqeuclidean")
        labels[self.bound] = self._of_groups(sq_BK)[self.known.group[self.bound]]
        costs[self.bound] = sq_BK[np.arange(len(self.bound)), labels[self.bound]]
        moved = None if self.last is None else float((labels != self.last).mean())
        self.last = labels
        statistics = Statistics.of(self.X, labels, costs, len(state.places), self.weight)
        return Assigned(labels, costs, statistics, moved)

    def _of_groups(self, sq_BK: np.ndarray) -> np.ndarray:
        """(G,) the cluster of every group. Those with the most to lose choose first."""
        k = sq_BK.shape[1]
        cost_GK = np.zeros((self.known.n_groups, k))
        np.add.at(cost_GK, self.known.group[self.bound], self.weight[self.bound, None] * sq_BK)
        chosen = self.known.label.copy()
        two = np.sort(cost_GK, axis=1)[:, :2]
        for group in np.argsort(-(two[:, -1] - two[:, 0]), kind="stable"):
            if chosen[group] >= 0:
                continue
            taken = chosen[self.separated[group]]
            allowed = np.setdiff1d(np.arange(k), taken)
            if not len(allowed):
                raise ValueError(
                    f"n_clusters={k} is too small for these cannot_link pairs: increase n_clusters, or remove pairs."
                )
            chosen[group] = allowed[cost_GK[group, allowed].argmin()]
        return chosen

    def m_step(self, state: Centers, found: Assigned) -> Centers:
        """The means. An empty cluster takes over distant rows as in every engine, but none that is bound."""
        sums, counts = found.statistics.sums, found.statistics.counts
        free = np.where(self.known.group < 0, found.labels, -1)
        refill(self.X, free, found.costs, sums, counts, self.weight)
        return Centers(Statistics(sums, counts).centers(state.places))

    def start(self, centers: np.ndarray) -> Centers:
        """The means of the rows of each given label, and of the given centres those farthest from these means."""
        centers = np.array(centers, dtype=np.float64)
        k, given = len(centers), self.known.given
        if self.known.n_labels > k:
            raise ValueError(
                f"{self.known.n_labels} labels are given, but n_clusters={k}: set n_clusters to "
                f"{self.known.n_labels} or more."
            )
        own = Statistics.of(self.X, given, np.zeros(len(given)), k, self.weight)
        labelled = own.counts > 0
        if labelled.any():
            means = own.centers(centers)[labelled]
            far = np.argsort(-cdist(centers, means).min(axis=1), kind="stable")[: k - len(means)]
            centers[~labelled] = centers[np.sort(far)]
            centers[labelled] = means
        return Centers(centers)


def run(
    X,
    centers: np.ndarray,
    algorithm: Algorithm,
    *,
    sample_weight: np.ndarray | None = None,
    max_iter: int,
    tol: float,
    on_iteration: OnIteration | None = None,
    **options,
) -> Result:
    """One run under ``algorithm.constraints``, as :func:`coterie.kmeans.engines.run` performs it."""
    engine = ConstrainedEngine(X, algorithm, sample_weight, **options)
    ran = iterate(engine, engine.start(centers), max_iter=max_iter, tol=tol, on_iteration=on_iteration)
    places = ran.state.places.astype(X.dtype)
    last = engine.e_step(Centers(places))
    return Result(places, last.labels, last.objective, ran.n_iter, ran.converged)
