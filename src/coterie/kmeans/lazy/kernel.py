"""The E-step of the lazy engine on a range of rows, compiled as serial code without the GIL.

For every row the engine keeps its label, an upper bound on the distance to its own centre and, for every group of
centres, a lower bound on the distance to the nearest of them other than its own. Bounds are stored relative to the
moves of the centres since the start, so a row whose bounds still hold is read but not written. If the bound of a group
is below the upper bound, the row is scored against the tiles of that group. Several rows share a tile.

Scores are |c|²/2 - x·c on data shifted by the mean. Each score has a rounding error of at most ``slack``, which every
bound takes into account. If two scores are closer than that, exact distances decide, from differences in double
precision, and in a tie the lowest index.
"""

import math
from typing import NamedTuple

import numpy as np

from coterie.kmeans.lazy.dense_scores import shift
from coterie.kmeans.lazy.distances import GROWTH, LOOSE, exact_sq_distance, move_row, rounding, sq_distance
from coterie.kmeans.lazy.lanes import CHUNK, ROWS
from coterie.kmeans.lazy.llvm import first_and_second, prefetch, score_few, score_rows
from coterie.threads import kernel

STRIP = 64  # rows screened at a time where there is one group


class Rows(NamedTuple):
    """What is kept of every row."""

    labels: np.ndarray  # (n,) -1 before the first assignment
    upper: np.ndarray  # (n,) bound on the distance to the own centre, less how far that centre had moved
    lower: np.ndarray  # (n, groups) bound on the distance to the others of a group, plus how far it had moved


class Centers(NamedTuple):
    """The centres of one iteration, arranged for the kernel."""

    exact: np.ndarray  # (k, d) in double precision
    near: np.ndarray  # (k, d) in the precision of the rows
    error: float  # the largest distance between the two
    mean: np.ndarray  # (d,) shift of rows and centres
    tiles: np.ndarray  # (tiles, d, lanes) shifted centres, negated
    offsets: np.ndarray  # (tiles, lanes) half their squared norms
    reach: float  # their largest norm
    tile_index: np.ndarray  # (tiles, lanes)
    group_begin: np.ndarray  # (groups + 1,) first tile of each group
    group_of: np.ndarray  # (k,)
    between: np.ndarray  # (k, groups) half the distance from a centre to the nearest other one of a group, or 0
    moved_up: np.ndarray  # (k,) how far each centre has moved since the start, rounded up and down
    moved_down: np.ndarray
    group_moved_up: np.ndarray  # (groups,)
    group_moved_down: np.ndarray


class Changes(NamedTuple):
    """What an assignment of a part of the rows changed."""

    sums: np.ndarray  # (k, d)
    counts: np.ndarray  # (k,)
    members: np.ndarray  # (k,) rows, whatever their weights
    work: np.ndarray  # rows moved, scores computed, rows that exact distances settled


class Block(NamedTuple):
    """Rows that are being processed by the kernel."""

    values: np.ndarray  # (size, d) shifted rows
    row: np.ndarray  # (size,) where they stand in X
    slack: np.ndarray  # (size,) rounding error of a score
    below: np.ndarray  # (size,) added to twice a score, a lower bound on the squared distance
    own: np.ndarray  # (size,) distance to the own centre
    best: np.ndarray  # (size,) smallest score so far
    second: np.ndarray  # (size,) smallest of the other tiles
    tile: np.ndarray  # (size,) where the smallest score is; -1 for the own centre
    scores: np.ndarray  # (size * tiles, lanes) the scores
    minima: np.ndarray  # (size + ROWS,) the smallest score of the tile at hand, by place in the list of its group
    lists: np.ndarray  # (groups * (size + ROWS),) places in the block that look at each group
    length: np.ndarray  # (groups,)
    flags: np.ndarray  # (STRIP,) bytes


