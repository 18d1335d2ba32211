"""Distances from differences, bounds on their rounding errors, and plain passes over a range of rows."""

import math

import numpy as np

from coterie.kmeans.lazy.lanes import STRETCH
from coterie.threads import kernel

LOOSE = {"reassoc", "contract", "nsz", "nnan"}  # sums in any order; infinities keep their meaning
GROWTH = 5e-7  # a few roundings of a single-precision bound, relative


@kernel(fastmath=LOOSE, forceinline=True, inner=True)
def sq_distance(X, i, C, c):
    """Squared distance of row ``i`` of ``X`` to row ``c`` of ``C`` from the differences, in their precision."""
    total = X[i, 0] * 0
    for j in range(X.shape[1]):
        difference = X[i, j] - C[c, j]
        total += difference * difference
    return total


@kernel(fastmath=LOOSE, inner=True)
def exact_sq_distance(X, i, C, c):
    """The same as ``sq_distance`` in double precision."""
    total = 0.0
    for j in range(X.shape[1]):
        difference = np.float64(X[i, j]) - np.float64(C[c, j])
        total += difference * difference
    return total


@kernel(fastmath=LOOSE, forceinline=True, inner=True)
def add_row(X, i, weight, sums, c):
    for j in range(X.shape[1]):
        sums[c, j] += weight * X[i, j]


@kernel(forceinline=True, inner=True)
def move_row(X, i, weight, old, new, sums, counts, members):
    """Count row i in the cluster ``new`` instead of ``old``, which is negative for a row that had no cluster."""
    add_row(X, i, weight, sums, new)
    counts[new] += weight
    members[new] += 1
    if old >= 0:
        add_row(X, i, -weight, sums, old)
        counts[old] -= weight
        members[old] -= 1


@kernel(forceinline=True, inner=True)
def rounding(X):
    """Bound on the relative rounding error of a sum of products over the coordinates.

    The products are summed in stretches, or in many lanes at once. The bound includes a few more operations.
    """
    n_terms = min(X.shape[1], STRETCH) + X.shape[1] // 16 + 16
    return n_terms * (5.97e-8 if X.itemsize == 4 else 1.12e-16)


@kernel()
def half_distances(centers, error, start, stop, group_of, out):
    """Lower bounds on half the distance from centres ``start:stop`` to the nearest other centre of every group."""
    shrink = 0.5 * (1 - GROWTH) * (1 - rounding(centers))
    for a in range(start, stop):
        out[a] = np.inf
        for c in range(centers.shape[0]):
            if c != a:
                g = group_of[c]
                out[a, g] = min(out[a, g], sq_distance(centers, a, centers, c))
        for g in range(out.shape[1]):
            out[a, g] = max(math.sqrt(np.float64(out[a, g])) * shrink - error, 0.0)


@kernel()
def own_sq_distances(X, start, stop, centers, labels, out):
    for i in range(start, stop):
        out[i] = exact_sq_distance(X, i, centers, np.int64(labels[i]))


@kernel()
def grouped_by_label(labels, values, begin):
    """The values (n,) of all rows, those of label c from ``begin[c]`` on."""
    place = begin.copy()
    out = np.empty_like(values)
    for i in range(len(labels)):
        out[place[labels[i]]] = values[i]
        place[labels[i]] += 1
    return out


@kernel()
def add_rows(X, weights, start, stop, labels, sums, counts):
    for i in range(start, stop):
        weight = weights[i] if weights.shape[0] else 1.0
        label = np.int64(labels[i])  # as in other kernels: every type of an argument is compiled anew
        add_row(X, i, weight, sums, label)
        counts[label] += weight


@kernel()
def inertia_of(X, weights, start, stop, centers, labels):
    """Weighted sum of squared distances to the own centres: rows in their precision, the sum in double precision."""
    total = 0.0
    for i in range(start, stop):
        weight = weights[i] if weights.shape[0] else 1.0
        total += weight * np.float64(sq_distance(X, i, centers, np.int64(labels[i])))
    return total
