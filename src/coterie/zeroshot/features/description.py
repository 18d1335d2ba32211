"""How the network sees a set of points: features of every point and of every pair, without units.

Shapes: N points, D dimensions, T features of a point, F features of a pair, C coordinates, R ranks.

Logarithms of distances are standardised over the pairs of the set, so that neither unit nor concentration in many
dimensions matters. Neighbours are counted both absolutely and as fractions of N. ``describe`` describes a pair by its
distance and the merges that join it in several hierarchies, by the same in whitened space, and by whether k-means and
mixtures put the two points together. ``describe_again`` adds what a first pass of the network found: its affinities,
and the geometry in which the clusters that they suggest are round.
"""

from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from coterie import threads
from coterie.geometry.spread import principal_axes
from coterie.zeroshot.features import coassociation
from coterie.zeroshot.features.hierarchies import Hierarchy, above_cores, hierarchies, joining_merge, ward
from coterie.zeroshot.features.pairs import MERGE_FEATURES, Pairs, room

RANKS = (1, 2, 4, 8, 16)
FRACTIONS = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2)
NEIGHBOURS = len(RANKS) + len(FRACTIONS)
COORDINATES = 8
GEOMETRY_FEATURES = 1 + 2 * MERGE_FEATURES  # of a pair: its distance, Ward's hierarchy, a density-based one
PAIR_FEATURES = 1 + 5 * MERGE_FEATURES + GEOMETRY_FEATURES + coassociation.FEATURES
POINT_FEATURES = 2 * NEIGHBOURS + 7
SECOND_PAIR_FEATURES = 3 + MERGE_FEATURES + GEOMETRY_FEATURES
SECOND_POINT_FEATURES = NEIGHBOURS + 3
LEAST = 1e-4  # of the median distance: nearer points count as this far apart
WHITENED_COORDINATES = 32
ROWS_AT_ONCE = 128  # of a product of large matrices
LOGIT_UNIT = 4.0  # of affinities as features


class Description(NamedTuple):
    """What a network reads of one set. ``principal_ND`` are the points in principal coordinates."""

    points_NT: np.ndarray
    coordinates_NC: np.ndarray
    pairs: Pairs
    principal_ND: np.ndarray


