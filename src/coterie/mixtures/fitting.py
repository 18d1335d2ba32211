"""Estimate Gaussian mixtures of any kind of covariance, with the flow as the start.

:func:`fit_gaussians` takes one data set from its rows to a mixture. The flow runs on some of the rows at a fixed SNR,
which divides clusters rather than joining them, and EM merges what belongs together (:mod:`coterie.mixtures.search`).
The covariance within the clusters so found makes the clusters round: the flow runs again on rows whitened by it, at
the SNR that they have, and the better start is kept. Then it runs on the rows of each cluster that can be several, and
divides it. :func:`posterior` draws mixtures from the posterior, and sums up what they say about the clusters.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from coterie.geometry.spread import Extent, principal_axes
from coterie.mixtures.atoms import MERGE_RADIUS, flow_tokens, merge_tokens, noise_variance
from coterie.mixtures.flow import MeasureFlow
from coterie.mixtures.gaussians import Gaussians, Kind, shares_of, within
from coterie.mixtures.moments import Fit, Rows, RowsInBlocks, Total, Unit, estimate_from, run_em
from coterie.mixtures.posterior_sampler import SHORT, Draws, posterior_draws
from coterie.mixtures.search import Search, best_mixture, determined, start_from
from coterie.mixtures.spherical_sampler import Sweeps
from coterie.starts.row_order import require_spread

START_DB = 11.0
SNR_PATH = (3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 15.0)  # from the first to the last that the networks are trained for
START_ROWS = 256  # that the flow sees: EM uses all rows, so more of them make it slower and not better
MOST_ATOMS = 24
LEAST_DIVIDED = 8  # rows of a cluster that the flow may divide
PART_ROWS, MOST_PARTS = 64, 6  # the same for the rows of one cluster: each of its parts may be divided again


@dataclass(frozen=True)
class Estimate:
    """A mixture in the units of the data, and how it was found."""

    mixture: Gaussians
    atoms_AD: np.ndarray  # of the flow, before EM
    snr_db: float
    flow_time: float
    n_iter: int = 0
    converged: bool = True
    undetermined: tuple[Kind, ...] = ()  # kinds of which the rows do not determine two clusters


def fit_gaussians(
    network: MeasureFlow, context_ND: np.ndarray, search: Search, extent: Extent, others: Total | None = None
) -> Estimate:
    """Estimate the mixture of rows of a given extent, around their mean.

    The number of clusters is found from the rows ``context_ND`` minus that mean. If these are only a part, ``others``
    are the blocks of all rows, on which EM runs at the end. If ``search.max_iter`` is 0, the clusters are the flow's.
    """
    var_D = extent.var_D
    scale = math.sqrt(float(var_D.mean()))
    if scale == 0:
        if (extent.high_D > extent.low_D).any():
            require_spread(scale, context_ND)
        return _one_point(len(var_D), search.kinds[0])
    unit = Unit(extent.mean_D, np.where(var_D > 0, 1 / scale, 0.0))
    searched = Rows.of(context_ND / scale, extent=unit.of(extent))
    std_D = np.sqrt(np.maximum(var_D / scale**2, 1e-12))
    round_only = not set(search.kinds) - {"tied-spherical", "spherical"}
    first_DD = np.eye(len(std_D)) if round_only else np.diag(1 / std_D)
    find = _search if search.max_iter else _flow_clusters
    fit, atoms_AD, told = find(network, searched, search, first_DD)
    if search.max_iter and others is not None:
        search.tell(f"EM on all {extent.size:,.0f} rows")
        every = RowsInBlocks(extent.size, searched.floor_D, searched.log_volume, others, unit)
        fit = run_em(every, fit.mixture, search.max_iter, search.tol)
    mixture = replace(
        fit.mixture,
        centers_KD=fit.mixture.centers_KD * scale,
        covariances=fit.mixture.covariances * scale**2,
        log_volume=fit.mixture.log_volume + len(var_D) * math.log(scale),
    )
    return Estimate(
        _in_order(mixture, extent.size),
        atoms_AD * scale,
        decibels(1.0, float(np.trace(within(fit.mixture))) / len(std_D)),
        float(network.flow_time(torch.tensor([told]).to(network.encoder_DE))),
        fit.n_iter,
        fit.converged,
        tuple(kind for kind in search.kinds if kind not in determined(searched, search.kinds, 2)),
    )


Found = tuple[Fit, np.ndarray, float]  # a mixture, the atoms of the flow that it began with, and their SNR in dB


def _flow_clusters(network: MeasureFlow, rows: Rows, search: Search, scale_DD: np.ndarray) -> Found:
    """The mixture of the rows' nearest atoms, of the first kind, at the SNR of the smallest BIC."""
    found = []
    for told in SNR_PATH:
        labels_N, atoms_AD = start_labels(network, rows.values_ND, scale_DD, told)
        mixture = start_from(rows, labels_N, search.kinds[0], noise=False)
        log_likelihood = float(shares_of(mixture.log_joint(rows.values_ND))[1].sum())
        found.append((Fit(mixture, log_likelihood, 0, True), atoms_AD, told))
    return min(found, key=lambda each: rows.bic(each[0].mixture, each[0].log_likelihood))


