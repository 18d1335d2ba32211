"""Use of a trained flow: tokens of a batch of data sets, atoms from them, and the SNR estimated along a path."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from coterie.flow.atoms import Atoms, log_joint, merge_tokens, noise_variance, prune, refine, residual_variance
from coterie.flow.model import MeasureFlow, Regime
from coterie.flow.posterior import LONG, Sweeps, barycentre, posterior_samples

MERGE_RADIUS = 1.0  # in noise standard deviations
REFINE_STEPS = 10
PATH_CONTEXT = 500
SNR_PATH = (3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 15.0, 17.0, 19.0)


@torch.no_grad()
def flow_tokens(
    network: MeasureFlow,
    points_BND: Tensor,
    snr_db_B: Tensor,
    *,
    n_layers: int | None = None,
    regime: Regime | None = None,
    n_rotations: int = 1,
) -> Tensor:
    """Tokens (B, N, D) of data with D up to the network's dimension.

    The network is not built to commute with rotations; with ``n_rotations`` above 1 its answers for the data turned
    by as many orthogonal matrices are turned back and averaged.
    """
    dim, padded = points_BND.shape[-1], network.config.dim
    dims_B = torch.full((len(points_BND),), dim, device=points_BND.device)
    total = torch.zeros_like(points_BND)
    for turn_DD in _rotations(dim, n_rotations).to(points_BND):
        turned = torch.nn.functional.pad(points_BND @ turn_DD, (0, padded - dim))
        tokens = network(turned, snr_db_B, dims_B=dims_B, n_layers=n_layers, regime=regime)
        total += tokens[..., :dim] @ turn_DD.T
    return total / n_rotations


def _rotations(dim: int, count: int) -> Tensor:
    """``count`` orthogonal matrices, the identity first: equal angles in the plane, fixed random ones above it."""
    if dim == 2:
        angle = 2 * math.pi * torch.arange(count, dtype=torch.float64) / count
        rows = torch.stack([angle.cos(), angle.sin(), -angle.sin(), angle.cos()], 1)
        return rows.view(count, 2, 2)
    generator = torch.Generator().manual_seed(0)
    random = torch.linalg.qr(torch.randn(count, dim, dim, generator=generator, dtype=torch.float64)).Q
    random[0] = torch.eye(dim, dtype=torch.float64)
    return random


def token_atoms(points_BND: Tensor, tokens_BND: Tensor, snr_db_B: Tensor, n_steps: int = REFINE_STEPS) -> Atoms:
    """Tokens merged to atoms, EM steps with the variance that the SNR implies; atoms not needed are dropped."""
    var_B = noise_variance(points_BND, snr_db_B)
    atoms = refine(points_BND, merge_tokens(tokens_BND, MERGE_RADIUS * var_B.sqrt()), var_B, n_steps)
    return refine(points_BND, prune(points_BND, atoms, var_B), var_B, n_steps)


def posterior_tokens(
    points_BND: Tensor,
    tokens_BND: Tensor,
    snr_db_B: Tensor,
    generator: torch.Generator,
    sweeps: Sweeps = LONG,
    *,
    snr_known: bool = True,
) -> Tensor:
    """Tokens (B, N, D) moved to the posterior's average: the estimate of least expected squared W2.

    With ``snr_known=False`` the SNR is where the noise variance starts, which is then drawn with the rest.
    """
    var_B = noise_variance(points_BND, snr_db_B)
    atoms = token_atoms(points_BND, tokens_BND, snr_db_B)
    signal_B = var_B * 10 ** (snr_db_B / 10)
    draws = posterior_samples(points_BND, atoms, var_B, signal_B, generator, sweeps, var_known=snr_known)
    return barycentre(tokens_BND, draws)


@dataclass(frozen=True)
class Candidate:
    """What one SNR on the path gives."""

    snr_db: float
    var: float
    atoms: Atoms  # of a batch of one
    n_clusters: int
    bic: float


@dataclass(frozen=True)
class SnrPath:
    """Candidates from low to high SNR: from coarse to fine."""

    candidates: tuple[Candidate, ...]

    @property
    def best(self) -> Candidate:
        return min(self.candidates, key=lambda candidate: candidate.bic)


def path_atoms(
    network: MeasureFlow,
    points_ND: Tensor,
    snr_db: tuple[float, ...] = SNR_PATH,
    *,
    n_layers: int | None = None,
    regime: Regime | None = None,
    n_steps: int = REFINE_STEPS,
) -> SnrPath:
    """Atoms at every SNR of the path, each with its penalised likelihood (BIC); the SNR need not be known.

    No more than ``PATH_CONTEXT`` of the points take part, evenly spaced.
    """
    snr_db_B = torch.tensor(snr_db, dtype=points_ND.dtype)
    points_ND = points_ND[:: -(-len(points_ND) // PATH_CONTEXT)]
    points_BND = points_ND.expand(len(snr_db), -1, -1)
    tokens_BND = flow_tokens(network, points_BND, snr_db_B, n_layers=n_layers, regime=regime)
    atoms = token_atoms(points_BND, tokens_BND, snr_db_B, n_steps)
    var_B = noise_variance(points_BND, snr_db_B)
    candidates = []
    for b, value in enumerate(snr_db):
        keep_K = atoms.weights_BK[b] * len(points_ND) >= 0.5
        weights_K = atoms.weights_BK[b, keep_K]
        one = Atoms(atoms.centers_BKD[b : b + 1, keep_K], (weights_K / weights_K.sum())[None])
        bic = bayesian_information(points_ND, one, float(var_B[b]))
        candidates.append(Candidate(value, float(var_B[b]), one, int(keep_K.sum()), bic))
    return SnrPath(tuple(candidates))


def bayesian_information(points_ND: Tensor, atoms: Atoms, var: float) -> float:
    """BIC of a spherical mixture with one shared variance: smaller is better."""
    n_points, dim = points_ND.shape
    log_density_N = log_joint(points_ND[None], atoms, points_ND.new_tensor([var])).logsumexp(-1)[0]
    log_likelihood = float(log_density_N.sum()) - n_points * dim / 2 * math.log(2 * math.pi * var)
    n_parameters = atoms.weights_BK.shape[1] * (dim + 1)
    return -2 * log_likelihood + n_parameters * math.log(n_points)


def estimated_snr(path: SnrPath, points_ND: Tensor) -> float:
    """SNR in dB from the residual variance of the path's best candidate, which lies between the path's values."""
    best = path.best
    var = float(residual_variance(points_ND[None], best.atoms, points_ND.new_tensor([best.var]))[0])
    total = float((points_ND - points_ND.mean(0)).square().mean())
    return 10 * math.log10(max(total / var - 1, 1e-2))
