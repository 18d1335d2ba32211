"""Estimate Gaussian mixtures with a trained flow.

:func:`fit_mixture` takes one data set from its rows to a mixture. The rows are centred and scaled to unit variance; if
they have more columns than the network, the network sees their principal components. The network moves the rows of the
context towards their centres, the resulting tokens are merged to atoms, and EM refines the atoms on all rows and
columns. If the SNR is not given, a path of values is tried first and the BIC chooses.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from coterie.flow.atoms import (
    Atoms,
    log_joint,
    merge_tokens,
    refine_and_prune,
    run_em,
    without_empty,
)
from coterie.flow.model import MeasureFlow, Regime
from coterie.flow.posterior import LONG, Sweeps, barycentre, posterior_samples
from coterie.principal import principal_axes
from coterie.starts import require_spread

MERGE_RADIUS = 1.0  # in noise standard deviations
CELL = 0.5  # side of the cells whose points are one token, in noise standard deviations
MOST_CELLS = 0.8  # of the number of points; above it, cells would hardly save time
PATH_CONTEXT = 500
PATH_ATOMS = 32  # of every SNR on the path, the heaviest: a high SNR leaves single points, which pruning would remove
SNR_PATH = (3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 15.0, 17.0, 19.0)


@dataclass(frozen=True)
class FlowOptions:
    """How a mixture is estimated; ``None`` for the number of layers and the regime takes those of the training."""

    n_layers: int | None = None
    regime: Regime | None = None
    refine: Literal["em", "posterior"] | None = "em"
    max_iter: int = 100
    tol: float = 1e-3


DEFAULT = FlowOptions()


@dataclass(frozen=True)
class MixtureEstimate:
    """A spherical Gaussian mixture, and how it was found."""

    centers_KD: np.ndarray
    weights_K: np.ndarray
    var: float
    snr_db: float
    flow_time: float
    atoms_AD: np.ndarray  # before EM, or the average over the posterior
    n_iter: int = 0
    converged: bool = True
    path: "SnrPath | None" = None  # if the SNR was estimated


@torch.no_grad()
def fit_mixture(
    network: MeasureFlow,
    rows_ND: np.ndarray,
    snr_db: float | None,
    *,
    context: np.ndarray,
    generator: torch.Generator,
    counts_N: np.ndarray | None = None,
    options: FlowOptions = DEFAULT,
) -> MixtureEstimate:
    """Estimate the mixture that ``rows_ND`` were drawn from.

    ``context`` holds the indices of the rows that the network sees, and ``counts_N`` how many times each row counts.
    """
    rows_ND = rows_ND.astype(np.float64, copy=False)
    mean_D = np.average(rows_ND, axis=0, weights=counts_N)
    centred_ND = rows_ND - mean_D
    scale = math.sqrt(float(np.average(np.square(centred_ND).mean(1), weights=counts_N)))
    if scale <= 1e-12 * float(np.abs(mean_D).max()) or scale == 0:
        if centred_ND.any():
            require_spread(scale, rows_ND)
        return _one_point(mean_D, snr_db)
    x_1ND = torch.as_tensor(centred_ND / scale)[None]
    counts_1N = None if counts_N is None else torch.as_tensor(counts_N)[None]
    seen_ND = x_1ND[0, torch.as_tensor(context)]
    basis_DP = _principal_axes(seen_ND, network.config.dim)
    seen_1NP = (seen_ND @ basis_DP).float()[None]
    snr = estimate_snr(network, seen_1NP[0], options) if snr_db is None else snr_db
    told_1, var_1 = _told(seen_1NP, snr)
    tokens_1NP = flow_tokens(network, seen_1NP, told_1, n_layers=options.n_layers, regime=options.regime)
    merged = merge_tokens(tokens_1NP, MERGE_RADIUS * var_1.sqrt())
    start = end = Atoms(merged.centers_BKD.double() @ basis_DP.T, merged.weights_BK.double())
    n_iter, converged = 0, True
    if options.refine is not None:
        end, limits = refine_and_prune(x_1ND, start, var_1, counts_1N), (options.max_iter, options.tol)
        found = run_em(x_1ND, end, var_1, *limits, var_known=snr_db is not None, counts_BN=counts_1N)
        (end, var_1), n_iter, converged = found.state, found.n_iter, found.converged
    end = without_empty(end, len(rows_ND) if counts_N is None else float(counts_N.sum()))
    atoms_AD = start.centers_BKD[0]
    if options.refine == "posterior":
        averaged_1NP = posterior_tokens(seen_1NP, tokens_1NP, told_1, generator, snr_known=snr_db is not None)
        atoms_AD = averaged_1NP[0].double() @ basis_DP.T
    var = float(var_1)
    return MixtureEstimate(
        centers_KD=end.centers_BKD[0].numpy() * scale + mean_D,
        weights_K=end.weights_BK[0].numpy(),
        var=var * scale**2,
        snr_db=decibels(1.0, var) if snr_db is None else float(snr_db),
        flow_time=float(network.flow_time(told_1.to(network.encoder_DE))),
        atoms_AD=atoms_AD.numpy() * scale + mean_D,
        n_iter=n_iter,
        converged=converged,
        path=snr if isinstance(snr, SnrPath) else None,
    )


def _told(seen_1NP: Tensor, snr: "float | SnrPath") -> tuple[Tensor, Tensor]:
    """The SNR in dB of what the network sees, and the noise variance. A given SNR is that of all columns."""
    if isinstance(snr, SnrPath):
        told_1 = torch.tensor([snr.snr_db])
        return told_1, noise_variance(seen_1NP, told_1).double()
    var = 1 / (1 + 10 ** (snr / 10))
    seen_var = float(seen_1NP.var(1, correction=0).mean())
    return torch.tensor([decibels(seen_var, var)]), torch.tensor([var], dtype=torch.float64)


def _one_point(mean_D: np.ndarray, snr_db: float | None) -> MixtureEstimate:
    """The estimate where all rows are equal."""
    var = float(np.finfo(np.float64).eps * max(1.0, float(np.square(mean_D).max())))
    centers = mean_D[None]
    return MixtureEstimate(centers, np.ones(1), var, math.inf if snr_db is None else snr_db, 0.0, centers.copy())


def _principal_axes(x_ND: Tensor, dim: int) -> Tensor:
    """The identity if the network has enough dimensions for all columns, otherwise the first ``dim`` principal axes."""
    if x_ND.shape[1] <= dim:
        return torch.eye(x_ND.shape[1], dtype=x_ND.dtype)
    axes, _ = principal_axes((x_ND - x_ND.mean(0)).numpy())
    return torch.as_tensor(axes[:dim].T.copy())


def decibels(total_var: float, noise_var: float) -> float:
    """The SNR in dB for a total variance and a noise variance per dimension."""
    return 10 * math.log10(max(total_var / noise_var - 1, 1e-2))


def noise_variance(points_BND: Tensor, snr_db_B: Tensor) -> Tensor:
    """The noise variance per dimension that an SNR implies: the total variance per dimension over 1 + SNR."""
    return points_BND.var(1, correction=0).mean(-1) / (1 + 10 ** (snr_db_B / 10))


@torch.no_grad()
def flow_tokens(
    network: MeasureFlow,
    points_BND: Tensor,
    snr_db_B: Tensor,
    *,
    n_layers: int | None = None,
    regime: Regime | None = None,
    exact: bool = False,
) -> Tensor:
    """Tokens (B, N, D) of data whose dimension D may be smaller than that of the network.

    Unless ``exact``, points much nearer to one another than the noise, in a cell of a grid, are one point of their
    joint weight for the network, and have the same token: attention is quadratic in the number of points.
    """
    dim, place = points_BND.shape[-1], network.encoder_DE
    padding = (0, network.config.dim - dim)
    settings: dict[str, Any] = {"n_layers": n_layers, "regime": regime}

    def tokens(points_BMD: Tensor, snr_db_B: Tensor, weights_BM: Tensor | None = None) -> Tensor:
        dims_B = torch.full((len(points_BMD),), dim, device=place.device)
        padded_BMD = torch.nn.functional.pad(points_BMD, padding).to(place)
        return network(padded_BMD, snr_db_B.to(place), dims_B=dims_B, weights_BN=weights_BM, **settings)

    if exact:
        return tokens(points_BND, snr_db_B)[..., :dim].to(points_BND)
    side_B = CELL * noise_variance(points_BND, snr_db_B).sqrt()
    found = []
    for points_ND, snr_db, side in zip(points_BND, snr_db_B, side_B.tolist()):
        centers_MD, counts_M, cell_N = grid_cells(points_ND, side)
        if len(centers_MD) > MOST_CELLS * len(points_ND):
            tokens_ND = tokens(points_ND[None], snr_db[None])[0]
        else:
            tokens_ND = tokens(centers_MD[None], snr_db[None], counts_M[None].to(place))[0, cell_N]
        found.append(tokens_ND[:, :dim])
    return torch.stack(found).to(points_BND)


def grid_cells(points_ND: Tensor, side: float) -> tuple[Tensor, Tensor, Tensor]:
    """Means (M, D) and counts (M,) of the points in the cells of a grid that are not empty, and the cell of each point.

    The grid begins at the mean of the points, so that it moves with them.
    """
    centred_ND = points_ND - points_ND.mean(0)
    place_ND = centred_ND / max(side, torch.finfo(points_ND.dtype).tiny)
    _, cell_N, counts_M = torch.unique(place_ND.round(), dim=0, return_inverse=True, return_counts=True)
    counts_M = counts_M.to(points_ND.dtype)
    sums_MD = points_ND.new_zeros(len(counts_M), points_ND.shape[1]).index_add_(0, cell_N, points_ND)
    return sums_MD / counts_M[:, None], counts_M, cell_N


def token_atoms(points_BND: Tensor, tokens_BND: Tensor, snr_db_B: Tensor, most: int | None = None) -> Atoms:
    """Merge tokens to atoms, at most ``most``, and refine them by EM with the variance that the SNR implies."""
    var_B = noise_variance(points_BND, snr_db_B)
    atoms = merge_tokens(tokens_BND, MERGE_RADIUS * var_B.sqrt())
    if most is not None and atoms.weights_BK.shape[1] > most:
        weights_BK, heaviest_BK = atoms.weights_BK.topk(most, dim=1)
        index_BKD = heaviest_BK[..., None].expand(-1, -1, atoms.centers_BKD.shape[2])
        atoms = Atoms(atoms.centers_BKD.gather(1, index_BKD), weights_BK / weights_BK.sum(1, keepdim=True))
    return refine_and_prune(points_BND, atoms, var_B)


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


@dataclass(frozen=True)
class SnrPath:
    """What each SNR on the path gives, from coarse (low SNR) to fine, and the SNR estimated from the best of them."""

    tried_db: tuple[float, ...]
    n_clusters: tuple[int, ...]
    bic: tuple[float, ...]
    snr_db: float


def estimate_snr(network: MeasureFlow, points_ND: Tensor, options: FlowOptions = DEFAULT) -> SnrPath:
    """Estimate the SNR of one data set.

    Every SNR of the path gives a mixture, which EM refines, all in one batch. The one with the smallest BIC is chosen,
    and the residual variance of its clusters gives the SNR, which may lie between the values of the path. At most
    ``PATH_CONTEXT`` of the points are used, evenly spaced.
    """
    tried_B = torch.tensor(SNR_PATH, dtype=points_ND.dtype)
    fewer_ND = points_ND[:: -(-len(points_ND) // PATH_CONTEXT)]
    points_BND = fewer_ND.expand(len(SNR_PATH), -1, -1)
    tokens_BND = flow_tokens(network, points_BND, tried_B, n_layers=options.n_layers, regime=options.regime)
    atoms = token_atoms(points_BND, tokens_BND, tried_B, PATH_ATOMS)
    var_B = noise_variance(points_BND, tried_B)
    found = [
        without_empty(Atoms(centers[None], weights[None]), len(fewer_ND))
        for centers, weights in zip(atoms.centers_BKD, atoms.weights_BK)
    ]
    bic = [bayesian_information(fewer_ND, one, float(var)) for one, var in zip(found, var_B)]
    best = int(np.argmin(bic))
    _, residual_1 = run_em(points_ND[None], found[best], var_B[best, None], max_iter=1, var_known=False).state
    return SnrPath(
        tried_db=SNR_PATH,
        n_clusters=tuple(one.weights_BK.shape[1] for one in found),
        bic=tuple(bic),
        snr_db=decibels(float(points_ND.var(0, correction=0).mean()), float(residual_1)),
    )


def bayesian_information(points_ND: Tensor, atoms: Atoms, var: float) -> float:
    """The BIC of a spherical mixture with one variance; smaller is better."""
    n_points, dim = points_ND.shape
    log_density_N = log_joint(points_ND[None], atoms, points_ND.new_tensor([var])).logsumexp(-1)[0]
    log_likelihood = float(log_density_N.sum()) - n_points * dim / 2 * math.log(2 * math.pi * var)
    n_parameters = atoms.weights_BK.shape[1] * (dim + 1)
    return -2 * log_likelihood + n_parameters * math.log(n_points)
