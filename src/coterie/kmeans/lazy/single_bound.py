"""Bounds for few centres and few columns: one lower bound per row, and scores against all centres.

A row whose upper bound on the distance to its own centre exceeds the lower bound on the distance to any other centre is
scored against all centres. With few centres this is faster than to find out which groups of them can be left out, as
:mod:`coterie.kmeans.lazy.group_bounds` does. Bounds are stored relative to the moves of the centres since the start, so
a row whose bounds still hold is read but not written.
"""

import math
from typing import NamedTuple

import numpy as np

from coterie.kmeans.lazy.dense_scores import Scratch, nearest, score, shift
from coterie.kmeans.lazy.distances import GROWTH, LOOSE, exact_sq_distance, move_row, rounding
from coterie.kmeans.lazy.kernel import STRIP, Changes, flagged
from coterie.kmeans.lazy.lanes import ROWS, as_tiles, lanes
from coterie.threads import kernel

_MOST_COLUMNS = 64  # with more, it pays to compute the distance to the own centre before all scores
_MOST_CENTERS = 256
_MOST_BYTES = 2**15  # of the centres
_COPIED = 2**19  # values of a table of which a shifted copy is kept
_NEAR = 16.0  # squared distance of the origin, relative to the spread, up to which rows are not shifted
_ROWS_PER_CENTER = 64  # with fewer, distances between centres cost more than they save


def suits(X: np.ndarray, n_clusters: int) -> bool:
    """Whether one bound per row is the fastest way to assign X to so many centres."""
    d = X.shape[1]
    return d <= _MOST_COLUMNS and n_clusters <= _MOST_CENTERS and d * n_clusters * X.itemsize <= _MOST_BYTES


class Table(NamedTuple):
    """Rows with what all runs of a fit share."""

    X: np.ndarray  # (n, d)
    weights: np.ndarray  # (n,) or empty
    origin: np.ndarray  # (d,) shift of rows and centres
    values: np.ndarray  # (n, d) shifted rows; X itself if the origin is zero; (0, d) if they are shifted when needed
    sq_norm: np.ndarray  # (n,) of the shifted rows

    @classmethod
    def of(cls, X: np.ndarray, weights: np.ndarray) -> "Table":
        origin = near_origin(X)
        sq_norm = np.empty(len(X), X.dtype)
        values = X
        if origin.any():
            values = X - origin if X.size <= _COPIED else np.empty((0, X.shape[1]), X.dtype)
        _sq_norms(X, origin, sq_norm)
        return cls(X, weights, origin, values, sq_norm)


