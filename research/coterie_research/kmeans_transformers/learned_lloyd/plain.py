"""Plain bodies of k-means heuristics for small data in memory: what a user could run instead of learned Lloyd.

All take points (n, d) and centres (k, d) as float64, change the centres in place and return the final inertia. They
share one assignment and one update, so that seconds compare algorithms and not implementations.
"""

import math

import numpy as np

from coterie.threads import kernel

LOOSE = {"reassoc", "contract", "nsz"}
MAX_ITER = 300


@kernel(fastmath=LOOSE)
def sq_distance(X, i, C, c):
    total = 0.0
    for j in range(X.shape[1]):
        difference = X[i, j] - C[c, j]
        total += difference * difference
    return total


@kernel()
def assign(X, C, labels, first, second):
    """The nearest centre of every point, the squared distances to it and to the second nearest; returns the inertia."""
    inertia = 0.0
    for i in range(len(X)):
        best, other, label = math.inf, math.inf, 0
        for c in range(len(C)):
            sq = sq_distance(X, i, C, c)
            if sq < best:
                best, other, label = sq, best, c
            elif sq < other:
                other = sq
        labels[i], first[i], second[i] = label, best, other
        inertia += best
    return inertia


@kernel()
def update(X, labels, C):
    """Move every centre to the mean of its points. A centre without points does not move."""
    count = np.zeros(len(C))
    total = np.zeros(C.shape)
    for i in range(len(X)):
        count[labels[i]] += 1
        for j in range(X.shape[1]):
            total[labels[i], j] += X[i, j]
    for c in range(len(C)):
        if count[c]:
            for j in range(X.shape[1]):
                C[c, j] = total[c, j] / count[c]
    return count


@kernel()
def lloyd(X, C):
    """Lloyd's algorithm until the inertia no longer falls."""
    n = len(X)
    labels, first, second = np.zeros(n, np.int64), np.empty(n), np.empty(n)
    inertia = assign(X, C, labels, first, second)
    for _ in range(MAX_ITER):
        update(X, labels, C)
        before, inertia = inertia, assign(X, C, labels, first, second)
        if inertia >= before * (1 - 1e-9):
            break
    return inertia


@kernel()
def greedy_start(X, n_clusters, rng):
    """Greedy k-means++ (Arthur and Vassilvitskii, 2007): of 2 + log k candidates the best is taken."""
    n, n_candidates = len(X), 2 + int(math.log(n_clusters))
    C = np.empty((n_clusters, X.shape[1]))
    C[0] = X[rng.integers(0, n)]
    nearest = np.empty(n)
    for i in range(n):
        nearest[i] = sq_distance(X, i, C, 0)
    sq, chosen = np.empty(n), np.empty(n)
    for c in range(1, n_clusters):
        lowest = math.inf
        for _ in range(n_candidates):
            at = drawn(nearest, rng)
            total = 0.0
            for i in range(n):
                sq[i] = min(nearest[i], sq_distance(X, i, X, at))
                total += sq[i]
            if total < lowest:
                lowest, C[c] = total, X[at]
                chosen[:] = sq
        nearest[:] = chosen
    return C


@kernel()
def drawn(mass, rng):
    """An index with probability proportional to ``mass``."""
    target, reach = rng.random() * mass.sum(), 0.0
    for i in range(len(mass)):
        reach += mass[i]
        if reach > target:
            return i
    return len(mass) - 1


