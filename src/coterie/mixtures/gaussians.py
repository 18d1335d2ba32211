"""Gaussian mixtures with any kind of covariance and an optional uniform component, and their EM.

The kinds are "tied-spherical" (one variance for all clusters), "spherical" (one variance per cluster), "diag" (one
variance per cluster and column), "tied" (one covariance matrix for all clusters) and "full" (one per cluster). The
uniform component, for rows that belong to no cluster, has a constant density on the bounding box of the data.

Covariances of single clusters are estimated together with those of the others, as a posterior mode under a common
prior: the covariance of a cluster is averaged with one of all clusters, which counts as ``PSEUDO_ROWS`` rows per
column. Clusters of few rows therefore cannot shrink to a point.

Shapes: N rows, K clusters, D columns.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from coterie import em

Kind = Literal["tied-spherical", "spherical", "diag", "tied", "full"]
KINDS: tuple[Kind, ...] = get_args(Kind)
PSEUDO_ROWS = 1.0
LEAST_VARIANCE = 1e-6  # relative to that of a column: EM must not shrink clusters to single points
VALUES_PER_PARAMETER = 3  # with fewer, the likelihood of many small clusters outweighs the BIC
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
        scale, log_det = self._whitening()
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
        one = self.covariances if self.kind in ("tied", "tied-spherical") else self.covariances[cluster]
        return normal_ND @ np.linalg.cholesky(one).T if one.ndim == 2 else normal_ND * np.sqrt(one)

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
            all_KDD = scale.transpose(0, 2, 1)
            shift_KD1 = all_KDD @ self.centers_KD[..., None]
            away_KDN = (all_KDD.reshape(-1, dim) @ rows_ND.T).reshape(-1, dim, len(rows_ND)) - shift_KD1
            return np.square(away_KDN, out=away_KDN).sum(1)
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


@dataclass(frozen=True)
class Rows:
    """The rows that a mixture is fitted to, with what all fits share."""

    values_ND: np.ndarray
    counts_N: np.ndarray | None  # how many times each row counts, by default once
    size: float
    floor_D: np.ndarray  # smallest variance of each column within a cluster
    log_volume: float

    @classmethod
    def of(cls, values_ND: np.ndarray, counts_N: np.ndarray | None = None) -> "Rows":
        size = float(len(values_ND) if counts_N is None else counts_N.sum())
        mean_D = np.average(values_ND, axis=0, weights=counts_N)
        var_D = np.average(np.square(values_ND - mean_D), axis=0, weights=counts_N)
        inner_D = np.square(np.subtract(*np.quantile(values_ND, [0.75, 0.25], axis=0)))  # few far rows do not change it
        var_D = np.where(inner_D > 0, np.minimum(var_D, inner_D), var_D)
        floor_D = LEAST_VARIANCE * np.maximum(var_D, LEAST_VARIANCE * var_D.mean() + np.finfo(float).tiny)
        return cls(values_ND, counts_N, size, floor_D, log_volume(values_ND))

    def counted(self, values_NC: np.ndarray) -> np.ndarray:
        """Values of every row, as many times as the row counts."""
        return values_NC if self.counts_N is None else values_NC * self.counts_N[:, None]

    def determine(self, mixture: Gaussians) -> bool:
        """Whether there are ``VALUES_PER_PARAMETER`` values or more for every parameter of a mixture."""
        return VALUES_PER_PARAMETER * mixture.n_parameters <= self.size * self.values_ND.shape[1]

    def bic(self, mixture: Gaussians, log_likelihood: float) -> float:
        """Smaller is better; infinite for several clusters that the rows do not determine."""
        if mixture.n_clusters > 1 and not self.determine(mixture):
            return math.inf
        return -2 * log_likelihood + mixture.n_parameters * math.log(self.size)

    def evidence(self, mixture: Gaussians, log_likelihood: float) -> float:
        """The BIC in which the parameters of a cluster are known from its own rows only; smaller is better.

        It approximates the marginal likelihood more closely than the BIC if clusters have many parameters each, and is
        used to compare kinds of covariance. For numbers of clusters the BIC is safer: small clusters cost more. It is
        infinite for a mixture that the rows do not determine.
        """
        if not self.determine(mixture):
            return math.inf
        log_rows = float(np.log(np.maximum(mixture.weights_K * self.size, 1.0)).sum())
        penalty = mixture.n_common_parameters * math.log(self.size) + mixture.n_own_parameters * log_rows
        return -2 * log_likelihood + penalty


def log_volume(values_ND: np.ndarray) -> float:
    """Logarithm of the volume of the bounding box; columns of one value count as having a spread of one."""
    spread_D = np.ptp(values_ND, axis=0)
    return float(np.log(np.where(spread_D > 0, spread_D, 1.0)).sum())


def estimate(rows: Rows, counted_NC: np.ndarray, kind: Kind, noise: bool) -> Gaussians:
    """The M-step: the mixture for given shares of the rows, the last column being that of the uniform component."""
    counted_NK = counted_NC[:, :-1] if noise else counted_NC
    total_K = np.maximum(counted_NK.sum(0), 1e-10)
    centers_KD = counted_NK.T @ rows.values_ND / total_K[:, None]
    return Gaussians(
        centers_KD,
        total_K / rows.size,
        _covariances(rows, counted_NK, total_K, centers_KD, kind),
        kind,
        float(counted_NC[:, -1].sum() / rows.size) if noise else 0.0,
        rows.log_volume,
    )


def _covariances(
    rows: Rows, counted_NK: np.ndarray, total_K: np.ndarray, centers_KD: np.ndarray, kind: Kind
) -> np.ndarray:
    x_ND, floor_D, all_in = rows.values_ND, rows.floor_D, total_K.sum()
    if kind == "tied":
        weighted_ND = x_ND * counted_NK.sum(1)[:, None]
        return (weighted_ND.T @ x_ND - (centers_KD.T * total_K) @ centers_KD) / all_in + np.diag(floor_D)
    if kind == "full":
        scatter_KDD = np.stack([(x_ND.T * share_N) @ x_ND for share_N in counted_NK.T])
        scatter_KDD -= total_K[:, None, None] * centers_KD[:, :, None] * centers_KD[:, None]
        return _pooled(scatter_KDD, total_K, PSEUDO_ROWS * len(floor_D), np.diag(floor_D))
    scatter_KD = np.maximum(counted_NK.T @ np.square(x_ND) - total_K[:, None] * np.square(centers_KD), 0.0)
    if kind == "tied-spherical":
        return np.asarray(scatter_KD.mean(1).sum() / all_in + floor_D.mean())
    if kind == "spherical":
        return _pooled(scatter_KD.mean(1), total_K, PSEUDO_ROWS, floor_D.mean())
    return _pooled(scatter_KD, total_K, PSEUDO_ROWS, floor_D)


def _pooled(scatter: np.ndarray, total_K: np.ndarray, extra: float, floor: np.ndarray) -> np.ndarray:
    """Covariances of the clusters, each averaged with the common one, which counts as ``extra`` rows.

    The common one is a harmonic mean, in which thin clusters of different directions stay thin; a first average with
    the arithmetic mean makes every cluster invertible.
    """
    axes = (..., *(None,) * (scatter.ndim - 1))
    total = total_K[axes]
    invert = np.linalg.inv if scatter.ndim == 3 else np.reciprocal
    first = (scatter + extra * scatter.sum(0) / total_K.sum()) / (total + extra) + floor
    common = invert((total * invert(first)).sum(0) / total_K.sum())
    return (scatter + extra * common) / (total + extra) + floor


@dataclass(frozen=True)
class Fit:
    """A mixture after EM, with the log-likelihood of the mixture before the last M-step."""

    mixture: Gaussians
    log_likelihood: float
    n_iter: int
    converged: bool


def run_em(
    rows: Rows,
    mixture: Gaussians,
    max_iter: int,
    tol: float = 0.0,
    on_shares: Callable[[np.ndarray], None] | None = None,
) -> Fit:
    """EM until the mean log-likelihood rises by less than ``tol``. ``on_shares`` gets the shares of every E-step."""
    reached = [-math.inf, -math.inf]

    def e_step(state: Gaussians) -> np.ndarray:
        shares_NC, density_N = shares_of(state.log_joint(rows.values_ND))
        reached[0], reached[1] = reached[1], float(rows.counted(density_N[:, None]).sum())
        if on_shares is not None:
            on_shares(shares_NC)
        return rows.counted(shares_NC)

    def step(state: Gaussians, counted_NC: np.ndarray) -> Gaussians:
        return estimate(rows, counted_NC, state.kind, state.noise > 0)

    def settled(old: Gaussians, new: Gaussians, expectation: np.ndarray) -> bool:
        return reached[1] - reached[0] < tol * rows.size

    found = em.run(mixture, e_step, step, max_iter=max_iter, stop=settled)
    return Fit(found.state, reached[1], found.n_iter, found.converged)
