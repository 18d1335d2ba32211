"""The E-step of the lazy engine on a range of rows, compiled serial and without the GIL.

For every row the engine keeps its label, an upper bound on the distance to its own centre, and for every group of
centres a lower bound on the distance to the nearest of them that is not its own. Bounds are stored relative to how
far centres have moved since the start, so a row whose bounds still hold is read and never written. Where a group's
bound falls below the upper bound, the row is scored against the tiles of that group; eight rows share a tile.

Scores are |c|²/2 - x·c on data shifted by the mean. Each carries at most ``slack`` of rounding error, which is added
to every bound; where two scores are closer than that, distances decide, by direct differences in double precision,
and of equal distances the lowest index.
"""

import math

import numpy as np

from coterie.kmeans.lazy.lanes import ROWS, copy_lanes, first_and_second, score_few, score_rows
from coterie.threads import kernel

GROWTH = 5e-7  # a few roundings of a single-precision bound, relative


@kernel(fastmath=True)
def sq_distance(X, i, C, c):
    """Direct squared distance of row ``i`` of ``X`` to row ``c`` of ``C``, in their precision."""
    total = X[i, 0] * 0
    for j in range(X.shape[1]):
        difference = X[i, j] - C[c, j]
        total += difference * difference
    return total


@kernel(fastmath=True)
def exact_sq_distance(X, i, C, c):
    """The same in double precision."""
    total = 0.0
    for j in range(X.shape[1]):
        difference = np.float64(X[i, j]) - np.float64(C[c, j])
        total += difference * difference
    return total


@kernel(fastmath=True)
def _shift_row(X, i, mean, block, p):
    """Put row ``i``, shifted by the mean, into row ``p`` of the block; return its squared norm."""
    total = X[i, 0] * 0
    for j in range(X.shape[1]):
        value = X[i, j] - mean[j]
        block[p, j] = value
        total += value * value
    return total


@kernel(fastmath=True)
def _move_row(X, i, weight, sums, c):
    for j in range(X.shape[1]):
        sums[c, j] += weight * X[i, j]


@kernel(fastmath=True)
def _least_bound(lower, i, group_moved):
    """The smallest lower bound of row ``i`` now."""
    least = np.float32(np.inf)
    for g in range(lower.shape[1]):
        least = min(least, lower[i, g] - group_moved[g])
    return least


@kernel()
def _settle_exactly(X, i, centers, group_of, own_group_bound):
    """Nearest centre of row ``i`` by exact distances, lowest index first; the next one in its group."""
    best, best_sq = 0, np.inf
    for c in range(centers.shape[0]):
        sq = exact_sq_distance(X, i, centers, c)
        if sq < best_sq:
            best, best_sq = c, sq
    second_sq = np.inf
    for c in range(centers.shape[0]):
        if c != best and group_of[c] == group_of[best]:
            second_sq = min(second_sq, exact_sq_distance(X, i, centers, c))
    own_group_bound[0] = math.sqrt(best_sq)
    own_group_bound[1] = math.sqrt(second_sq)
    return best


