"""Spherical Gaussian mixtures from the tokens of the flow: tokens are merged to atoms, which EM refines and prunes.

Shapes: B data sets, N points, K atoms (padded with weight zero), D dimensions.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from coterie import em
from coterie.mixtures.atoms import merge_tokens
from coterie_research.training.flow.targets import Atoms

REFINE_STEPS = 10
LEAST_VARIANCE = 1e-6  # for points of unit variance, an SNR of 60 dB: EM must not shrink clusters to single points


def merge_all(tokens_BND: Tensor, radius_B: Tensor) -> Atoms:
    """The tokens of each data set, merged by :func:`coterie.mixtures.atoms.merge_tokens`."""
    groups = [merge_tokens(tokens, float(radius)) for tokens, radius in zip(tokens_BND, radius_B)]
    size = max(len(centers) for centers, _ in groups)
    centers_BKD = tokens_BND.new_zeros(len(groups), size, tokens_BND.shape[2])
    weights_BK = tokens_BND.new_zeros(len(groups), size)
    for b, (centers, weights) in enumerate(groups):
        centers_BKD[b, : len(centers)] = centers
        weights_BK[b, : len(weights)] = weights
    return Atoms(centers_BKD, weights_BK)


def log_joint(points_BND: Tensor, atoms: Atoms, var_B: Tensor) -> Tensor:
    """Logarithm of weight times Gaussian density, (B, N, K), without the factor that is the same for all atoms."""
    sq_BNK = (
        points_BND.square().sum(-1)[..., None]
        - 2 * points_BND @ atoms.centers_BKD.mT
        + atoms.centers_BKD.square().sum(-1)[:, None]
    )
    return -sq_BNK / (2 * var_B[:, None, None]) + atoms.weights_BK.log()[:, None]


def run_em(
    points_BND: Tensor,
    atoms: Atoms,
    var_B: Tensor,
    max_iter: int,
    tol: float | None = None,
    *,
    var_known: bool = True,
) -> em.Outcome:
    """EM for centres, weights and, unless it is known, the variance; the state of the outcome is (atoms, var_B).

    EM stops when an iteration raises the mean log-likelihood of no data set by ``tol`` or more.
    """
    (_, n_points, dim), mean_B1D = points_BND.shape, points_BND.mean(1, keepdim=True)
    points_BND = points_BND - mean_B1D
    sq_norm_B = points_BND.square().sum((1, 2))
    tiny = torch.finfo(points_BND.dtype).tiny
    reached_B = torch.full_like(var_B, -math.inf)

    def e_step(state: tuple[Atoms, Tensor]) -> tuple[Tensor, Tensor]:
        log_joint_BNK = log_joint(points_BND, *state)
        if tol is None:
            return log_joint_BNK.softmax(-1), reached_B
        log_density_BN1 = log_joint_BNK.logsumexp(-1, keepdim=True)
        log_likelihood_B = log_density_BN1.mean((1, 2)) - dim / 2 * state[1].log()
        return (log_joint_BNK - log_density_BN1).exp(), log_likelihood_B

    def m_step(state: tuple[Atoms, Tensor], expectation: tuple[Tensor, Tensor]) -> tuple[Atoms, Tensor]:
        share_BNK = expectation[0]
        total_BK = share_BNK.sum(1)
        centers_BKD = share_BNK.mT @ points_BND / total_BK.clamp_min(tiny)[..., None]
        centers_BKD = torch.where((total_BK > tiny)[..., None], centers_BKD, state[0].centers_BKD)
        new = Atoms(centers_BKD, total_BK / n_points)
        if var_known:
            return new, state[1]
        residual_B = sq_norm_B - (total_BK * centers_BKD.square().sum(-1)).sum(1)
        return new, (residual_B / n_points / dim).clamp_min(LEAST_VARIANCE)

    def stop(old: Any, new: Any, expectation: tuple[Tensor, Tensor]) -> bool:
        nonlocal reached_B
        if tol is None:
            return False
        gain_B, reached_B = expectation[1] - reached_B, expectation[1]
        return bool((gain_B < tol).all())

    start = (Atoms(atoms.centers_BKD - mean_B1D, atoms.weights_BK), var_B)
    found = em.run(start, e_step, m_step, max_iter=max_iter, stop=stop)
    (centers_BKD, weights_BK), var_B = found.state
    return replace(found, state=(Atoms(centers_BKD + mean_B1D, weights_BK), var_B))


def refine(points_BND: Tensor, atoms: Atoms, var_B: Tensor, n_steps: int = REFINE_STEPS) -> Atoms:
    """A fixed number of EM steps with a known variance."""
    return run_em(points_BND, atoms, var_B, max_iter=n_steps).state[0]


def refine_and_prune(points_BND: Tensor, atoms: Atoms, var_B: Tensor) -> Atoms:
    """EM steps, the removal of atoms that the likelihood does not need, and EM steps again."""
    return refine(points_BND, prune(points_BND, refine(points_BND, atoms, var_B), var_B), var_B)


def prune(points_BND: Tensor, atoms: Atoms, var_B: Tensor, n_steps: int = 3) -> Atoms:
    """Remove atoms one by one as long as that lowers the BIC, with a few EM steps after each removal.

    When an atom is removed, the others take over its share of every point in proportion to their own. An atom is kept
    if the log-likelihood would then fall by more than half of (D + 1) log N.
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
    """Change of the log-likelihood if an atom is removed and one EM step adapts the weights of the others, (B, K)."""
    tiny = torch.finfo(share_BNK.dtype).tiny
    odds_BNK = share_BNK / (1 - share_BNK).clamp_min(torch.finfo(share_BNK.dtype).eps)
    growth_BKJ = 1 + odds_BNK.mT @ share_BNK / share_BNK.sum(1).clamp_min(tiny)[:, None]
    growth_BKJ = growth_BKJ * (1 - torch.eye(growth_BKJ.shape[1], dtype=share_BNK.dtype, device=share_BNK.device))
    return (share_BNK @ growth_BKJ.mT).clamp_min(tiny).log().sum(1)


def without_empty(atoms: Atoms, size: float) -> Atoms:
    """The atoms of one data set that have at least half a point of ``size``, and the heaviest; heaviest first.

    Atoms of equal weight are sorted by their coordinates, so that the order of the points does not matter.
    """
    weights_K, centers_KD = atoms.weights_BK[0], atoms.centers_BKD[0]
    keys = (*centers_KD[:, :8].T.flip(0).numpy(), -weights_K.numpy().round(9))
    order = torch.as_tensor(np.lexsort(keys))
    keep = order[(weights_K[order] * size >= 0.5) | (torch.arange(len(order)) == 0)]
    return Atoms(atoms.centers_BKD[:, keep], (weights_K[keep] / weights_K[keep].sum())[None])
