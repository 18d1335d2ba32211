"""How the network sees a set of points: features of every point and of every pair, without units.

Shapes: N points, D dimensions, T features of a point, F features of a pair, C coordinates.

Logarithms of distances are standardised over the pairs of the set, so that neither unit nor concentration in many
dimensions matters. Neighbours are counted both absolutely and as fractions of N. A pair is described by its distance
and by the merges that join it in five hierarchies.
"""

from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from coterie import threads
from coterie.threads import kernel
from coterie.zeroshot.hierarchies import hierarchies, joining_merge

RANKS = (1, 2, 4, 8, 16)
FRACTIONS = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2)
COORDINATES = 8
POINT_FEATURES = len(RANKS) + len(FRACTIONS) + 4
MERGE_FEATURES = 6
PAIR_FEATURES = 1 + 5 * MERGE_FEATURES
LEAST = 1e-4  # of the median distance: nearer points count as this far apart


class Description(NamedTuple):
    """What the network reads of one set."""

    points_NT: np.ndarray
    coordinates_NC: np.ndarray
    pairs_FNN: np.ndarray


def describe(x_ND: np.ndarray) -> Description:
    """Describe at least two points whose columns are on comparable scales."""
    n, dims = x_ND.shape
    x_ND = x_ND - x_ND.mean(axis=0)
    distance_NN = cdist(x_ND, x_ND)
    middle = float(np.median(distance_NN.reshape(-1)[:: max(1, n * n // 2**16) | 1]))  # of a part, for speed
    if middle == 0.0:
        middle = float(distance_NN.max()) or 1.0
    distance_NN /= middle
    ranks = [*_ranks(n), *_core_ranks(n)]
    near_NR = np.sort(distance_NN, axis=1)[:, ranks]
    near_NR, cores = near_NR[:, :-2], list(np.ascontiguousarray(near_NR[:, -2:].T))
    log_NN = np.log(np.maximum(distance_NN, LEAST))
    np.fill_diagonal(log_NN, 0.0)
    pairs = n * (n - 1)
    mean = log_NN.sum() / pairs
    std = max(np.sqrt(np.maximum((log_NN**2).sum() / pairs - mean**2, 0.0)), 0.02)
    np.fill_diagonal(log_NN, np.log(LEAST))

    pairs_FNN = np.empty((PAIR_FEATURES, n, n), dtype=np.float32)
    pairs_FNN[0] = np.maximum((log_NN - mean) / std, -6.0)
    np.maximum(distance_NN, LEAST, out=distance_NN)
    np.fill_diagonal(distance_NN, 0.0)
    trees = hierarchies(distance_NN, cores)

    def describe_merges(number: int) -> None:
        left, right, height = trees[number]
        merge_NN, side = joining_merge(left, right)
        features_FM = _merge_features(left, right, np.log(np.maximum(height, LEAST)), side, mean, std)
        _spread(merge_NN, features_FM, pairs_FNN, 1 + number * MERGE_FEATURES)

    threads.run(describe_merges, len(trees), threads.count())

    whole = [np.log(n) - 5.5, np.log(dims) - 1.4, np.log(std) + 0.7, mean]
    near_NR = np.maximum((np.log(np.maximum(near_NR, LEAST)) - mean) / std, -6.0)
    points_NT = np.concatenate([near_NR, np.broadcast_to(whole, (n, 4))], axis=1).astype(np.float32)
    return Description(points_NT, _coordinates(x_ND).astype(np.float32), pairs_FNN)


def _ranks(n: int) -> list[int]:
    return [min(rank, n - 1) for rank in RANKS] + [min(max(1, round(n * part)), n - 1) for part in FRACTIONS]


def _core_ranks(n: int) -> list[int]:
    """How many neighbours make a region dense: few, and a share of all."""
    return [min(max(2, rank), n - 1) for rank in (round(np.log2(n)), n // 16)]


def _coordinates(x_ND: np.ndarray) -> np.ndarray:
    """The first principal coordinates, of total variance one for each that is in use."""
    n, dims = x_ND.shape
    if dims <= n:
        _, axes = np.linalg.eigh(x_ND.T @ x_ND)
        kept = x_ND @ axes[:, ::-1][:, :COORDINATES]
    else:
        u, s, _ = np.linalg.svd(x_ND, full_matrices=False)
        kept = (u * s)[:, :COORDINATES]
    scale = np.sqrt((kept**2).sum() / n / kept.shape[1]) or 1.0
    return np.pad(np.clip(kept / scale, -5, 5), ((0, 0), (0, COORDINATES - kept.shape[1])))


@kernel()
def _merge_features(left, right, log_height, side, mean, std):
    """(6, merges): height, clusters left, sizes of the smaller and the larger side, height above each of the sides."""
    merges = len(left)
    n = merges + 1
    features = np.empty((MERGE_FEATURES, merges), dtype=np.float32)
    for t in range(merges):
        small, large = (left[t], right[t]) if side[t, 0] <= side[t, 1] else (right[t], left[t])
        features[0, t] = max((log_height[t] - mean) / std, -6.0)
        features[1, t] = np.log(float(merges - t + 1)) - 2.0
        features[2, t] = 0.5 * np.log(min(side[t, 0], side[t, 1]) / n) + 1.0
        features[3, t] = 0.5 * np.log(max(side[t, 0], side[t, 1]) / n) + 0.5
        for place, child in ((4, small), (5, large)):
            gap = 0.0 if child < n else log_height[t] - log_height[child - n]
            features[place, t] = min(gap, 3.0)
    return features


@kernel()
def _spread(merge_NN, features_FM, pairs_FNN, first):
    """Write every pair's merge features. A point and itself: as if joined before all others."""
    n = len(merge_NN)
    for f in range(features_FM.shape[0]):
        for i in range(n):
            for j in range(n):
                pairs_FNN[first + f, i, j] = features_FM[f, merge_NN[i, j]]
            pairs_FNN[first + f, i, i] = features_FM[f, 0]
