"""From affinities to labels: a hierarchy of the affinities' rows, cut at a number of clusters that they speak for.

Two points belong together if they have the same companions, so the rows of the affinity matrix are what is linked
(Ward), which outliers upset less than linking the affinities themselves. Then every point joins the cluster with
which its mean affinity is highest.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform
from scipy.special import log_softmax

from coterie.threads import kernel
from coterie.zeroshot.inference import Reading

ROUNDS = 3  # of joining the cluster of highest mean affinity


class Partition(NamedTuple):
    labels_N: np.ndarray  # 0 ... K - 1
    proba_NK: np.ndarray
    clusters_proba: np.ndarray  # of 1, 2, ... clusters

    @property
    def n_clusters(self) -> int:
        return self.proba_NK.shape[1]


def partition(reading: Reading, n_clusters: int | None, choice: Sequence[float]) -> Partition:
    """Labels for the given number of clusters, or for the most likely one."""
    p_NN = reading.same_NN
    most = min(len(p_NN), len(reading.clusters_K))
    candidates = cuts(p_NN, max(most, n_clusters or 1))
    log_p_K = log_softmax(choice_features(reading, candidates[:most]) @ np.asarray(choice))
    k = int(log_p_K.argmax()) + 1 if n_clusters is None else n_clusters
    labels_N = candidates[k - 1]
    mean_NK = mean_affinity(p_NN, labels_N)
    own = np.arange(len(labels_N)), labels_N
    mean_NK[own] = np.maximum(mean_NK[own], (1 + 1e-9) * mean_NK.max(axis=1))  # a row's label is its likeliest cluster
    proba_NK = mean_NK / mean_NK.sum(axis=1, keepdims=True)
    return Partition(labels_N, proba_NK, np.exp(log_p_K))


def cuts(p_NN: np.ndarray, most: int) -> list[np.ndarray]:
    """Labels for 1, 2, ... ``most`` clusters."""
    n = len(p_NN)
    sq_N = (p_NN**2).sum(axis=1)
    sq_NN = np.maximum(sq_N[:, None] + sq_N - 2 * p_NN @ p_NN.T, 0.0)
    np.fill_diagonal(sq_NN, 0.0)
    tree = linkage(squareform(np.sqrt(sq_NN), checks=False), "ward")
    labels_KN = _cut(tree[:, :2].astype(np.int64), n, min(most, n))
    return [settled(p_NN, labels_N) for labels_N in labels_KN]


@kernel()
def _cut(merges, n, most):
    """Labels (most, N) of a hierarchy cut at 1 ... ``most`` clusters."""
    labels = np.empty((most, n), dtype=np.int64)
    parent = np.arange(2 * n - 1)
    for k in range(most, 0, -1):
        for t in range(0 if k == most else n - 1 - k, n - k):
            parent[merges[t, 0]] = n + t
            parent[merges[t, 1]] = n + t
        seen = np.full(2 * n - 1, -1)
        found = 0
        for i in range(n):
            node = i
            while parent[node] != node:
                parent[node] = parent[parent[node]]
                node = parent[node]
            if seen[node] < 0:
                seen[node] = found
                found += 1
            labels[k - 1, i] = seen[node]
    return labels


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


def agreement(log_same_NN: np.ndarray, log_apart_NN: np.ndarray, labels_N: np.ndarray) -> float:
    """Mean log probability that the affinities give to labels; a point's own cluster and the rest count alike."""
    member_NK = np.eye(labels_N.max() + 1)[labels_N]
    own_N = member_NK @ member_NK.sum(axis=0)
    together_N = ((log_same_NN @ member_NK) * member_NK).sum(axis=1) / own_N
    apart_N = log_apart_NN.sum(axis=1) - ((log_apart_NN @ member_NK) * member_NK).sum(axis=1)
    return float((together_N + apart_N / np.maximum(len(labels_N) - own_N, 1)).mean()) / 2


def choice_features(reading: Reading, candidates: list[np.ndarray]) -> np.ndarray:
    """(K, 5): what speaks for each number of clusters.

    The network's own distribution; how well the labels agree with the affinities, and how much better than those for
    one cluster less and one more; the number itself.
    """
    log_same_NN, log_apart_NN = (np.log(np.maximum(p_NN, 1e-4)) for p_NN in (reading.same_NN, 1 - reading.same_NN))
    agree_K = np.array([agreement(log_same_NN, log_apart_NN, labels_N) for labels_N in candidates])
    padded = np.concatenate([agree_K[:1], agree_K, agree_K[-1:]])
    log_p_K = np.log(np.maximum(reading.clusters_K[: len(agree_K)], 1e-6))
    better_K = np.clip(agree_K - padded[:-2], -1, 1)
    worse_K = np.clip(padded[2:] - agree_K, -1, 1)
    return np.column_stack([log_p_K, agree_K, better_K, worse_K, np.log(np.arange(1, len(agree_K) + 1))])
