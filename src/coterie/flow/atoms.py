"""From the flow's tokens to a few weighted atoms, and EM steps with a known noise variance from there.

Shapes: B data sets, N points, K atoms (padded with weight zero), D dimensions.
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from coterie import em


class Atoms(NamedTuple):
    """A discrete measure per data set; atoms of weight zero are padding."""

    centers_BKD: Tensor
    weights_BK: Tensor


def merge_tokens(tokens_BND: Tensor, radius_B: Tensor) -> Atoms:
    """Group the tokens of each data set around their densest places.

    The token with the most others within ``radius`` becomes a leader and takes them away; so on until none is left.
    Every token then goes to its nearest leader, and the groups' means and shares are the atoms.
    """
    groups = [_merge(tokens, float(radius)) for tokens, radius in zip(tokens_BND, radius_B)]
    size = max(len(centers) for centers, _ in groups)
    centers_BKD = tokens_BND.new_zeros(len(groups), size, tokens_BND.shape[2])
    weights_BK = tokens_BND.new_zeros(len(groups), size)
    for b, (centers, weights) in enumerate(groups):
        centers_BKD[b, : len(centers)] = centers
        weights_BK[b, : len(weights)] = weights
    return Atoms(centers_BKD, weights_BK)


def _merge(tokens_ND: Tensor, radius: float) -> tuple[Tensor, Tensor]:
    near_NN = (torch.cdist(tokens_ND, tokens_ND) <= radius).numpy()
    np.fill_diagonal(near_NN, True)
    count_N = near_NN.sum(1)
    left_N = np.ones(len(near_NN), dtype=bool)
    leaders = []
    while left_N.any():
        leader = int(np.argmax(np.where(left_N, count_N, -1)))
        taken_N = near_NN[leader] & left_N
        leaders.append(leader)
        left_N &= ~taken_N
        count_N = count_N - near_NN[:, taken_N].sum(1)
    label_N = torch.cdist(tokens_ND, tokens_ND[leaders]).argmin(1)
    member_NK = torch.nn.functional.one_hot(label_N, len(leaders)).to(tokens_ND.dtype)
    weights_K = member_NK.sum(0)
    return member_NK.T @ tokens_ND / weights_K[:, None], weights_K / len(tokens_ND)


def log_joint(points_BND: Tensor, atoms: Atoms, var_B: Tensor) -> Tensor:
    """Logarithm of weight times Gaussian density, (B, N, K), without the factor that all atoms share."""
    sq_BNK = (
        points_BND.square().sum(-1)[..., None]
        - 2 * points_BND @ atoms.centers_BKD.mT
        + atoms.centers_BKD.square().sum(-1)[:, None]
    )
    return -sq_BNK / (2 * var_B[:, None, None]) + atoms.weights_BK.log()[:, None]


def refine(points_BND: Tensor, atoms: Atoms, var_B: Tensor, n_steps: int) -> Atoms:
    """EM steps for centres and weights; the variance stays."""
    mean_B1D = points_BND.mean(1, keepdim=True)
    points_BND = points_BND - mean_B1D
    tiny = torch.finfo(points_BND.dtype).tiny

    def e_step(state: Atoms) -> Tensor:
        return log_joint(points_BND, state, var_B).softmax(-1)

    def m_step(state: Atoms, share_BNK: Tensor) -> Atoms:
        total_BK = share_BNK.sum(1)
        centers_BKD = share_BNK.mT @ points_BND / total_BK.clamp_min(tiny)[..., None]
        alive_BK1 = (total_BK > tiny)[..., None]
        return Atoms(torch.where(alive_BK1, centers_BKD, state.centers_BKD), total_BK / points_BND.shape[1])

    start = Atoms(atoms.centers_BKD - mean_B1D, atoms.weights_BK)
    end = em.run(start, e_step, m_step, max_iter=n_steps).state
    return Atoms(end.centers_BKD + mean_B1D, end.weights_BK)


def prune(points_BND: Tensor, atoms: Atoms, var_B: Tensor, n_steps: int = 3) -> Atoms:
    """Drop atoms one by one while that lowers the BIC, with EM steps after each.

    When an atom goes, the others take over its share of every point in proportion to their own; it is worth its place
    if the likelihood then falls by more than half of (D + 1) log N.
    """
    _, n_points, dim = points_BND.shape
    worth = (dim + 1) / 2 * math.log(n_points)
    while True:
        in_use_BK = atoms.weights_BK > 0
        share_BNK = log_joint(points_BND, atoms, var_B).softmax(-1)
        change_B, least_B = _removal(share_BNK).masked_fill(~in_use_BK, -math.inf).max(1)
        drop_B = (change_B > -worth) & (in_use_BK.sum(1) > 1)
        if not drop_B.any():
            return atoms
        rows = drop_B.nonzero()[:, 0]
        weights_RK = atoms.weights_BK[rows].scatter(1, least_B[rows, None], 0.0)
        fewer = Atoms(atoms.centers_BKD[rows], weights_RK / weights_RK.sum(1, keepdim=True))
        fewer = refine(points_BND[rows], fewer, var_B[rows], n_steps)
        atoms = Atoms(
            atoms.centers_BKD.index_copy(0, rows, fewer.centers_BKD),
            atoms.weights_BK.index_copy(0, rows, fewer.weights_BK),
        )


def _removal(share_BNK: Tensor) -> Tensor:
    """Change of the log-likelihood when each atom goes and the others' weights make one EM step to fill its place."""
    tiny = torch.finfo(share_BNK.dtype).tiny
    odds_BNK = share_BNK / (1 - share_BNK).clamp_min(torch.finfo(share_BNK.dtype).eps)
    total_BK = share_BNK.sum(1)
    growth_BKJ = 1 + odds_BNK.mT @ share_BNK / total_BK.clamp_min(tiny)[:, None]
    growth_BKJ = growth_BKJ * (1 - torch.eye(growth_BKJ.shape[1], dtype=share_BNK.dtype, device=share_BNK.device))
    return (share_BNK @ growth_BKJ.mT).clamp_min(tiny).log().sum(1)


def residual_variance(points_BND: Tensor, atoms: Atoms, var_B: Tensor) -> Tensor:
    """The M-step of a variance that all atoms share: mean squared distance per dimension, by shares."""
    share_BNK = log_joint(points_BND, atoms, var_B).softmax(-1)
    sq_BNK = torch.cdist(points_BND, atoms.centers_BKD, compute_mode="donot_use_mm_for_euclid_dist").square()
    return ((share_BNK * sq_BNK).sum((1, 2)) / points_BND[0].numel()).clamp_min(1e-12)


def noise_variance(points_BND: Tensor, snr_db_B: Tensor, dims_B: Tensor | None = None) -> Tensor:
    """The noise variance per dimension that an SNR implies: total variance per dimension over 1 + SNR."""
    sq_B = (points_BND - points_BND.mean(1, keepdim=True)).square().sum(-1).mean(1)
    dims = points_BND.shape[-1] if dims_B is None else dims_B
    return sq_B / dims / (1 + 10 ** (snr_db_B / 10))
