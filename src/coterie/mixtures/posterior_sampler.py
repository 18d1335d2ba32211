"""Draws from the posterior of a Gaussian mixture with an unknown number of clusters and any kind of covariance.

The sampler is the telescoping sampler for mixtures of finite mixtures (Frühwirth-Schnatter, Malsiner-Walli and Grün,
2021). A sweep draws the labels of all rows, then the number of components K given the partition, then weights, centres
and covariances; components without rows are drawn from the prior, so that clusters can appear and disappear.

The prior refers to data of unit total variance (:func:`scaling`). p(K) is proportional to 1/K and the weights are
uniform on the simplex. Centres are normal around zero with the variances of the columns. Covariances have conjugate
priors: a variance is inverse gamma and a matrix inverse Wishart, with ``FREEDOM`` degrees of freedom more than the
smallest for which a mean exists. Their scale is the same for all clusters, and drawn as well (gamma or Wishart) if each
cluster has its own covariance. The share of the uniform component is Beta(1, 9).

Shapes: N rows, M components at most, D columns, J draws.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from coterie import threads
from coterie.mixtures.gaussians import KINDS, Kind, log_volume
from coterie.mixtures.spherical_sampler import Sweeps, draw_components, draw_index, draw_weights

LEAST, SPARE = 16, 8  # components: at least LEAST, and SPARE more than at the start
FREEDOM = 3.0
WITHIN = 0.1  # prior guess of the share of the variance within clusters
NOISE_PRIOR = (1.0, 9.0)
SHORT = Sweeps(burn_in=150, apart=6, n_draws=100)
TIED_SPHERICAL, SPHERICAL, DIAG, TIED, FULL = range(5)  # the places in KINDS, for compiled code


@dataclass(frozen=True)
class Draws:
    """Draws from the posterior. Clusters may exchange their places from one draw to the next."""

    labels_JN: np.ndarray  # 0 to M - 1, or -1 for the uniform component
    centers_JMD: np.ndarray  # those of components without rows have no meaning
    n_clusters_J: np.ndarray  # components with rows

    @property
    def n_clusters_proba(self) -> np.ndarray:
        """Probability of 1, 2, ..., M clusters, given that there are any."""
        counts = np.bincount(self.n_clusters_J, minlength=self.centers_JMD.shape[1] + 1)[1:]
        return counts / max(1, counts.sum())


def scaling(values_ND: np.ndarray, kind: Kind) -> tuple[np.ndarray, np.ndarray]:
    """Mean and matrix (D, D) such that ``(values - mean) @ matrix`` has unit variance: in total, by column or whitened.

    The transform keeps the kind of covariance: only a multiple of the identity keeps spheres, and only a diagonal
    matrix keeps axes.
    """
    mean_D = values_ND.mean(0)
    centred_ND = values_ND - mean_D
    var_D = np.square(centred_ND).mean(0)
    var_D = np.maximum(var_D, 1e-9 * var_D.mean() + np.finfo(float).tiny)
    if kind in ("tied", "full"):
        total_DD = centred_ND.T @ centred_ND / len(values_ND) + np.diag(1e-6 * var_D)
        return mean_D, np.linalg.inv(np.linalg.cholesky(total_DD)).T
    return mean_D, np.diag(1 / np.sqrt(var_D if kind == "diag" else np.full_like(var_D, var_D.mean())))


def posterior_draws(
    values_ND: np.ndarray,
    labels_N: np.ndarray,
    kind: Kind,
    rng: np.random.Generator,
    sweeps: Sweeps = SHORT,
    *,
    noise: bool = False,
) -> Draws:
    """Draws from a chain that starts at the clusters ``labels_N``; -1 is the uniform component, if there is one."""
    varied_D = np.ptp(values_ND, axis=0) > 0
    if not varied_D.all():
        draws = posterior_draws(values_ND[:, varied_D], labels_N, kind, rng, sweeps, noise=noise)
        centers_JMD = np.tile(values_ND[0], (*draws.centers_JMD.shape[:2], 1))
        centers_JMD[..., varied_D] = draws.centers_JMD
        return replace(draws, centers_JMD=centers_JMD)
    mean_D, scale_DD = scaling(values_ND, kind)
    scaled_ND = np.ascontiguousarray((values_ND - mean_D) @ scale_DD)
    n_start = int(labels_N.max()) + 1
    shape = sweeps.n_draws, max(LEAST, n_start + SPARE), values_ND.shape[1]
    centers_JMD, labels_JN = np.zeros(shape), np.zeros((sweeps.n_draws, len(values_ND)), dtype=np.int16)
    log_density = -log_volume(values_ND) - np.linalg.slogdet(scale_DD)[1] if noise else -np.inf
    _chain(
        scaled_ND,
        labels_N.astype(np.int64),
        KINDS.index(kind),
        np.square(scaled_ND).mean(0),
        noise,
        float(log_density),
        rng,
        sweeps.burn_in,
        sweeps.apart,
        centers_JMD,
        labels_JN,
    )
    in_use_JM = centers_JMD.any(-1)
    centers_JMD[in_use_JM] = centers_JMD[in_use_JM] @ np.linalg.inv(scale_DD) + mean_D
    return Draws(labels_JN, centers_JMD, in_use_JM.sum(1))


@threads.kernel()
def _chain(x, label, kind, spread, noise, log_noise, rng, burn_in, apart, centers_out, labels_out):
    """Fill ``centers_out`` (J, M, D), with the centres of the components that have rows, and ``labels_out`` (J, N)."""
    n_draws, most, dim = centers_out.shape
    matrix = kind >= TIED
    center, weight = np.zeros((most, dim)), np.zeros(most)
    root, log_det = np.zeros((most, dim, dim)), np.zeros(most)
    total, count, second = np.zeros((most, dim)), np.zeros(most), np.zeros((most, dim, dim))
    work, place = np.zeros(most + 1), np.zeros(most, dtype=np.int64)
    scale = np.eye(dim) * WITHIN * (FREEDOM - 1 if matrix else 1.5)
    n_used = _statistics(x, label, total, count, second, place, matrix)
    for k in range(n_used):
        center[k] = total[k] / count[k]
    for sweep in range(burn_in + (n_draws - 1) * apart + 1):
        n_in = count[:n_used].sum()
        n_now = draw_components(n_in, n_used, most, rng, work)
        share = 0.0
        if noise:
            first = rng.standard_gamma(NOISE_PRIOR[0] + len(x) - n_in)
            share = first / (first + rng.standard_gamma(NOISE_PRIOR[1] + n_in))
        draw_weights(weight, count, n_now, 1.0, rng)
        _draw_covariances(kind, n_used, n_now, center, total, count, second, scale, root, log_det, rng)
        for k in range(n_now):
            _draw_center(center[k], root[k], total[k], count[k], spread, rng)
        _draw_labels(x, center, root, log_det, weight, n_now, share, log_noise, label, work, rng, matrix)
        n_used = _statistics(x, label, total, count, second, place, matrix)
        for k in range(n_now):  # centres move with their components
            if place[k] >= 0:
                center[place[k]] = center[k]
        if sweep >= burn_in and (sweep - burn_in) % apart == 0:
            draw = (sweep - burn_in) // apart
            centers_out[draw, :n_used] = center[:n_used]
            labels_out[draw] = label


@threads.kernel()
def _statistics(x, label, total, count, second, place, matrix):
    """Numbers, sums and second moments of the rows of each component; components with rows move to the front.

    ``place`` gets the new place of each component, -1 for those without rows. Returns how many have rows.
    """
    dim = x.shape[1]
    count[:] = 0.0
    for i in range(len(x)):
        if label[i] >= 0:
            count[label[i]] += 1
    n_used = 0
    for k in range(len(count)):
        place[k] = -1
        if count[k] > 0:
            place[k] = n_used
            n_used += 1
    count[:] = 0.0
    total[:] = 0.0
    second[:] = 0.0
    for i in range(len(x)):
        if label[i] < 0:
            continue
        k = place[label[i]]
        label[i] = k
        count[k] += 1
        for j in range(dim):
            total[k, j] += x[i, j]
            for l in range(0 if matrix else j, j + 1):
                second[k, j, l] += x[i, j] * x[i, l]
    return n_used


@threads.kernel()
def _scatter(center, total, count, second, out):
    """Add the scatter of a component's rows about its centre to the lower triangle of ``out``."""
    for j in range(len(center)):
        for l in range(j + 1):
            mixed = center[j] * total[l] + total[j] * center[l]
            out[j, l] += second[j, l] - mixed + count * center[j] * center[l]