@kernel(fastmath=LOOSE, forceinline=True, inner=True)
def _least_bound(lower, i, group_moved, between, label):
    """A lower bound on the distance of row ``i`` to any other centre.

    A centre that is twice as far from the row's own centre as the row itself is not nearer to the row (triangle
    inequality). So half the distance between centres is a bound as well.
    """
    least = np.float32(np.inf)
    for g in range(lower.shape[1]):
        least = min(least, max(lower[i, g] - group_moved[g], between[label, g]))
    return least


@kernel(fastmath=LOOSE, forceinline=True, inner=True)
def flag_strip(labels, upper, lower, start, stop, group_moved, between, moved_up, flags):
    """Flag the rows of a strip whose single bound no longer holds."""
    for i in range(start, stop):
        label = labels[i]
        bound = max(lower[i, 0] - group_moved, between[label, 0])
        flags[i - start] = bound < upper[i] + moved_up[label]


@kernel(inner=True)
def flagged(labels, upper, lower, start, stop, group_moved, between, moved_up, flags, words, places):
    """Write to ``places`` the rows, strip by strip, whose single bound no longer holds, until it is full.

    Return their number, and the first row that was not looked at. ``words`` are the flags, eight at a time.
    """
    count = np.int64(0)  # not a literal, for which all that follows would be compiled as well
    while start < stop and count + STRIP <= len(places):
        end = min(stop, start + STRIP)
        flag_strip(labels, upper, lower, start, end, group_moved, between, moved_up, flags)
        for word in range(STRIP // 8):
            if words[word] != 0:
                for q in range(8 * word, min(8 * word + 8, end - start)):
                    places[count] = start + q
                    count += flags[q]
        start = end
    return count, start


@kernel(inner=True)
def _screen(X, start, stop, rows, centers, block):
    """Fill the block with rows whose label may change. Return their number and the first row not yet screened."""
    labels, upper, lower = rows
    near, error, between = centers.near, centers.error, centers.between
    moved_up, moved_down, group_moved_up = centers.moved_up, centers.moved_down, centers.group_moved_up
    row_of, own_of, flags = block.row, block.own, block.flags
    size = len(row_of)
    n_found = np.int64(0)
    i = start
    plain = lower.shape[1] > 1 or size < 2 * STRIP or labels[start] < 0
    while i < stop and n_found < size and plain:  # on what is stored
        label = labels[i]
        least = _least_bound(lower, i, group_moved_up, between, max(label, 0))
        row_of[n_found] = i
        n_found += label < 0 or not least >= upper[i] + moved_up[label]
        i += 1
    if not plain:  # the same for one group, many rows at once
        words = flags.view(np.uint64)
        n_found, i = flagged(labels, upper, lower, i, stop, group_moved_up[0], between, moved_up, flags, words, row_of)
    n_active = 0
    wide = X.shape[1] * X.itemsize >= 512
    growth = (1 + rounding(X)) * (1 + GROWTH)
    for q in range(n_found):  # on the distance as it is now
        if wide and q + 1 < n_found:
            prefetch(X, row_of[q + 1])
        row = row_of[q]
        label = labels[row]
        least = _least_bound(lower, row, group_moved_up, between, max(label, 0))
        distance = np.inf
        if label >= 0:
            distance = math.sqrt(np.float64(sq_distance(X, row, near, label)))
            upper[row] = distance * growth + error - moved_down[label]
        row_of[n_active] = row
        own_of[n_active] = distance
        n_active += label < 0 or not least >= distance * growth + error
    return n_active, i


@kernel(inner=True)
def _gather(X, n_active, rows, centers, block):
    """Copy the shifted active rows into the block, and list the groups that each must be scored against."""
    labels, lower = rows.labels, rows.lower
    mean, reach, error, group_of = centers.mean, centers.reach, centers.error, centers.group_of
    between, group_moved_up = centers.between, centers.group_moved_up
    values, row_of, slack_of, below_of, own_of, best_of, second_of, tile_of, _, _, lists, length, _ = block
    n_groups = len(length)
    stride = len(row_of) + ROWS
    relative = rounding(X)
    growth = (1 + relative) * (1 + GROWTH)
    length[:] = 0
    for p in range(n_active):
        row = row_of[p]
        label = labels[row]
        own = own_of[p]
        most = own * growth + error
        for g in range(n_groups):
            bound = lower[row, g] - group_moved_up[g]
            if label >= 0:
                bound = max(bound, between[label, g])
            lists[g * stride + length[g]] = p
            length[g] += not bound >= most
        sq_norm = shift(X, row, mean, values, p)
        farthest = math.sqrt(sq_norm) + reach
        slack = (relative * farthest + error) * farthest
        slack_of[p] = slack
        below_of[p] = sq_norm * (1 - relative) - 2 * slack
        best_of[p] = np.inf
        if label >= 0:
            g = group_of[label]
            listed = length[g] > 0 and lists[g * stride + length[g] - 1] == p
            if not listed:  # the own centre will not be scored; its distance is known
                best_of[p] = 0.5 * (own * own - sq_norm)
        second_of[p] = np.inf
        tile_of[p] = -1


@kernel(fastmath=LOOSE, forceinline=True, inner=True)
def _note(p, q, t, minima, below, best, second, tile):
    """Note ``minima[q]``, the smallest score of tile ``t``, for row ``p``; replace it by the distance it implies."""
    score, before = minima[q], best[p]
    second[p] = min(second[p], max(before, score))
    best[p] = min(before, score)
    tile[p] = t if score < before else tile[p]
    minima[q] = math.sqrt(max(score + score + below[p], score * 0))


@kernel(fastmath=LOOSE, inner=True)
def _note_all(count, t, minima, below, best, second, tile):
    for p in range(count):
        _note(p, p, t, minima, below, best, second, tile)


@kernel(inner=True)
def _score(n_active, rows, centers, block, changes):
    """Score the block against the tiles of every group on its list, and update the bounds of the groups."""
    lower, work = rows.lower, changes.work
    tiles, offsets = centers.tiles, centers.offsets
    group_begin, group_moved_down = centers.group_begin, centers.group_moved_down
    values, row_of, _, below_of, _, best_of, second_of, tile_of, scores, minima, lists, length, _ = block
    stride = len(row_of) + ROWS
    n_features = values.shape[1]
    shrink = np.float32(1 - GROWTH)
    for g in range(len(length)):
        count = length[g]
        if count == 0:
            continue
        at = g * stride
        for q in range(ROWS):  # a batch that is not full repeats its last row
            lists[at + count + q] = lists[at + count - 1]
        begin = group_begin[g]
        moved = group_moved_down[g]
        for t in range(begin, group_begin[g + 1]):
            work[1] += count * scores.shape[1]
            for chunk in range(0, n_features, CHUNK):
                for first in range(0, count, ROWS):
                    if count - first > ROWS // 2:
                        score_rows(values, lists, at, first, tiles, offsets, t, chunk, scores, minima)
                    else:
                        score_few(values, lists, at, first, tiles, offsets, t, chunk, scores, minima)
            if count == n_active:  # many rows at once
                _note_all(count, t, minima, below_of, best_of, second_of, tile_of)
            else:
                for q in range(count):
                    _note(lists[at + q], q, t, minima, below_of, best_of, second_of, tile_of)
            for q in range(count):
                row = row_of[lists[at + q]]
                bound = np.float32(minima[q]) * shrink + moved
                lower[row, g] = bound if t == begin else min(bound, lower[row, g])


@kernel(inner=True)
def _settle(X, i, centers, slack, guess, distances):
    """The nearest centre of row ``i`` by exact distances, its distance, and the next distance in its group.

    In a tie it is the centre with the lowest index.
    """
    exact, near, group_of = centers.exact, centers.near, centers.group_of
    best, best_sq = guess, exact_sq_distance(X, i, exact, guess)
    for c in range(exact.shape[0]):
        if np.float64(sq_distance(X, i, near, c)) - 2 * slack <= best_sq:
            sq = exact_sq_distance(X, i, exact, c)
            if sq < best_sq or (sq == best_sq and c < best):
                best, best_sq = c, sq
    second_sq = np.inf
    for c in range(exact.shape[0]):
        if c != best and group_of[c] == group_of[best]:
            second_sq = min(second_sq, np.float64(sq_distance(X, i, near, c)) - 2 * slack)
    distances[0] = math.sqrt(best_sq)
    distances[1] = math.sqrt(max(second_sq, 0.0))
    return best


@kernel(inner=True)
def _take(X, weights, n_active, rows, centers, block, distances, changes):
    """Assign every row of the block to its best centre. Exact distances decide where rounding could."""
    labels, upper, lower = rows
    sums, counts, members, work = changes
    tile_index, group_of, error = centers.tile_index, centers.group_of, centers.error
    moved_down, group_moved_down = centers.moved_down, centers.group_moved_down
    _, row_of, slack_of, below_of, own_of, best_of, second_of, tile_of, scores, _, _, length, _ = block
    n_tiles = centers.tiles.shape[0]
    one_tile = centers.group_begin[-1] == len(length)  # a group is a tile
    relative = rounding(X)
    for p in range(n_active):
        row = row_of[p]
        old = np.int64(labels[row])
        slack = slack_of[p]
        lane, second = 0, second_of[p]
        if tile_of[p] >= 0:
            lane, beside = first_and_second(scores, p * n_tiles + tile_of[p], best_of[p])
            second = min(second, beside)
        if second - best_of[p] <= 2 * slack:
            work[2] += 1
            guess = old if tile_of[p] < 0 else tile_index[tile_of[p], lane]
            new = _settle(X, row, centers, slack, guess, distances)
            distance, second_distance = distances[0], distances[1]
        elif tile_of[p] < 0:
            continue
        else:
            new = tile_index[tile_of[p], lane]
            if one_tile:
                second = beside
            distance = math.sqrt(max(2 * np.float64(best_of[p]) + below_of[p] + 6 * slack, 0.0))
            second_distance = math.sqrt(max(2 * np.float64(second) + below_of[p], 0.0))
        group = group_of[new]
        if new != old and old >= 0:
            left = group_of[old]
            bound = np.float32(max(own_of[p] * (1 - relative) - error, 0.0) * (1 - GROWTH))
            lower[row, left] = min(lower[row, left], bound + group_moved_down[left])
        lower[row, group] = second_distance * (1 - GROWTH) + group_moved_down[group]
        if new != old:
            upper[row] = distance * (1 + GROWTH) - moved_down[new]
            labels[row] = new
            weight = weights[row] if weights.shape[0] else 1.0
            work[0] += 1
            move_row(X, row, weight, old, new, sums, counts, members)


@kernel()
def assign(X, weights, start, stop, rows, centers, changes):
    """Assign rows ``start:stop``, and sum the changes that result from the moves."""
    n_features = X.shape[1]
    n_groups = rows.lower.shape[1]
    n_tiles, _, lanes = centers.tiles.shape
    size = max(16, min(512, 131_072 // X.itemsize // max(n_features, n_tiles * lanes)))
    block = Block(
        np.empty((size, n_features), X.dtype),
        np.empty(size + 1, np.int64)[:size],
        np.empty(size, X.dtype),
        np.empty(size, X.dtype),
        np.empty(size + 1, np.float64)[:size],
        np.empty(size, X.dtype),
        np.empty(size, X.dtype),
        np.empty(size, np.int32),
        np.empty((size * n_tiles, lanes), X.dtype),
        np.empty(size + ROWS, X.dtype),
        np.empty(n_groups * (size + ROWS), np.int64),
        np.empty(n_groups, np.int64),
        np.zeros(STRIP, np.uint8),
    )
    distances = np.empty(2, np.float64)
    i = start
    while i < stop:
        n_active, i = _screen(X, i, stop, rows, centers, block)
        _gather(X, n_active, rows, centers, block)
        _score(n_active, rows, centers, block, changes)
        _take(X, weights, n_active, rows, centers, block, distances, changes)