class Geometry:
    """Distances between points relative to their median, and their logarithms' mean and standard deviation."""

    def __init__(self, distance_NN: np.ndarray):
        n = len(distance_NN)
        middle = float(np.median(distance_NN.reshape(-1)[:: max(1, n * n // 2**16) | 1]))  # of a part, for speed
        if middle == 0.0:
            middle = float(distance_NN.max()) or 1.0
        distance_NN /= middle
        near_NR = np.sort(distance_NN, axis=1)[:, [*_ranks(n), *_core_ranks(n)]]
        self.cores = list(np.ascontiguousarray(near_NR[:, -2:].T))
        np.maximum(distance_NN, LEAST, out=distance_NN)
        np.fill_diagonal(distance_NN, 1.0)
        self.log_NN = np.log(distance_NN)
        pairs = n * (n - 1)
        self.mean = self.log_NN.sum() / pairs
        square = np.einsum("ij,ij->", self.log_NN, self.log_NN) / pairs
        self.std = max(np.sqrt(np.maximum(square - self.mean**2, 0.0)), 0.02)
        np.fill_diagonal(self.log_NN, np.log(LEAST))
        np.fill_diagonal(distance_NN, 0.0)
        self.distance_NN = distance_NN
        self.near_NR = self.standardised(np.log(np.maximum(near_NR[:, :-2], LEAST)))

    def standardised(self, log_distance: np.ndarray) -> np.ndarray:
        return np.maximum((log_distance - self.mean) / self.std, -6.0)

    def write(self, trees: list[Hierarchy], pairs: Pairs, number: int = 0, first: int = 0) -> None:
        """Fill features of pairs: the distance, and the merges of hierarchies from the ``first`` on."""
        pairs.numbers_FNN[number] = self.standardised(self.log_NN)

        def describe_merges(place: int) -> None:
            write_merges(trees[place], self.mean, self.std, pairs, first + place)

        threads.run(describe_merges, len(trees), threads.count())

    def write_shortly(self, pairs: Pairs, number: int, first: int) -> None:
        """The distance and two hierarchies only."""
        self.write([ward(self.distance_NN), above_cores(self.distance_NN, self.cores[1])], pairs, number, first)


def write_merges(tree: Hierarchy, mean: float, std: float, pairs: Pairs, place: int) -> None:
    """Fill in a hierarchy. The diagonal gets merge 0."""
    left, right, height = tree
    pairs.merge_TNN[place], side = joining_merge(left, right)
    log_height = np.log(np.maximum(height, LEAST))
    pairs.merges_TGM[place] = _merge_features(left, right, log_height, side, mean, std)


def describe(x_ND: np.ndarray) -> Description:
    """Describe at least two points whose columns are on comparable scales.

    ``pairs`` has room for what :func:`describe_again` finds, at its end.
    """
    n, dims = x_ND.shape
    x_ND = x_ND - x_ND.mean(axis=0)
    plain = Geometry(cdist(x_ND, x_ND))
    principal_ND, variance_D = principal_coordinates(x_ND)
    white_ND = principal_ND / _shrunk(variance_D, n)
    white = Geometry(cdist(white_ND, white_ND))
    pairs = room(PAIR_FEATURES + SECOND_PAIR_FEATURES, n)
    trees = hierarchies(plain.distance_NN, plain.cores)
    plain.write(trees, pairs)
    white.write_shortly(pairs, 1, len(trees))
    found = coassociation.write(principal_ND, white_ND, trees[2], pairs.numbers_FNN[2 : 2 + coassociation.FEATURES])
    whole = [*set_features(n, dims, plain), np.log(white.std) + 0.7, white.mean, found - 1.0]
    points_NT = point_features([plain.near_NR, white.near_NR], whole)
    return Description(points_NT, coordinate_features(principal_ND), pairs, principal_ND)


def describe_again(principal_ND: np.ndarray, logit_NN: np.ndarray, balanced_NN: np.ndarray, pairs: Pairs) -> np.ndarray:
    """Fill the end of ``pairs`` with what affinities say, given as logits; returns (N, T) what they say of points.

    Two geometries are made: one in which the clusters that the affinities suggest are round, and the same with every
    axis weighted by the share of its variance that lies between clusters.
    """
    n = len(principal_ND)
    p_NN = 1 / (1 + np.exp(-logit_NN.astype(np.float64)))
    np.fill_diagonal(p_NN, 1.0)
    balanced, natural, round_distance, distance = range(len(pairs.numbers_FNN) - 4, len(pairs.numbers_FNN))
    np.clip(balanced_NN / LOGIT_UNIT, -3.0, 3.0, out=pairs.numbers_FNN[balanced])
    np.clip(logit_NN / LOGIT_UNIT, -3.0, 3.0, out=pairs.numbers_FNN[natural])
    companions_N = p_NN.sum(axis=1)
    affinity = Geometry(row_distances(p_NN / np.sqrt(companions_N)[:, None]))  # who has the same companions
    first = len(pairs.merge_TNN) - 3
    write_merges(ward(affinity.distance_NN), affinity.mean, affinity.std, pairs, first)

    round_ND = round_clusters(principal_ND, p_NN)
    geometry = Geometry(cdist(round_ND, round_ND))
    pairs.numbers_FNN[round_distance] = geometry.standardised(geometry.log_NN)
    axes_ND, variance_D = principal_coordinates(round_ND - round_ND.mean(axis=0))
    between_D = np.maximum(1 - 1 / np.maximum(variance_D, 1e-9), 0.02)
    told_ND = axes_ND * np.sqrt(between_D)
    geometry = Geometry(cdist(told_ND, told_ND))
    geometry.write_shortly(pairs, distance, first + 1)

    doubt_N = (p_NN * (1 - p_NN)).mean(axis=1)
    count = np.log((1 / companions_N).sum())
    own = np.column_stack([np.log(companions_N / n) / 2 + 1, 10 * doubt_N, np.full(n, count - 1.0)])
    return np.concatenate([geometry.near_NR, own], axis=1).astype(np.float32)


def round_clusters(principal_ND: np.ndarray, p_NN: np.ndarray) -> np.ndarray:
    """Coordinates in which the covariance within clusters is about the identity; the diagonal of ``p_NN`` is one.

    The mean of (x_i - x_j)(x_i - x_j)' over pairs, weighted by their affinities, is twice that covariance, so that no
    clusters need to be chosen.
    """
    n = len(p_NN)
    x_ND = principal_ND[:, :WHITENED_COORDINATES]
    companions_N = p_NN.sum(axis=1)
    within_DD = (x_ND * companions_N[:, None]).T @ x_ND - x_ND.T @ p_NN @ x_ND
    within_DD /= max(companions_N.sum() - n, 1e-6)
    total = (x_ND**2).sum(axis=0).mean() / n
    variance_D, axes_DD = np.linalg.eigh(within_DD + 1e-3 * total * np.eye(len(within_DD)))
    return x_ND @ axes_DD / _shrunk(variance_D, n)


def row_distances(p_NN: np.ndarray) -> np.ndarray:
    """(N, N) distances between the rows of a matrix, by matrix products since they are long.

    The blocks depend on N alone, and each is one product of a single thread, so that threads change nothing.
    """
    sq_N = np.einsum("ij,ij->i", p_NN, p_NN)
    sq_NN = np.empty_like(p_NN)
    blocks = threads.blocks(len(p_NN), ROWS_AT_ONCE)

    def task(number: int) -> None:
        rows, rest = slice(*blocks[number]), slice(blocks[number][0], None)
        sq_NN[rows, rest] = sq_N[rows, None] + sq_N[rest] - 2 * (p_NN[rows] @ p_NN[rest].T)
        sq_NN[rest, rows] = sq_NN[rows, rest].T

    with threads.blas_threads(1):
        threads.run(task, len(blocks), threads.count())
    np.maximum(sq_NN, 0.0, out=sq_NN)
    np.fill_diagonal(sq_NN, 0.0)
    return np.sqrt(sq_NN, out=sq_NN)


def _ranks(n: int) -> list[int]:
    return [min(rank, n - 1) for rank in RANKS] + [min(max(1, round(n * part)), n - 1) for part in FRACTIONS]


def _core_ranks(n: int) -> list[int]:
    """How many neighbours make a region dense: few, and a share of all."""
    return [min(max(2, rank), n - 1) for rank in (round(np.log2(n)), n // 16)]


def set_features(n: int, dims: int, geometry: Geometry) -> list[float]:
    return [np.log(n) - 5.5, np.log(dims) - 1.4, np.log(geometry.std) + 0.7, geometry.mean]


def point_features(near: list[np.ndarray], whole: list[float]) -> np.ndarray:
    n = len(near[0])
    return np.concatenate([*near, np.broadcast_to(whole, (n, len(whole)))], axis=1).astype(np.float32)


def principal_coordinates(x_ND: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Centred points in principal coordinates, skewed to the right, and their variances, largest first."""
    axes_DD, variance_D = principal_axes(x_ND)
    principal_ND = x_ND @ axes_DD.T
    return principal_ND * np.where((principal_ND**3).sum(axis=0) < 0, -1.0, 1.0), variance_D


def _shrunk(variance_D: np.ndarray, n: int) -> np.ndarray:
    """Standard deviations, those of few points in many dimensions drawn to their mean."""
    mean = variance_D.mean() or 1.0
    weight = min(0.5, 0.02 + len(variance_D) / n)
    return np.sqrt((1 - weight) * variance_D + weight * mean)


def coordinate_features(principal_ND: np.ndarray) -> np.ndarray:
    """The first principal coordinates, of total variance one for each that is in use."""
    kept = principal_ND[:, :COORDINATES]
    scale = np.sqrt((kept**2).sum() / len(kept) / kept.shape[1]) or 1.0
    padded = np.pad(np.clip(kept / scale, -5, 5), ((0, 0), (0, COORDINATES - kept.shape[1])))
    return padded.astype(np.float32)


def _merge_features(left, right, log_height, side, mean, std) -> np.ndarray:
    """(6, merges): height, clusters left, sizes of the smaller and the larger side, height above each of the sides."""
    n = len(left) + 1
    log_side = 0.5 * np.log(side / n)
    smaller_left = side[:, 0] <= side[:, 1]
    small, large = np.where(smaller_left, left, right), np.where(smaller_left, right, left)
    features_FM = np.empty((MERGE_FEATURES, n - 1), dtype=np.float32)
    features_FM[0] = np.maximum((log_height - mean) / std, -6.0)
    features_FM[1] = np.log(np.arange(n, 1.0, -1.0)) - 2.0
    features_FM[2] = log_side.min(axis=1) + 1.0
    features_FM[3] = log_side.max(axis=1) + 0.5
    for place, child in ((4, small), (5, large)):
        gap = np.where(child < n, 0.0, log_height - log_height[np.maximum(child - n, 0)])
        features_FM[place] = np.minimum(gap, 3.0)
    return features_FM