def _search(network: MeasureFlow, rows: Rows, search: Search, scale_DD: np.ndarray) -> Found:
    """The mixture that EM and merges find from the atoms of the flow, on the rows as they are, whitened and divided."""
    told = START_DB
    labels_N, atoms_AD = start_labels(network, rows.values_ND, scale_DD, told)
    search.tell(f"the flow finds {len(atoms_AD)} clusters in {len(rows.values_ND):,} rows; EM and merges follow")
    fit, bic = best_mixture(rows, labels_N, search)
    if fit.mixture.n_clusters > 1:
        whitening_DD = np.linalg.inv(np.linalg.cholesky(within(fit.mixture))).T
        again = _told(decibels(float((rows.values_ND @ whitening_DD).var(0).mean()), 1.0))
        labels_N, again_AD = start_labels(network, rows.values_ND, whitening_DD, again)
        search.tell(f"the flow finds {len(again_AD)} clusters in whitened rows")
        same = replace(search, kinds=(fit.mixture.kind,), noise=(fit.mixture.noise > 0,))
        other, other_bic = best_mixture(rows, labels_N, same)
        if other_bic < bic:
            fit, bic, atoms_AD, told = other, other_bic, again_AD, again
    return _divided(network, rows, fit, bic, search), atoms_AD, told


def _divided(network: MeasureFlow, rows: Rows, fit: Fit, bic: float, search: Search) -> Fit:
    """Let the flow divide the rows of each cluster, and those of the uniform component, as long as the BIC falls.

    The flow sees all rows at one scale. If one cluster or row is far from the others, these look like one cluster.
    """
    while True:
        joint_NC = fit.mixture.log_joint(rows.values_ND)
        labels_N, n_parts = joint_NC[:, : fit.mixture.n_clusters].argmax(1), fit.mixture.n_clusters
        groups_N = joint_NC.argmax(1)
        for group in np.unique(groups_N):
            mine = groups_N == group
            parts = _parts(network, rows.values_ND[mine], search)
            if parts.any():
                labels_N[mine] = n_parts + parts
                n_parts += int(parts.max()) + 1
        if n_parts == fit.mixture.n_clusters:
            return fit
        search.tell(f"the flow divides {fit.mixture.n_clusters} clusters into {n_parts - fit.mixture.n_clusters} parts")
        other, other_bic = best_mixture(rows, labels_N, search)
        if other_bic >= bic:
            return fit
        fit, bic = other, other_bic


def _parts(network: MeasureFlow, values_ND: np.ndarray, search: Search) -> np.ndarray:
    """A few clusters among some rows, with a common covariance: enough to see that there are several."""
    values_ND = values_ND[:, np.ptp(values_ND, axis=0) > 0]
    if len(values_ND) < LEAST_DIVIDED or not values_ND.size or not can_be_cut(values_ND):
        return np.zeros(len(values_ND), dtype=int)
    rows = Rows.of(values_ND)
    scale_DD = np.diag(1 / np.sqrt(rows.floor_D))  # a small share of the spread, which few far rows do not change
    labels_N, _ = start_labels(network, values_ND, scale_DD, START_DB, PART_ROWS, MOST_PARTS)
    quick = Search(("tied-spherical", "tied"), max_iter=search.max_iter, tol=search.tol)
    fit, _ = best_mixture(rows, labels_N, quick)
    return fit.mixture.log_joint(values_ND).argmax(1)


