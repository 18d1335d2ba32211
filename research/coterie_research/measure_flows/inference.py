"""Spherical mixtures with the flow as the paper evaluates it: at a given SNR, or at one estimated on a path of values.

Tokens are merged to atoms, and refined by EM (:func:`token_atoms`) or moved to the average over the posterior
(:func:`posterior_tokens`). :class:`coterie.FlowMixture` uses the flow for the start of a more general search instead.
"""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from coterie.mixtures.atoms import MERGE_RADIUS, flow_tokens, noise_variance
from coterie.mixtures.fitting import decibels
from coterie.mixtures.flow import MeasureFlow
from coterie.mixtures.spherical_sampler import Sweeps
from coterie_research.measure_flows.atoms import log_joint, merge_all, refine_and_prune, run_em, without_empty
from coterie_research.metrics import transport_plans
from coterie_research.training.flow.cells import CELL, grid_cells
from coterie_research.training.flow.targets import Atoms, posterior_samples

MOST_CELLS = 0.8  # of the number of points; above it, cells would hardly save time
PATH_CONTEXT = 500
PATH_ATOMS = 32  # of every SNR on the path, the heaviest: a high SNR leaves single points, which pruning would remove
LONG = Sweeps(burn_in=1000, apart=80, n_draws=100)
SNR_PATH = (3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 15.0, 17.0, 19.0)


def cell_tokens(network: MeasureFlow, points_BND: Tensor, snr_db_B: Tensor, **settings: Any) -> Tensor:
    """Tokens (B, N, D) as of :func:`coterie.mixtures.atoms.flow_tokens`, but with fewer points for the network.

    Points much nearer to one another than the noise, in a cell of a grid, are one point of their joint weight for the
    network, and have the same token: attention is quadratic in the number of points.
    """
    side_B = CELL * noise_variance(points_BND, snr_db_B).sqrt()
    found = []
    for points_ND, snr_db, side in zip(points_BND, snr_db_B, side_B.tolist()):
        centers_MD, counts_M, cell_N = grid_cells(points_ND, side)
        if len(centers_MD) > MOST_CELLS * len(points_ND):
            found.append(flow_tokens(network, points_ND[None], snr_db[None], **settings)[0])
        else:
            tokens_1MD = flow_tokens(network, centers_MD[None], snr_db[None], counts_M[None], **settings)
            found.append(tokens_1MD[0, cell_N])
    return torch.stack(found)


def token_atoms(points_BND: Tensor, tokens_BND: Tensor, snr_db_B: Tensor, most: int | None = None) -> Atoms:
    """Merge tokens to atoms, at most ``most``, and refine them by EM with the variance that the SNR implies."""
    var_B = noise_variance(points_BND, snr_db_B)
    atoms = merge_all(tokens_BND, MERGE_RADIUS * var_B.sqrt())
    if most is not None and atoms.weights_BK.shape[1] > most:
        weights_BK, heaviest_BK = atoms.weights_BK.topk(most, dim=1)
        index_BKD = heaviest_BK[..., None].expand(-1, -1, atoms.centers_BKD.shape[2])
        atoms = Atoms(atoms.centers_BKD.gather(1, index_BKD), weights_BK / weights_BK.sum(1, keepdim=True))
    return refine_and_prune(points_BND, atoms, var_B)


def barycentre(tokens_BND: Tensor, draws: Atoms) -> Tensor:
    """Move every token to the mean of the places to which the optimal transports to the draws send it.

    The measure with the smallest expected squared W2 to the true one is the barycentre of the posterior.
    """
    total = torch.zeros_like(tokens_BND)
    for centers_BKD, weights_BK in zip(*draws):
        plan_BNK = transport_plans(tokens_BND, centers_BKD, weights_BK)
        total += plan_BNK @ centers_BKD * tokens_BND.shape[1]
    return total / len(draws.weights_BK)


def posterior_tokens(
    points_BND: Tensor,
    tokens_BND: Tensor,
    snr_db_B: Tensor,
    generator: torch.Generator,
    sweeps: Sweeps = LONG,
    *,
    snr_known: bool = True,
) -> Tensor:
    """Tokens (B, N, D) at the average over the posterior: the estimate with the smallest expected squared W2.

    With ``snr_known=False`` the SNR only gives the initial noise variance, which is then sampled as well.
    """
    var_B = noise_variance(points_BND, snr_db_B)
    atoms = token_atoms(points_BND, tokens_BND, snr_db_B)
    signal_B = var_B * 10 ** (snr_db_B / 10)
    draws = posterior_samples(points_BND, atoms, var_B, signal_B, generator, sweeps, var_known=snr_known)
    return barycentre(tokens_BND, draws)


@torch.no_grad()
def estimate_snr(network: MeasureFlow, points_ND: Tensor) -> float:
    """The SNR of one data set in dB.

    Every SNR of the path gives a mixture, which EM refines, all in one batch. The one with the smallest BIC is chosen,
    and the residual variance of its clusters gives the SNR, which may lie between the values of the path. At most
    ``PATH_CONTEXT`` of the points are used, evenly spaced.
    """
    tried_B = torch.tensor(SNR_PATH, dtype=points_ND.dtype)
    fewer_ND = points_ND[:: -(-len(points_ND) // PATH_CONTEXT)]
    points_BND = fewer_ND.expand(len(SNR_PATH), -1, -1)
    tokens_BND = cell_tokens(network, points_BND, tried_B)
    var_B = noise_variance(points_BND, tried_B)
    found = [
        without_empty(Atoms(centers[None], weights[None]), len(fewer_ND))
        for centers, weights in zip(*token_atoms(points_BND, tokens_BND, tried_B, PATH_ATOMS))
    ]
    best = int(np.argmin([bayesian_information(fewer_ND, one, float(var)) for one, var in zip(found, var_B)]))
    _, residual_1 = run_em(points_ND[None], found[best], var_B[best, None], max_iter=1, var_known=False).state
    return decibels(float(points_ND.var(0, correction=0).mean()), float(residual_1))


def bayesian_information(points_ND: Tensor, atoms: Atoms, var: float) -> float:
    """The BIC of a spherical mixture with one variance; smaller is better."""
    n_points, dim = points_ND.shape
    log_density_N = log_joint(points_ND[None], atoms, points_ND.new_tensor([var])).logsumexp(-1)[0]
    log_likelihood = float(log_density_N.sum()) - n_points * dim / 2 * math.log(2 * math.pi * var)
    n_parameters = atoms.weights_BK.shape[1] * (dim + 1)
    return -2 * log_likelihood + n_parameters * math.log(n_points)
