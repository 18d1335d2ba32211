"""Which points k-means and Gaussian mixtures put together, for several numbers of clusters.

All fits begin with a cut of Ward's hierarchy, so that nothing is random and the order of the points does not matter.
"""

import numpy as np

from coterie.zeroshot.hierarchies import Hierarchy, cut

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
    bic = [mixture(white_ND, np.ones((n, 1)), 0)[1]]
    sizes, shares = [1], [np.ones((n, 1), dtype=np.float32)]
    for band in MIXTURE_BANDS:
        for k in band:
            share_NK, value = mixture(white_ND, np.eye(start[k].max() + 1)[start[k]], MIXTURE_STEPS)
            bic.append(value)
            sizes.append(share_NK.shape[1])
            shares.append(share_NK.astype(np.float32))
        member = np.concatenate(shares[-len(band) :], axis=1)
        np.matmul(member * np.float32(2 / len(band)), member.T, out=out_FNN[place])
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


def mixture(x_ND: np.ndarray, share_NK: np.ndarray, steps: int) -> tuple[np.ndarray, float]:
    """Responsibilities after ``steps`` of EM with full covariances, each shrunk to their mean, and the BIC."""
    n, dims = x_ND.shape
    k = share_NK.shape[1]
    most_N, total_N = np.zeros(n), np.ones(n)
    for _ in range(steps + 1):
        mean_KD, root_KDD, log_weight_K = _maximised(x_ND, share_NK)
        inverse_KDD = np.linalg.inv(root_KDD)
        # inverse @ (x - mean), for all points and clusters
        unit_KDN = inverse_KDD @ x_ND.T
        unit_KDN -= inverse_KDD @ mean_KD[:, :, None]
        log_det_K = np.log(np.diagonal(root_KDD, axis1=1, axis2=2)).sum(axis=1)
        log_p_KN = (log_weight_K - log_det_K)[:, None] - 0.5 * np.square(unit_KDN, out=unit_KDN).sum(axis=1)
        most_N = log_p_KN.max(axis=0)
        log_p_KN -= most_N
        share_KN = np.exp(log_p_KN, out=log_p_KN)
        total_N = share_KN.sum(axis=0)
        share_KN /= total_N
        share_NK = share_KN.T
    likelihood = (most_N + np.log(total_N)).sum() - 0.5 * n * dims * np.log(2 * np.pi)
    return share_NK, (k * (dims + 1) * (dims + 2) / 2 - 1) * np.log(n) - 2 * likelihood


def _maximised(x_ND: np.ndarray, share_NK: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means, Cholesky roots of the covariances and logarithms of the weights, from responsibilities."""
    n, dims = x_ND.shape
    total_K = share_NK.sum(axis=0)
    mean_KD = (share_NK.T @ x_ND) / (total_K + 1e-9)[:, None]
    from_mean_KDN = x_ND.T - mean_KD[:, :, None]
    scatter_KDD = (from_mean_KDN * share_NK.T[:, None]) @ from_mean_KDN.swapaxes(1, 2)
    strength = dims + 2.0  # of the prior, in rows
    covariance_KDD = scatter_KDD + strength * scatter_KDD.sum(axis=0) / n
    covariance_KDD /= (total_K + strength)[:, None, None]
    covariance_KDD += 1e-3 * np.eye(dims)
    return mean_KD, np.linalg.cholesky(covariance_KDD), np.log((total_K + 1e-3) / n)
