"""Gaussian mixtures with any kind of covariance and an optional uniform component.

The kinds are "tied-spherical" (one variance for all clusters), "spherical" (one variance per cluster), "diag" (one
variance per cluster and column), "tied" (one covariance matrix for all clusters) and "full" (one per cluster). The
uniform component, for rows that belong to no cluster, has a constant density on the bounding box of the data.

Shapes: N rows, K clusters, D columns.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np

Kind = Literal["tied-spherical", "spherical", "diag", "tied", "full"]
KINDS: tuple[Kind, ...] = get_args(Kind)
BLOCK = 2**21  # numbers of the largest temporary array


@dataclass(frozen=True)
class Gaussians:
    """A mixture. Its covariances have the shape () or, by kind, (K,), (K, D), (D, D) and (K, D, D)."""

    centers_KD: np.ndarray
    weights_K: np.ndarray  # with ``noise`` they sum to 1
    covariances: np.ndarray
    kind: Kind
    noise: float = 0.0  # weight of the uniform component
    log_volume: float = 0.0  # of the bounding box

    @property
    def n_clusters(self) -> int:
        return len(self.weights_K)

    @property
    def is_tied(self) -> bool:
        """Whether the clusters have one covariance in common."""
        return self.kind in ("tied", "tied-spherical")

    def ordered(self, order: np.ndarray) -> "Gaussians":
        """The mixture with these clusters alone, in this order."""
        cov = self.covariances if self.is_tied else self.covariances[order]
        return replace(self, centers_KD=self.centers_KD[order], weights_K=self.weights_K[order], covariances=cov)

    @property
    def n_parameters(self) -> int:
        """The number of free parameters."""
        return self.n_clusters * self.n_own_parameters + self.n_common_parameters

    @property
    def n_own_parameters(self) -> int:
        """The number of parameters of a single cluster, without its weight."""
        dim = self.centers_KD.shape[1]
        return dim + {"spherical": 1, "diag": dim, "full": dim * (dim + 1) // 2}.get(self.kind, 0)

    @property
    def n_common_parameters(self) -> int:
        """The number of parameters that depend on all clusters."""
        dim = self.centers_KD.shape[1]
        covariance = {"tied-spherical": 1, "tied": dim * (dim + 1) // 2}.get(self.kind, 0)
        return self.n_clusters - 1 + covariance + (self.noise > 0)

    def log_joint(self, rows_ND: np.ndarray) -> np.ndarray:
        """Logarithm of weight times density, (N, K), with one more column for the uniform component if there is one."""
        dim = self.centers_KD.shape[1]
        scale, log_det = self._whitening
        with np.errstate(divide="ignore"):
            constant_K = np.log(self.weights_K) - 0.5 * (dim * math.log(2 * math.pi) + log_det)
        joint_CN = np.empty((self.n_clusters + (self.noise > 0), len(rows_ND)))  # sums over clusters are faster so
        for part in row_blocks(len(rows_ND), self.n_clusters * dim):
            sq_KN = self._sq_distances(rows_ND[part], scale)
            joint_CN[: self.n_clusters, part] = constant_K[:, None] - 0.5 * sq_KN
        if self.noise > 0:
            joint_CN[-1] = math.log(self.noise) - self.log_volume
        return joint_CN.T

    def scaled(self, normal_ND: np.ndarray, cluster: int) -> np.ndarray:
        """Standard normal rows with the covariance of a cluster."""
        one = self.covariances if self.is_tied else self.covariances[cluster]
        return normal_ND @ np.linalg.cholesky(one).T if one.ndim == 2 else normal_ND * np.sqrt(one)

    @cached_property
    def _whitening(self) -> tuple[np.ndarray, np.ndarray | float]:
        """Precisions (K, D) or roots of precision matrices (K, D, D), and the logarithms of the determinants."""
        if self.kind in ("tied", "full"):
            root = np.linalg.cholesky(self.covariances.reshape(-1, *self.covariances.shape[-2:]))
            log_det = 2 * np.log(np.diagonal(root, axis1=1, axis2=2)).sum(1)
            return np.linalg.inv(root).transpose(0, 2, 1), log_det
        variances_KD = np.broadcast_to(
            self.covariances[..., None] if self.kind != "diag" else self.covariances, self.centers_KD.shape
        )
        return 1 / variances_KD, np.log(variances_KD).sum(1)

    def _sq_distances(self, rows_ND: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """Squared Mahalanobis distances to the centres, (K, N)."""
        dim = rows_ND.shape[1]
        if self.kind == "full":
            roots_KDD = scale.transpose(0, 2, 1)
            shifted_KDE = np.concatenate([roots_KDD, -roots_KDD @ self.centers_KD[..., None]], axis=2)
            rows_EN = np.concatenate([rows_ND.T, np.ones((1, len(rows_ND)))])
            away_KDN = (shifted_KDE.reshape(-1, dim + 1) @ rows_EN).reshape(-1, dim, len(rows_ND))
            return np.einsum("kdn,kdn->kn", away_KDN, away_KDN)
        centers_KD = self.centers_KD
        if self.kind == "tied":
            rows_ND, centers_KD, scale = rows_ND @ scale[0], centers_KD @ scale[0], np.ones_like(centers_KD)
        sq_KN = scale @ np.square(rows_ND).T - 2 * (centers_KD * scale) @ rows_ND.T
        sq_KN += (np.square(centers_KD) * scale).sum(1)[:, None]
        return np.maximum(sq_KN, 0.0, out=sq_KN)


def within(mixture: Gaussians) -> np.ndarray:
    """The covariance within clusters, averaged over them, (D, D)."""
    cov, share_K = mixture.covariances, mixture.weights_K / mixture.weights_K.sum()
    if mixture.kind == "tied":
        return cov
    if mixture.kind == "full":
        return np.einsum("k,kij->ij", share_K, cov)
    var_KD = np.broadcast_to(cov if mixture.kind == "diag" else cov[..., None], mixture.centers_KD.shape)
    return np.diag(share_K @ var_KD)


def row_blocks(n_rows: int, width: int) -> list[slice]:
    """Consecutive slices of rows, such that an array of ``width`` columns per slice is of moderate size."""
    size = max(1, BLOCK // max(1, width))
    return [slice(begin, begin + size) for begin in range(0, n_rows, size)]


def shares_of(joint_NK: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Posterior probabilities of the columns, and the log-density of each row."""
    joint_KN = np.ascontiguousarray(joint_NK.T)
    top_N = joint_KN.max(0)
    shares_KN = np.exp(joint_KN - top_N)
    total_N = shares_KN.sum(0)
    shares_KN /= total_N
    return shares_KN.T, top_N + np.log(total_N)


def log_volume(values_ND: np.ndarray) -> float:
    """Logarithm of the volume of the bounding box; columns of one value count as having a spread of one."""
    spread_D = np.ptp(values_ND, axis=0)
    return float(np.log(np.where(spread_D > 0, spread_D, 1.0)).sum())
