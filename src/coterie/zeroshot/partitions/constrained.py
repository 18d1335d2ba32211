"""Clusters under constraints: given labels are kept and the other rows follow, linked rows stay together.

A network knows nothing of labels, so they change what is made of its affinities. There are three ways to let labels
decide, from the most to the least conservative: a found cluster takes the label that it matches best; found clusters
with the same majority label become one; or every row takes the label that spreads to it over its nearest neighbours,
weighted by affinity (Zhou et al. 2004, "Learning with local and global consistency"). The way that best predicts each
given label from the others is taken, the more conservative one unless another is clearly better. Found clusters without
labels stay as they are.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score

from coterie.constraints import Constraints
from coterie.geometry.neighbours import nearest_among
from coterie.zeroshot.partitions.cuts import mean_affinity, proba

SPREAD = 0.95  # share of a row's label that comes from its neighbours
NEIGHBOURS = 11  # a row and its ten nearest
CLEARLY = 0.05  # adjusted Rand index by which a less conservative way must be better
CLAIM = 2  # labels that a found cluster must have to join the rows of that label, unless it is their largest part


class Way(NamedTuple):
    """Labels of all rows, and those of the labelled rows if their own label were unknown."""

    labels_N: np.ndarray
    without_own_L: np.ndarray


def constrained(
    base_N: np.ndarray, affinity_NN: np.ndarray, points_NE: np.ndarray, known: Constraints, n_clusters: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Labels and probabilities (N, K) from found clusters ``base_N``. Given labels are the first, in their order."""
    if n_clusters is not None and known.n_labels > n_clusters:
        raise ValueError(
            f"{known.n_labels} labels are given, but n_clusters={n_clusters}: set n_clusters to {known.n_labels} or "
            "more."
        )
    labels_N, affinity_NN = base_N, affinity_NN.astype(np.float64)
    if known.n_labels:
        labels_N = _with_labels(affinity_NN, points_NE, base_N, known, n_clusters)
    labels_N = _with_groups(affinity_NN, labels_N, known)
    proba_NK = proba(affinity_NN, labels_N)
    bound_N = known.group >= 0
    proba_NK[bound_N] = np.eye(proba_NK.shape[1])[labels_N[bound_N]]
    return labels_N, proba_NK


def _with_labels(
    affinity_NN: np.ndarray, points_NE: np.ndarray, base_N: np.ndarray, known: Constraints, most: int | None
) -> np.ndarray:
    given_N, n_labels = known.given, known.n_labels
    rows_L = np.flatnonzero(given_N >= 0)
    count_KC = np.zeros((base_N.max() + 1, n_labels))
    np.add.at(count_KC, (base_N[rows_L], given_N[rows_L]), 1)
    ways = [_matched(base_N, rows_L, count_KC), _merged(base_N, rows_L, given_N, count_KC)]
    whole = set(range(n_labels))
    ways = [way for way in ways if whole <= set(way.labels_N.tolist())]  # each label has rows beside its own
    ways.append(_spread(affinity_NN, points_NE, base_N, rows_L, given_N, count_KC))
    best = ways[0]
    for way in ways[1:]:
        if _score(way, given_N[rows_L]) > _score(best, given_N[rows_L]) + CLEARLY:
            best = way
    labels_N = best.labels_N.copy()
    labels_N[rows_L] = given_N[rows_L]
    return _numbered(labels_N, n_labels, affinity_NN, most)


def _score(way: Way, given_L: np.ndarray) -> float:
    return float(adjusted_rand_score(given_L, way.without_own_L))


def _matched(base_N: np.ndarray, rows_L: np.ndarray, count_KC: np.ndarray) -> Way:
    """Found clusters and labels are matched one to one."""
    k, n_labels = count_KC.shape
    label_K = n_labels + np.arange(k)
    for cluster, label in zip(*linear_sum_assignment(-count_KC)):
        if count_KC[cluster, label]:
            label_K[cluster] = label
    return Way(label_K[base_N], label_K[base_N[rows_L]])


def _merged(base_N: np.ndarray, rows_L: np.ndarray, given_N: np.ndarray, count_KC: np.ndarray) -> Way:
    """A found cluster has the label of most of its labelled rows."""
    k, n_labels = count_KC.shape
    label_K = np.where(count_KC.any(axis=1), count_KC.argmax(axis=1), n_labels + np.arange(k))
    others_LC = count_KC[base_N[rows_L]] - np.eye(n_labels)[given_N[rows_L]]
    alone_L = ~others_LC.any(axis=1)
    return Way(label_K[base_N], np.where(alone_L, n_labels + base_N[rows_L], others_LC.argmax(axis=1)))