@threads.kernel()
def _draw_covariances(kind, n_used, n_now, center, total, count, second, scale, root, log_det, rng):
    """Roots of the precision matrices of all components, with the scale of their prior given those with rows."""
    dim, freedom = center.shape[1], center.shape[1] + FREEDOM
    if kind in (TIED, TIED_SPHERICAL):
        _draw_common(kind, n_used, center, total, count, second, root, log_det, rng)
        for k in range(1, n_now):
            root[k] = root[0]
            log_det[k] = log_det[0]
        return
    if n_used and root[0, 0, 0] > 0:
        _draw_scale(kind, n_used, root, scale, rng)
    for k in range(n_now):
        moment = scale.copy()
        _scatter(center[k], total[k], count[k], second[k], moment)
        if kind == FULL:
            log_det[k] = _draw_root(moment, freedom + count[k], root[k], rng)
            continue
        log_det[k] = 0.0
        sum_sq, drawn = 0.0, 0.0
        for j in range(dim):
            sum_sq += moment[j, j] - scale[j, j]
        for j in range(dim):
            if kind == DIAG:
                drawn = rng.standard_gamma(2.5 + count[k] / 2) / (scale[j, j] + (moment[j, j] - scale[j, j]) / 2)
            elif j == 0:
                drawn = rng.standard_gamma(2.5 + count[k] * dim / 2) / (scale[0, 0] + sum_sq / 2)
            root[k, j, j] = math.sqrt(drawn)
            log_det[k] += 0.5 * math.log(drawn)


