"""The mixing measure averaged over its posterior, from the flow's atoms on.

Where clusters overlap, many mixtures explain the points about as well as the likeliest one. The measure with the
smallest expected squared W2 to the truth is the barycentre of the posterior, which is what the network's loss asks for
too. A Gibbs sampler that starts at the atoms draws mixtures; each token is then moved to the mean of the places that
the optimal transports to the draws send it to.

The prior is that of the mixtures which the network learned from, with no number of clusters given: K with probability
proportional to 1/K, weights uniform on the simplex, centres normal with the variance that the SNR implies. A sweep
draws labels, then K given the labels' partition (the telescoping sampler of a mixture of finite mixtures), then weights
and centres; components without points come anew from the prior, so clusters are born and die.
"""

import math

import torch
from torch import Tensor

from coterie.flow.atoms import Atoms, log_joint
from coterie.metrics import transport_plans

SPARE = 4  # components beyond the atoms in use, and at least as many as LEAST in all
LEAST = 16
SWEEPS = 3000  # the first fifth is thrown away, then draws are taken at even distances
DRAWS = 50


def posterior_samples(
    points_BND: Tensor,
    atoms: Atoms,
    var_B: Tensor,
    signal_B: Tensor,
    generator: torch.Generator,
    n_sweeps: int = SWEEPS,
) -> list[Atoms]:
    """Draws from the posterior given the noise variance and the variance of centres per dimension.

    Centres are the conditional means given a draw of the labels, weights the labels' shares.
    """
    batch, n_points, dim = points_BND.shape
    mean_B1D = points_BND.mean(1, keepdim=True)
    points_BND = points_BND - mean_B1D
    n_atoms = max(LEAST, int((atoms.weights_BK > 0).sum(1).max()) + SPARE)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=points_BND.dtype)

    state = _start(atoms, mean_B1D, n_atoms, normal(batch, n_atoms, dim) * signal_B.sqrt()[:, None, None])
    burn_in = n_sweeps // 5
    apart = max(1, (n_sweeps - burn_in) // DRAWS)
    draws = []
    for sweep in range(n_sweeps):
        label_BN = _draw_labels(log_joint(points_BND, state, var_B), generator)
        count_BK = points_BND.new_zeros(batch, n_atoms).scatter_add_(1, label_BN, points_BND.new_ones(batch, n_points))
        index_BND = label_BN[..., None].expand_as(points_BND)
        sum_BKD = points_BND.new_zeros(batch, n_atoms, dim).scatter_add_(1, index_BND, points_BND)
        precision_BK1 = (count_BK / var_B[:, None] + 1 / signal_B[:, None])[..., None]
        center_BKD = sum_BKD / var_B[:, None, None] / precision_BK1
        gamma_BK = torch._standard_gamma(count_BK + 1, generator=generator) * _components(count_BK, n_points, generator)
        state = Atoms(
            center_BKD + normal(batch, n_atoms, dim) / precision_BK1.sqrt(),
            gamma_BK / gamma_BK.sum(1, keepdim=True),
        )
        if sweep >= burn_in and (sweep - burn_in) % apart == 0:
            draws.append(Atoms(center_BKD + mean_B1D, count_BK / n_points))
    return draws


def _draw_labels(log_joint_BNK: Tensor, generator: torch.Generator) -> Tensor:
    reach_BNK = (log_joint_BNK - log_joint_BNK.amax(-1, keepdim=True)).exp_().cumsum(-1)
    threshold_BN1 = torch.rand(reach_BNK.shape[:2], generator=generator)[..., None] * reach_BNK[..., -1:]
    return (reach_BNK < threshold_BN1).sum(-1).clamp(max=reach_BNK.shape[-1] - 1)


def _components(count_BK: Tensor, n_points: int, generator: torch.Generator) -> Tensor:
    """Which components there are: those with points, and as many empty ones as a draw of K leaves room for.

    p(K | partition into k clusters) is proportional to p(K) K! / (K - k)! · Γ(K) / Γ(N + K).
    """
    used_BK = count_BK > 0
    n_used_B1 = used_BK.sum(1, keepdim=True)
    k_K = torch.arange(1, count_BK.shape[1] + 1, dtype=torch.float64)
    log_p_K = -k_K.log() + torch.lgamma(k_K + 1) + torch.lgamma(k_K) - torch.lgamma(n_points + k_K)
    log_p_BK = log_p_K - torch.lgamma((k_K - n_used_B1).clamp_min(0) + 1)
    log_p_BK = log_p_BK.masked_fill(k_K < n_used_B1, -math.inf)
    drawn_B1 = 1 + torch.multinomial(log_p_BK.softmax(1), 1, generator=generator)
    return used_BK | ((~used_BK).cumsum(1) <= drawn_B1 - n_used_B1)


def _start(atoms: Atoms, mean_B1D: Tensor, n_atoms: int, spare_BKD: Tensor) -> Atoms:
    """The atoms, heaviest first, and spare components of hardly any weight."""
    n_known = min(n_atoms, atoms.weights_BK.shape[1])
    weight, index = atoms.weights_BK.topk(n_known, 1)
    known_BKD = atoms.centers_BKD.gather(1, index[..., None].expand(-1, -1, spare_BKD.shape[2])) - mean_B1D
    centers_BKD = spare_BKD.clone()
    centers_BKD[:, :n_known] = torch.where((weight > 0)[..., None], known_BKD, spare_BKD[:, :n_known])
    weights_BK = torch.full(spare_BKD.shape[:2], 1e-6, dtype=spare_BKD.dtype)
    weights_BK[:, :n_known] = weight.clamp_min(1e-6)
    return Atoms(centers_BKD, weights_BK / weights_BK.sum(1, keepdim=True))


def barycentre(tokens_BND: Tensor, draws: list[Atoms]) -> Tensor:
    """Every token at the mean of where the optimal transports to the draws send it."""
    total = torch.zeros_like(tokens_BND)
    for draw in draws:
        plan_BNK = transport_plans(tokens_BND, draw.centers_BKD, draw.weights_BK)
        total += plan_BNK @ draw.centers_BKD * tokens_BND.shape[1]
    return total / len(draws)
