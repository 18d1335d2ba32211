"""The number of clusters and the kind of covariance of a Gaussian mixture, by merging and by the BIC.

A start has more clusters than needed. EM alternates with merging the two clusters (or removing the one) that cost the
least likelihood, down to one cluster, and the BIC chooses among the mixtures on that path.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coterie.mixtures.gaussians import KINDS, Gaussians, Kind
from coterie.mixtures.moments import Fit, Rows, estimate_from, run_em

STEPS = 2  # of EM, between two merges
PATIENCE = 3  # merges without a smaller BIC
CLEAR = 0.5  # merges that cost less than this share of the BIC's penalty for a cluster need no EM in between
NOISE_SHARE = 0.05  # of the uniform component at the start


@dataclass(frozen=True)
class Search:
    """Which mixtures are tried: kinds of covariance, with and without a uniform component; and how long EM runs."""

    kinds: tuple[Kind, ...] = KINDS
    noise: tuple[bool, ...] = (False,)
    max_iter: int = 100
    tol: float = 1e-3
    tell: Callable[[str], Any] = lambda text: None  # gets a line for every kind


EVERY_KIND = Search()


def determined(rows: Rows, kinds: tuple[Kind, ...], n_clusters: int) -> tuple[Kind, ...]:
    """Those of the kinds of which the rows determine that many clusters."""
    some = Gaussians(rows.values_ND[:n_clusters], np.ones(n_clusters), np.ones(()), "full")
    return tuple(kind for kind in kinds if rows.determine(replace(some, kind=kind)))


def start_from(rows: Rows, labels_N: np.ndarray, kind: Kind, noise: bool) -> Gaussians:
    """The mixture of a partition. The uniform component, if any, begins with the same share of every row."""
    shares_NC = np.eye(int(labels_N.max()) + 1)[labels_N]
    shares_NC = shares_NC[:, shares_NC.any(0)]
    if noise:
        shares_NC = np.column_stack([(1 - NOISE_SHARE) * shares_NC, np.full(len(shares_NC), NOISE_SHARE)])
    return estimate_from(rows, shares_NC, kind, noise)


def best_mixture(rows: Rows, labels_N: np.ndarray, search: Search = EVERY_KIND) -> tuple[Fit, float]:
    """The best mixture that a partition leads to, and its BIC.

    The BIC chooses the number of clusters, and whether there is a uniform component, and the evidence the kind. Of
    several kinds, those are left out of which the rows do not determine a single cluster. Where they do not determine
    two, EM and merges would be for nothing: one cluster is fitted at once.
    """
    found = []
    several = determined(rows, search.kinds, 2)
    for kind in determined(rows, search.kinds, 1) or search.kinds[:1]:
        begin_N = labels_N if kind in several else np.zeros_like(labels_N)
        starts = [start_from(rows, begin_N, kind, with_noise) for with_noise in search.noise]
        tried = [fewer_clusters(rows, start, search.max_iter, search.tol) for start in starts]
        found.append(min(tried, key=lambda each: each[1]))
        search.tell(f"{kind}: {found[-1][0].mixture.n_clusters} clusters, BIC {found[-1][1]:,.0f}")
    return min(found, key=lambda each: rows.evidence(each[0].mixture, each[0].log_likelihood))


def fewer_clusters(rows: Rows, mixture: Gaussians, max_iter: int = 100, tol: float = 1e-3) -> tuple[Fit, float]:
    """The mixture of smallest BIC on the path of merges from ``mixture``, after EM, and its BIC."""
    best, least, since = mixture, math.inf, 0
    mixture = _clear_merges(rows, mixture)
    while True:
        last: list[np.ndarray] = []
        fit = run_em(rows, mixture, STEPS, on_shares=last.append)
        mixture = fit.mixture
        bic = rows.bic(mixture, fit.log_likelihood)
        if bic < least or least == math.inf:
            best, least, since = mixture, bic, 0
        else:
            since += 1
        if mixture.n_clusters == 1 or since >= PATIENCE:
            break
        mixture = _one_fewer(rows, mixture, last[-1])
    fit = run_em(rows, best, max_iter, tol)
    return fit, rows.bic(fit.mixture, fit.log_likelihood)


def _clear_merges(rows: Rows, mixture: Gaussians) -> Gaussians:
    """Merge clusters by their moments alone as long as the BIC clearly falls."""
    if mixture.n_clusters < 2:
        return mixture
    fewer = replace(mixture, centers_KD=mixture.centers_KD[1:], weights_K=mixture.weights_K[1:])
    limit = CLEAR * math.log(rows.size) / 2 * (mixture.n_parameters - fewer.n_parameters)
    cost_KK = rows.size * merge_costs(mixture)
    while mixture.n_clusters > 2:
        i, j = sorted(map(int, np.unravel_index(int(cost_KK.argmin()), cost_KK.shape)))
        if cost_KK[i, j] > limit:
            break
        mixture = merged(mixture, i, j)
        if mixture.is_tied:  # every cost depends on the common covariance
            cost_KK = rows.size * merge_costs(mixture)
        else:
            cost_KK = np.delete(np.delete(cost_KK, j, 0), j, 1)
            cost_KK[i] = cost_KK[:, i] = rows.size * merge_costs(mixture, [i])[0]
    return mixture


def _one_fewer(rows: Rows, mixture: Gaussians, shares_NC: np.ndarray) -> Gaussians:
    """Merge the two clusters, or remove the one, that the likelihood needs least."""
    cost_KK = rows.size * merge_costs(mixture)
    i, j = np.unravel_index(int(cost_KK.argmin()), cost_KK.shape)
    # The others take over the share of a cluster that is removed.
    lost_NK = -np.log(np.maximum(1 - shares_NC[:, : mixture.n_clusters], 1e-12))
    removal_K = rows.counted(lost_NK).sum(0)
    k = int(removal_K.argmin())
    if cost_KK[i, j] <= removal_K[k]:
        return merged(mixture, int(i), int(j))
    kept_NC = np.delete(shares_NC, k, axis=1)
    kept_NC /= np.maximum(kept_NC.sum(1, keepdims=True), 1e-12)
    return estimate_from(rows, kept_NC, mixture.kind, mixture.noise > 0)


def merged(mixture: Gaussians, i: int, j: int) -> Gaussians:
    """The mixture with one cluster that has the moments of the clusters ``i`` and ``j`` at the place of ``i``."""
    pair, gap_D = mixture.weights_K[[i, j]], mixture.centers_KD[i] - mixture.centers_KD[j]
    both, cov = pair.sum(), mixture.covariances
    between = pair[0] * pair[1] / both * _spread(gap_D, mixture.kind)
    if mixture.is_tied:
        covariances = cov + between / mixture.weights_K.sum()
    else:
        covariances = cov.copy()
        covariances[i] = (pair[0] * cov[i] + pair[1] * cov[j] + between) / both
        covariances = np.delete(covariances, j, 0)
    centers_KD, weights_K = mixture.centers_KD.copy(), mixture.weights_K.copy()
    centers_KD[i], weights_K[i] = pair @ mixture.centers_KD[[i, j]] / both, both
    return replace(
        mixture,
        centers_KD=np.delete(centers_KD, j, 0),
        weights_K=np.delete(weights_K, j),
        covariances=np.asarray(covariances),
    )


def _spread(gap_D: np.ndarray, kind: Kind) -> np.ndarray:
    """What a distance between two centres adds to their common covariance, for arrays of distances (..., D)."""
    if kind in ("tied", "full"):
        return gap_D[..., :, None] * gap_D[..., None, :]
    return np.square(gap_D) if kind == "diag" else np.square(gap_D).mean(-1)


def merge_costs(mixture: Gaussians, of: list[int] | None = None) -> np.ndarray:
    """Loss of log-likelihood per row, at most, if two clusters become one, (K, K), or the rows ``of`` these alone.

    The merged cluster has the moments of the two (Runnalls, 2007). A cluster with itself has an infinite cost.
    """
    one = np.arange(mixture.n_clusters) if of is None else np.asarray(of)
    weights_K, dim, cov = mixture.weights_K, mixture.centers_KD.shape[1], mixture.covariances
    gap_RKD = mixture.centers_KD[one, None] - mixture.centers_KD
    both_RK = weights_K[one, None] + weights_K
    between_RK = weights_K[one, None] * weights_K / both_RK
    if mixture.kind == "tied-spherical":
        cost_RK = dim / 2 * np.log1p(between_RK * np.square(gap_RKD).sum(-1) / (dim * float(cov)))
    elif mixture.kind == "tied":
        scaled_RKD = np.linalg.solve(cov, gap_RKD.reshape(-1, dim).T).T.reshape(gap_RKD.shape)
        cost_RK = 0.5 * np.log1p(between_RK * (gap_RKD * scaled_RKD).sum(-1))
    else:
        axes = (..., *(None,) * (cov.ndim - 1))
        weighted = weights_K[axes] * cov
        joined = weighted[one, None] + weighted + between_RK[axes] * _spread(gap_RKD, mixture.kind)
        separate_K = weights_K * _log_det(cov, mixture.kind, dim)
        joined_RK = both_RK * _log_det(joined / both_RK[axes], mixture.kind, dim)
        cost_RK = 0.5 * (joined_RK - separate_K[one, None] - separate_K)
    cost_RK[np.arange(len(one)), one] = np.inf
    return cost_RK


def _log_det(covariances: np.ndarray, kind: Kind, dim: int) -> np.ndarray:
    if kind == "full":
        return np.linalg.slogdet(covariances)[1]
    return np.log(covariances).sum(-1) if kind == "diag" else dim * np.log(covariances)
