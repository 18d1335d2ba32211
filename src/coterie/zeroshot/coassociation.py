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
    from coterie.zeroshot.fit_kernels import kmeans, mixture

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