def near_origin(X: np.ndarray) -> np.ndarray:
    """Zero if the rows are near it, and otherwise their approximate mean: a vector that keeps the scores accurate."""
    sample = X[:: max(1, X.shape[0] // 1_024)].astype(np.float64)
    mean = sample.mean(axis=0)
    near = mean @ mean <= _NEAR * ((sample - mean) ** 2).sum() / len(sample)
    return (mean * (not near)).astype(X.dtype)


class Bounds(NamedTuple):
    """What a run keeps from one assignment to the next."""

    labels: np.ndarray  # (n,) -1 before the first assignment
    upper: np.ndarray  # (n,) bound on the distance to the own centre, less how far that centre had moved
    lower: np.ndarray  # (n, 1) bound on the distance to any other centre, plus how far they had moved
    centers: np.ndarray  # (k, d) of the last assignment
    moved: np.ndarray  # (k + 1,) how far each centre has moved since the start, and the sum of the largest moves
    moved_up: np.ndarray  # the same, rounded up and down
    moved_down: np.ndarray
    between: np.ndarray  # (k, 1) half the distance to the nearest other centre, or 0
    tiles: np.ndarray  # (tiles, d, lanes) shifted centres, negated
    offsets: np.ndarray  # (tiles, lanes) half their squared norms; infinite where there is no centre

    @classmethod
    def of(cls, labels: np.ndarray, centers: np.ndarray, dtype) -> "Bounds":
        (k, d), n, width = centers.shape, len(labels), lanes(dtype.itemsize)
        n_tiles = -(-k // width)
        return cls(
            labels,
            np.full(n, np.inf, np.float32),
            np.full((n, 1), -np.inf, np.float32),
            centers.copy(),
            np.zeros(k + 1),
            np.zeros(k + 1, np.float32),
            np.zeros(k + 1, np.float32),
            np.zeros((k, 1), np.float32),
            as_tiles(np.zeros((n_tiles, width, d), dtype)),
            np.full((n_tiles, width), np.inf, dtype),
        )


class SingleBound:
    """The rows of an assigner with one lower bound each."""

    def __init__(self, X, weights, labels, centers):
        self.table = Table.of(X, weights)
        self.kept = Bounds.of(labels, centers, X.dtype)
        self.upper, self.lower = self.kept.upper, self.kept.lower

    def prepare(self, centers: np.ndarray, n_threads: int) -> None:
        self.reach = arrange(self.table, self.kept, centers)

    def assign(self, start: int, stop: int, changes: Changes) -> None:
        assign(self.table, start, stop, self.kept, self.reach, Room.of(self.table, self.kept), changes)


class Room(NamedTuple):
    """What the kernel writes to while it assigns rows. Each thread needs its own."""

    scratch: Scratch
    upper: np.ndarray  # (size,) the bounds of the rows that were scored
    lower: np.ndarray
    flags: np.ndarray  # (STRIP,) bytes: which rows of a strip must be scored
    words: np.ndarray  # the same, eight at a time

    @classmethod
    def of(cls, table: Table, kept: Bounds) -> "Room":
        scratch = Scratch.of(table.X.dtype, kept.tiles, len(table.values) == 0)
        upper, lower = np.empty((2, len(scratch.places)), np.float32)
        flags = np.zeros(STRIP, np.uint8)
        return cls(scratch, upper, lower, flags, flags.view(np.uint64))


@kernel(fastmath=LOOSE)
def _sq_norms(X, origin, out):
    for i in range(X.shape[0]):
        total = X[i, 0] * 0
        for j in range(X.shape[1]):
            value = X[i, j] - origin[j]
            total += value * value
        out[i] = total


@kernel()
def arrange(table, kept, centers):
    """Note how far the centres have moved, arrange them for the scores, and return the largest norm of one."""
    k, d = centers.shape
    width = kept.tiles.shape[2]
    largest, sq_reach = 0.0, 0.0
    for c in range(k):
        sq_move, sq_norm = 0.0, 0.0
        for j in range(d):
            sq_move += (centers[c, j] - kept.centers[c, j]) ** 2
            kept.centers[c, j] = centers[c, j]
            shifted = centers[c, j] - table.origin[j]
            kept.tiles[c // width, j, c % width] = -shifted
            sq_norm += shifted * shifted
        kept.offsets[c // width, c % width] = 0.5 * sq_norm
        sq_reach = max(sq_reach, sq_norm)
        kept.moved[c] += math.sqrt(sq_move)
        largest = max(largest, math.sqrt(sq_move))
    kept.moved[k] += largest
    for c in range(k + 1):
        kept.moved_up[c] = kept.moved[c] * (1 + GROWTH)
        kept.moved_down[c] = kept.moved[c] * (1 - GROWTH)
    if 1 < k <= len(table.X) // _ROWS_PER_CENTER:
        for c in range(k):
            nearest_sq = np.inf
            for other in range(k):
                if other != c:
                    nearest_sq = min(nearest_sq, exact_sq_distance(centers, c, centers, other))
            kept.between[c, 0] = 0.5 * math.sqrt(nearest_sq) * (1 - GROWTH)
    return math.sqrt(sq_reach)


@kernel()
def assign(table, start, stop, kept, reach, room, changes):
    """Assign rows ``start:stop`` to the centres, and add what changed."""
    labels, upper, lower, moved_up = kept.labels, kept.upper, kept.lower, kept.moved_up
    scratch, flags, words = room.scratch, room.flags, room.words
    begin = start
    while begin < stop:
        count, begin = flagged(
            labels, upper, lower, begin, stop, moved_up[-1], kept.between, moved_up, flags, words, scratch.places
        )
        if count:
            _score(table, kept, count, scratch)
            _take(table, kept, reach, count, room, changes)
            changes.work[1] += count * kept.offsets.size


@kernel(inner=True)
def _score(table, kept, count, scratch):
    places = scratch.places
    if len(table.values):
        for p in range(count, min(count + ROWS, len(places))):  # a batch that is not full repeats its last row
            places[p] = places[count - 1]
        score(table.values, places, count, kept.tiles, kept.offsets, scratch)
        return
    for p in range(count):
        shift(table.X, places[p], table.origin, scratch.values, p)
    score(scratch.values, scratch.order, count, kept.tiles, kept.offsets, scratch)


@kernel(fastmath=LOOSE, inner=True)
def _bound(count, sq_norm, places, relative, reach, best, second, slack_of, upper, lower):
    """The bounds that the scores imply. Squared distances are between 2 score + below and 2 score + below + 6 slack."""
    for p in range(count):
        sq = sq_norm[places[p]]
        slack = relative * (math.sqrt(sq) + reach) ** 2
        below = sq * (1 - relative) - 2 * slack
        slack_of[p] = slack
        upper[p] = math.sqrt(max(2 * best[p] + below + 6 * slack, 0)) * (1 + GROWTH)
        lower[p] = math.sqrt(max(2 * second[p] + below, 0)) * (1 - GROWTH)


@kernel(inner=True)
def _take(table, kept, reach, count, room, changes):
    """Assign the rows that were scored. Exact distances decide where rounding could."""
    X, weights, labels, scratch = table.X, table.weights, kept.labels, room.scratch
    places, best, second, slack = scratch.places, scratch.best, scratch.second, scratch.minima
    sums, counts, members, work = changes.sums, changes.counts, changes.members, changes.work
    upper, lower = room.upper, room.lower
    relative = X.dtype.type(rounding(X))
    _bound(count, table.sq_norm, places, relative, reach, best, second, slack, upper, lower)
    for p in range(count):
        row, new = places[p], scratch.label[p]
        if not second[p] - best[p] > 2 * slack[p]:  # true for NaN as well
            work[2] += 1
            new = max(nearest(X, row, kept.centers), 0)  # a row of NaN shows in the inertia
            lower[p] = 0.0
        old = np.int64(labels[row])
        kept.upper[row] = upper[p] - kept.moved_down[new]
        kept.lower[row, 0] = lower[p] + kept.moved_down[-1]
        if new != old:
            weight = weights[row] if len(weights) else 1.0
            labels[row] = new
            work[0] += 1
            move_row(X, row, weight, old, new, sums, counts, members)
