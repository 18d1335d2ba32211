"""What a measure flow is taught: mixtures drawn from the posterior of each data set, by Gibbs sampling.

Prior: that of the training mixtures. K has probability proportional to 1/K, the weights are uniform on the simplex, and
the centres are normal around zero with a given variance. A sweep draws K given the partition (the telescoping sampler
for mixtures of finite mixtures); components without points are drawn from the prior, so that clusters can appear and
disappear. Chains start at the true parameters, which are themselves a draw from the posterior: they need no burn-in.

Shapes: B data sets, N points, K clusters, D dimensions, J draws, M components at most.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from coterie import threads
from coterie.mixtures.spherical_sampler import (
    TINY,
    Sweeps,
    draw_centers,
    draw_components,
    draw_labels,
    draw_weights,
)

SPARE, LEAST = 4, 16  # components beyond those in use, and at least in all


class Atoms(NamedTuple):
    """One discrete measure per data set; atoms of weight zero are padding."""

    centers_BKD: Tensor
    weights_BK: Tensor


def posterior_samples(
    points_BND: Tensor,
    atoms: Atoms,
    var_B: Tensor,
    signal_B: Tensor,
    generator: torch.Generator,
    sweeps: Sweeps,
    *,
    var_known: bool = True,
    origin_BD: Tensor | None = None,
    dims_B: Tensor | None = None,
) -> Atoms:
    """Draws of mixtures from chains that start at the atoms: conditional means given a draw of the labels, and shares.

    The centres are normal with variance ``signal_B`` per dimension around ``origin_BD``, by default the mean of the
    points. With ``var_known=False`` the noise variance ``var_B`` is only an initial value: a slightly wrong one would
    split or merge clusters. ``dims_B`` is the number of coordinates in use if the others are padding. The result has a
    first axis for the draws, (J, B, K, D) and (J, B, K); it is zero for components without points.
    """
    origin_B1D = points_BND.mean(1, keepdim=True) if origin_BD is None else origin_BD[:, None]
    points = (points_BND - origin_B1D).double().numpy()
    start, start_weights = (atoms.centers_BKD - origin_B1D).double().numpy(), atoms.weights_BK.double().numpy()
    batch, n_points, dim = points.shape
    most = max(LEAST, int((start_weights > 0).sum(1).max()) + SPARE)
    centers, counts = np.zeros((sweeps.n_draws, batch, most, dim)), np.zeros((sweeps.n_draws, batch, most))
    seeds = torch.randint(2**62, (batch,), generator=generator).tolist()

    def one(b: int) -> None:
        used, dims = start_weights[b] > 0, slice(dim if dims_B is None else int(dims_B[b]))
        begin = start[b][used, dims], start_weights[b][used], float(var_B[b]), var_known, float(signal_B[b])
        draws = np.ascontiguousarray(centers[:, b, :, dims])
        how = np.random.default_rng(seeds[b]), sweeps.burn_in, sweeps.apart
        _chain_of_numbers(np.ascontiguousarray(points[b, :, dims]), *begin, *how, draws, counts[:, b])
        centers[:, b, :, dims] = draws

    threads.run(one, batch, threads.count())
    return Atoms(
        torch.as_tensor(centers, dtype=points_BND.dtype) + origin_B1D,
        torch.as_tensor(counts / n_points, dtype=points_BND.dtype),
    )


@threads.kernel()
def _chain_of_numbers(points, start, shares, var, var_known, signal, rng, burn_in, apart, draws, draw_counts):
    """Fill ``draws`` (J, M, D) and ``draw_counts`` (J, M); the first components are those with points."""
    n_draws, most, dim = draws.shape
    n_now = len(start)
    center, weight = np.zeros((most, dim)), np.zeros(most)
    center[:n_now], weight[:n_now] = start, shares
    total, count, work = np.zeros((most, dim)), np.zeros(most), np.zeros(most)
    sq_norm = np.square(points).sum()
    for sweep in range(burn_in + (n_draws - 1) * apart + 1):
        draw_labels(points, center, weight, n_now, var, rng, total, count, work)
        n_used = _in_front(total, count, n_now)
        n_now = draw_components(1.0 * len(points), n_used, most, rng, work)
        if sweep >= burn_in and (sweep - burn_in) % apart == 0:
            draw = (sweep - burn_in) // apart
            for k in range(n_now):
                draws[draw, k] = total[k] / (count[k] + var / signal)
                draw_counts[draw, k] = count[k]
        residual = sq_norm + draw_centers(center, total, count, n_now, var, signal, rng)
        draw_weights(weight, count, n_now, 1.0, rng)
        if not var_known:
            var = max(residual, TINY) / 2 / rng.standard_gamma(points.size / 2)


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
