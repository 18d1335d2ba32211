"""Five classical hierarchies of a small set, as tables of merges, and for every pair the merge that joins it.

A hierarchy of n points is n - 1 merges in order; merge t joins two nodes (a point below n, or n + an earlier merge) at
a height. They see different things: single linkage what is connected, single linkage on mutual reachability what is
connected through dense regions (finely or coarsely seen), Genie connected parts of balanced size, Ward compact parts.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform

from coterie.threads import interpreted_first

GINI_LIMIT = 0.3  # Genie joins the smallest cluster first while sizes are less equal than this


class Hierarchy(NamedTuple):
    left: np.ndarray  # (n - 1,) nodes
    right: np.ndarray
    height: np.ndarray  # (n - 1,) distance at which the two are joined


def hierarchies(distance_NN: np.ndarray, cores: Sequence[np.ndarray]) -> list[Hierarchy]:
    """Single linkage, Genie, Ward, and for each of ``cores`` single linkage above the core distances (N,) given."""
    a, b, length = shortest_tree(distance_NN, np.zeros(len(distance_NN)))
    return [
        Hierarchy(*join_edges(a, b, length, 1.0)),
        Hierarchy(*join_edges(a, b, length, GINI_LIMIT)),
        ward(distance_NN),
        *(above_cores(distance_NN, core_N) for core_N in cores),
    ]


def ward(distance_NN: np.ndarray) -> Hierarchy:
    merges = linkage(squareform(distance_NN, checks=False), "ward")
    return Hierarchy(merges[:, 0].astype(np.int64), merges[:, 1].astype(np.int64), np.ascontiguousarray(merges[:, 2]))


def above_cores(distance_NN: np.ndarray, core_N: np.ndarray) -> Hierarchy:
    """Single linkage on mutual reachability: a pair's length is at least both core distances."""
    return Hierarchy(*join_edges(*shortest_tree(distance_NN, core_N), 1.0))


def cut(left: np.ndarray, right: np.ndarray, n_clusters: int) -> np.ndarray:
    """(N,) labels of a hierarchy cut into clusters, which are numbered in the order of their first points."""
    leaf, start, sizes = leaf_order(left, right)
    n = len(leaf)
    cluster_N = np.arange(n)  # of the points in the order of the leaves: every node is a range of them
    for node in range(n, 2 * n - n_clusters):
        cluster_N[start[node] : start[node] + sizes[node]] = node
    named_N = np.empty(n, dtype=np.int64)
    named_N[leaf] = cluster_N
    _, first, label_N = np.unique(named_N, return_index=True, return_inverse=True)
    return first.argsort().argsort()[label_N.reshape(-1)]


def leaf_order(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, list[int], list[int]]:
    """Points in an order in which those of every node are adjacent, and the first place and the size of every node."""
    n = len(left) + 1
    children = list(zip(left.tolist(), right.tolist()))
    sizes, start = [1] * n, [0] * (2 * n - 1)
    for one, other in children:
        sizes.append(sizes[one] + sizes[other])
    for node in range(2 * n - 2, n - 1, -1):
        one, other = children[node - n]
        start[one] = start[node]
        start[other] = start[node] + sizes[one]
    return np.argsort(start[:n]), start, sizes


@interpreted_first("coterie.zeroshot.features.hierarchy_kernels")
def shortest_tree(distance_NN: np.ndarray, core_N: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Edges of the minimum spanning tree, shortest first (Prim). A pair's length is at least both core distances."""
    n = len(distance_NN)
    reach_NN = np.maximum(distance_NN, core_N)
    np.maximum(reach_NN, core_N[:, None], out=reach_NN)
    best_N, source_N = np.full(n, np.inf), np.zeros(n, dtype=np.int64)
    inside_N = np.zeros(n)  # infinite for points in the tree
    a, b, length = np.empty(n - 1, np.int64), np.empty(n - 1, np.int64), np.empty(n - 1)
    here = 0
    for t in range(n - 1):
        inside_N[here] = best_N[here] = np.inf
        reach_N = np.maximum(reach_NN[here], inside_N)
        source_N[reach_N < best_N] = here
        np.minimum(best_N, reach_N, out=best_N)
        here = int(best_N.argmin())
        a[t], b[t], length[t] = source_N[here], here, best_N[here]
    order = np.argsort(length, kind="mergesort")
    return a[order], b[order], length[order]


@interpreted_first()
def join_edges(a, b, length, gini_limit):
    """Turn sorted tree edges into merges: (n - 1,) nodes left and right, and heights.

    While the Gini index of the cluster sizes exceeds ``gini_limit``, the next edge is the shortest at one of the
    smallest clusters (Gagolewski, Bartoszuk and Cena, 2016); with a limit of 1 this is single linkage.
    """
    n = len(a) + 1
    parent, node, size = np.arange(n), np.arange(n), np.ones(n, np.int64)
    count = np.zeros(n + 1, np.int64)  # clusters of each size
    count[1] = n
    left, right, height = np.empty(n - 1, np.int64), np.empty(n - 1, np.int64), np.empty(n - 1)
    following = np.arange(1, n + 1)  # the edges that are left, as a linked list whose head is at the end
    following[n - 1] = 0

    def root(i):
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    for t in range(n - 1):
        before, chosen = n - 1, following[n - 1]
        if gini_limit < 1.0 and t > 0:
            sizes = np.flatnonzero(count)
            many = count[sizes]
            # ranks of the clusters of each size, times 2, less the number of clusters + 1
            ranks = many * (2.0 * (np.cumsum(many) - many) + many - (n - t))
            if (sizes * ranks).sum() / (n * (n - t - 1.0)) > gini_limit:
                while min(size[root(a[chosen])], size[root(b[chosen])]) != sizes[0]:
                    before, chosen = chosen, following[chosen]
        following[before] = following[chosen]
        one, other = root(a[chosen]), root(b[chosen])
        left[t], right[t], height[t] = node[one], node[other], length[chosen]
        count[size[one]] -= 1
        count[size[other]] -= 1
        parent[other] = one
        size[one] += size[other]
        count[size[one]] += 1
        node[one] = n + t
    return left, right, height


def joining_merge(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For every pair of points the merge that joins them (N, N), and the sizes of every merge's two sides."""
    leaf, start, sizes = leaf_order(left, right)
    n = len(leaf)
    merge_NN = np.zeros((n, n), dtype=np.uint16)
    for t, (one, other) in enumerate(zip(left.tolist(), right.tolist())):
        first, middle, end = start[one], start[other], start[other] + sizes[other]
        merge_NN[first:middle, middle:end] = t
        merge_NN[middle:end, first:middle] = t
    place_N, size = np.asarray(start[:n]), np.asarray(sizes)
    return merge_NN[place_N].take(place_N, axis=1), np.column_stack([size[left], size[right]])
