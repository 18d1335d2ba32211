"""Compiled versions of functions in :mod:`coterie.zeroshot.features.hierarchies`."""

import numpy as np

from coterie.threads import kernel


@kernel()
def shortest_tree(distance_NN, core_N):
    """Edges of the minimum spanning tree, shortest first (Prim). A pair's length is at least both core distances."""
    n = len(distance_NN)
    best = np.full(n, np.inf)
    source = np.zeros(n, dtype=np.int64)
    outside = np.ones(n, dtype=np.bool_)
    a, b, length = np.empty(n - 1, np.int64), np.empty(n - 1, np.int64), np.empty(n - 1)
    here = 0
    outside[0] = False
    for t in range(n - 1):
        nearest, least = -1, np.inf
        for j in range(n):
            if outside[j]:
                d = max(distance_NN[here, j], core_N[here], core_N[j])
                if d < best[j]:
                    best[j] = d
                    source[j] = here
                if nearest < 0 or best[j] < least:
                    nearest, least = j, best[j]
        a[t], b[t], length[t] = source[nearest], nearest, least
        outside[nearest] = False
        here = nearest
    order = np.argsort(length, kind="mergesort")
    return a[order], b[order], length[order]


@kernel()
def join_edges(a, b, length, gini_limit):
    """Turn sorted tree edges into merges.

    While the Gini index of the cluster sizes exceeds ``gini_limit``, the next edge is the shortest at one of the
    smallest clusters (Gagolewski, Bartoszuk and Cena, 2016); with a limit of 1 this is single linkage.
    """
    n = len(a) + 1
    parent = np.arange(n)
    node = np.arange(n)
    size = np.ones(n, dtype=np.int64)
    count = np.zeros(n + 1, dtype=np.int64)
    count[1] = n
    used = np.zeros(n - 1, dtype=np.bool_)
    left, right, height = np.empty(n - 1, np.int64), np.empty(n - 1, np.int64), np.empty(n - 1)
    first = 0
    for t in range(n - 1):
        while used[first]:
            first += 1
        chosen = first
        if gini_limit < 1.0 and t > 0:
            smallest, gini = _inequality(count, n - t, n)
            if gini > gini_limit:
                chosen = first
                while used[chosen] or min(size[_root(parent, a[chosen])], size[_root(parent, b[chosen])]) != smallest:
                    chosen += 1
        used[chosen] = True
        one, other = _root(parent, a[chosen]), _root(parent, b[chosen])
        left[t], right[t], height[t] = node[one], node[other], length[chosen]
        count[size[one]] -= 1
        count[size[other]] -= 1
        parent[other] = one
        size[one] += size[other]
        count[size[one]] += 1
        node[one] = n + t
    return left, right, height


@kernel()
def _root(parent, i):
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@kernel()
def _inequality(count, clusters, n):
    """The smallest cluster size, and the Gini index of the sizes, from how many clusters have each size."""
    smallest, before, total = 0, 0, 0.0
    size = 1
    while before < clusters:
        c = count[size]
        if c > 0:
            if smallest == 0:
                smallest = size
            # ranks before + 1 ... before + c, each times 2, less clusters + 1
            total += size * c * (2.0 * before + c - clusters)
            before += c
        size += 1
    return smallest, total / (n * (clusters - 1.0)) if clusters > 1 else 0.0


@kernel()
def joining_merge(left, right):
    """For every pair of points the merge that joins them (N, N), and the sizes of every merge's two sides."""
    n = len(left) + 1
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
    merge_NN = np.zeros((n, n), dtype=np.int32)
    side = np.empty((n - 1, 2), dtype=np.int64)
    for t in range(n - 1):
        one, other = left[t], right[t]
        side[t, 0], side[t, 1] = sizes[one], sizes[other]
        for p in range(start[one], start[one] + sizes[one]):
            i = leaf[p]
            for q in range(start[other], start[other] + sizes[other]):
                j = leaf[q]
                merge_NN[i, j] = t
                merge_NN[j, i] = t
    return merge_NN, side
