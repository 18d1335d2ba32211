"""The compiled version of :func:`coterie.zeroshot.features.hierarchies.shortest_tree`.

The array operations of that function take 5 times as long, whether they are compiled or not.
"""

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
