"""Bounds for many centres in many columns, as in vector indexes: most centres are excluded by a few leading dimensions.

Rows x and centres c are projected onto m orthonormal directions V that hold most of the variance. With y = Vᵀx, the
length r of the remainder of x, and the same for c, the triangle inequality for the remainders gives

    |x - c|² ≥ |y_x - y_c|² + (r_x - r_c)²,

which is the squared distance of the points (y, r) in m + 1 dimensions. Scores of these points exclude nearly all
centres, and exact distances decide among the others, so labels are those of all distances. Between iterations, one
lower bound per row is kept, as in :mod:`coterie.kmeans.lazy.single_bound`.
"""

import math
from typing import NamedTuple

import numpy as np

from coterie.kmeans.lazy.distances import GROWTH, exact_sq_distance, move_row, rounding
from coterie.kmeans.lazy.kernel import STRIP, Changes, Rows, flagged
from coterie.kmeans.lazy.lanes import ROWS, offsets_of, tiles_of
from coterie.kmeans.lazy.llvm import score_places
from coterie.threads import kernel

_LEADING = 63  # directions; with the length of the remainder, a multiple of a cache line
_SHARE = 0.7  # of the variance, which the directions must hold
_LEAST_COLUMNS = 256
_LEAST_WORK = 2**17  # columns times centres
_ROWS_PER_DIRECTION = 32  # rows of the sample from which directions are computed
_BLOCK = 4_096  # rows projected at a time, in double precision


class Points(NamedTuple):
    """Rows, and their points in the leading dimensions."""

    X: np.ndarray  # (n, d)
    weights: np.ndarray  # (n,) or empty
    leading: np.ndarray  # (n, m + 1) in the dtype of the rows
    sq_norm: np.ndarray  # (n,) of these points, float64


class Arranged(NamedTuple):
    """The centres of one iteration."""

    exact: np.ndarray  # (k, d) float64
    tiles: np.ndarray  # (tiles, m + 1, lanes) their points, negated
    offsets: np.ndarray  # (tiles, lanes) half the squared norms; infinite where there is no centre
    reach: float  # the largest norm
    moved_up: np.ndarray  # (k + 1,) how far each centre has moved, and the sum of the largest moves, rounded up
    moved_down: np.ndarray  # and down
    between: np.ndarray  # (k, 1) zeros: distances between so many centres take longer than they save


class Room(NamedTuple):
    """What the kernel writes to while it assigns rows. Each thread needs its own."""

    places: np.ndarray  # (size,) where the rows stand that must be scored
    own_sq: np.ndarray  # (size,) squared distances to their own centres
    scores: np.ndarray  # (size * tiles, lanes)
    minima: np.ndarray  # (tiles, size) the smallest score of every tile
    flags: np.ndarray  # (STRIP,) bytes
    words: np.ndarray  # the same, eight at a time

    @classmethod
    def of(cls, dtype: np.dtype, n_tiles: int, width: int) -> "Room":
        size = 2 * STRIP
        flags = np.zeros(STRIP, np.uint8)
        return cls(
            np.zeros(size, np.int64),
            np.empty(size),
            np.empty((size * n_tiles, width), dtype),
            np.empty((n_tiles, size), dtype),
            flags,
            flags.view(np.uint64),
        )


class ProjectedBounds:
    """The rows of an assigner with one lower bound each, and their points in the leading dimensions."""

    def __init__(self, X, weights, labels, centers, directions):
        n = len(X)
        self.mean, self.directions = directions
        leading, sq_norm = _project(X, self.mean, self.directions)
        self.points = Points(X, weights, leading.astype(X.dtype), sq_norm)
        self.kept = Rows(labels, np.full(n, np.inf, np.float32), np.full((n, 1), -np.inf, np.float32))
        self.upper, self.lower = self.kept.upper, self.kept.lower
        self.centers, self.moved = centers, np.zeros(len(centers) + 1)

    def prepare(self, centers: np.ndarray, n_threads: int) -> None:
        k, dtype = len(centers), self.points.X.dtype
        step = np.sqrt(((centers - self.centers) ** 2).sum(axis=1))
        self.moved += np.append(step, step.max())
        self.centers = centers
        leading, sq_norm = _project(centers, self.mean, self.directions)
        self.arranged = Arranged(
            centers,
            tiles_of(-leading, dtype),
            offsets_of(0.5 * sq_norm, dtype),
            math.sqrt(sq_norm.max()),
            (self.moved * (1 + GROWTH)).astype(np.float32),
            (self.moved * (1 - GROWTH)).astype(np.float32),
            np.zeros((k, 1), np.float32),
        )

    def assign(self, start: int, stop: int, changes: Changes) -> None:
        n_tiles, _, width = self.arranged.tiles.shape
        room = Room.of(self.points.X.dtype, n_tiles, width)
        _assign(self.points, start, stop, self.kept, self.arranged, room, changes)