def can_be_cut(values_ND: np.ndarray) -> bool:
    """Whether the BIC falls if a column or principal axis is cut in two normal parts of one variance.

    This is quick, and seldom so for a single cluster: a cut costs 0.19 per row of a normal distribution in the middle.
    """
    n_rows = len(values_ND)
    scaled_ND = (values_ND - values_ND.mean(0)) / values_ND.std(0)
    axes_DD = np.linalg.eigh(scaled_ND.T @ scaled_ND)[1]
    sorted_NL = np.sort(np.hstack([scaled_ND, scaled_ND @ axes_DD]), axis=0)
    share_N1 = (np.arange(1, n_rows) / n_rows)[:, None]
    between_NL = np.square(np.cumsum(sorted_NL, axis=0)[:-1] / n_rows) / (share_N1 * (1 - share_N1))
    within_NL = 1 - between_NL / np.maximum(np.square(sorted_NL).mean(0), np.finfo(float).tiny)
    entropy_N1 = -share_N1 * np.log(share_N1) - (1 - share_N1) * np.log1p(-share_N1)
    gain = float((-0.5 * np.log(np.maximum(within_NL, 1e-12)) - entropy_N1).max())
    return n_rows * gain > math.log(n_rows)  # half the penalty of two parameters, the second mean and the weight


