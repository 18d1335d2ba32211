"""One data set, start to finish: context, flow, atoms, refinement, with the SNR given or chosen along a path.

Rows with more columns than the network knows go through their principal components; EM then runs in all columns.
Everything happens in centred coordinates of unit total variance per dimension, in float64 outside the network.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from coterie.flow.atoms import Atoms, log_joint, merge_tokens, prune, residual_variance
from coterie.flow.atoms import refine as em_steps
from coterie.flow.inference import (
    MERGE_RADIUS,
    REFINE_STEPS,
    SNR_PATH,
    Candidate,
    flow_tokens,
    path_atoms,
    posterior_tokens,
)
from coterie.flow.model import MeasureFlow, Regime
from coterie.starts import require_spread


@dataclass(frozen=True)
class MixtureEstimate:
    """A spherical Gaussian mixture and how it was found."""

    centers_KD: np.ndarray
    weights_K: np.ndarray
    var: float
    snr_db: float
    flow_time: float
    atoms_AD: np.ndarray  # before EM, or the posterior's average
    path: tuple[Candidate, ...] = ()  # empty if the SNR was given


def fit_mixture(
    network: MeasureFlow,
    rows_ND: np.ndarray,
    snr_db: float | None,
    *,
    context: np.ndarray,
    n_layers: int | None = None,
    regime: Regime | None = None,
    em: bool = True,
    average: bool = False,
) -> MixtureEstimate:
    """Estimate the mixture that ``rows_ND`` came from. ``context`` indexes the rows that the network looks at.

    With ``average`` the atoms are the context's tokens moved to the posterior's average, of equal weight.
    """
    mean_D = rows_ND.mean(0, dtype=np.float64)
    centred_ND = rows_ND - mean_D
    scale = math.sqrt(float(np.square(centred_ND).mean()))
    if scale <= 1e-12 * float(np.abs(mean_D).max()) or scale == 0:
        if centred_ND.any():
            require_spread(scale, rows_ND)
        return _one_place(mean_D, snr_db)
    x_ND = torch.as_tensor(centred_ND / scale)
    basis_DP = _principal_axes(x_ND, network.config.dim)
    reduced_NP = x_ND @ basis_DP
    flow_var = float(reduced_NP.square().mean())  # total variance per dimension that the network sees

    seen = reduced_NP[torch.as_tensor(context)].float()
    path: tuple[Candidate, ...] = ()
    if snr_db is None:
        found = path_atoms(network, seen, SNR_PATH, n_layers=n_layers, regime=regime)
        path, var = found.candidates, found.best.var
        flow_db = found.best.snr_db
    else:
        var = 1 / (1 + 10 ** (snr_db / 10))
        flow_db = 10 * math.log10(max(flow_var / var - 1, 1e-2))
    told = torch.tensor([flow_db], dtype=torch.float32)
    tokens_BNP = flow_tokens(network, seen[None], told, n_layers=n_layers, regime=regime)
    atoms = merge_tokens(tokens_BNP, torch.tensor([MERGE_RADIUS * math.sqrt(var)]))
    atoms = Atoms(atoms.centers_BKD.double(), atoms.weights_BK.double())
    var_1 = torch.tensor([var], dtype=torch.float64)
    start = _lift(x_ND, reduced_NP, basis_DP, atoms, var_1)
    end = start
    if em:
        end = em_steps(x_ND[None], start, var_1, REFINE_STEPS)
        end = em_steps(x_ND[None], prune(x_ND[None], end, var_1), var_1, REFINE_STEPS)
        if snr_db is None:
            var_1 = residual_variance(x_ND[None], end, var_1)
            end = em_steps(x_ND[None], end, var_1, REFINE_STEPS)
    end = _without_empty(end, len(x_ND))
    atoms_AD = start.centers_BKD[0]
    if average:
        generator = torch.Generator().manual_seed(0)
        averaged_BNP = posterior_tokens(seen[None], tokens_BNP, told, generator, snr_known=snr_db is not None)
        atoms_AD = averaged_BNP[0].double() @ basis_DP.T
    with torch.no_grad():
        flow_time = float(network.flow_time(told)[0])
    var = float(var_1[0])
    return MixtureEstimate(
        centers_KD=end.centers_BKD[0].numpy() * scale + mean_D,
        weights_K=end.weights_BK[0].numpy(),
        var=var * scale**2,
        snr_db=float(snr_db) if snr_db is not None else 10 * math.log10(max(1 / var - 1, 1e-2)),
        flow_time=flow_time,
        atoms_AD=atoms_AD.numpy() * scale + mean_D,
        path=path,
    )


def _one_place(mean_D: np.ndarray, snr_db: float | None) -> MixtureEstimate:
    """All rows are the same point."""
    var = float(np.finfo(np.float64).eps * max(1.0, float(np.square(mean_D).max())))
    centers = mean_D[None]
    return MixtureEstimate(centers, np.ones(1), var, math.inf if snr_db is None else snr_db, 0.0, centers.copy())


def _principal_axes(x_ND: Tensor, dim: int) -> Tensor:
    """The identity where the network knows the number of columns, else the leading ``dim`` principal axes."""
    if x_ND.shape[1] <= dim:
        return torch.eye(x_ND.shape[1], dtype=x_ND.dtype)
    axes_DP = torch.linalg.eigh(x_ND.T @ x_ND).eigenvectors[:, -dim:].flip(1)
    sign_P = axes_DP.gather(0, axes_DP.abs().argmax(0, keepdim=True)).sign()
    return axes_DP * sign_P


def _lift(x_ND: Tensor, reduced_NP: Tensor, basis_DP: Tensor, atoms: Atoms, var_1: Tensor) -> Atoms:
    """Atoms in all columns: as they are if no column was dropped, else the means of the rows by their shares."""
    if basis_DP.shape[0] == basis_DP.shape[1]:
        return atoms
    share_NK = log_joint(reduced_NP[None], atoms, var_1).softmax(-1)[0]
    total_K = share_NK.sum(0)
    mean_KD = share_NK.T @ x_ND / total_K.clamp_min(1e-300)[:, None]
    fallback_KD = atoms.centers_BKD[0] @ basis_DP.T
    centers_KD = torch.where((total_K > 1e-12)[:, None], mean_KD, fallback_KD)
    return Atoms(centers_KD[None], atoms.weights_BK)


def _without_empty(atoms: Atoms, n_points: int) -> Atoms:
    """Drop atoms with less than half a point; the largest always stays. Heaviest first."""
    weights_K = atoms.weights_BK[0]
    order = weights_K.argsort(descending=True, stable=True)
    keep = order[(weights_K[order] * n_points >= 0.5) | (torch.arange(len(order)) == 0)]
    return Atoms(atoms.centers_BKD[:, keep], (weights_K[keep] / weights_K[keep].sum())[None])
