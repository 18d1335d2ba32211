"""A stronger learned Lloyd: steps that depend on each centre, and split-and-merge between layers.

The schedule of inverse temperatures, steps and momenta is that of :mod:`coterie.kmeans.learned`. Every centre moves by
its own step:

    step · share^a · lead^b · radius^c

with the share of the points, the lead (mean difference between the squared distances to the second and the first
centre) and the radius (mean squared distance) of the centre's own points, each divided by its mean over the centres.
After every second layer some pairs of clusters are merged and others split: the centre that is least needed moves into
the cluster of largest squared error, if the learned share of that error exceeds what its removal costs. Lloyd's
algorithm then runs to its fixed point, and the loss is the inertia there.
"""

import math
from dataclasses import asdict, dataclass
from functools import cache

import numpy as np

from coterie import checkpoints
from coterie.kmeans.learned import SHIPPED
from coterie.threads import kernel
from coterie_research.kmeans_transformers.learned_lloyd.plain import assign, lloyd, sq_distance

LAYERS = 10
ANNEALING = np.stack([np.geomspace(3.0, 30.0, LAYERS), np.ones(LAYERS), np.zeros(LAYERS)])  # untrained


@cache
def shipped_schedule() -> np.ndarray:
    """Inverse temperatures, steps and momenta (3, layers) of the shipped network."""
    network = checkpoints.load(SHIPPED[LAYERS])
    parts = network.log_gamma.exp(), network.step, network.momentum
    return np.stack([part.detach().double().numpy() for part in parts])


@dataclass(frozen=True)
class Parameters:
    """What is added to a schedule; by default nothing."""

    log_gamma: float = 0.0  # logarithms of factors of all inverse temperatures and steps
    log_step: float = 0.0
    share: float = 0.0
    lead: float = 0.0
    radius: float = 0.0
    log_split: float = 0.0  # of the share of a cluster's squared error that a split is taken to save
    swaps: float = 0.0  # at most, after every second layer; rounded

    def vector(self) -> np.ndarray:
        return np.array(list(asdict(self).values()))


PLAIN = Parameters()
# The start of the training, and what it found: ``coterie reproduce learned-lloyd/training``.
FIRST = Parameters(log_split=math.log(0.2), swaps=1.0)
TRAINED = Parameters(
    log_gamma=-0.0725,
    log_step=-0.1196,
    share=0.0312,
    lead=-0.0488,
    radius=-0.1889,
    log_split=-1.5135,
    swaps=0.7772,
)


@kernel()
def run_layers(X, C, schedule, p):
    """The layers with the parameters ``p`` (7,), then Lloyd's algorithm. Changes ``C`` and returns the inertia."""
    n, k = len(X), len(C)
    sq, before = np.empty((n, k)), C.copy()
    labels, first, second = np.zeros(n, np.int64), np.empty(n), np.empty(n)
    n_layers, n_swaps = schedule.shape[1], round(p[6])
    for layer in range(n_layers):
        gamma, step = schedule[0, layer] * math.exp(p[0]), schedule[1, layer] * math.exp(p[1])
        soft_layer(X, C, before, sq, gamma, step, schedule[2, layer], p[2], p[3], p[4])
        if layer % 2 and layer < n_layers - 1 and n_swaps > 0:
            assign(X, C, labels, first, second)
            split_and_merge(X, C, before, labels, first, second, math.exp(p[5]), n_swaps)
    return lloyd(X, C)


@kernel()
def soft_layer(X, C, before, sq, gamma, step, momentum, share_power, lead_power, radius_power):
    """One layer. Changes the centres; ``before`` becomes what they were."""
    n, d = X.shape
    k = len(C)
    count, lead, radius = np.full(k, 1e-9), np.zeros(k), np.zeros(k)
    scale = 0.0
    best = np.empty(n)
    for i in range(n):
        low, other, label = math.inf, math.inf, 0
        for c in range(k):
            sq[i, c] = sq_distance(X, i, C, c)
            if sq[i, c] < low:
                low, other, label = sq[i, c], low, c
            elif sq[i, c] < other:
                other = sq[i, c]
        best[i] = low
        count[label] += 1
        lead[label] += other - low
        radius[label] += low
        scale += other - low
    scale = max(scale / n, 1e-300)
    total, mass = np.zeros((k, d)), np.full(k, 1e-12)
    weight = np.empty(k)
    for i in range(n):
        reach = 0.0
        for c in range(k):
            weight[c] = math.exp(max(gamma * (best[i] - sq[i, c]) / scale, -50.0))
            reach += weight[c]
        for c in range(k):
            member = weight[c] / reach
            if member > 1e-6:
                mass[c] += member
                for j in range(d):
                    total[c, j] += member * X[i, j]
    mean_lead, mean_radius = (lead / count).mean() + 1e-300, (radius / count).mean() + 1e-300
    for c in range(k):
        own = step
        if count[c] >= 1:
            own *= (count[c] * k / n) ** share_power
            own *= (lead[c] / count[c] / mean_lead + 1e-3) ** lead_power
            own *= (radius[c] / count[c] / mean_radius + 1e-3) ** radius_power
        own = min(max(own, 0.0), 4.0)
        for j in range(d):
            now = C[c, j]
            if mass[c] > 1e-9:
                C[c, j] += own * (total[c, j] / mass[c] - now)
            C[c, j] += momentum * (now - before[c, j])
            before[c, j] = now


@kernel()
def split_and_merge(X, C, before, labels, first, second, saved, n_swaps):
    """Up to ``n_swaps`` centres that cost least to remove move into the clusters of largest squared error."""
    k = len(C)
    needed, error, used = np.zeros(k), np.zeros(k), np.zeros(k, np.bool_)
    for i in range(len(X)):
        needed[labels[i]] += second[i] - first[i]
        error[labels[i]] += first[i]
    for _ in range(min(n_swaps, k // 2)):
        out, into = -1, -1
        for c in range(k):
            if not used[c]:
                out = c if out < 0 or needed[c] < needed[out] else out
                into = c if into < 0 or error[c] > error[into] else into
        if out < 0 or out == into or saved * error[into] <= needed[out]:
            return
        used[out] = used[into] = True
        split(X, labels, into, C, out)
        before[out], before[into] = C[out], C[into]


@kernel()
def split(X, labels, into, C, out):
    """Centres ``into`` and ``out`` along the principal axis of the points of ``into``, a standard deviation apart."""
    d = X.shape[1]
    axis, new = np.zeros(d), np.zeros(d)
    far, at = -1.0, 0
    for i in range(len(X)):
        if labels[i] == into:
            sq = sq_distance(X, i, C, into)
            if sq > far:
                far, at = sq, i
    axis[:] = X[at] - C[into]
    var = 0.0
    for _ in range(3):  # power iterations
        length = math.sqrt((axis * axis).sum()) + 1e-300
        axis /= length
        new[:] = 0.0
        var, count = 0.0, 0
        for i in range(len(X)):
            if labels[i] == into:
                along = 0.0
                for j in range(d):
                    along += (X[i, j] - C[into, j]) * axis[j]
                for j in range(d):
                    new[j] += along * (X[i, j] - C[into, j])
                var += along * along
                count += 1
        var /= max(count, 1)
        axis, new = new.copy(), axis
    move = new * math.sqrt(var)
    C[out] = C[into] + move
    C[into] -= move
