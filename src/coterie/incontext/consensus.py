"""One partition from several soft ones of the same points, such as draws from a posterior.

Members are arrays (J, N, K) of membership probabilities, and clusters of one member need not correspond to those of
another. The probability that two points belong together, averaged over the members, is the co-assignment p_ij.

:func:`best_partition` finds labels of large expected adjusted Rand index, in which the truth's co-assignments are
replaced by p_ij (Fritsch and Ickstadt, 2009). :func:`aligned_mean` averages the memberships themselves after matching
the clusters (Stephens, 2000).

Shapes: J members, N points, K clusters, F = J · K features; p_ij is the inner product of the features of i and j.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from coterie import threads


def features(members_JNK: np.ndarray, weights_J: np.ndarray | None = None) -> np.ndarray:
    """(N, F) features whose inner products are the co-assignments."""
    n_members, n_points, n_clusters = members_JNK.shape
    weights = np.full(n_members, 1 / n_members) if weights_J is None else weights_J / weights_J.sum()
    scaled = members_JNK * np.sqrt(weights)[:, None, None]
    return np.ascontiguousarray(scaled.transpose(1, 0, 2)).reshape(n_points, n_members * n_clusters)


def aligned_mean(
    members_JNK: np.ndarray, weights_J: np.ndarray | None = None, *, first: np.ndarray | None = None, n_iter: int = 10
) -> np.ndarray:
    """The mean (N, K) of the members, each with its clusters renamed to match the mean as well as possible.

    A renaming maximises the sum of member times log mean. ``first`` (N, K) is what the first renaming matches; if None,
    the member of largest weight.
    """
    n_members = len(members_JNK)
    weights = np.full(n_members, 1 / n_members) if weights_J is None else weights_J / weights_J.sum()
    mean = members_JNK[int(weights.argmax())] if first is None else first
    names: np.ndarray | None = None
    for _ in range(n_iter):
        found = renamings(members_JNK, mean)
        if names is not None and np.array_equal(found, names):
            break
        names = found
        mean = sum(w * member[:, name] for w, member, name in zip(weights, members_JNK, names))
    return mean


def renamings(members_JNK: np.ndarray, reference_NK: np.ndarray) -> np.ndarray:
    """(J, K): for every cluster of the reference, the cluster of the member that is matched to it."""
    gain_JKK = np.einsum("jnk,nl->jkl", members_JNK, np.log(reference_NK + 1e-6), optimize=True)
    return np.stack([np.argsort(linear_sum_assignment(-gain)[1]) for gain in gain_JKK])


@dataclass(frozen=True)
class Rule:
    """Labels of further points, given a partition of those before them.

    A point joins the cluster for which its co-assignments with the cluster's points, minus ``level`` for each of them,
    have the largest sum: to first order, the one for which the expected adjusted Rand index becomes largest.
    """

    sums_KF: np.ndarray
    counts_K: np.ndarray
    level: float

    @classmethod
    def of(cls, feature_NF: np.ndarray, labels_N: np.ndarray, n_clusters: int) -> "Rule":
        own_NK = np.eye(n_clusters)[labels_N]
        n_points = len(labels_N)
        pairs = n_points * (n_points - 1) / 2
        chance = _true_pairs(feature_NF, feature_NF.sum(0)) / pairs if pairs else 1.0
        # with A pairs together by the posterior and B by the labels, the index falls with B as it rises with A / level
        level = chance + expected_ari(feature_NF, labels_N, n_clusters) * (0.5 - chance)
        return cls(own_NK.T @ feature_NF, own_NK.sum(0), float(level))

    def labels(self, feature_NF: np.ndarray) -> np.ndarray:
        # one sum per value, in the order of the features: a matrix product may round by the number of rows
        score = np.stack([(feature_NF * row).sum(1) for row in self.sums_KF], 1) - self.level * self.counts_K
        return np.where(self.counts_K > 0, score, -np.inf).argmax(1)


def best_partition(members_JNK: np.ndarray, weights_J: np.ndarray | None = None) -> np.ndarray:
    """Labels (N,) of at most K clusters with a large expected adjusted Rand index.

    The aligned mean's labels and those of the members of largest weight are compared, and points are moved from the
    best of them one at a time as long as the expectation rises.
    """
    n_clusters = members_JNK.shape[2]
    feature_NF = features(members_JNK, weights_J)
    order = np.arange(len(members_JNK)) if weights_J is None else np.argsort(-weights_J)
    candidates = [aligned_mean(members_JNK, weights_J), *members_JNK[order[:4]]]
    labels = [candidate.argmax(1) for candidate in candidates]
    values = [expected_ari(feature_NF, found, n_clusters) for found in labels]
    best = labels[int(np.argmax(values))].copy()
    _climb(feature_NF, best, n_clusters, feature_NF.sum(0))
    return best


def expected_ari(feature_NF: np.ndarray, labels_N: np.ndarray, n_clusters: int) -> float:
    """The adjusted Rand index of ``labels_N`` with the co-assignments in place of the true partition."""
    own = np.eye(n_clusters)[labels_N]
    together = float(np.square(own.T @ feature_NF).sum() - np.square(feature_NF).sum()) / 2
    counts = own.sum(0)
    pairs = float((counts * (counts - 1)).sum()) / 2
    return float(_adjusted(together, pairs, _true_pairs(feature_NF, feature_NF.sum(0)), len(labels_N)))


@threads.kernel()
def _true_pairs(feature, feature_sum):
    return (np.square(feature_sum).sum() - np.square(feature).sum()) / 2


@threads.kernel()
def _adjusted(together, pairs, true_pairs, n_points):
    """(index - expected) / (largest - expected), of pairs."""
    if n_points < 2:
        return 0.0
    expected = pairs * true_pairs / (n_points * (n_points - 1) / 2)
    spread = (pairs + true_pairs) / 2 - expected
    return (together - expected) / spread if spread > 1e-12 else 0.0


@threads.kernel()
def _climb(feature, labels, n_clusters, feature_sum):
    """Move single points while the expected adjusted Rand index rises; changes ``labels``."""
    n_points, n_features = feature.shape
    true_pairs = _true_pairs(feature, feature_sum)
    sums, counts, own = np.zeros((n_clusters, n_features)), np.zeros(n_clusters), np.zeros(n_points)
    for i in range(n_points):
        sums[labels[i]] += feature[i]
        counts[labels[i]] += 1
        own[i] = np.square(feature[i]).sum()
    together = (np.square(sums).sum() - own.sum()) / 2
    pairs = (counts * (counts - 1)).sum() / 2
    value = _adjusted(together, pairs, true_pairs, n_points)
    near = np.zeros(n_clusters)
    for _ in range(50):
        moved = False
        for i in range(n_points):
            here = labels[i]
            for k in range(n_clusters):
                near[k] = np.dot(sums[k], feature[i])
            near[here] -= own[i]
            best, best_value = here, value + 1e-12
            for k in range(n_clusters):
                if k != here:
                    new = _adjusted(
                        together - near[here] + near[k], pairs - counts[here] + 1 + counts[k], true_pairs, n_points
                    )
                    if new > best_value:
                        best, best_value = k, new
            if best != here:
                together += near[best] - near[here]
                pairs += counts[best] - counts[here] + 1
                value, moved = best_value, True
                sums[here] -= feature[i]
                sums[best] += feature[i]
                counts[here] -= 1
                counts[best] += 1
                labels[i] = best
        if not moved:
            break
