"""k-medoids on squared distances: the sampler of Clarkson et al. (2025), and an annealed version that keeps the best.

Rows must be distinct and in a fixed order, which the estimator ensures, so that the result depends only on the rows and
their weights. A row of weight w takes part in a draw as w rows would: its Gumbel noise is raised by log w.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from coterie import em


@dataclass(frozen=True)
class Chosen:
    """The state: the indices of the medoids and the medoids."""

    indices: np.ndarray  # (k,)
    places: np.ndarray  # (k, d), those rows


@dataclass(frozen=True)
class Assigned:
    labels: np.ndarray  # (n,)
    cost: np.ndarray  # (n,) squared distance to the own medoid
    objective: float


@dataclass(frozen=True)
class Best:
    """The best medoids, their cost, and the number of iterations of the sampler."""

    indices: np.ndarray
    labels: np.ndarray
    objective: float
    n_iter: int


class Sampler:
    """Algorithm 6 on rows X (n, d).

    Row x becomes medoid j with the log weight -gamma ‖x - c_j‖², reduced by 2 delta if x belongs to another cluster.
    Subclasses override ``draw``.
    """

    def __init__(self, X: np.ndarray, weight: np.ndarray, rng: np.random.RandomState, gamma: float, delta: float):
        self.X = np.ascontiguousarray(X, dtype=np.float64)
        self.weight, self.log_weight = weight, np.log(weight)
        self.rng = rng
        self.gamma, self.delta = gamma, delta

    def state(self, indices: np.ndarray) -> Chosen:
        return Chosen(indices, self.X[indices])

    def e_step(self, state: Chosen) -> Assigned:
        labels, cost = np.empty(len(self.X), dtype=np.int64), np.empty(len(self.X))
        _nearest(self.X, state.places, labels, cost)
        return Assigned(labels, cost, float(self.weight @ cost))

    def m_step(self, state: Chosen, assigned: Assigned) -> Chosen:
        return self.state(self.draw(state, assigned))

    def draw(self, state: Chosen, assigned: Assigned) -> np.ndarray:
        drawn = np.empty(len(state.indices), dtype=np.int64)
        for j, center in enumerate(state.places):
            log_p = -self.gamma * ((self.X - center) ** 2).sum(axis=1) - 2 * self.delta * (assigned.labels != j)
            drawn[j] = np.argmax(log_p + self.log_weight + self.rng.gumbel(size=len(self.X)))
        return drawn


class Annealed(Sampler):
    """The sampler with increasing gamma, which draws around the mean of each cluster.

    In a cluster of weight W, medoid i costs W ‖x_i - mean‖² more than the mean would. Drawing with this score is Gibbs
    sampling of the medoids given the assignments, and selects the best medoid as gamma grows. Weights are divided by
    their mean, so that their scale does not matter.
    """

    def __init__(self, X, weight, rng, gammas: np.ndarray):
        super().__init__(X, weight, rng, gamma=float(gammas[0]), delta=np.inf)
        self.gammas = iter(gammas)

    def draw(self, state: Chosen, assigned: Assigned) -> np.ndarray:
        gamma, k = next(self.gammas), len(state.indices)
        counts = np.bincount(assigned.labels, self.weight, minlength=k)
        sums = np.zeros_like(state.places)
        np.add.at(sums, assigned.labels, self.weight[:, None] * self.X)
        means = sums / counts[:, None]
        score = -counts[assigned.labels] / self.weight.mean() * ((self.X - means[assigned.labels]) ** 2).sum(axis=1)
        score = gamma * score + self.log_weight + self.rng.gumbel(size=len(score))
        order = np.lexsort((-score, assigned.labels))
        return order[np.searchsorted(assigned.labels[order], np.arange(k))]


def sample(X, weight, start: np.ndarray, rng, gamma: float, delta: float, max_iter: int, on_iteration=None) -> Best:
    """Run the sampler of the paper for ``max_iter`` layers and return the medoids of the last layer."""
    sampler = Sampler(X, weight, rng, gamma, delta)
    ran = em.run(sampler.state(start), sampler.e_step, sampler.m_step, max_iter=max_iter, on_iteration=on_iteration)
    last = sampler.e_step(ran.state)
    return Best(ran.state.indices, last.labels, last.objective, ran.n_iter)


def anneal(
    X, weight, start: np.ndarray, rng, max_iter: int, on_iteration: Callable[[em.Iteration], Any] | None = None
) -> Best:
    """Anneal, keep the best medoids, and improve them by swaps until no swap with a candidate lowers the cost.

    gamma rises from 0.003 to 10, divided by the mean cost of the start. It is small enough at first for the medoids to
    move freely, and large enough at the end for them to stay. Swaps start from the initial medoids and from the best
    ones that annealing found. All rows are candidates while that takes no more than a few seconds; of more rows, a
    sample is drawn by squared distance.
    """
    plain = Sampler(X, weight, rng, gamma=1.0, delta=0.0)
    mean_cost = plain.e_step(plain.state(start)).objective / weight.sum() or 1.0
    sampler = Annealed(X, weight, rng, np.geomspace(0.003, 10.0, max_iter) / mean_cost)
    seen: dict[str, Any] = {"objective": np.inf, "indices": start}

    def remember(state: Chosen) -> Assigned:
        assigned = sampler.e_step(state)
        if assigned.objective < seen["objective"]:
            seen.update(objective=assigned.objective, indices=state.indices)
        return assigned

    ran = em.run(sampler.state(start), remember, sampler.m_step, max_iter=max_iter, on_iteration=on_iteration)
    remember(ran.state)
    ends = []
    for beginning in (start, seen["indices"]):
        indices = np.array(beginning)
        _swap(sampler.X, weight, indices, _candidates(sampler, indices, rng))
        final = sampler.e_step(sampler.state(indices))
        ends.append(Best(indices, final.labels, final.objective, ran.n_iter))
    return min(ends, key=lambda end: end.objective)


SWAP_WORK = 2e9  # multiplications in one round of swaps: a second or two


def _candidates(sampler: Sampler, indices: np.ndarray, rng) -> np.ndarray:
    """The rows to try as medoids, in random order."""
    n, d = sampler.X.shape
    most = int(max(10 * len(indices), SWAP_WORK / (n * d)))
    if n <= most:
        return rng.permutation(n)
    cost = sampler.weight * sampler.e_step(sampler.state(indices)).cost
    return rng.choice(n, size=min(most, np.count_nonzero(cost)), replace=False, p=cost / cost.sum())


@njit(cache=True, nogil=True)
def _sq_distance(a, b):
    total = 0.0
    for f in range(a.shape[0]):
        total += (a[f] - b[f]) * (a[f] - b[f])
    return total


@njit(cache=True, nogil=True)
def _nearest(X, places, labels, cost):
    for i in range(X.shape[0]):
        best, which = np.inf, 0
        for j in range(places.shape[0]):
            distance = _sq_distance(X[i], places[j])
            if distance < best:
                best, which = distance, j
        labels[i], cost[i] = which, best


@njit(cache=True, nogil=True)
def _two_nearest(X, medoids, which, first, second):
    for i in range(X.shape[0]):
        which[i], first[i], second[i] = -1, np.inf, np.inf
        for j in range(medoids.shape[0]):
            distance = _sq_distance(X[i], X[medoids[j]])
            if distance < first[i]:
                second[i] = first[i]
                which[i], first[i] = j, distance
            elif distance < second[i]:
                second[i] = distance


@njit(cache=True, nogil=True)
def _swap(X, weight, medoids, candidates):
    """Try each candidate in place of the medoid whose removal costs least, until a whole round changes nothing.

    A point that is nearer to the candidate than to its medoid gains, whichever medoid is replaced. Any other point
    loses only if its own medoid is replaced: it then moves to its second medoid or to the candidate. So one pass over
    the points evaluates all k swaps.
    """
    n, k = X.shape[0], medoids.shape[0]
    which, first, second = np.empty(n, np.int64), np.empty(n), np.empty(n)
    _two_nearest(X, medoids, which, first, second)
    without = np.empty(k)
    quiet = 0
    position = 0
    while quiet < candidates.shape[0]:
        candidate = candidates[position]
        position = (position + 1) % candidates.shape[0]
        quiet += 1
        gain = 0.0
        without[:] = 0.0
        for i in range(n):
            distance = _sq_distance(X[i], X[candidate])
            if distance < first[i]:
                gain += weight[i] * (distance - first[i])
                without[which[i]] += weight[i] * (first[i] - distance)
            without[which[i]] += weight[i] * (min(distance, second[i]) - first[i])
        goes = np.argmin(without)
        if gain + without[goes] < -1e-9 * np.sum(weight * first):
            medoids[goes] = candidate
            _two_nearest(X, medoids, which, first, second)
            quiet = 0
