"""k-medoids on squared distances: the sampler of Clarkson et al. (2025), and an annealed version that keeps the best.

Rows must be distinct and in a fixed order, which the estimator ensures, so that the result depends only on the rows and
their weights. A row of weight w takes part in a draw as w rows would: its Gumbel noise is raised by log w.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie import em
from coterie.kmeans.lazy.distances import sq_distance
from coterie.threads import kernel


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


@kernel()
def _nearest(X, places, labels, cost):
    for i in range(X.shape[0]):
        best, which = np.inf, 0
        for j in range(places.shape[0]):
            distance = sq_distance(X, i, places, j)
            if distance < best:
                best, which = distance, j
        labels[i], cost[i] = which, best


@kernel()
def _two_nearest(X, i, medoids, which, next_, first, second):
    """Find the two medoids nearest to row ``i`` and its squared distances to them."""
    first[i], second[i] = np.inf, np.inf
    for j in range(medoids.shape[0]):
        distance = sq_distance(X, i, X, medoids[j])
        if distance < first[i]:
            next_[i], second[i] = which[i], first[i]
            which[i], first[i] = j, distance
        elif distance < second[i]:
            next_[i], second[i] = j, distance


@kernel()
def _replace(sq, X, medoids, goes, candidate, which, next_, first, second):
    """Replace a medoid and update the two nearest medoids of every row, most of them by the distance ``sq`` alone."""
    medoids[goes] = candidate
    for i in range(X.shape[0]):
        if which[i] == goes and sq[i] <= second[i]:
            first[i] = sq[i]
        elif which[i] == goes or (next_[i] == goes and sq[i] > second[i]):
            _two_nearest(X, i, medoids, which, next_, first, second)
        elif sq[i] < first[i]:
            next_[i], second[i] = which[i], first[i]
            which[i], first[i] = goes, sq[i]
        elif sq[i] < second[i]:
            next_[i], second[i] = goes, sq[i]


@kernel()
def _change(sq, weight, which, first, second, without):
    """The medoid that a candidate at squared distances ``sq`` replaces best, and how much that changes the cost.

    A point that is nearer to the candidate than to its medoid gains, whichever medoid is replaced. Any other point
    loses only if its own medoid is replaced: it then moves to its second medoid or to the candidate. So one pass over
    the points evaluates all k swaps (FasterPAM; Schubert and Rousseeuw, 2021). ``without`` (k,) begins as what the
    removal of each medoid costs.
    """
    gain = 0.0
    for i in range(sq.shape[0]):
        if sq[i] < second[i]:
            if sq[i] < first[i]:
                gain += weight[i] * (sq[i] - first[i])
                without[which[i]] += weight[i] * (first[i] - second[i])
            else:
                without[which[i]] += weight[i] * (sq[i] - second[i])
    goes = np.argmin(without)
    return goes, gain + without[goes]


@kernel()
def _removal(weight, which, first, second, loss):
    loss[:] = 0.0
    for i in range(which.shape[0]):
        loss[which[i]] += weight[i] * (second[i] - first[i])
    return -1e-9 * np.sum(weight * first)


@kernel()
def _try_block(X, weight, medoids, candidates, sq, which, next_, first, second, quiet, enough):
    """Try candidates at squared distances ``sq`` (block, n), up to rounding. Count those that changed nothing.

    A swap that seems to lower the cost is made only if distances from differences confirm it, so that no rounding can
    make the swaps go on for ever.
    """
    loss, exact = np.empty(medoids.shape[0]), np.empty(X.shape[0])
    least = _removal(weight, which, first, second, loss)
    for c in range(candidates.shape[0]):
        if quiet >= enough:
            break
        quiet += 1
        if _change(sq[c], weight, which, first, second, loss.copy())[1] < least:
            for i in range(X.shape[0]):
                exact[i] = sq_distance(X, i, X, candidates[c])
            goes, change = _change(exact, weight, which, first, second, loss.copy())
            if change < least:
                _replace(exact, X, medoids, goes, candidates[c], which, next_, first, second)
                least = _removal(weight, which, first, second, loss)
                quiet = 0
    return quiet


@kernel()
def _all_two_nearest(X, medoids, which, next_, first, second):
    for i in range(X.shape[0]):
        _two_nearest(X, i, medoids, which, next_, first, second)


_BLOCK = 2**16  # distances between candidates and rows at a time: they stay in the cache


def _swap(X, weight, medoids, candidates) -> None:
    """Try each candidate in place of the medoid that it replaces best, until a whole round changes nothing."""
    n = len(X)
    state = np.zeros(n, np.int64), np.zeros(n, np.int64), np.empty(n), np.empty(n)
    _all_two_nearest(X, medoids, *state)
    centred = X - X.mean(axis=0)
    sq_norms = np.einsum("nd,nd->n", centred, centred)
    size = int(np.clip(_BLOCK // n, 1, len(candidates)))
    quiet, position = 0, 0
    while quiet < len(candidates):
        block = candidates[position : position + size]
        position = 0 if position + size >= len(candidates) else position + size
        sq = centred[block] @ centred.T
        sq *= -2
        sq += sq_norms
        sq += sq_norms[block, None]
        quiet = _try_block(X, weight, medoids, block, sq, *state, quiet, len(candidates))
