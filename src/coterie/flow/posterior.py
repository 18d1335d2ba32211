"""The mixing measure averaged over its posterior, from the flow's atoms on.

Where clusters overlap, many mixtures explain the points about as well as the likeliest one. The measure with the
smallest expected squared W2 to the truth is the barycentre of the posterior, which is what the network's loss asks for
too. A Gibbs sampler that starts at the atoms draws mixtures; each token is then moved to the mean of the places that
the optimal transports to the draws send it to.

The prior: centres normal with the variance that the SNR implies, weights of K components Dirichlet with a small
concentration, so that components which the points do not need stay empty.
"""

import torch
from torch import Tensor

from coterie.flow.atoms import Atoms, log_joint
from coterie.metrics import transport_plans

SPARE = 5  # components beyond the atoms in use, and at least as many as LEAST in all
LEAST = 10
CONCENTRATION = 0.1
SWEEPS, BURN_IN, THIN = 250, 50, 8


def posterior_samples(
    points_BND: Tensor, atoms: Atoms, var_B: Tensor, signal_B: Tensor, generator: torch.Generator
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
    draws = []
    for sweep in range(SWEEPS):
        reach_BNK = log_joint(points_BND, state, var_B).softmax(-1).cumsum(-1)
        threshold_BN1 = torch.rand(batch, n_points, 1, generator=generator) * reach_BNK[..., -1:]
        label_BN = (reach_BNK < threshold_BN1).sum(-1).clamp(max=n_atoms - 1)
        member_BNK = torch.nn.functional.one_hot(label_BN, n_atoms).to(points_BND.dtype)
        count_BK = member_BNK.sum(1)
        precision_BK1 = (count_BK / var_B[:, None] + 1 / signal_B[:, None])[..., None]
        center_BKD = member_BNK.mT @ points_BND / var_B[:, None, None] / precision_BK1
        gamma_BK = torch._standard_gamma(count_BK + CONCENTRATION, generator=generator).clamp_min(1e-30)
        state = Atoms(
            center_BKD + normal(batch, n_atoms, dim) / precision_BK1.sqrt(),
            gamma_BK / gamma_BK.sum(1, keepdim=True),
        )
        if sweep >= BURN_IN and (sweep - BURN_IN) % THIN == 0:
            draws.append(Atoms(center_BKD + mean_B1D, count_BK / n_points))
    return draws


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