@kernel()
def hartigan(X, C):
    """Lloyd's algorithm, then single transfers until none lowers the inertia (Hartigan and Wong, 1979)."""
    lloyd(X, C)
    n, d = X.shape
    labels, first, second = np.zeros(n, np.int64), np.empty(n), np.empty(n)
    assign(X, C, labels, first, second)
    count = update(X, labels, C)
    moved = True
    while moved:
        moved = False
        for i in range(n):
            a = labels[i]
            if count[a] <= 1:
                continue
            saved = count[a] / (count[a] - 1) * sq_distance(X, i, C, a) * (1 - 1e-12)
            best, to = saved, a
            for c in range(len(C)):
                cost = count[c] / (count[c] + 1) * sq_distance(X, i, C, c) if c != a else math.inf
                if cost < best:
                    best, to = cost, c
            if to != a:
                moved = True
                labels[i] = to
                for j in range(d):
                    C[a, j] += (C[a, j] - X[i, j]) / (count[a] - 1)
                    C[to, j] += (X[i, j] - C[to, j]) / (count[to] + 1)
                count[a] -= 1
                count[to] += 1
    return assign(X, C, labels, first, second)


@kernel()
def local_search(X, C, rng, n_steps):
    """LS++ (Lattanzi and Sohler, 2019): swap a centre for a point drawn by D², if that helps; then Lloyd."""
    n = len(X)
    labels, first, second = np.zeros(n, np.int64), np.empty(n), np.empty(n)
    inertia = assign(X, C, labels, first, second)
    extra = np.empty(len(C))
    for _ in range(n_steps):
        at = drawn(first, rng)
        extra[:] = 0.0
        base = 0.0
        for i in range(n):
            sq = sq_distance(X, i, X, at)
            kept = min(sq, first[i])
            base += kept
            extra[labels[i]] += min(sq, second[i]) - kept
        out = np.argmin(extra)
        if base + extra[out] < inertia:
            C[out] = X[at]
            inertia = assign(X, C, labels, first, second)
    return lloyd(X, C)


@kernel()
def breathing(X, C, rng, deepest):
    """Breathing k-means (Fritzke, 2020): add m centres where the error is large, remove the m least useful ones.

    m falls by one, from ``deepest``, whenever a breath does not lower the inertia. Centres near a removed one are kept,
    as long as enough others are left.
    """
    n, d = X.shape
    k = len(C)
    labels, first, second = np.zeros(n, np.int64), np.empty(n), np.empty(n)
    lowest = lloyd(X, C)
    now, m = C.copy(), min(deepest, k)
    while m > 0:
        assign(X, now, labels, first, second)
        error = np.zeros(k)
        for i in range(n):
            error[labels[i]] += first[i]
        step = 0.01 * math.sqrt(error.sum() / n / d)
        more = np.empty((k + m, d))
        more[:k] = now
        for a, c in enumerate(np.argsort(-error)[:m]):
            for j in range(d):
                more[k + a, j] = now[c, j] + step * rng.standard_normal()
        lloyd(X, more)
        now = _without(X, more, m, labels, first, second)
        inertia = lloyd(X, now)
        if inertia < lowest * (1 - 1e-4):
            lowest = inertia
            C[:] = now
        else:
            m -= 1
    return lowest


@kernel()
def _without(X, C, m, labels, first, second):
    """The centres without the ``m`` least useful, whose points have another centre at nearly the same distance."""
    assign(X, C, labels, first, second)
    useful = np.zeros(len(C))
    for i in range(len(X)):
        useful[labels[i]] += second[i] - first[i]
    removed, frozen = np.zeros(len(C), np.bool_), np.zeros(len(C), np.bool_)
    left, free = m, len(C)
    while left:
        best, at = math.inf, -1
        for c in range(len(C)):
            if not removed[c] and (not frozen[c] or free <= left) and useful[c] < best:
                best, at = useful[c], c
        removed[at] = True
        left -= 1
        near, nearest = math.inf, -1
        for c in range(len(C)):
            if c != at and not removed[c]:
                sq = sq_distance(C, at, C, c)
                if sq < near:
                    near, nearest = sq, c
        if not frozen[at]:
            free -= 1
        if nearest >= 0 and not frozen[nearest]:
            frozen[nearest] = True
            free -= 1
    kept = np.empty((len(C) - m, C.shape[1]))
    at = 0
    for c in range(len(C)):
        if not removed[c]:
            kept[at] = C[c]
            at += 1
    return kept
