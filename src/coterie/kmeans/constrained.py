"""k-means under constraints: rows with given labels keep them, linked rows share a cluster, separated rows do not.

Lloyd's algorithm with two changes. A group of rows that must share a cluster moves as one point, its weighted mean,
and starts from given labels where there are some (Basu, Banerjee and Mooney 2002, "Semi-supervised clustering by
seeding"). Groups that must be apart choose their centres one after another, each the nearest that is still allowed
(Wagstaff et al. 2001, "Constrained k-means clustering with background knowledge").
"""

from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from coterie.constraints import Constraints
from coterie.kmeans.iteration import Centers, OnIteration, Result, iterate


class Assigned(NamedTuple):
    labels: np.ndarray  # (N,)
    objective: float
    moved: float | None
    costs: np.ndarray  # (N,)


class ConstrainedEngine:
    """Lloyd's algorithm on rows, some of which are bound."""

    labels_decide = True

    def __init__(self, X: np.ndarray, weight: np.ndarray | None, known: Constraints):
        self.X = np.asarray(X, dtype=np.float64)
        self.weight = np.ones(len(X)) if weight is None else weight
        self.known = known
        self.bound = np.flatnonzero(known.group >= 0)
        self.separated = [known.separated_from(group) for group in range(known.n_groups)]
        self.last: np.ndarray | None = None

    def e_step(self, state: Centers) -> Assigned:
        sq_NK = cdist(self.X, state.places, "sqeuclidean")
        labels = sq_NK.argmin(axis=1)
        labels[self.bound] = self._of_groups(sq_NK)[self.known.group[self.bound]]
        costs = sq_NK[np.arange(len(labels)), labels]
        moved = None if self.last is None else float((labels != self.last).mean())
        self.last = labels
        return Assigned(labels, float(self.weight @ costs), moved, costs)

    def _of_groups(self, sq_NK: np.ndarray) -> np.ndarray:
        """(G,) the cluster of every group. Those with the most to lose choose first."""
        k = sq_NK.shape[1]
        cost_GK = np.zeros((self.known.n_groups, k))
        np.add.at(cost_GK, self.known.group[self.bound], self.weight[self.bound, None] * sq_NK[self.bound])
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
        k, d = state.places.shape
        counts = np.bincount(found.labels, self.weight, minlength=k)
        sums = np.zeros((k, d))
        np.add.at(sums, found.labels, self.weight[:, None] * self.X)
        places = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1e-300)[:, None], state.places)
        free = np.flatnonzero(self.known.group < 0)
        far = free[np.argsort(-found.costs[free], kind="stable")]
        empty = np.flatnonzero(counts <= 0)[: len(far)]
        places[empty] = self.X[far[: len(empty)]]  # an empty cluster begins again at a distant free row
        return Centers(places)


def run(
    X: np.ndarray,
    start: np.ndarray,
    known: Constraints,
    *,
    sample_weight: np.ndarray | None = None,
    max_iter: int,
    tol: float,
    on_iteration: OnIteration | None = None,
) -> Result:
    """One run. Centres of given labels begin at the mean of their rows, the others at the rows of ``start``."""
    engine = ConstrainedEngine(X, sample_weight, known)
    outcome = iterate(engine, Centers(seeded(engine, start)), max_iter=max_iter, tol=tol, on_iteration=on_iteration)
    engine.last = None
    final = engine.e_step(outcome.state)
    return Result(
        np.asarray(outcome.state.places), final.labels.astype(np.int32), final.objective, outcome.n_iter,
        outcome.converged,
    )  # fmt: skip


def seeded(engine: ConstrainedEngine, start: np.ndarray) -> np.ndarray:
    """Starting centres: the mean of the rows of each given label, then the centres of ``start`` farthest from those."""
    given = engine.known.given
    count = engine.known.n_labels
    if not count:
        return np.asarray(start, dtype=np.float64)
    if count > len(start):
        raise ValueError(f"{count} labels are given, but n_clusters={len(start)}: set n_clusters to {count} or more.")
    means = np.array([engine.X[given == label].mean(axis=0) for label in range(count)])
    far = np.argsort(-cdist(start, means).min(axis=1), kind="stable")[: len(start) - count]
    return np.vstack([means, np.asarray(start, dtype=np.float64)[np.sort(far)]])
