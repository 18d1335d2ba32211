"""Algorithms 1 to 6 of Clarkson et al. (2025) and the rows with sizes in plain numpy: the reference for the engines.

Every function maps points X (n, d) and centres C (k, d) to the next centres. ``labels`` is the assignment step that the
hard algorithms share. On the sphere the score is ⟨x, c⟩ and centres are normalised to length one.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from coterie.kmeans.algorithm import Algorithm

Array = NDArray[np.floating]


def scores(X: Array, C: Array, spherical: bool = False) -> Array:
    """The scores (n, k): ⟨x, c⟩ on the sphere, -‖x - c‖² otherwise."""
    if spherical:
        return X @ C.T
    return -np.stack([((X - c) ** 2).sum(axis=1) for c in C], axis=1)


def labels(X: Array, C: Array, spherical: bool = False) -> NDArray[np.intp]:
    return scores(X, C, spherical).argmax(axis=1)


def _on_sphere(C: Array, spherical: bool) -> Array:
    return C / np.linalg.norm(C, axis=1, keepdims=True) if spherical else C


def step(algorithm: Algorithm, X: Array, C: Array, gumbel: Array | None = None) -> Array:
    """The next centres of the algorithm of a row. ``gumbel`` (k, n) is the noise of a row that draws its centres."""
    name, sphere = algorithm.variant.name, algorithm.spherical
    if name == "lloyd":
        return lloyd(X, C, sphere)
    if name == "trimmed":
        return trimmed(X, C, 100 * algorithm.keep, sphere)
    if name == "medoids":
        assert gumbel is not None
        return medoids(X, C, algorithm.delta, gumbel, sphere)
    if name == "balanced":
        a = planned(X, C, sphere)
        return _on_sphere(np.stack([X[a == j].mean(axis=0) for j in range(len(C))]), sphere)
    assert algorithm.gamma is not None
    if name == "balanced-soft":
        return balanced_soft(X, C, algorithm.gamma, sphere)
    if name == "soft":
        return soft(X, C, algorithm.gamma, sphere)
    return robust(X, C, name.removeprefix("robust-"), algorithm.gamma, algorithm.top, sphere)


def lloyd(X: Array, C: Array, spherical: bool = False) -> Array:
    """Algorithms 1 and 3."""
    a = labels(X, C, spherical)
    return _on_sphere(np.stack([X[a == j].mean(axis=0) for j in range(len(C))]), spherical)


def planned(X: Array, C: Array, spherical: bool = False) -> Array:
    """The labels of least total cost with n/k rows per cluster, rounded down or up.

    An assignment of rows to places, n/k rounded up per centre. The last place of a centre may stay empty.
    """
    n, k = len(X), len(C)
    places = np.repeat(np.arange(k), -(-n // k))
    cost = -scores(X, C, spherical)[:, places]
    empty = np.full((len(places) - n, len(places)), 1e6 * (1 + np.abs(cost).max()))
    empty[:, np.flatnonzero(np.diff(places, append=k))] = 0
    return places[linear_sum_assignment(np.vstack([cost, empty]))[1][:n]]


def balanced_soft(X: Array, C: Array, gamma: float, spherical: bool = False) -> Array:
    """Soft k-means with weights that Sinkhorn's alternating steps bring to n/k per cluster, rounded down and up."""
    n, k = len(X), len(C)
    kernel = np.exp(gamma * scores(X, C, spherical))
    v, before = np.ones(k), np.zeros(k)
    while np.abs(v - before).max() > 1e-15:
        before = v
        sums = (kernel / (kernel @ v)[:, None]).sum(axis=0)
        v = np.clip(1.0, n // k / sums, -(-n // k) / sums)
    w = kernel * v
    w /= w.sum(axis=1, keepdims=True)
    return _on_sphere((w.T @ X) / w.sum(axis=0)[:, None], spherical)


def soft(X: Array, C: Array, gamma: float, spherical: bool = False) -> Array:
    """Algorithm 2."""
    s = gamma * scores(X, C, spherical)
    w = np.exp(s - s.max(axis=1, keepdims=True))
    w /= w.sum(axis=1, keepdims=True)
    return _on_sphere((w.T @ X) / w.sum(axis=0)[:, None], spherical)


def trimmed(X: Array, C: Array, tau: float, spherical: bool = False) -> Array:
    """Algorithm 4. The tau-th percentile is the lowest distance with at least tau % of the cluster at or below it."""
    s, a = scores(X, C, spherical), labels(X, C, spherical)
    new = []
    for j in range(len(C)):
        distance = -s[a == j, j]
        rho = np.percentile(distance, tau, method="inverted_cdf")
        new.append(X[a == j][distance <= rho].mean(axis=0))
    return _on_sphere(np.stack(new), spherical)


def robust(X: Array, C: Array, activation: str, gamma: float, top: int = 10, spherical: bool = False) -> Array:
    """Algorithm 5 with NAct = softmax, sparsemax or top-k."""
    s, a = scores(X, C, spherical), labels(X, C, spherical)
    new = []
    for j in range(len(C)):
        w = gamma * s[a == j, j]
        w = w - w.max()
        if activation == "sparsemax":
            w = _sparsemax(w)
        else:
            kept = w >= np.sort(w)[::-1][min(top, len(w)) - 1] if activation == "topk" else True
            w = np.exp(w) * kept
            w /= w.sum()
        new.append(w @ X[a == j])
    return _on_sphere(np.stack(new), spherical)


def _sparsemax(z: Array) -> Array:
    ranked = np.sort(z)[::-1]
    count = np.arange(1, len(z) + 1)
    total = np.cumsum(ranked)
    last = np.flatnonzero(1 + count * ranked > total)[-1]
    return np.maximum(z - (total[last] - 1) / count[last], 0)


def medoids(X: Array, C: Array, delta: float, gumbel: Array, spherical: bool = False) -> Array:
    """Algorithm 6: the categorical sample is the argmax of log weights plus the given Gumbel noise (k, n)."""
    s, a = scores(X, C, spherical), labels(X, C, spherical)
    log_w = s - 2 * delta * (a[:, None] != np.arange(len(C)))
    return X[(log_w.T + gumbel).argmax(axis=1)]


def objective(X: Array, C: Array) -> float:
    """The k-means objective, equation (3)."""
    return float(-scores(X, C).max(axis=1).sum())
