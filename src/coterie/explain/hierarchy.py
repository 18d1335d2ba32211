"""The hierarchy above the clusters, where the estimator has one (``children_``)."""

from typing import NamedTuple

import numpy as np

from coterie.tabular.clustered_table import ClusteredTable

MOST = 60  # clusters of a tree that can be read


class Merge(NamedTuple):
    """Two parts of the tree are joined: a part is a cluster (its number), or k + the number of an earlier merge."""

    left: int
    right: int
    remaining: int  # clusters after the merge


def merges_of(clustered: ClusteredTable) -> list[Merge]:
    """How the clusters are joined, the most similar first, down to one; empty if there is no hierarchy.

    A node of the hierarchy of the rows stands for the cluster of most of its rows. Nodes below the clusters, and those
    that join rows of one cluster, are skipped.
    """
    children = getattr(clustered.estimator, "children_", None)
    read = getattr(clustered.estimator, "context_indices_", np.arange(clustered.n))
    k = clustered.k
    if children is None or len(children) + 1 != len(read) or not 2 <= k <= MOST:
        return []
    n = len(read)
    counts = np.zeros((2 * n - 1, k), dtype=np.int64)
    labels = clustered.labels[read]
    counts[np.flatnonzero(labels >= 0), labels[labels >= 0]] = 1
    for place, (left, right) in enumerate(np.asarray(children).tolist()):
        counts[n + place] = counts[left] + counts[right]
    size = np.maximum(counts[:n].sum(axis=0), 1)
    part_of = list(range(k))  # the part that holds each cluster now
    merges: list[Merge] = []
    for left, right in np.asarray(children).tolist():
        left_side, right_side = (np.flatnonzero(counts[one] > size / 2).tolist() for one in (left, right))
        if not left_side or not right_side:
            continue
        one, other = part_of[left_side[0]], part_of[right_side[0]]
        if one == other:
            continue
        joined = k + len(merges)
        merges.append(Merge(one, other, k - len(merges) - 1))
        part_of = [joined if part in (one, other) else part for part in part_of]
    return merges if len(merges) == k - 1 else []