def _spread(
    affinity_NN: np.ndarray,
    points_NE: np.ndarray,
    base_N: np.ndarray,
    rows_L: np.ndarray,
    given_N: np.ndarray,
    count_KC: np.ndarray,
) -> Way:
    """Labels spread from row to row; rows of found clusters that no label claims keep their cluster."""
    n_labels = count_KC.shape[1]
    is_LC = np.eye(n_labels)[given_N[rows_L]]
    reach_NL = _reach(affinity_NN, points_NE, rows_L)
    near_NC, own_LC = reach_NL @ is_LC, reach_NL[rows_L, np.arange(len(rows_L)), None] * is_LC
    other_NN = affinity_NN - np.diag(np.diag(affinity_NN))
    alike_NC = other_NN[:, rows_L] @ is_LC
    total_C = is_LC.sum(axis=0)
    score_NC = _shares(near_NC) * _shares(alike_NC / total_C)
    held_out_LC = _shares(near_NC[rows_L] - own_LC) * _shares(alike_NC[rows_L] / np.maximum(total_C - is_LC, 1))
    claimed_K = count_KC.sum(axis=1) >= CLAIM
    claimed_K[count_KC.argmax(axis=0)] = True
    labels_N = np.where(claimed_K[base_N], score_NC.argmax(axis=1), n_labels + base_N)
    return Way(labels_N, held_out_LC.argmax(axis=1))


def _reach(affinity_NN: np.ndarray, points_NE: np.ndarray, rows_L: np.ndarray) -> np.ndarray:
    """(N, L) how much of the label of each labelled row arrives at every row."""
    n = len(points_NE)
    index_NQ = nearest_among(points_NE, points_NE, NEIGHBOURS)[0]
    from_N, to_N = np.repeat(np.arange(n), index_NQ.shape[1]), index_NQ.ravel()
    weight_NN = np.zeros((n, n))
    weight_NN[from_N, to_N] = affinity_NN[from_N, to_N] + 1e-6
    weight_NN = np.maximum(weight_NN, weight_NN.T)
    np.fill_diagonal(weight_NN, 0.0)
    degree_N = np.maximum(weight_NN.sum(axis=1), 1e-12)
    step_NN = weight_NN / np.sqrt(degree_N[:, None] * degree_N[None])
    return np.linalg.solve(np.eye(n) - SPREAD * step_NN, np.eye(n)[:, rows_L])


def _shares(values: np.ndarray) -> np.ndarray:
    return values / np.maximum(values.sum(axis=1, keepdims=True), 1e-12)


def _numbered(labels_N: np.ndarray, n_labels: int, affinity_NN: np.ndarray, most: int | None) -> np.ndarray:
    """Labels 0 ... K - 1: first the given ones, then the clusters without labels, at most ``most`` in all."""
    rest = np.unique(labels_N[labels_N >= n_labels])
    if most is not None and n_labels + len(rest) > most:  # the smallest ones join the others
        sizes = np.bincount(labels_N)[rest]
        kept = rest[np.argsort(-sizes, kind="stable")][: most - n_labels]
        gone_N = np.isin(labels_N, np.setdiff1d(rest, kept))
        labels_N, rest = labels_N.copy(), np.sort(kept)
        stay = np.flatnonzero(~gone_N)
        places = np.unique(labels_N[stay])
        member = (labels_N[stay][:, None] == places).astype(float)
        mean = affinity_NN[np.ix_(gone_N, stay)] @ member / member.sum(axis=0)
        labels_N[gone_N] = places[mean.argmax(axis=1)]
    number = np.concatenate([np.arange(n_labels), np.full(labels_N.max() + 1, -1)])
    number[rest] = n_labels + np.arange(len(rest))
    return number[labels_N]


def _with_groups(affinity_NN: np.ndarray, labels_N: np.ndarray, known: Constraints) -> np.ndarray:
    """Every group of linked rows joins the cluster of highest mean affinity that it may join.

    If none of those is nearly as good as the best one, the group founds a cluster, and the rows of the best one that
    are closer to it than to its opponents follow.
    """
    labels_N = labels_N.copy()
    order = [g for g in range(known.n_groups) if known.label[g] < 0 and (known.group == g).any()]
    settled = {g: int(known.label[g]) for g in range(known.n_groups) if known.label[g] >= 0}
    for group in order:
        rows = known.group == group
        mean_K = mean_affinity(affinity_NN, labels_N)[rows].sum(axis=0)
        taken = {settled[other] for other in known.separated_from(group).tolist() if other in settled}
        free = np.setdiff1d(np.arange(len(mean_K)), list(taken))
        best = int(mean_K.argmax())
        if best not in taken:
            chosen = best
        elif len(free) and mean_K[free].max() >= 0.5 * mean_K[best]:
            chosen = int(free[mean_K[free].argmax()])
        else:
            chosen = len(mean_K)
            against = np.isin(known.group, [other for other in settled if settled[other] == best])
            follows = (labels_N == best) & (known.group < 0)
            closer = affinity_NN[:, rows].mean(axis=1) > affinity_NN[:, against].mean(axis=1)
            labels_N[follows & closer] = chosen
        labels_N[rows] = chosen
        settled[group] = chosen
    return np.unique(labels_N, return_inverse=True)[1]
