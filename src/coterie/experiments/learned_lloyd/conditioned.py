"""A stronger learned Lloyd: steps that depend on each centre, and split-and-merge between layers.

A layer assigns points softly, as in :mod:`coterie.kmeans.learned`, and moves every centre by its own step:

    step · share^a · lead^b · radius^c

with the share of the points, the lead (mean difference between the squared distances to the second and the first
centre) and the radius (mean squared distance) of the centre's own points, each divided by its mean over the centres.
After every second layer some pairs of clusters are merged and others split: the centre that is least needed moves into
the cluster of largest squared error, if the learned share of that error exceeds what its removal costs. Lloyd's
algorithm then runs to its fixed point, and the loss is the inertia there.
"""

import math
from dataclasses import asdict, dataclass

import numpy as np

from coterie.experiments.learned_lloyd.plain import assign, lloyd, sq_distance
from coterie.threads import kernel

LAYERS = 10


@dataclass(frozen=True)
class Parameters:
    """Eleven numbers; a schedule is given by its values in the first and the last layer."""

    log_gamma_first: float = math.log(3.0)
    log_gamma_last: float = math.log(30.0)
    step_first: float = 1.0
    step_last: float = 1.0
    momentum_first: float = 0.0
    momentum_last: float = 0.0
    share: float = 0.0
    lead: float = 0.0
    radius: float = 0.0
    log_split: float = -math.inf  # of the share of a cluster's squared error that a split is taken to save
    swaps: float = 0.0  # at most, after every second layer; rounded

    def vector(self) -> np.ndarray:
        return np.array(list(asdict(self).values()))


UNTRAINED = Parameters()  # annealing
# The start of the training, and what it found: ``coterie reproduce learned-lloyd/training``.
FIRST = Parameters(log_split=math.log(0.3), swaps=1.0)
TRAINED = Parameters(
    log_gamma_first=0.9688,
    log_gamma_last=1.6338,
    step_first=2.0172,
    step_last=1.6077,
    momentum_first=0.0174,
    momentum_last=0.9448,
    share=0.2496,
    lead=-0.05,
    radius=0.0183,
    log_split=-1.9699,
    swaps=0.9027,
)


@kernel()
def run_layers(X, C, p):
    """The layers with the parameters ``p`` (11,), then Lloyd's algorithm. Changes ``C`` and returns the inertia."""
    n, k = len(X), len(C)
    sq, before = np.empty((n, k)), C.copy()
    labels, first, second = np.zeros(n, np.int64), np.empty(n), np.empty(n)
    for layer in range(LAYERS):
        part = layer / (LAYERS - 1)
        gamma = math.exp(p[0] + part * (p[1] - p[0]))
        step, momentum = p[2] + part * (p[3] - p[2]), p[4] + part * (p[5] - p[4])
        soft_layer(X, C, before, sq, gamma, step, momentum, p[6], p[7], p[8])
        if layer % 2 and layer < LAYERS - 1 and round(p[10]) > 0:
            assign(X, C, labels, first, second)
            split_and_merge(X, C, before, labels, first, second, math.exp(p[9]), round(p[10]))
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
