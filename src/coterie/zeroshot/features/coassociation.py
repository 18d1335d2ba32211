"""Which points k-means and Gaussian mixtures put together, for several numbers of clusters.

All fits begin with a cut of Ward's hierarchy, so that nothing is random and the order of the points does not matter.
"""

import numpy as np

from coterie.zeroshot.features.hierarchies import Hierarchy, cut

KMEANS_BANDS = ((2, 3, 4), (6, 8, 12), (16, 24, 32))
MIXTURE_BANDS = ((2, 3, 4), (6, 8, 12))
FEATURES = len(KMEANS_BANDS) + len(MIXTURE_BANDS) + 1
KMEANS_STEPS = 6
MIXTURE_STEPS = 10
MIXTURE_COORDINATES = 8
KMEANS_COORDINATES = 16


def write(x_ND: np.ndarray, white_ND: np.ndarray, ward: Hierarchy, out_FNN: np.ndarray) -> float:
    """Fill ``out_FNN`` with shares of fits between -1 (none) and 1 (all); returns the mixtures' log number of clusters.

    ``x_ND`` are principal coordinates, ``white_ND`` the same with spread one, ``ward`` their hierarchy.
    """
    n = len(x_ND)
    x_ND = np.ascontiguousarray(x_ND[:, :KMEANS_COORDINATES])
    start = {k: cut(ward.left, ward.right, min(k, n)) for k in {*sum(KMEANS_BANDS + MIXTURE_BANDS, ())}}
    place = 0
    for band in KMEANS_BANDS:
        fits = [kmeans(x_ND, start[k], KMEANS_STEPS) for k in band]
        member = np.concatenate([np.eye(fit.max() + 1, dtype=np.float32)[fit] for fit in fits], axis=1)
        np.matmul(member * np.float32(2 / len(band)), member.T, out=out_FNN[place])
        place += 1
    white_ND = np.ascontiguousarray(white_ND[:, :MIXTURE_COORDINATES])
    numbers = sum(MIXTURE_BANDS, ())
    one_hot = [np.ones((n, 1)), *(np.eye(start[k].max() + 1)[start[k]] for k in numbers)]
    shares_NK, bic = mixtures(white_ND, one_hot, MIXTURE_STEPS)
    shares = [share_NK.astype(np.float32) for share_NK in shares_NK]
    sizes = [share_NK.shape[1] for share_NK in shares]
    first = 1  # after the mixture of one component
    for band in MIXTURE_BANDS:
        member = np.concatenate(shares[first : first + len(band)], axis=1)
        np.matmul(member * np.float32(2 / len(band)), member.T, out=out_FNN[place])
        first += len(band)
        place += 1
    weight = np.exp(-0.5 * (np.array(bic) - min(bic)))
    weight /= weight.sum()
    heavy = [number for number, w in enumerate(weight) if w > 1e-3]
    member = np.concatenate([shares[number] * np.float32(np.sqrt(2 * weight[number])) for number in heavy], axis=1)
    np.matmul(member, member.T, out=out_FNN[place])
    out_FNN -= 1.0
    return float(weight @ np.log(sizes))


def kmeans(x_ND: np.ndarray, labels_N: np.ndarray, steps: int) -> np.ndarray:
    """Labels after ``steps`` of Lloyd's algorithm from given labels; a cluster that has become empty stays empty."""
    k = labels_N.max() + 1
    for _ in range(steps):
        member_NK = np.eye(k)[labels_N]
        count_K = member_NK.sum(axis=0)
        center_KD = (member_NK.T @ x_ND) / np.maximum(count_K, 1)[:, None]
        # squared distances but for the norm of the points, which does not matter
        sq_NK = (center_KD**2).sum(axis=1) - 2 * (x_ND @ center_KD.T)
        sq_NK[:, count_K == 0] = np.inf
        before_N, labels_N = labels_N, sq_NK.argmin(axis=1)
        if np.array_equal(before_N, labels_N):
            break
    return labels_N


def mixtures(x_ND: np.ndarray, shares: list[np.ndarray], steps: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Responsibilities (N, K) of several mixtures after ``steps`` of EM, and their BIC.

    Covariances are full and each is shrunk to the mean of its mixture. The components (C) of all mixtures (G) are
    computed together; products of coordinates (E) make every step a few products of matrices.
    """
    n, dims = x_ND.shape
    sizes = [share_NK.shape[1] for share_NK in shares]
    first = np.cumsum([0, *sizes[:-1]])  # component of every mixture
    own_C = np.repeat(np.arange(len(sizes)), sizes)
    square_NE = (x_ND[:, :, None] * x_ND[:, None]).reshape(n, dims * dims)
    share_CN = np.ascontiguousarray(np.concatenate(shares, axis=1).T)
    for _ in range(steps + 1):
        mean_CD, covariance_CDD, log_weight_C = _maximised(x_ND, square_NE, share_CN, first, own_C)
        inverse_CDD = np.linalg.inv(covariance_CDD)
        at_mean_CD = (inverse_CDD @ mean_CD[:, :, None])[:, :, 0]
        constant_C = log_weight_C - 0.5 * (np.linalg.slogdet(covariance_CDD)[1] + (at_mean_CD * mean_CD).sum(axis=1))
        log_p_CN = at_mean_CD @ x_ND.T - 0.5 * (inverse_CDD.reshape(-1, dims * dims) @ square_NE.T)
        log_p_CN += constant_C[:, None]
        most_GN = np.maximum.reduceat(log_p_CN, first, axis=0)
        log_p_CN -= most_GN[own_C]
        share_CN = np.exp(log_p_CN, out=log_p_CN)
        total_GN = np.add.reduceat(share_CN, first, axis=0)
        share_CN /= total_GN[own_C]
    likelihood_G = (most_GN + np.log(total_GN)).sum(axis=1) - 0.5 * n * dims * np.log(2 * np.pi)
    parameters_G = np.array(sizes) * (dims + 1) * (dims + 2) / 2 - 1
    return np.split(share_CN.T, first[1:], axis=1), parameters_G * np.log(n) - 2 * likelihood_G


def _maximised(x_ND, square_NE, share_CN, first, own_C) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means, covariances and logarithms of the weights of all components, from responsibilities."""
    n, dims = x_ND.shape
    total_C = share_CN.sum(axis=1)
    sum_CD = share_CN @ x_ND
    mean_CD = sum_CD / (total_C + 1e-9)[:, None]
    scatter_CDD = (share_CN @ square_NE).reshape(-1, dims, dims) - sum_CD[:, :, None] * mean_CD[:, None]
    strength = dims + 2.0  # of the prior, in rows
    pooled_GDD = np.add.reduceat(scatter_CDD, first, axis=0) / n
    covariance_CDD = (scatter_CDD + strength * pooled_GDD[own_C]) / (total_C + strength)[:, None, None]
    covariance_CDD += 1e-3 * np.eye(dims)
    return mean_CD, covariance_CDD, np.log((total_C + 1e-3) / n)
