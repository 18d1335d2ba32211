"""What the shipped network is taught: the posterior of each data set, from a Gibbs sampler.

The true labels are themselves a draw from the posterior, so a chain that starts at the truth needs no burn-in. The loss
averaged over its draws has the same mean as the loss on the true labels, and a gradient of much smaller variance.

Shapes: B data sets, J draws, P partners of each point, N points, K clusters.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from coterie import threads
from coterie.mixtures import spherical_posterior
from coterie_research.metrics import best_renaming
from coterie_research.training.incontext.prior import Separated


def posterior_members(data: Separated, generator: torch.Generator, n_draws: int, apart: int) -> Tensor:
    """(B, J, N, K) draws of the membership probabilities by chains that start at the truth.

    The sampler's two concentrations of the weights are those of SeparatedPrior: clusters of unequal and of equal size.
    """
    seeds = torch.randint(2**62, (len(data),), generator=generator).tolist()
    sweeps = spherical_posterior.Sweeps(burn_in=apart, apart=apart, n_draws=n_draws)
    points, centers = (t.double().numpy() for t in (data.points_BND, data.centers_BKD))

    def one(b: int) -> np.ndarray:
        rng, shares, var = np.random.default_rng(seeds[b]), data.weights_BK[b].numpy(), float(data.var_BK[b].mean())
        return spherical_posterior.sample(points[b], centers[b], rng, sweeps, shares_K=shares, var=var).members(
            points[b]
        )

    return torch.as_tensor(np.stack(threads.run(one, len(data), threads.count())), dtype=data.points_BND.dtype)


def aligned_targets(members_BJNK: Tensor, log_p_BNK: Tensor) -> Tensor:
    """(B, N, K) mean of the draws, the clusters of each renamed to match the network's as well as possible."""
    B, J, N, K = members_BJNK.shape
    cost_BJKK = -torch.einsum("bjnk,bnl->bjkl", members_BJNK, log_p_BNK.detach())
    renaming_BJK = best_renaming(cost_BJKK.reshape(B * J, K, K)).view(B, J, 1, K)
    own_BJNK = members_BJNK.gather(3, renaming_BJK.argsort(-1).expand(B, J, N, K))
    return own_BJNK.mean(1)


def together(members_BJNK: Tensor, partners_BPN: Tensor) -> Tensor:
    """(B, P, N) posterior probability that a point and its partner are in one cluster."""
    wanted = []
    for partners_BN in partners_BPN.unbind(1):
        other_BJNK = members_BJNK.gather(2, partners_BN[:, None, :, None].expand_as(members_BJNK))
        wanted.append((members_BJNK * other_BJNK).sum(-1).mean(1))
    return torch.stack(wanted, 1).clamp(0, 1)


def pair_loss(log_p_BNK: Tensor, partners_BPN: Tensor, wanted_BPN: Tensor) -> Tensor:
    """Binary cross-entropy of each point being in one cluster with its partners."""
    p_BNK = log_p_BNK.exp()
    partner_BPNK = p_BNK[torch.arange(len(p_BNK))[:, None, None], partners_BPN]
    found_BPN = (p_BNK[:, None] * partner_BPNK).sum(-1)
    return F.binary_cross_entropy(found_BPN.clamp(1e-6, 1 - 1e-6), wanted_BPN)
