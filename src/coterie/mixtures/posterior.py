"""The average of the mixing measure over its posterior distribution, by a Gibbs sampler.

Where clusters overlap, many mixtures explain the points about as well as the most likely one. The measure with the
smallest expected squared W2 to the true measure is the barycentre of the posterior. A Gibbs sampler that starts at the
atoms of the flow draws mixtures, and each token is moved to the mean of the places to which the optimal transports to
these draws send it. In training the sampler starts at the true parameters, which are themselves a draw: the loss
averaged over the draws has the same mean as the distance to the true measure, and a gradient of much smaller variance.

The prior is that of the training mixtures, and the number of clusters K is unknown: it has probability proportional to
1/K, the weights are uniform on the simplex, and the centres are normal with a given variance. A sweep draws labels,
then K given the partition (the telescoping sampler for mixtures of finite mixtures), then weights and centres.
Components without points are drawn from the prior, so that clusters can appear and disappear. If the noise variance is
only an estimate, it is sampled as well, because a slightly wrong value would split or merge clusters.
"""

import math

import numpy as np
import torch
from scipy.special import gammaln
from torch import Tensor

from coterie import threads
from coterie.metrics import transport_plans
from coterie.mixtures.gibbs import Sweeps, draw_centers, draw_index, draw_labels, draw_weights
from coterie.mixtures.tokens import Atoms

SPARE = 4  # components beyond the atoms in use, and at least LEAST in all
LEAST = 16
TINY = 1e-300


LONG = Sweeps(burn_in=1000, apart=80, n_draws=100)


def posterior_samples(
    points_BND: Tensor,
    atoms: Atoms,
    var_B: Tensor,
    signal_B: Tensor,
    generator: torch.Generator,
    sweeps: Sweeps = LONG,
    *,
    var_known: bool = True,
    origin_BD: Tensor | None = None,
    dims_B: Tensor | None = None,
) -> Atoms:
    """Draws from the posterior, given the noise variance and the distribution of the centres.

    The centres are normal with variance ``signal_B`` per dimension around ``origin_BD``, by default the mean of the
    points. With ``var_known=False`` the noise variances are only initial values. ``dims_B`` is the number of
    coordinates in use if the others are padding.

    The result has a first axis for the draws: (J, B, K, D) and (J, B, K). The centres are the conditional means given a
    draw of the labels, and the weights are the shares of the labels.
    """
    origin_B1D = points_BND.mean(1, keepdim=True) if origin_BD is None else origin_BD[:, None]
    points = (points_BND - origin_B1D).double().numpy()
    start, start_weights = (atoms.centers_BKD - origin_B1D).double().numpy(), atoms.weights_BK.double().numpy()
    batch, n_points, dim = points.shape
    most = max(LEAST, int((start_weights > 0).sum(1).max()) + SPARE)
    log_p_K = _log_components(most, n_points)
    centers = np.zeros((sweeps.n_draws, batch, most, dim))
    counts = np.zeros((sweeps.n_draws, batch, most))
    seeds = torch.randint(2**62, (batch,), generator=generator).tolist()

    def one(b: int) -> None:
        used = start_weights[b] > 0
        in_use = dim if dims_B is None else int(dims_B[b])
        _chain(
            np.ascontiguousarray(points[b, :, :in_use]),
            start[b][used, :in_use],
            start_weights[b][used],
            float(var_B[b]),
            var_known,
            float(signal_B[b]),
            log_p_K,
            np.random.default_rng(seeds[b]),
            sweeps.burn_in,
            sweeps.apart,
            centers[:, b, :, :in_use],
            counts[:, b],
        )

    threads.run(one, batch, threads.count())
    return Atoms(
        torch.as_tensor(centers, dtype=points_BND.dtype) + origin_B1D,
        torch.as_tensor(counts / n_points, dtype=points_BND.dtype),
    )


def barycentre(tokens_BND: Tensor, draws: Atoms) -> Tensor:
    """Move every token to the mean of the places to which the optimal transports to the draws send it."""
    total = torch.zeros_like(tokens_BND)
    for centers_BKD, weights_BK in zip(*draws):
        plan_BNK = transport_plans(tokens_BND, centers_BKD, weights_BK)
        total += plan_BNK @ centers_BKD * tokens_BND.shape[1]
    return total / len(draws.weights_BK)


def _log_components(most: int, n_points: int) -> np.ndarray:
    """log p(K | partition) for K = 1 ... most, but for the factor 1 / (K - k)! that depends on the k clusters in use.

    p(K | partition into k clusters) is proportional to p(K) K! / (K - k)! · Γ(K) / Γ(N + K), with p(K) = 1/K.
    """
    k = np.arange(1, most + 1)
    return -np.log(k) + gammaln(k + 1) + gammaln(k) - gammaln(n_points + k)


@threads.kernel()
def _chain(points, start, start_weights, var, var_known, signal, log_p_K, rng, burn_in, apart, draws, draw_counts):
    """One chain: fills ``draws`` (J, K, D) and ``draw_counts`` (J, K); the first components are those with points."""
    n_draws, most, dim = draws.shape
    n_now = len(start)
    center, weight = np.zeros((most, dim)), np.zeros(most)
    center[:n_now], weight[:n_now] = start, start_weights
    total, count, work = np.zeros((most, dim)), np.zeros(most), np.zeros(most)
    half_size, sq_norm = points.size / 2, np.square(points).sum()
    for sweep in range(burn_in + (n_draws - 1) * apart + 1):
        draw_labels(points, center, weight, n_now, var, rng, total, count, work)
        n_used = _in_front(total, count, n_now)
        n_now = _draw_components(log_p_K, n_used, rng, work)
        if sweep >= burn_in and (sweep - burn_in) % apart == 0:
            draw = (sweep - burn_in) // apart
            for k in range(n_now):
                draws[draw, k] = total[k] / (count[k] + var / signal)
                draw_counts[draw, k] = count[k]
        residual = sq_norm + draw_centers(center, total, count, n_now, var, signal, rng)
        draw_weights(weight, count, n_now, 1.0, rng)
        if not var_known:
            var = max(residual, TINY) / 2 / rng.standard_gamma(half_size)


@threads.kernel()
def _in_front(total, count, n_now):
    """Components with points to the front, the others cleared; returns how many have points."""
    n_used = 0
    for k in range(n_now):
        if count[k] > 0:
            count[n_used] = count[k]
            total[n_used] = total[k]
            n_used += 1
    count[n_used:] = 0.0
    total[n_used:] = 0.0
    return n_used


@threads.kernel()
def _draw_components(log_p_K, n_used, rng, work):
    """A draw of K given that ``n_used`` components have points."""
    most = len(log_p_K)
    for k in range(n_used, most + 1):
        work[k - 1] = log_p_K[k - 1] - math.lgamma(k - n_used + 1.0)
    return n_used + draw_index(work[n_used - 1 : most], rng)
