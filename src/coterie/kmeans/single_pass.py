"""Compiled passes that read each row once: labels, statistics, costs and distances for given centres.

They are for rows that are not assigned repeatedly: ``predict``, chunks of files and blocks of a Dask collection.
Nothing is kept between calls, so there are no bounds. Scores, tiles and labels are those of the lazy engine: if two
scores differ by less than their rounding error, exact distances decide, and in a tie the lowest index.
"""

import math
from typing import NamedTuple

import numpy as np

from coterie import threads
from coterie.kmeans.kernel_input import check_centers, check_cost, check_labels, check_lengths
from coterie.kmeans.lazy.distances import (
    LOOSE,
    add_row,
    exact_sq_distance,
    own_sq_distances,
    rounding,
    sq_distance,
)
from coterie.kmeans.lazy.lanes import CHUNK, ROWS, as_tiles, first_and_second, lanes, score_rows
from coterie.kmeans.statistics import Statistics
from coterie.threads import kernel

_ROWS_PER_PART = 16_384
_PARTS = 8  # parts of the rows, each with its own sums; the order of the reduction depends on them alone


class Tiles(NamedTuple):
    """Centres in the lanes of vectors, in the order of their indices."""

    centers: np.ndarray  # (k, d) float64
    rounded: np.ndarray  # (k, d) in the dtype of the rows, for the inertia
    origin: np.ndarray  # (d,) shift of rows and centres
    tiles: np.ndarray  # (tiles, d, lanes) shifted centres, negated
    offsets: np.ndarray  # (tiles, lanes) half their squared norms; infinite where there is no centre
    reach: float  # their largest norm

    @classmethod
    def of(cls, centers: np.ndarray, dtype) -> "Tiles":
        """Arrange the centres for rows of this dtype. The rounding of a shifted centre is within that of a score."""
        k, d = centers.shape
        width = lanes(dtype.itemsize)
        origin = centers.mean(axis=0).astype(dtype)
        shifted = centers - origin
        half_sq = 0.5 * np.einsum("kd,kd->k", shifted, shifted)
        padded = -(-k // width) * width
        tiles = np.zeros((padded, d), dtype)
        tiles[:k] = -shifted
        offsets = np.full(padded, np.inf, dtype)
        offsets[:k] = half_sq
        tiles = as_tiles(tiles.reshape(-1, width, d))
        return cls(
            centers, centers.astype(dtype), origin, tiles, offsets.reshape(-1, width), float(np.sqrt(2 * half_sq.max()))
        )


class _Scratch(NamedTuple):
    values: np.ndarray  # (size, d) shifted rows
    sq_norm: np.ndarray  # (size,)
    places: np.ndarray  # (size,) 0, 1, 2, ...
    best: np.ndarray  # (size,) smallest score so far
    second: np.ndarray  # (size,) smallest of the other tiles
    tile: np.ndarray  # (size,) where the smallest score is
    scores: np.ndarray  # (size * tiles, lanes)
    minima: np.ndarray  # (size,) the smallest score of the tile at hand


@kernel(fastmath=LOOSE, forceinline=True)
def _shift(X, i, origin, values, p):
    total = X[i, 0] * 0
    for j in range(X.shape[1]):
        value = X[i, j] - origin[j]
        values[p, j] = value
        total += value * value
    return total


@kernel()
def _score(count, tiles, offsets, scratch):
    """The smallest score of every row in the scratch, its tile, and the smallest score of the other tiles."""
    values, places = scratch.values, scratch.places
    best_of, second_of, tile_of = scratch.best, scratch.second, scratch.tile
    scores, minima = scratch.scores, scratch.minima
    best_of[:] = np.inf
    second_of[:] = np.inf
    for t in range(tiles.shape[0]):
        for chunk in range(0, tiles.shape[1], CHUNK):
            for first in range(0, count, ROWS):  # the rows of the last batch beyond ``count`` are stale, and unused
                score_rows(values, places, 0, first, tiles, offsets, t, chunk, scores, minima)
        for p in range(count):
            score, best = minima[p], best_of[p]
            second_of[p] = min(second_of[p], max(best, score))
            best_of[p] = min(best, score)
            tile_of[p] = t if score < best else tile_of[p]


@kernel()
def _nearest(X, i, centers):
    """The nearest centre by exact distances, the lowest index in a tie."""
    best, best_sq = 0, np.inf
    for c in range(centers.shape[0]):
        sq = exact_sq_distance(X, i, centers, c)
        if sq < best_sq:
            best, best_sq = c, sq
    return best


@kernel()
def _assign(X, weights, start, stop, centers, rounded, origin, tiles, offsets, reach, labels, sums, counts):
    """Assign rows ``start:stop``, add to sums and counts, and return the inertia. Empty ``labels`` are not written."""
    n_features = X.shape[1]
    n_tiles, _, width = tiles.shape
    size = max(16, min(256, 131_072 // X.itemsize // max(n_features, n_tiles * width))) // ROWS * ROWS
    scratch = _Scratch(
        np.zeros((size, n_features), X.dtype),
        np.zeros(size, np.float64),
        np.arange(size),
        np.empty(size, X.dtype),
        np.empty(size, X.dtype),
        np.zeros(size, np.int32),
        np.empty((size * n_tiles, width), X.dtype),
        np.empty(size, X.dtype),
    )
    relative = rounding(X)
    inertia = 0.0
    for begin in range(start, stop, size):
        count = min(size, stop - begin)
        for p in range(count):
            scratch.sq_norm[p] = _shift(X, begin + p, origin, scratch.values, p)
        _score(count, tiles, offsets, scratch)
        for p in range(count):
            i = begin + p
            lane, second = first_and_second(scratch.scores, p * n_tiles + scratch.tile[p], scratch.best[p])
            second = min(second, scratch.second[p])
            label = scratch.tile[p] * width + lane
            slack = relative * (math.sqrt(scratch.sq_norm[p]) + reach) ** 2
            if not second - scratch.best[p] > 2 * slack:  # true for NaN as well
                label = _nearest(X, i, centers)
            label = min(label, centers.shape[0] - 1)  # a row of NaN has no smallest score
            weight = weights[i] if weights.shape[0] else 1.0
            add_row(X, i, weight, sums, label)
            counts[label] += weight
            inertia += weight * np.float64(sq_distance(X, i, rounded, label))
            if labels.shape[0]:
                labels[i] = label
    return inertia


def statistics(X, centers, sample_weight=None, n_threads: int | None = None, labels=None) -> Statistics:
    """Sums, counts and inertia of the rows X (n, d) at their nearest centres. X is C-contiguous float32 or float64.

    Centres may have a higher precision than the rows. If ``labels`` (n,) int32 is given, the labels are written to it.
    The result does not depend on ``n_threads``, to the last bit.
    """
    return _run(X, centers, sample_weight, n_threads, np.empty(0, np.int32) if labels is None else labels)


def assign(X, centers, n_threads: int | None = None) -> np.ndarray:
    """The nearest centre (n,) of every row as int32, the lowest index in a tie."""
    labels = np.empty(len(X), np.int32)
    _run(X, centers, None, n_threads, labels)
    return labels


def costs(X, centers, labels, n_threads: int | None = None) -> np.ndarray:
    """The squared distance (n,) of every row to the centre of its label as float64, from the differences."""
    out = np.empty(len(X))
    centers = np.ascontiguousarray(centers, dtype=np.float64)
    check_centers(X, centers)
    check_lengths(len(X), labels=labels)
    check_labels(labels, len(centers))
    parts = threads.blocks(len(X), _ROWS_PER_PART, most=_PARTS)
    threads.run(lambda p: own_sq_distances(X, *parts[p], centers, labels, out), len(parts), threads.count(n_threads))
    return out


def distances(X, centers, n_threads: int | None = None) -> np.ndarray:
    """The distances (n, k) of the rows to the centres in the dtype of the rows, from the differences."""
    check_centers(X, centers)
    out = np.empty((len(X), len(centers)), X.dtype)
    columns = np.ascontiguousarray(np.asarray(centers, dtype=X.dtype).T)
    parts = threads.blocks(len(X), _ROWS_PER_PART, most=_PARTS)
    threads.run(lambda p: _distances(X, *parts[p], columns, out), len(parts), threads.count(n_threads))
    return out


def sq_distances(X, centers, n_threads: int | None = None) -> np.ndarray:
    """The squared distances (n, k) as float64, from differences in double precision, accurate for any offset."""
    check_centers(X, centers)
    out = np.empty((len(X), len(centers)))
    columns = np.ascontiguousarray(np.asarray(centers, dtype=np.float64).T)
    parts = threads.blocks(len(X), _ROWS_PER_PART, most=_PARTS)
    threads.run(lambda p: _sq_distances(X, *parts[p], columns, out), len(parts), threads.count(n_threads))
    return out


@kernel(fastmath=LOOSE)
def _sq_distances(X, start, stop, columns, out):
    """The centres are columns (d, k), so that one row is compared with many centres at once."""
    for i in range(start, stop):
        row = out[i]
        row[:] = 0
        for j in range(X.shape[1]):
            value = np.float64(X[i, j])
            for c in range(columns.shape[1]):
                difference = value - columns[j, c]
                row[c] += difference * difference


@kernel(fastmath=LOOSE)
def _distances(X, start, stop, columns, out):
    """The same as ``_sq_distances`` with the square root, in the precision of the rows."""
    for i in range(start, stop):
        row = out[i]
        row[:] = 0
        for j in range(X.shape[1]):
            for c in range(columns.shape[1]):
                difference = X[i, j] - columns[j, c]
                row[c] += difference * difference
        for c in range(columns.shape[1]):
            row[c] = math.sqrt(row[c])


def _run(X, centers, sample_weight, n_threads, labels) -> Statistics:
    centers = np.ascontiguousarray(centers, dtype=np.float64)
    check_centers(X, centers)
    check_lengths(len(X), sample_weight=sample_weight, labels=labels if len(labels) else None)
    arranged = Tiles.of(centers, X.dtype)
    weights = np.empty(0) if sample_weight is None else np.ascontiguousarray(sample_weight, dtype=np.float64)
    parts = threads.blocks(len(X), _ROWS_PER_PART, most=_PARTS)

    def task(p):
        total = Statistics.zero(*arranged.centers.shape)
        inertia = _assign(X, weights, *parts[p], *arranged, labels, total.sums, total.counts)
        return Statistics(total.sums, total.counts, inertia)

    first, *others = threads.run(task, len(parts), threads.count(n_threads))
    total = sum(others, first)
    check_cost(total.inertia)
    return total
