"""Gibbs sampling of mixtures of spherical Gaussians: the posterior without known centres.

A state is centres, mixing weights and one noise variance. A sweep draws labels given the state, then the state given
the labels. :mod:`coterie.mixtures.posterior_sampler` is for an unknown number of clusters of any covariances. They
share some steps but not their loops: what differs would have to be tested in every sweep, beside steps of microseconds.

Prior: labels from weights that are Dirichlet(a, ..., a), with a drawn from a short list (a large one
means clusters of equal size); centres normal with mean zero and one variance; both variances have the scale-free
density 1/variance, the ratio of the centres' to the noise's being at least ``LEAST_RATIO`` (the density has no integral
without that bound).

Replicas at lower inverse temperatures, at which the likelihood is raised to a power below one, exchange their states
with the chain of interest (parallel tempering; Geyer, 1991), so that it leaves a mode from which single sweeps would
not escape.

Shapes: N points, K clusters, D dimensions, J draws, R replicas.
"""

import math
from dataclasses import dataclass

import numpy as np

from coterie import threads

TINY = 1e-300
LEAST_RATIO = 0.02
CONCENTRATIONS = (2.0, 1000.0)  # clusters of unequal size, and of nearly equal size


@dataclass(frozen=True)
class Sweeps:
    """How long a chain is: ``n_draws`` draws, ``apart`` sweeps from each to the next, after ``burn_in`` sweeps."""

    burn_in: int
    apart: int
    n_draws: int


@dataclass(frozen=True)
class Draws:
    """Drawn mixtures. Clusters may exchange their places from one draw to the next."""

    origin_D: np.ndarray  # the centres are relative to it
    centers_JKD: np.ndarray
    weights_JK: np.ndarray
    var_J: np.ndarray  # noise variance per dimension

    def members(self, points_ND: np.ndarray) -> np.ndarray:
        """(J, N, K) probability of every cluster for every point, given the drawn centres, weights and variance.

        Given those, labels are independent, so averages over draws estimate probabilities of labels, and of pairs of
        labels, with less variance than drawn labels do. A point's probabilities do not depend on the other points.
        """
        points = np.ascontiguousarray(points_ND - self.origin_D, dtype=np.float64)
        members = np.empty((len(self.var_J), len(points), self.weights_JK.shape[1]))
        _fill_members(points, self.centers_JKD, self.weights_JK, self.var_J, members)
        return members


# Enough for four clusters in ten dimensions, by chains that start at the truth (results/RESULTS.md).
SWEEPS = Sweeps(burn_in=100, apart=5, n_draws=60)
REPLICAS = 3


def temperatures(n_replicas: int, least: float = 0.4) -> np.ndarray:
    """Inverse temperatures from 1 down to ``least``, in geometric progression."""
    return np.geomspace(1.0, least, n_replicas) if n_replicas > 1 else np.ones(1)


def sample(
    points_ND: np.ndarray,
    start_KD: np.ndarray,
    rng: np.random.Generator,
    sweeps: Sweeps,
    *,
    shares_K: np.ndarray | None = None,
    var: float | None = None,
    inverse_temperatures: np.ndarray | None = None,
    concentrations: tuple[float, ...] = CONCENTRATIONS,
) -> Draws:
    """Draw mixtures from the posterior, given the points. The chain starts at the centres ``start_KD``.

    At the start, mixing weights are ``shares_K``, or equal, and the noise variance per dimension is ``var``, or that of
    the points about the nearest start. The first of the ``inverse_temperatures`` of the replicas is 1; None is a single
    chain. ``concentrations`` are the values of a.
    """
    origin = points_ND.mean(0)
    points = np.ascontiguousarray(points_ND - origin, dtype=np.float64)
    start = np.asarray(start_KD, dtype=np.float64) - origin
    n_clusters, dims = start.shape
    if var is None:
        sq_NK = ((points[:, None] - start) ** 2).sum(-1)
        var = float(sq_NK.min(1).mean()) / dims
    beta = np.ones(1) if inverse_temperatures is None else np.asarray(inverse_temperatures, dtype=np.float64)
    shares = np.full(n_clusters, 1 / n_clusters) if shares_K is None else np.asarray(shares_K, dtype=np.float64)
    state = np.repeat(start[None], len(beta), 0), np.repeat(shares[None], len(beta), 0)
    draws = Draws(
        origin,
        np.empty((sweeps.n_draws, n_clusters, dims)),
        np.empty((sweeps.n_draws, n_clusters)),
        np.empty(sweeps.n_draws),
    )
    kept = draws.centers_JKD, draws.weights_JK, draws.var_J
    _chain(points, *state, max(var, TINY), beta, np.array(concentrations), rng, sweeps.burn_in, sweeps.apart, *kept)
    return draws