@kernel()
def assign(
    X,
    weights,
    start,
    stop,
    centers,
    mean,
    tiles,
    offsets,
    tile_index,
    group_of,
    group_begin,
    moved_up,
    moved_down,
    group_moved_up,
    group_moved_down,
    reach,
    labels,
    upper,
    lower,
    sums,
    counts,
    members_of,
    work,
):
    """Assign rows ``start:stop`` anew; add to ``sums``, ``counts``, ``members_of`` what the moves change.

    ``work`` counts rows that moved, scores computed, and rows that distances had to settle.
    """
    n_features = X.shape[1]
    n_groups = lower.shape[1]
    lanes = tiles.shape[2]
    size = max(16, min(512, 16_384 // n_features))
    relative = (n_features + 8) * (5.97e-8 if X.itemsize == 4 else 1.12e-16)

    block = np.empty((size, n_features), X.dtype)
    active = np.empty(size, np.int64)  # row of each place in the block
    own_distance = np.empty(size, np.float64)
    sq_norm = np.empty(size, np.float64)
    best = np.empty(size, X.dtype)  # smallest score so far
    next_best = np.empty(size, X.dtype)  # smallest of the other tiles
    beside_best = np.empty(size, X.dtype)  # smallest of the other tiles in the best one's group
    best_tile = np.empty(size, np.int64)
    best_scores = np.empty((size, lanes), X.dtype)
    group_best = np.empty(size, X.dtype)
    group_next = np.empty(size, X.dtype)
    group_tile = np.empty(size, np.int64)
    lists = np.empty((n_groups, size + ROWS), np.int32)
    length = np.empty(n_groups, np.int64)
    out = np.empty((ROWS, lanes), X.dtype)
    minima = np.empty(16, X.dtype)
    exact = np.empty(2, np.float64)
    infinity = np.inf

    i = start
    while i < stop:
        # Which rows may change, and which groups they must look at.
        n_active = 0
        length[:] = 0
        while i < stop and n_active < size:
            label = labels[i]
            bound = np.inf
            if label >= 0:
                least = _least_bound(lower, i, group_moved_up)
                if least >= upper[i] + moved_up[label]:
                    i += 1
                    continue
                distance = math.sqrt(np.float64(sq_distance(X, i, centers, label)) * (1 + relative))
                upper[i] = distance * (1 + GROWTH) - moved_down[label]
                bound = distance * (1 + GROWTH)
                if least >= bound:
                    i += 1
                    continue
                own_distance[n_active] = distance
            own_group = -1 if label < 0 else group_of[label]
            for g in range(n_groups):
                if g == own_group or label < 0 or lower[i, g] - group_moved_up[g] < bound:
                    lists[g, length[g]] = n_active
                    length[g] += 1
            sq_norm[n_active] = _shift_row(X, i, mean, block, n_active)
            active[n_active] = i
            best[n_active] = infinity
            next_best[n_active] = infinity
            n_active += 1
            i += 1

        # Score them, group by group.
        for g in range(n_groups):
            count = length[g]
            if count == 0:
                continue
            for q in range(ROWS):  # a batch that is not full repeats its last row
                lists[g, count + q] = lists[g, count - 1]
            for t in range(group_begin[g], group_begin[g + 1]):
                work[1] += count * lanes
                for first in range(0, count, ROWS):
                    n_rows = min(ROWS, count - first)
                    if n_rows > ROWS // 2:
                        score_rows(block, lists[g], first, tiles, offsets, t, out, minima)
                    else:
                        score_few(block, lists[g], first, tiles, offsets, t, out, minima)
                    for r in range(n_rows):
                        p = lists[g, first + r]
                        score = minima[r]
                        if t == group_begin[g]:
                            group_best[p] = infinity
                            group_next[p] = infinity
                        if score < group_best[p]:
                            group_next[p] = group_best[p]
                            group_best[p] = score
                            group_tile[p] = t
                            if score < best[p]:
                                copy_lanes(out, r, best_scores, p)
                        elif score < group_next[p]:
                            group_next[p] = score
            for q in range(count):
                p = lists[g, q]
                score = group_best[p]
                if score < best[p]:
                    next_best[p] = min(best[p], group_next[p])
                    beside_best[p] = group_next[p]
                    best[p] = score
                    best_tile[p] = group_tile[p]
                elif score < next_best[p]:
                    next_best[p] = score
                slack = relative * (reach * math.sqrt(sq_norm[p]) + 0.5 * reach * reach)
                sq = 2 * (np.float64(score) - slack) + sq_norm[p] * (1 - relative)
                distance = math.sqrt(max(sq, 0.0))
                lower[active[p], g] = distance * (1 - GROWTH) + group_moved_down[g]

        # Take the best; where rounding might decide, let exact distances do so.
        for p in range(n_active):
            row = active[p]
            old = labels[row]
            lane, second = first_and_second(best_scores, p)
            slack = relative * (reach * math.sqrt(sq_norm[p]) + 0.5 * reach * reach)
            if min(second, next_best[p]) - best[p] <= 2 * slack:
                work[2] += 1
                new = _settle_exactly(X, row, centers, group_of, exact)
                distance, second_distance = exact[0], exact[1]
            else:
                new = tile_index[best_tile[p], lane]
                if new == old:
                    distance = own_distance[p]
                else:
                    sq = 2 * (np.float64(best[p]) + slack) + sq_norm[p] * (1 + relative)
                    distance = math.sqrt(max(sq, 0.0))
                sq = 2 * (np.float64(min(second, beside_best[p])) - slack) + sq_norm[p] * (1 - relative)
                second_distance = math.sqrt(max(sq, 0.0))
            own_group = group_of[new]
            lower[row, own_group] = second_distance * (1 - GROWTH) + group_moved_down[own_group]
            if new != old or old < 0:
                upper[row] = distance * (1 + GROWTH) - moved_down[new]
                labels[row] = new
                work[0] += 1
                weight = weights[row] if weights.shape[0] else 1.0
                _move_row(X, row, weight, sums, new)
                counts[new] += weight
                members_of[new] += 1
                if old >= 0:
                    _move_row(X, row, -weight, sums, old)
                    counts[old] -= weight
                    members_of[old] -= 1


@kernel()
def own_sq_distances(X, start, stop, centers, labels, out):
    for i in range(start, stop):
        out[i] = exact_sq_distance(X, i, centers, labels[i])


@kernel()
def add_rows(X, weights, start, stop, labels, sums, counts):
    for i in range(start, stop):
        weight = weights[i] if weights.shape[0] else 1.0
        _move_row(X, i, weight, sums, labels[i])
        counts[labels[i]] += weight


@kernel(fastmath=True)
def inertia_of(X, weights, start, stop, centers, labels):
    """Weighted sum of squared distances to the own centres; rows in their precision, the sum in double."""
    total = 0.0
    for i in range(start, stop):
        weight = weights[i] if weights.shape[0] else 1.0
        total += weight * np.float64(sq_distance(X, i, centers, labels[i]))
    return total