@torch.inference_mode()
def start_labels(
    network: MeasureFlow,
    x_ND: np.ndarray,
    scale_DD: np.ndarray,
    snr_db: float,
    most_rows: int = START_ROWS,
    most_atoms: int = MOST_ATOMS,
) -> tuple[np.ndarray, np.ndarray]:
    """The nearest atom of the flow for every row, and the atoms: the means of their rows.

    The flow sees at most ``most_rows`` rows, evenly spaced, multiplied by ``scale_DD``.
    """
    z_ND = x_ND @ scale_DD
    z_ND -= z_ND.mean(0)
    if z_ND.shape[1] > network.config.dim:
        z_ND = z_ND @ principal_axes(z_ND)[0][: network.config.dim].T
    seen_1NP = torch.as_tensor(z_ND[:: -(-len(z_ND) // most_rows)], dtype=torch.float32)[None]
    told_1 = torch.tensor([snr_db])
    tokens_ND = flow_tokens(network, seen_1NP, told_1)[0]
    centers_KP, weights_K = merge_tokens(tokens_ND, MERGE_RADIUS * float(noise_variance(seen_1NP, told_1).sqrt()))
    heaviest = weights_K.argsort(descending=True, stable=True)[:most_atoms]
    labels_N = cdist(z_ND, centers_KP[heaviest].double().numpy(), "sqeuclidean").argmin(1)
    used, labels_N = np.unique(labels_N, return_inverse=True)
    members_NK = np.eye(len(used))[labels_N]
    return labels_N, members_NK.T @ x_ND / members_NK.sum(0)[:, None]


def decibels(total_var: float, noise_var: float) -> float:
    """The SNR in dB for a total variance and a noise variance per dimension."""
    return 10 * math.log10(max(total_var / noise_var - 1, 1e-2))


def _told(snr_db: float) -> float:
    """The nearest SNR that the networks are trained for."""
    return min(max(snr_db, SNR_PATH[0]), SNR_PATH[-1])


def _one_point(dim: int, kind: Kind) -> Estimate:
    """The estimate where all rows are equal."""
    eye_DD = np.eye(dim)
    unit = {
        "tied-spherical": np.ones(()),
        "spherical": np.ones(1),
        "diag": np.ones((1, dim)),
        "tied": eye_DD,
        "full": eye_DD[None],
    }[kind]
    at_1D = np.zeros((1, dim))
    return Estimate(Gaussians(at_1D, np.ones(1), np.finfo(np.float64).eps * unit, kind), at_1D.copy(), math.inf, 0.0)


def _in_order(mixture: Gaussians, size: float) -> Gaussians:
    """Clusters of at least half a row, heaviest first; those of equal weight are sorted by their coordinates."""
    weights_K, centers_KD = mixture.weights_K, mixture.centers_KD
    order = np.lexsort((*centers_KD[:, :8].T[::-1], -weights_K.round(9)))
    order = order[(weights_K[order] * size >= 0.5) | (np.arange(len(order)) == 0)]
    mixture = mixture.ordered(order)
    return replace(mixture, weights_K=mixture.weights_K / mixture.weights_K.sum() * (1 - mixture.noise))


@dataclass(frozen=True)
class Posterior:
    """What draws from the posterior say about the clusters of a mixture, in its order."""

    mixture: Gaussians  # at the average of the draws
    labels_JN: np.ndarray  # clusters of the rows in every draw: -1 is noise, and K is any cluster beyond the K ones
    n_clusters_proba: np.ndarray  # of 1, 2, ... clusters
    centers_JKD: np.ndarray  # in the draws with the most probable number of clusters


def posterior(values_ND: np.ndarray, mixture: Gaussians, rng: np.random.Generator, sweeps: Sweeps = SHORT) -> Posterior:
    """Draw from the posterior of the mixture of ``values_ND``, beginning at ``mixture``."""
    if not np.ptp(values_ND, axis=0).any():
        labels_JN = np.zeros((sweeps.n_draws, len(values_ND)), dtype=np.int16)
        return Posterior(mixture, labels_JN, np.ones(1), np.tile(mixture.centers_KD, (sweeps.n_draws, 1, 1)))
    joint_NC = mixture.log_joint(values_ND)
    labels_N = joint_NC.argmax(1)
    labels_N[labels_N == mixture.n_clusters] = -1
    draws = posterior_draws(values_ND, labels_N, mixture.kind, rng, sweeps, noise=mixture.noise > 0)
    if not draws.n_clusters_J.any():  # no row has stayed in a cluster: the rows are not Gaussian, but have clusters
        without = replace(mixture, noise=0.0, weights_K=mixture.weights_K / mixture.weights_K.sum())
        return posterior(values_ND, without, rng, sweeps)
    n_clusters = int(draws.n_clusters_proba.argmax()) + 1
    fitting = np.flatnonzero(draws.n_clusters_J == n_clusters)
    reference_N = labels_N if labels_N.max() + 1 == n_clusters else draws.labels_JN[fitting[len(fitting) // 2]]
    for _ in range(2):  # by the reference, then by the average over the draws
        named_JN, places_JK = _renamed(draws, reference_N, n_clusters)
        shares_NC = np.stack([(named_JN == k).mean(0) for k in (*range(n_clusters), -1)], axis=1)
        reference_N = shares_NC[:, :-1].argmax(1)
    rows = Rows.of(values_ND)
    if not mixture.noise:
        shares_NC = shares_NC[:, :-1]
    shares_NC = shares_NC / np.maximum(shares_NC.sum(1, keepdims=True), 1e-12)
    averaged = estimate_from(rows, shares_NC, mixture.kind, mixture.noise > 0)
    order = np.argsort(-averaged.weights_K, kind="stable")
    averaged = replace(averaged.ordered(order), log_volume=mixture.log_volume)
    rank = np.append(np.argsort(order), [n_clusters, -1])  # the last entry is that of the label -1
    return Posterior(
        averaged,
        rank[named_JN].astype(np.int16),
        draws.n_clusters_proba,
        np.stack([draws.centers_JMD[j, places_JK[j]] for j in fitting])[:, order],
    )


def _renamed(draws: Draws, reference_N: np.ndarray, n_clusters: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels of all draws by the clusters of the reference that they share most rows with, and the places of these."""
    most = draws.centers_JMD.shape[1]
    named_JN = np.full(draws.labels_JN.shape, -1)
    places_JK = np.zeros((len(named_JN), n_clusters), dtype=int)
    for j, label_N in enumerate(draws.labels_JN):
        inside = (label_N >= 0) & (reference_N >= 0)
        cells = np.bincount(reference_N[inside] * most + label_N[inside], minlength=n_clusters * most)
        own, its = linear_sum_assignment(-cells.reshape(n_clusters, most))
        name_M = np.full(most + 1, n_clusters)
        name_M[its], name_M[-1] = own, -1
        named_JN[j], places_JK[j] = name_M[label_N], its
    return named_JN, places_JK