@threads.kernel()
def _chain(
    points, center, weight, start_var, beta, concentrations, rng, burn_in, apart, kept_center, kept_weight, kept_var
):
    """Fill the arrays ``kept``; ``center`` (R, K, D) and ``weight`` (R, K) are the states and change."""
    dims = points.shape[1]
    n_replicas, n_clusters = weight.shape
    var, signal = np.full(n_replicas, start_var), np.zeros(n_replicas)
    for r in range(n_replicas):
        signal[r] = max(np.square(center[r]).mean(), LEAST_RATIO * start_var)
    total, count, work = np.zeros((n_clusters, dims)), np.zeros(n_clusters), np.zeros(n_clusters)
    energy, log_p = np.zeros(n_replicas), np.zeros(len(concentrations))
    sq_norm = np.square(points).sum()
    for sweep in range(burn_in + (len(kept_var) - 1) * apart + 1):
        if sweep >= burn_in and (sweep - burn_in) % apart == 0:
            draw = (sweep - burn_in) // apart
            kept_center[draw], kept_weight[draw], kept_var[draw] = center[0], weight[0], var[0]
        for r in range(n_replicas):
            draw_labels(points, center[r], weight[r], n_clusters, var[r] / beta[r], rng, total, count, work)
            residual = sq_norm + draw_centers(center[r], total, count, n_clusters, var[r] / beta[r], signal[r], rng)
            residual = max(residual, TINY)
            var[r] = beta[r] * residual / 2 / rng.standard_gamma(beta[r] * points.size / 2)
            signal[r] = _draw_signal(center[r], LEAST_RATIO * var[r], rng)
            draw_weights(weight[r], count, n_clusters, _draw_concentration(count, concentrations, log_p, rng), rng)
            energy[r] = residual / (2 * var[r]) + points.size / 2 * math.log(var[r])
        for r in range(n_replicas - 1):
            if math.log(rng.random() + TINY) < (beta[r] - beta[r + 1]) * (energy[r] - energy[r + 1]):
                _exchange(center, weight, var, signal, energy, r)


@threads.kernel()
def draw_components(n_points, n_used, most, rng, work):
    """A draw of K given the partition of ``n_points`` into ``n_used`` components with points.

    p(K | partition into k) is proportional to p(K) K! / (K - k)! · Γ(K) / Γ(N + K), with p(K) = 1/K.
    """
    first = max(n_used, 1)
    for k in range(first, most + 1):
        work[k - 1] = (
            -math.log(k) + math.lgamma(k + 1.0) + math.lgamma(1.0 * k) - math.lgamma(n_points + k)
        ) - math.lgamma(k - n_used + 1.0)
    log_p = work[first - 1 : most]
    return first + draw_index(log_p, log_p.max(), -math.inf, rng)


@threads.kernel()
def _log_joint(points, i, center, log_weight, n_now, var, work):
    """Fill ``work`` with log weight minus squared distance over 2 var, for every component; returns the largest."""
    best = -math.inf
    for k in range(n_now):
        sq_distance = 0.0
        for j in range(points.shape[1]):
            sq_distance += (points[i, j] - center[k, j]) ** 2
        work[k] = log_weight[k] - sq_distance / (2 * var)
        best = max(best, work[k])
    return best


