"""Candidate partitions of a set, and the head of a network that scores them.

Affinities suggest clusters in two ways, by Ward's linkage of their rows and by average linkage; Genie's hierarchy of
the points suggests a third. For each candidate, the head estimates the adjusted Rand index with the true clusters from
the mean affinities within and between its clusters, from how well it agrees with all affinities, and from its number of
clusters. It corrects the index that the affinities themselves expect, and is trained on the index that is reached
(:mod:`coterie.zeroshot.head_fitting`). The order of the clusters and that of the points do not matter.

Shapes: J candidates, N points, K clusters, C features of a cluster, G features of a candidate, H hidden units.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import cdist, squareform
from scipy.special import expit, logit

from coterie.zeroshot.answers import Network
from coterie.zeroshot.hierarchies import GINI_LIMIT, Hierarchy, cut, join_edges, shortest_tree
from coterie.zeroshot.labels import OUTLIER_PROBABILITY, cut_and_settled

MOST_CLUSTERS = 16  # for which there are candidates beside Ward's: for more, it is the best of them
CLUSTER_FEATURES = 9
CANDIDATE_FEATURES = 10
DOUBTFUL = 0.1  # margin between the affinity to the own and to another cluster
ABSENT = 1e4  # larger than any hidden unit

Choose = Callable[[np.ndarray], tuple[np.ndarray, float]]


class Told(NamedTuple):
    """What the head is told of J candidates. Those with fewer than K clusters are padded."""

    clusters_JKC: Any
    share_JK: Any  # of the points
    is_there_JK: Any  # 1 for clusters, 0 for padding
    whole_JG: Any
    expected_J: Any  # logit of the adjusted Rand index that affinities expect


class Candidates:
    """Partitions of one set into any number of clusters."""

    def __init__(self, points_ND: np.ndarray, affinity_NN: np.ndarray, noise_N: np.ndarray):
        self.affinity_NN, self.noise_N = affinity_NN.astype(np.float64), noise_N
        distance_NN = cdist(points_ND, points_ND)
        a, b, length = shortest_tree(distance_NN, np.zeros(len(points_ND)))
        self._genie = Hierarchy(*join_edges(a, b, length, GINI_LIMIT))
        apart_NN = 1.0 - self.affinity_NN
        np.fill_diagonal(apart_NN, 0.0)
        merges = linkage(squareform(np.maximum(apart_NN, 0.0), checks=False), "average")
        self._average = merges[:, 0].astype(np.int64), merges[:, 1].astype(np.int64)

    def beside(self, labels_N: np.ndarray) -> np.ndarray:
        """(J, N) candidates with as many clusters as ``labels_N``, which come first."""
        n_clusters = int(labels_N.max()) + 1
        if not 1 < n_clusters <= min(MOST_CLUSTERS, len(labels_N) - 1):
            return labels_N[None]
        candidates = [labels_N, cut_and_settled(self.affinity_NN, self.noise_N, *self._average, n_clusters)]
        connected_N = cut(self._genie.left, self._genie.right, n_clusters)
        if len(np.unique(connected_N[self.noise_N <= OUTLIER_PROBABILITY])) == n_clusters:
            candidates.append(connected_N)
        return np.stack(candidates)


def chooser(
    network: Network, points_ND: np.ndarray, affinity_NN: np.ndarray, noise_N: np.ndarray, clusters_proba_K: np.ndarray
) -> Choose | None:
    """A function from labels to the best candidate beside them and its expected index; None without a head."""
    if not network.config.partition_width or len(points_ND) < 3:
        return None
    candidates = Candidates(points_ND, affinity_NN, noise_N)

    def choose(labels_N: np.ndarray) -> tuple[np.ndarray, float]:
        labels_JN = candidates.beside(labels_N)
        index_J = expit(network.score(describe(affinity_NN, noise_N, clusters_proba_K, labels_JN)))
        return labels_JN[index_J.argmax()], float(index_J.max())

    return choose


def describe(affinity_NN: np.ndarray, noise_N: np.ndarray, clusters_proba_K: np.ndarray, labels_JN: np.ndarray) -> Told:
    """The features of candidates, each of which has at least two clusters."""
    parts = [_described(affinity_NN.astype(np.float64), noise_N, labels_N) for labels_N in labels_JN]
    most = max(len(clusters_KC) for clusters_KC, *_ in parts)
    n = len(noise_N)
    clusters_JKC = np.zeros((len(parts), most, CLUSTER_FEATURES), np.float32)
    share_JK, is_there_JK = np.zeros((2, len(parts), most), np.float32)
    whole_JG, expected_J = np.zeros((len(parts), CANDIDATE_FEATURES), np.float32), np.zeros(len(parts), np.float32)
    log_proba_K = np.log(np.maximum(clusters_proba_K, 1e-5)) / 5 + 0.5
    mean_log_number = float(clusters_proba_K @ np.log(np.arange(1, len(clusters_proba_K) + 1)))
    for j, (clusters_KC, count_K, joined, same, index) in enumerate(parts):
        k = len(count_K)
        clusters_JKC[j, :k], share_JK[j, :k], is_there_JK[j, :k] = clusters_KC, count_K / n, 1.0
        whole_JG[j] = (
            index,
            np.log(k) - 1.5,
            np.log(n) - 5.5,
            log_proba_K[min(k, len(log_proba_K)) - 1],
            log_proba_K[0],
            mean_log_number - 1.5,
            same,
            joined,
            joined - same,
            j == 0,
        )
        expected_J[j] = logit(np.clip(index, 0.02, 0.98))
    return Told(clusters_JKC, share_JK, is_there_JK, whole_JG, expected_J)


def _described(
    affinity_NN: np.ndarray, noise_N: np.ndarray, labels_N: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float, float, float]:
    """Features and sizes of clusters, the shares of pairs that are joined and that truly belong together, the index."""
    n = len(labels_N)
    member_NK = np.eye(labels_N.max() + 1)[labels_N]
    count_K = member_NK.sum(axis=0)
    total_NK, places = affinity_NN @ member_NK, (np.arange(n), labels_N)
    own_total_N = total_NK[places] - np.diag(affinity_NN)
    own_N = own_total_N / np.maximum(count_K[labels_N] - 1, 1)
    mean_NK = total_NK / count_K
    mean_NK[places] = -1.0
    other_N = mean_NK.max(axis=1)

    def mean(values_N: np.ndarray) -> np.ndarray:
        return values_N @ member_NK / count_K

    own_K, other_K = mean(own_N), mean(other_N)
    features = [
        np.log(count_K) / 3 - 1,
        np.log(count_K / n) / 3 + 0.5,
        own_K,
        other_K,
        own_K - other_K,
        mean(own_N >= other_N),
        mean(own_N - other_N < DOUBTFUL),
        3 * np.sqrt(np.maximum(mean(own_N**2) - own_K**2, 0.0)),
        mean(noise_N),
    ]
    pairs = n * (n - 1) / 2
    joined = (count_K * (count_K - 1)).sum() / 2 / pairs
    same = (affinity_NN.sum() - np.trace(affinity_NN)) / 2 / pairs
    both, chance, best = own_total_N.sum() / 2 / pairs, joined * same, (joined + same) / 2
    index = (both - chance) / (best - chance) if best - chance > 1e-9 else 1.0
    return np.stack(features, axis=1), count_K, float(joined), float(same), float(index)


def scores(xp: Any, w: Any, told: Told) -> Any:
    """(J,) logits of the adjusted Rand index of the candidates; ``w`` are the weights of the head."""
    hidden_JKH = xp.gelu(xp.linear(w.again, xp.gelu(xp.linear(w.cluster, told.clusters_JKC), "tanh")), "tanh")
    is_there_JK1 = told.is_there_JK[..., None]
    pooled = [
        (hidden_JKH * told.share_JK[..., None]).sum(1),
        (hidden_JKH * is_there_JK1).sum(1) / is_there_JK1.sum(1),
        xp.amax(hidden_JKH - ABSENT * (1 - is_there_JK1), 1),
        told.whole_JG,
    ]
    whole_JH = xp.gelu(xp.linear(w.whole, xp.concatenate(pooled, -1)), "tanh")
    return told.expected_J + xp.linear(w.score, whole_JH)[:, 0]
