"""How every engine fills empty clusters between iterations.

As in scikit-learn, the rows farthest from their own centres become the new centres, the farthest row for the lowest
empty index. Two refinements make the result a function of the distinct rows and their weights: equal rows move
together, and different rows at equal distance are taken in lexicographic order.
"""

import numpy as np
from scipy import sparse


def refill(X, labels, sq_distances, sums, counts, sample_weight=None) -> bool:
    """Move distant rows into the empty clusters by changing ``sums`` (k, d) and ``counts`` (k,) in place.

    ``sq_distances`` (n,) are those of the rows to their own centres. Rows with a negative label (trimmed) never move,
    nor do rows at distance 0 and the last rows of a cluster. Returns whether anything moved.
    """
    empty = np.flatnonzero(counts <= 0)
    if not empty.size or not len(labels):  # there are no far rows if every row is a centre
        return False
    distances = np.where(np.asarray(labels) >= 0, sq_distances, 0.0)
    moved = 0
    for group in _far_groups(X, distances, len(empty) + len(counts)):
        if moved == len(empty):
            break
        weight = float(len(group)) if sample_weight is None else float(np.sum(sample_weight[group]))
        source = labels[group[0]]
        if counts[source] - weight <= 1e-12 * counts[source]:
            continue
        target = empty[moved]
        row = X[[group[0]]].toarray()[0] if sparse.issparse(X) else np.asarray(X[group[0]])
        row = weight * row.astype(np.float64)
        sums[source] -= row
        counts[source] -= weight
        sums[target] = row
        counts[target] = weight
        moved += 1
    return moved > 0


def _far_groups(X, distances, wanted):
    """Groups of equal rows, the farthest first; at least ``wanted`` groups if there are that many."""
    n = len(distances)
    size = min(n, 2 * wanted)
    while True:
        cut = np.partition(distances, n - size)[n - size]
        rows = np.flatnonzero((distances >= cut) & (distances > 0))
        groups = _groups(X, rows, distances)
        if len(groups) >= wanted or size == n:
            return groups
        size = min(n, 4 * size)


def _groups(X, rows, distances):
    if not rows.size:
        return []
    values = X[rows].toarray() if sparse.issparse(X) else np.asarray(X[rows])
    values = values + 0.0  # -0.0 and 0.0 are one value
    order = np.lexsort((*values.T[::-1], -distances[rows]))
    values = values[order]
    starts = np.flatnonzero(np.r_[True, np.any(values[1:] != values[:-1], axis=1)])
    return np.split(rows[order], starts[1:])
