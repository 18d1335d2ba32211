"""A hierarchy cut into clusters, and how well a partition agrees with affinities.

Two points belong together if they have the same companions, so the rows of the affinity matrix are what is linked
(Ward), which outliers upset less than linking the affinities themselves. After the cut every point joins the cluster
with which its mean affinity is highest. The adjusted Rand index with the true clusters that is expected under the
calibrated affinities follows in closed form (Fritsch and Ickstadt 2009, "Improved criteria for clustering based on the
posterior similarity matrix").
"""

import numpy as np
from scipy.special import expit, logit

from coterie.zeroshot.features.hierarchies import cut, leaf_order

ROUNDS = 3  # of joining the cluster of highest mean affinity
OUTLIER_PROBABILITY = 0.35  # on fresh draws most noise exceeds it, and most rows that exceed it are noise
# Shift and factor of the logit of the expected index that `coterie bench real-tables` found on tables kept aside. They
# hold from four columns on; with two, the index expected on fresh draws is that of maps of real points, too.
ON_REAL_TABLES = (-0.63, 0.81)
REAL_COLUMNS = 4


def agreement(p_NN: np.ndarray, labels_N: np.ndarray) -> float:
    """The expected adjusted Rand index between labels and the true clusters (Fritsch and Ickstadt 2009)."""
    together_NN = labels_N[:, None] == labels_N[None]
    upper = np.triu_indices(len(labels_N), 1)
    joined, same = together_NN[upper], p_NN[upper]
    return adjusted(same[joined].sum() / len(same), joined.mean(), same.mean())


def adjusted(both: float, joined: float, same: float) -> float:
    """The adjusted Rand index from shares of pairs: joined by labels, of one true cluster, and both."""
    chance, best = joined * same, (joined + same) / 2
    return float((both - chance) / (best - chance)) if best - chance > 1e-9 else 1.0


def on_real_tables(index: float, n_columns: int) -> float:
    """The adjusted Rand index that real tables of so many columns reach where fresh draws would reach ``index``."""
    if index <= 0:
        return index
    shift, factor = ON_REAL_TABLES
    real = float(expit(shift + factor * logit(min(index, 1 - 1e-9))))
    share = float(np.clip(np.log2(max(n_columns, 2)) - 1, 0, np.log2(REAL_COLUMNS) - 1))
    return (1 - share) * index + share * real


def cut_and_settled(
    affinity_NN: np.ndarray, noise_N: np.ndarray, left: np.ndarray, right: np.ndarray, n_clusters: int
) -> np.ndarray:
    """Labels of a hierarchy cut into any number of clusters; every point then joins the cluster it is nearest to.

    Clusters that consist of outliers alone do not count, unless fewer points than clusters are not outliers. They are
    joined to the others.
    """
    affinity_NN, inside_N = affinity_NN.astype(np.float64), noise_N <= OUTLIER_PROBABILITY
    labels_N = cut(left, right, n_clusters)
    if inside_N.sum() < n_clusters:
        inside_N = np.ones(len(labels_N), dtype=bool)
    else:
        cuts = n_clusters
        while (missing := n_clusters - len(np.unique(labels_N[inside_N]))) > 0:  # one more cut adds one at most
            cuts += missing
            labels_N = cut(left, right, cuts)
        kept_K = np.unique(labels_N[inside_N])
        outside_N = ~np.isin(labels_N, kept_K)
        labels_N = np.searchsorted(kept_K, labels_N)  # of points outside: any number, replaced below
        if outside_N.any():
            member_NK = np.eye(len(kept_K))[labels_N[~outside_N]]
            mean_NK = affinity_NN[outside_N][:, ~outside_N] @ (member_NK / member_NK.sum(axis=0))
            labels_N[outside_N] = mean_NK.argmax(axis=1)
    return settled(affinity_NN, labels_N, inside_N)


def proba(affinity_NN: np.ndarray, labels_N: np.ndarray) -> np.ndarray:
    """(N, K) the mean affinity to every cluster as a share of all; the label is the likeliest cluster."""
    mean_NK = mean_affinity(affinity_NN.astype(np.float64), labels_N)
    own = np.arange(len(labels_N)), labels_N
    mean_NK[own] = np.maximum(mean_NK[own], (1 + 1e-9) * mean_NK.max(axis=1))
    return mean_NK / mean_NK.sum(axis=1, keepdims=True)


def expected_ari(p_NN: np.ndarray, left: np.ndarray, right: np.ndarray, most: int) -> np.ndarray:
    """(most,) expected adjusted Rand index of a hierarchy cut at 1, 2, ... ``most`` clusters."""
    leaf, start, sizes = leaf_order(left, right)
    n = len(leaf)
    p_NN = p_NN[leaf[:, None], leaf]  # every merge is a block
    # pairs that each merge joins, and how many of them truly share a cluster
    together_M, both_M = np.empty(n - 1), np.empty(n - 1)
    for t, (one, other) in enumerate(zip(left.tolist(), right.tolist())):
        a, b = (slice(start[side], start[side] + sizes[side]) for side in (one, other))
        together_M[t] = sizes[one] * sizes[other]
        both_M[t] = p_NN[a, b].sum(dtype=np.float64)
    same, pairs = both_M.sum(), n * (n - 1) / 2
    # of the cuts into 1, 2, ... n clusters; the last has joined none
    together_K, both_K = (np.append(joined.cumsum()[::-1], 0.0)[:most] for joined in (together_M, both_M))
    chance_K, best_K = together_K * same / pairs, (together_K + same) / 2
    clear_K = best_K - chance_K > 1e-9 * pairs
    return np.divide(both_K - chance_K, best_K - chance_K, out=np.ones(len(best_K)), where=clear_K)


def mean_affinity(p_NN: np.ndarray, labels_N: np.ndarray) -> np.ndarray:
    """(N, K) mean affinity of every point to the other points of every cluster."""
    member_NK = np.eye(labels_N.max() + 1)[labels_N]
    others_NK = member_NK.sum(axis=0) - member_NK
    total_NK = p_NN @ member_NK - np.diag(p_NN)[:, None] * member_NK
    alone_NK = (others_NK == 0) & (member_NK > 0)  # the only point of a cluster stays in it
    return np.where(alone_NK, 1.0, total_NK / np.maximum(others_NK, 1)) + 1e-12


def settled(p_NN: np.ndarray, labels_N: np.ndarray, inside_N: np.ndarray) -> np.ndarray:
    """Labels after a few rounds in which every point joins the cluster of highest mean affinity.

    The rounds end before a cluster loses the last of the points ``inside_N``, which are those that are not outliers.
    """
    k = labels_N.max() + 1
    for _ in range(ROUNDS):
        joined_N = mean_affinity(p_NN, labels_N).argmax(axis=1)
        if np.array_equal(joined_N, labels_N) or len(np.unique(joined_N[inside_N])) < k:
            break
        labels_N = joined_N
    return labels_N