@threads.kernel()
def _draw_common(kind, n_used, center, total, count, second, root, log_det, rng):
    """The root of the precision matrix that all components share."""
    dim = center.shape[1]
    moment = np.eye(dim) * WITHIN
    for k in range(n_used):
        _scatter(center[k], total[k], count[k], second[k], moment)
    if kind == TIED:
        log_det[0] = _draw_root(moment, dim + FREEDOM + count[:n_used].sum(), root[0], rng)
        return
    drawn = rng.standard_gamma(dim * (1 + count[:n_used].sum()) / 2) / (np.trace(moment) / 2)
    for j in range(dim):
        root[0, j, j] = math.sqrt(drawn)
    log_det[0] = dim * 0.5 * math.log(drawn)


@threads.kernel()
def _draw_scale(kind, n_used, root, scale, rng):
    """The scale of the prior of the covariances, given those of the components with rows."""
    dim = scale.shape[0]
    if kind == FULL:
        freedom = dim + 1.0
        precision = np.eye(dim) * (freedom / (WITHIN * (FREEDOM - 1)))
        for k in range(n_used):
            precision += root[k].T @ root[k]
        drawn = np.zeros((dim, dim))
        _draw_root(precision, freedom + n_used * (dim + FREEDOM), drawn, rng)
        scale[:] = drawn.T @ drawn
        return
    rate = 1.0 / (1.5 * WITHIN)
    for j in range(dim):
        if kind == SPHERICAL and j:
            scale[j, j] = scale[0, 0]
            continue
        total = rate
        for k in range(n_used):
            total += root[k, j, j] ** 2
        scale[j, j] = rng.standard_gamma(1.0 + 2.5 * n_used) / total


@threads.kernel()
def _cholesky(a, out):
    """The lower Cholesky factor of the matrix of which ``a`` has the lower triangle."""
    for i in range(len(a)):
        for j in range(i + 1):
            rest = a[i, j]
            for l in range(j):
                rest -= out[i, l] * out[j, l]
            out[i, j] = math.sqrt(max(rest, 1e-300)) if i == j else rest / out[j, j]


@threads.kernel()
def _draw_root(moment, freedom, root, rng):
    """A lower triangular root R of a precision matrix RᵀR that is Wishart with the inverse scale ``moment``.

    With the Cholesky factor C of the moment, R = B C⁻¹, where BᵀB is Wishart with the identity (Bartlett's
    decomposition, from the last column to the first). Returns the logarithm of the determinant of R.
    """
    dim, log_det = len(moment), 0.0
    factor, drawn = np.zeros((dim, dim)), np.zeros((dim, dim))
    _cholesky(moment, factor)
    for i in range(dim):
        for j in range(i):
            drawn[i, j] = rng.standard_normal()
        drawn[i, i] = math.sqrt(2 * rng.standard_gamma((freedom - (dim - 1 - i)) / 2))
        log_det += math.log(drawn[i, i] / factor[i, i])
    for i in range(dim):  # R C = B, row by row from the last column
        for j in range(i, -1, -1):
            rest = drawn[i, j]
            for l in range(j + 1, i + 1):
                rest -= root[i, l] * factor[l, j]
            root[i, j] = rest / factor[j, j]
    return log_det


@threads.kernel()
def _draw_center(center, root, total, count, spread, rng):
    """A centre given its covariance and the sum of its rows; ``spread`` has the variances of the prior."""
    dim = len(center)
    precision, factor = root.T @ root, np.zeros((dim, dim))
    moved = precision @ total
    precision = count * precision + np.diag(1 / spread)
    _cholesky(precision, factor)
    for j in range(dim):
        for l in range(j):
            moved[j] -= factor[j, l] * moved[l]
        moved[j] /= factor[j, j]
    for j in range(dim):  # the mean is F⁻ᵀ F⁻¹ of the sum, and F⁻ᵀ z has the right covariance
        moved[j] += rng.standard_normal()
    for j in range(dim - 1, -1, -1):
        for l in range(j + 1, dim):
            moved[j] -= factor[l, j] * moved[l]
        moved[j] /= factor[j, j]
        center[j] = moved[j]


@threads.kernel()
def _draw_labels(x, center, root, log_det, weight, n_now, share, log_noise, label, work, rng, matrix):
    """A component for every row, or -1 for the uniform one, whose share is ``share``."""
    dim = x.shape[1]
    constant, gap = np.zeros(n_now), np.zeros(dim)
    for k in range(n_now):
        constant[k] = math.log(weight[k] + 1e-300) + log_det[k] + math.log(1 - share) - dim / 2 * math.log(2 * math.pi)
    last = math.log(share) + log_noise if share > 0 else -math.inf
    for i in range(len(x)):
        best = last
        for k in range(n_now):
            sq = 0.0
            for j in range(dim):
                gap[j] = x[i, j] - center[k, j]
                away = root[k, j, j] * gap[j]
                if matrix:
                    for l in range(j):
                        away += root[k, j, l] * gap[l]
                sq += away * away
            work[k] = constant[k] - 0.5 * sq
            best = max(best, work[k])
        drawn = draw_index(work[:n_now], best, last, rng)
        label[i] = drawn if drawn < n_now else -1
