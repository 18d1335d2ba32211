"""The compiled part of :mod:`coterie.kmeans.transport`: shortest augmenting paths between k clusters and a sink.

Rows with the lowest sum of cost and price are a cheapest plan for the sizes that they have. Rows of too large clusters
then move, each along the cheapest path, until all sizes are within their bounds; the prices follow, so that the plan
stays a cheapest one (Ahuja, Magnanti and Orlin 1993, section 9.7). The graph has k + 1 nodes however many rows there
are: the edge from a to b is the row of a whose move to b costs least, and the sink takes each cluster's rows within its
bounds.
"""

import numpy as np

from coterie.threads import kernel


@kernel(inner=True)
def _insert(a, b, row, key, rows, keys, first, stop, bound):
    """Add a row of a to the cheapest ones to move to b. Rows with a key of ``bound`` or more are not listed."""
    if key >= bound[a, b]:
        return
    depth = rows.shape[2]
    if stop[a, b] - first[a, b] == depth:
        last = keys[a, b, stop[a, b] - 1]
        if key >= last:
            bound[a, b] = key
            return
        bound[a, b] = last
        stop[a, b] -= 1
    elif stop[a, b] == depth:
        kept = stop[a, b] - first[a, b]
        for t in range(kept):
            rows[a, b, t] = rows[a, b, first[a, b] + t]
            keys[a, b, t] = keys[a, b, first[a, b] + t]
        first[a, b], stop[a, b] = 0, kept
    t = stop[a, b]
    while t > first[a, b] and keys[a, b, t - 1] > key:
        rows[a, b, t], keys[a, b, t] = rows[a, b, t - 1], keys[a, b, t - 1]
        t -= 1
    rows[a, b, t], keys[a, b, t] = row, key
    stop[a, b] += 1


@kernel(inner=True)
def _list(a, low_b, high_b, cost_NK, head, following, rows, keys, first, stop, bound):
    """List the rows of a that move most cheaply to the clusters from ``low_b`` to ``high_b``."""
    for b in range(low_b, high_b):
        first[a, b], stop[a, b], bound[a, b] = 0, 0, np.inf
    row = head[a]
    while row >= 0:
        own = cost_NK[row, a]
        for b in range(low_b, high_b):
            if b != a:
                _insert(a, b, row, cost_NK[row, b] - own, rows, keys, first, stop, bound)
        row = following[row]


@kernel(inner=True)
def _edges_from(a, edge, cost_NK, labels, head, following, rows, keys, first, stop, bound):
    """Set the costs of the edges from a; the row of an edge is then the first of its list."""
    for b in range(len(cost_NK[0])):
        edge[a, b] = np.inf
        while a != b and edge[a, b] == np.inf:
            while first[a, b] < stop[a, b] and labels[rows[a, b, first[a, b]]] != a:
                first[a, b] += 1
            if first[a, b] < stop[a, b]:
                edge[a, b] = keys[a, b, first[a, b]]
            elif bound[a, b] == np.inf:
                break
            else:
                _list(a, b, b + 1, cost_NK, head, following, rows, keys, first, stop, bound)


@kernel(inner=True)
def _nearest_open(distance, closed):
    found = -1
    for v in range(len(distance)):
        if not closed[v] and distance[v] < np.inf and (found < 0 or distance[v] < distance[found]):
            found = v
    return found


