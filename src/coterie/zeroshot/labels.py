"""From affinities to labels: one hierarchy of the affinities' rows, cut where the expected adjusted Rand index is best.

Two points belong together if they have the same companions, so the rows of the affinity matrix are what is linked
(Ward), which outliers upset less than linking the affinities themselves. For every number of clusters, the adjusted
Rand index with the true clusters, expected under the calibrated affinities, is computed in closed form (Fritsch and
Ickstadt 2009, "Improved criteria for clustering based on the posterior similarity matrix"). After the cut every point
joins the cluster with which its mean affinity is highest.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from coterie.threads import kernel
from coterie.zeroshot.description import row_distances
from coterie.zeroshot.hierarchies import Hierarchy, cut, ward
from coterie.zeroshot.inference import Reading

ROUNDS = 3  # of joining the cluster of highest mean affinity
# Probability above which a set is taken for one cluster. On draws of tables, above one half the first network is wrong
# more often than right: overlapping clusters are one to it.
ONE_CLUSTER = 0.8
# The curve of the expected adjusted Rand index is flat near its top, where more clusters mostly split off a few rows.
# Fewer clusters are preferred if they lose less than this share of what one of K clusters is worth, which is about 1/K.
# Chosen on development sets.
NEGLIGIBLE = 0.2


class Partition(NamedTuple):
    labels_N: np.ndarray  # 0 ... K - 1
    proba_NK: np.ndarray
    expected_ari: float  # with the true clusters


class Hierarchical:
    """Partitions of a set that was read, into any number of clusters.

    ``clusters_proba`` are the probabilities of 1, 2, ... clusters, ``expected_ari`` that of the cut at each.
    """

    def __init__(self, reading: Reading, choice: Sequence[float]):
        self.same_NN = reading.same_NN
        self.tree: Hierarchy = ward(row_distances(reading.same_NN))
        most = min(len(reading.same_NN), len(reading.clusters_K))
        self.expected_ari = expected_ari(reading.natural_NN, self.tree.left, self.tree.right, most)
        self.clusters_proba = clusters_proba(reading.clusters_K[:most], self.expected_ari, choice)

    @property
    def best(self) -> int:
        """One cluster if that is very likely, else the smallest number of nearly the best expected Rand index."""
        if self.clusters_proba[0] > ONE_CLUSTER or len(self.clusters_proba) == 1:
            return 1
        more = self.expected_ari[1:]
        return 2 + int(np.argmax(more >= more.max() - NEGLIGIBLE / (2 + more.argmax())))

    def partition(self, n_clusters: int) -> Partition:
        labels_N = settled(self.same_NN, cut(self.tree.left, self.tree.right, n_clusters)[-1])
        mean_NK = mean_affinity(self.same_NN, labels_N)
        own = np.arange(len(labels_N)), labels_N
        mean_NK[own] = np.maximum(mean_NK[own], (1 + 1e-9) * mean_NK.max(axis=1))  # the label is the likeliest cluster
        known = self.expected_ari[n_clusters - 1] if n_clusters <= len(self.expected_ari) else np.nan
        return Partition(labels_N, mean_NK / mean_NK.sum(axis=1, keepdims=True), float(known))


@kernel()
def expected_ari(p_NN, left, right, most):
    """(most,) expected adjusted Rand index of a hierarchy cut at 1, 2, ... ``most`` clusters."""
    n = len(p_NN)
    sizes = np.ones(2 * n - 1, dtype=np.int64)
    for t in range(n - 1):
        sizes[n + t] = sizes[left[t]] + sizes[right[t]]
    start = np.zeros(2 * n - 1, dtype=np.int64)
    for t in range(n - 2, -1, -1):
        start[left[t]] = start[n + t]
        start[right[t]] = start[n + t] + sizes[left[t]]
    leaf = np.empty(n, dtype=np.int64)
    for i in range(n):
        leaf[start[i]] = i
    pairs = n * (n - 1) / 2
    same = 0.0
    for i in range(n):
        for j in range(i):
            same += p_NN[i, j]
    together, both = 0.0, 0.0  # pairs that the cut joins, and how many of them truly share a cluster
    expected = np.zeros(most)
    for t in range(-1, n - 1):
        if t >= 0:
            one, other = left[t], right[t]
            together += sizes[one] * sizes[other]
            for a in range(start[one], start[one] + sizes[one]):
                for b in range(start[other], start[other] + sizes[other]):
                    both += p_NN[leaf[a], leaf[b]]
        k = n - 1 - t
        if k <= most:
            chance = together * same / pairs
            best = (together + same) / 2
            expected[k - 1] = (both - chance) / (best - chance) if best - chance > 1e-9 * pairs else 1.0
    return expected


def mean_affinity(p_NN: np.ndarray, labels_N: np.ndarray) -> np.ndarray:
    """(N, K) mean affinity of every point to the other points of every cluster."""
    member_NK = np.eye(labels_N.max() + 1)[labels_N]
    others_NK = member_NK.sum(axis=0) - member_NK
    total_NK = p_NN @ member_NK - np.diag(p_NN)[:, None] * member_NK
    alone_NK = (others_NK == 0) & (member_NK > 0)  # the only point of a cluster stays in it
    return np.where(alone_NK, 1.0, total_NK / np.maximum(others_NK, 1)) + 1e-12


def settled(p_NN: np.ndarray, labels_N: np.ndarray) -> np.ndarray:
    """Labels after a few rounds in which every point joins the cluster of highest mean affinity."""
    k = labels_N.max() + 1
    for _ in range(ROUNDS):
        joined_N = mean_affinity(p_NN, labels_N).argmax(axis=1)
        if np.array_equal(joined_N, labels_N) or len(np.unique(joined_N)) < k:
            break
        labels_N = joined_N
    return labels_N


def clusters_proba(network_K: np.ndarray, expected_K: np.ndarray, choice: Sequence[float]) -> np.ndarray:
    """(K,) probabilities of 1, 2, ... clusters: of one as the network says, of the others by all evidence for them."""
    if len(expected_K) == 1:
        return np.ones(1)
    rest = softmax(choice_features(network_K, expected_K) @ np.asarray(choice))
    return np.concatenate([network_K[:1], (1 - network_K[0]) * rest])


def choice_features(network_K: np.ndarray, expected_K: np.ndarray) -> np.ndarray:
    """(K - 1, 3) evidence for 2, 3, ... clusters: the network's distribution, the expected adjusted Rand index, and the
    number itself."""
    log_number = np.log(np.arange(2, len(expected_K) + 1))
    return np.column_stack([np.log(np.maximum(network_K[1:], 1e-4)), expected_K[1:], log_number])