def directions_of(X: np.ndarray, n_clusters: int) -> tuple[np.ndarray, np.ndarray] | None:
    """The mean (d,) and the leading directions (d, m) of the rows, or None if they would not exclude most centres."""
    n, d = X.shape
    if d < _LEAST_COLUMNS or d * n_clusters < _LEAST_WORK or n < _ROWS_PER_DIRECTION * _LEADING:
        return None
    sample = X[:: n // (_ROWS_PER_DIRECTION * _LEADING)].astype(np.float64)
    mean = sample.mean(axis=0)
    sample -= mean
    found = np.random.RandomState(0).randn(d, _LEADING)
    for _ in range(3):  # power steps; any orthonormal directions give valid bounds
        found = np.linalg.qr(sample.T @ (sample @ found))[0]
    held = ((sample @ found) ** 2).sum() / max((sample**2).sum(), np.finfo(np.float64).tiny)
    return (mean, found) if held >= _SHARE else None


def _project(X: np.ndarray, mean: np.ndarray, directions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The points (n, m + 1) of the rows and their squared norms (n,), in double precision."""
    leading = np.empty((len(X), directions.shape[1] + 1))
    sq_norm = np.empty(len(X))
    for first in range(0, len(X), _BLOCK):
        block = X[first : first + _BLOCK] - mean
        part = leading[first : first + _BLOCK]
        part[:, :-1] = block @ directions
        sq_norm[first : first + _BLOCK] = np.einsum("nd,nd->n", block, block)
        inside = np.einsum("nd,nd->n", part[:, :-1], part[:, :-1])
        part[:, -1] = np.sqrt(np.maximum(sq_norm[first : first + _BLOCK] - inside, 0.0))
    return leading, sq_norm


@kernel()
def _assign(points, start, stop, kept, centers, room, changes):
    """Assign rows ``start:stop``, and add what changed."""
    X, labels, lower = points.X, kept.labels, kept.lower
    n_tiles, _, width = centers.tiles.shape
    places, own_sq, scores, minima, flags, words = room
    moved_up = centers.moved_up
    size = len(places)
    begin = start
    while begin < stop:
        n_found, begin = flagged(
            labels, kept.upper, lower, begin, stop, moved_up[-1], centers.between, moved_up, flags, words, places
        )
        count = 0
        for q in range(n_found):  # on the distance as it is now
            row = places[q]
            label = np.int64(labels[row])
            sq = exact_sq_distance(X, row, centers.exact, label) if label >= 0 else np.inf
            own_sq[count] = sq
            places[count] = row
            if label >= 0:
                kept.upper[row] = math.sqrt(sq) * (1 + GROWTH) - centers.moved_down[label]
            count += not lower[row, 0] - moved_up[-1] >= math.sqrt(sq) * (1 + GROWTH)
        if count:
            for p in range(count, min(count + ROWS, size)):  # a batch that is not full repeats its last row
                places[p] = places[count - 1]
            for t in range(n_tiles):
                for first in range(0, count, ROWS):
                    score_places(
                        points.leading, places, 0, first, centers.tiles, centers.offsets, t, 0, scores, minima[t]
                    )
            changes.work[1] += count * n_tiles * width * points.leading.shape[1] // X.shape[1]
            for p in range(count):
                _take(points, places[p], own_sq[p], p, scores, minima, kept, centers, changes)


@kernel(inner=True)
def _take(points, row, own_sq, p, scores, minima, kept, centers, changes):
    """Assign one row: compute its distances to the centres that its scores do not exclude."""
    X, labels = points.X, kept.labels
    n_tiles, _, width = centers.tiles.shape
    relative = rounding(points.leading)
    slack = relative * (math.sqrt(points.sq_norm[row]) + centers.reach) ** 2
    below = points.sq_norm[row] * (1 - relative) - 2 * slack  # plus twice a score, a bound on the squared distance
    old = np.int64(labels[row])
    best, best_sq = old, own_sq
    if old < 0:  # the centre of the smallest score gives a first bound
        tile = 0
        for t in range(n_tiles):
            tile = t if minima[t, p] < minima[tile, p] else tile
        best = tile * width
        for lane in range(width):
            best = tile * width + lane if scores[p * n_tiles + tile, lane] == minima[tile, p] else best
        best_sq = exact_sq_distance(X, row, centers.exact, best)
    guess, limit = best, 0.5 * (best_sq - below)
    second_sq, excluded = np.inf, np.inf  # the next exact squared distance, and the smallest score of the others
    for t in range(n_tiles):
        if minima[t, p] > limit:
            excluded = min(excluded, np.float64(minima[t, p]))
            continue
        for lane in range(width):
            score, c = np.float64(scores[p * n_tiles + t, lane]), t * width + lane
            if score > limit:
                excluded = min(excluded, score)
            elif c != guess:
                changes.work[2] += 1
                sq = exact_sq_distance(X, row, centers.exact, c)
                if sq < best_sq or (sq == best_sq and c < best):
                    second_sq = min(second_sq, best_sq)
                    best, best_sq = c, sq
                    limit = 0.5 * (best_sq - below)
                else:
                    second_sq = min(second_sq, sq)
    least = min(second_sq, max(2 * excluded + below, 0.0))
    kept.upper[row] = math.sqrt(best_sq) * (1 + GROWTH) - centers.moved_down[best]
    kept.lower[row, 0] = math.sqrt(least) * (1 - GROWTH) + centers.moved_down[-1]
    if best != old:
        weight = points.weights[row] if len(points.weights) else 1.0
        labels[row] = best
        changes.work[0] += 1
        move_row(X, row, weight, old, best, changes.sums, changes.counts, changes.members)