@kernel()
def settle(cost_NK, labels, potential, low, high, depth, final):
    """Change labels (n,) and potentials (k + 1,) until every cluster has from ``low`` to ``high`` rows.

    The labels must be those of the lowest cost less potential. With ``final`` the potentials are then moved to the
    middle of all that belong to these labels, so that as few rows as possible are on an edge.
    """
    n, k = cost_NK.shape
    sink = k
    head, following, before = np.full(k, -1, np.int32), np.full(n, -1, np.int32), np.full(n, -1, np.int32)
    excess, flow = np.zeros(k + 1, np.int64), np.zeros(k, np.int64)
    for row in range(n - 1, -1, -1):
        a = labels[row]
        following[row] = head[a]
        if head[a] >= 0:
            before[head[a]] = row
        head[a] = row
        excess[a] += 1
    for a in range(k):
        price = potential[sink] - potential[a]
        within = min(max(excess[a], low[a]), high[a])
        flow[a] = high[a] if price > 0 else (low[a] if price < 0 else within)
        excess[a] -= flow[a]
        excess[sink] += flow[a]
    excess[sink] -= n
    rows, keys = np.empty((k, k, depth), np.int32), np.empty((k, k, depth))
    first, stop, bound = np.zeros((k, k), np.int64), np.zeros((k, k), np.int64), np.empty((k, k))
    edge, listed, current = np.full((k + 1, k + 1), np.inf), np.zeros(k, np.bool_), np.zeros(k, np.bool_)
    distance, closed = np.empty(k + 1), np.empty(k + 1, np.bool_)
    parent = np.empty(k + 1, np.int64)
    while True:
        some = False
        for v in range(k + 1):
            distance[v], closed[v], parent[v] = np.inf, False, -1
            if excess[v] > 0:
                distance[v], some = 0.0, True
        if not some:
            break
        while True:
            u = _nearest_open(distance, closed)
            if u < 0:
                return False
            if excess[u] < 0:
                break
            closed[u] = True
            if u == sink:
                for v in range(k):
                    if flow[v] > low[v] and not closed[v]:
                        there = distance[u] + max(0.0, potential[u] - potential[v])
                        if there < distance[v]:
                            distance[v], parent[v] = there, u
                continue
            if not listed[u]:
                _list(u, 0, k, cost_NK, head, following, rows, keys, first, stop, bound)
                listed[u] = True
            if not current[u]:
                _edges_from(u, edge, cost_NK, labels, head, following, rows, keys, first, stop, bound)
                current[u] = True
            for v in range(k):
                if not closed[v]:
                    there = distance[u] + max(0.0, edge[u, v] + potential[u] - potential[v])
                    if there < distance[v]:
                        distance[v], parent[v] = there, u
            if flow[u] < high[u] and not closed[sink]:
                there = distance[u] + max(0.0, potential[u] - potential[sink])
                if there < distance[sink]:
                    distance[sink], parent[sink] = there, u
        end = distance[u]
        for v in range(k + 1):
            if closed[v]:
                potential[v] += distance[v] - end
        excess[u] += 1
        while parent[u] >= 0:
            a, b = parent[u], u
            u = a
            if b == sink:
                flow[a] += 1
                continue
            if a == sink:
                flow[b] -= 1
                continue
            row = rows[a, b, first[a, b]]
            if before[row] >= 0:
                following[before[row]] = following[row]
            else:
                head[a] = following[row]
            if following[row] >= 0:
                before[following[row]] = before[row]
            following[row], before[row] = head[b], -1
            if head[b] >= 0:
                before[head[b]] = row
            head[b] = row
            labels[row] = b
            current[a], current[b] = False, False
            if listed[b]:
                for v in range(k):
                    if v != b:
                        _insert(b, v, row, cost_NK[row, v] - cost_NK[row, b], rows, keys, first, stop, bound)
        excess[u] -= 1
    if final:
        edge = np.full((k + 1, k + 1), np.inf)
        for a in range(k):
            if not listed[a]:
                _list(a, 0, k, cost_NK, head, following, rows, keys, first, stop, bound)
            _edges_from(a, edge, cost_NK, labels, head, following, rows, keys, first, stop, bound)
            edge[a, sink] = 0.0 if flow[a] < high[a] else np.inf
            edge[sink, a] = 0.0 if flow[a] > low[a] else np.inf
        _to_the_middle(edge, potential)
    return True


@kernel(inner=True)
def _to_the_middle(edge, potential):
    """Add to the potentials the mean, over all nodes, of the lengths of the shortest paths from that node."""
    n = len(edge)
    distance, closed, change = np.empty(n), np.empty(n, np.bool_), np.zeros(n)
    for root in range(n):
        distance[:], closed[:] = np.inf, False
        distance[root] = 0.0
        farthest = 0.0
        while True:
            u = _nearest_open(distance, closed)
            if u < 0:
                break
            closed[u], farthest = True, distance[u]
            for v in range(n):
                distance[v] = min(distance[v], distance[u] + max(0.0, edge[u, v] + potential[u] - potential[v]))
        change += np.minimum(distance, farthest) / n
    potential += change
