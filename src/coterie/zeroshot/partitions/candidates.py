"""Candidate partitions of a set, and the features by which the head of the network compares them.

Affinities suggest clusters in two ways, by Ward's linkage of their rows and by average linkage; Genie's hierarchy of
the points suggests a third.

Shapes: J candidates, N points, K clusters.
"""

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import cdist, squareform
from scipy.special import expit, logit

from coterie.zeroshot.features.hierarchies import GINI_LIMIT, Hierarchy, cut, join_edges, shortest_tree
from coterie.zeroshot.network.head import CANDIDATE_FEATURES, CLUSTER_FEATURES, CandidateFeatures, scores, unflattened
from coterie.zeroshot.network.numpy_operations import Arrays
from coterie.zeroshot.partitions.cuts import OUTLIER_PROBABILITY, adjusted, cut_and_settled

DOUBTFUL = 0.1  # margin between the affinity to the own and to another cluster


class Candidates:
    """Partitions of one set into any number of clusters."""

    def __init__(self, points_ND: np.ndarray, affinity_NN: np.ndarray, noise_N: np.ndarray):
        self.affinity_NN, self.noise_N = affinity_NN.astype(np.float64), noise_N
        self._row_N = np.unique(points_ND, axis=0, return_inverse=True)[1].reshape(-1)  # equal points have one number
        distance_NN = cdist(points_ND, points_ND)
        a, b, length = shortest_tree(distance_NN, np.zeros(len(points_ND)))
        self._genie = Hierarchy(*join_edges(a, b, length, GINI_LIMIT))
        apart_NN = 1.0 - self.affinity_NN
        np.fill_diagonal(apart_NN, 0.0)
        merges = linkage(squareform(np.maximum(apart_NN, 0.0), checks=False), "average")
        self._average = merges[:, 0].astype(np.int64), merges[:, 1].astype(np.int64)

    def beside(self, labels_N: np.ndarray) -> np.ndarray:
        """(J, N) different candidates with as many clusters as ``labels_N``, which come first."""
        n_clusters = int(labels_N.max()) + 1
        candidates = [labels_N]
        averaged_N = cut_and_settled(self.affinity_NN, self.noise_N, *self._average, n_clusters)
        for other_N in (averaged_N, cut(self._genie.left, self._genie.right, n_clusters)):
            if self._is_sound(other_N, n_clusters) and not any(_are_alike(other_N, each_N) for each_N in candidates):
                candidates.append(other_N)
        return np.stack(candidates)

    def _is_sound(self, labels_N: np.ndarray, n_clusters: int) -> bool:
        """Whether every cluster has a point that is no outlier, and equal points share a cluster."""
        inside_N = self.noise_N <= OUTLIER_PROBABILITY
        together = len(np.unique(self._row_N * n_clusters + labels_N)) == self._row_N.max() + 1
        return together and len(np.unique(labels_N[inside_N])) == n_clusters


def _are_alike(one_N: np.ndarray, other_N: np.ndarray) -> bool:
    """Whether two partitions into equally many clusters differ in the names of the clusters alone."""
    n_clusters = int(one_N.max()) + 1
    return len(np.unique(one_N * n_clusters + other_N)) == n_clusters


def best_candidate(
    head: np.ndarray,
    points_ND: np.ndarray,
    affinity_NN: np.ndarray,
    noise_N: np.ndarray,
    clusters_proba_K: np.ndarray,
    labels_N: np.ndarray,
) -> tuple[np.ndarray, float]:
    """The best of ``labels_N`` and the candidates beside them, and its expected adjusted Rand index.

    ``head`` are its weights as one array (:func:`coterie.zeroshot.network.head.flattened`).
    """
    labels_JN = Candidates(points_ND, affinity_NN, noise_N).beside(labels_N)
    score_J = scores(Arrays(), unflattened(head), describe(affinity_NN, noise_N, clusters_proba_K, labels_JN))
    best = int(score_J.argmax())
    return labels_JN[best], float(expit(score_J[best]))


def describe(
    affinity_NN: np.ndarray, noise_N: np.ndarray, clusters_proba_K: np.ndarray, labels_JN: np.ndarray
) -> CandidateFeatures:
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
        )
        expected_J[j] = logit(np.clip(index, 0.02, 0.98))
    return CandidateFeatures(clusters_JKC, share_JK, is_there_JK, whole_JG, expected_J)


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
    index = adjusted(own_total_N.sum() / 2 / pairs, joined, same)
    return np.stack(features, axis=1), count_K, float(joined), float(same), index