@threads.kernel()
def _fill_members(points, center, weight, var, members):
    work = np.zeros(weight.shape[1])
    for draw in range(len(members)):
        log_weight = np.log(weight[draw] + TINY)
        for i in range(len(points)):
            best = _log_joint(points, i, center[draw], log_weight, len(work), var[draw], work)
            reach = 0.0
            for k in range(len(work)):
                work[k] = math.exp(work[k] - best)
                reach += work[k]
            for k in range(len(work)):
                members[draw, i, k] = work[k] / reach


@threads.kernel()
def draw_labels(points, center, weight, n_now, var, rng, total, count, work):
    """Give every point to one of the first ``n_now`` components.

    ``total`` and ``count`` get the sums and numbers of the points of each.
    """
    n_points, dims = points.shape
    log_weight = np.log(weight[:n_now] + TINY)
    total[:n_now] = 0.0
    count[:n_now] = 0.0
    for i in range(n_points):
        best = _log_joint(points, i, center, log_weight, n_now, var, work)
        label = draw_index(work[:n_now], best, -math.inf, rng)
        count[label] += 1
        for j in range(dims):
            total[label, j] += points[i, j]


@threads.kernel()
def draw_centers(center, total, count, n_now, var, signal, rng):
    """Centres given the labels; returns the sum of squared residuals minus that of the points' squared norms."""
    residual = 0.0
    for k in range(n_now):
        precision = count[k] / var + 1 / signal
        for j in range(center.shape[1]):
            center[k, j] = total[k, j] / var / precision + rng.standard_normal() / math.sqrt(precision)
            residual += center[k, j] * (count[k] * center[k, j] - 2 * total[k, j])
    return residual


@threads.kernel()
def draw_weights(weight, count, n_now, concentration, rng):
    """Mixing weights given the labels."""
    weight_sum = TINY
    for k in range(n_now):
        weight[k] = rng.standard_gamma(count[k] + concentration)
        weight_sum += weight[k]
    for k in range(n_now):
        weight[k] /= weight_sum


@threads.kernel()
def _draw_signal(center, least, rng):
    """The centres' variance given the centres, at least ``least``."""
    half_sq, half_size = np.square(center).sum() / 2, center.size / 2
    for _ in range(8):
        signal = max(half_sq, TINY) / rng.standard_gamma(half_size)
        if signal >= least:
            return signal
    return least


@threads.kernel()
def _draw_concentration(count, concentrations, log_p, rng):
    """One of ``concentrations`` given the numbers of points, the weights being integrated out."""
    n_clusters, n_points = len(count), count.sum()
    for c in range(len(concentrations)):
        a = concentrations[c]
        log_p[c] = math.lgamma(n_clusters * a) - math.lgamma(n_points + n_clusters * a) - n_clusters * math.lgamma(a)
        for k in range(n_clusters):
            log_p[c] += math.lgamma(count[k] + a)
    return concentrations[draw_index(log_p, log_p.max(), -math.inf, rng)]


@threads.kernel(forceinline=True, inner=True)
def draw_index(log_p, best, rest, rng):
    """An index with a probability in proportion to ``exp(log_p)``, which is overwritten; ``best`` is the largest.

    ``rest`` is the logarithm for any other index, which is returned as the length of ``log_p``.
    """
    reach = 0.0
    for i in range(len(log_p)):
        below = log_p[i] - best
        if below > -30:  # exp(-30) changes nothing
            reach += math.exp(below)
        log_p[i] = reach
    last = len(log_p) - 1
    if rest > -math.inf:
        reach += math.exp(rest - best)
        last += 1
    threshold = rng.random() * reach
    drawn = 0
    while drawn < last and log_p[drawn] <= threshold:
        drawn += 1
    return drawn


@threads.kernel()
def _exchange(center, weight, var, signal, energy, r):
    """Replicas ``r`` and ``r + 1`` exchange their states."""
    for k in range(weight.shape[1]):
        weight[r, k], weight[r + 1, k] = weight[r + 1, k], weight[r, k]
        for j in range(center.shape[2]):
            center[r, k, j], center[r + 1, k, j] = center[r + 1, k, j], center[r, k, j]
    var[r], var[r + 1] = var[r + 1], var[r]
    signal[r], signal[r + 1] = signal[r + 1], signal[r]
    energy[r], energy[r + 1] = energy[r + 1], energy[r]
