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
from coterie.kmeans.lazy.dense_scores import Scratch, longest, nearest, score, shift
from coterie.kmeans.lazy.distances import LOOSE, add_row, own_sq_distances, rounding, sq_distance
from coterie.kmeans.lazy.lanes import CHUNK, ROWS, offsets_of, tiles_of
from coterie.kmeans.lazy.llvm import sq_distances_of_places
from coterie.kmeans.statistics import Statistics
from coterie.threads import kernel

_ROWS_PER_PART = 16_384
_ROWS_PER_THREAD = 8_192  # where nothing is summed, so that the division changes no bit; fewer are not worth a thread
_NEAR = 64.0  # squared distance of the origin from the centres, relative to their spread, that costs little accuracy
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
    def of(cls, X: np.ndarray, centers: np.ndarray) -> "Tiles":
        """Arrange the centres for these rows. The rounding of a shifted centre is within that of a score.

        The origin is zero if the centres are so near to it that their scores remain accurate.
        """
        centers, dtype = np.ascontiguousarray(centers, dtype=np.float64), X.dtype
        check_centers(X, centers)
        origin = centers.mean(axis=0).astype(dtype)
        shifted = centers - origin
        half_sq = 0.5 * np.einsum("kd,kd->k", shifted, shifted)
        if origin.astype(np.float64) @ origin <= _NEAR * half_sq.max():
            origin, shifted = np.zeros_like(origin), centers
            half_sq = 0.5 * np.einsum("kd,kd->k", shifted, shifted)
        tiles, offsets = tiles_of(-shifted, dtype), offsets_of(half_sq, dtype)
        return cls(centers, centers.astype(dtype), origin, tiles, offsets, float(np.sqrt(2 * half_sq.max())))

    @property
    def scratch(self) -> Scratch:
        """Room for a block of rows, which each thread needs for itself."""
        return Scratch.of(self.rounded.dtype, self.tiles, bool(self.origin.any()))


@kernel()
def _label(X, start, stop, centers, scratch, labels):
    """Write the labels of rows ``start:stop``, and return the number of rows that are not finite.

    All rows of a block share one bound on the rounding of their scores.
    """
    origin, tiles, offsets = centers.origin, centers.tiles, centers.offsets
    size, shifted = len(scratch.order), len(scratch.values) > 0
    relative = rounding(X)
    n_damaged = 0
    for begin in range(start, stop, size):
        count = min(size, stop - begin)
        if shifted:
            for p in range(count):
                shift(X, begin + p, origin, scratch.values, p)
            score(scratch.values, scratch.order, count, tiles, offsets, scratch)
            reach = centers.reach + longest(scratch.values, np.int64(0), count)
        else:
            for p in range(size):
                scratch.places[p] = min(begin + p, stop - 1)
            score(X, scratch.places, count, tiles, offsets, scratch)
            reach = centers.reach + longest(X, begin, begin + count)
        slack = relative * reach**2
        for p in range(count):
            label = scratch.label[p]
            if not scratch.second[p] - scratch.best[p] > 2 * slack:  # true for NaN as well
                label = nearest(X, begin + p, centers.centers)
                n_damaged += label < 0
            labels[begin + p] = label
    return n_damaged


@kernel()
def _assign(X, weights, start, stop, centers, scratch, labels, sums, counts):
    """Write the labels of rows ``start:stop``, add the rows to sums and counts, and return the inertia."""
    size = len(scratch.order)
    inertia = 0.0
    for begin in range(start, stop, size):
        end = min(begin + size, stop)
        _label(X, begin, end, centers, scratch, labels)
        for i in range(begin, end):
            label = max(np.int64(labels[i]), 0)  # a row of NaN shows in the inertia
            weight = weights[i] if weights.shape[0] else 1.0
            add_row(X, i, weight, sums, label)
            counts[label] += weight
            inertia += weight * np.float64(sq_distance(X, i, centers.rounded, label))
    return inertia


def statistics(X, centers, sample_weight=None, n_threads: int | None = None, labels=None) -> Statistics:
    """Sums, counts and inertia of the rows X (n, d) at their nearest centres. X is C-contiguous float32 or float64.

    Centres may have a higher precision than the rows. If ``labels`` (n,) int32 is given, the labels are written to it.
    The result does not depend on ``n_threads``, to the last bit.
    """
    labels = np.empty(len(X), np.int32) if labels is None else labels
    arranged = Tiles.of(X, centers)
    check_lengths(len(X), sample_weight=sample_weight, labels=labels)
    weights = np.empty(0) if sample_weight is None else np.ascontiguousarray(sample_weight, dtype=np.float64)

    def task(start, stop):
        total = Statistics.zero(*arranged.centers.shape)
        inertia = _assign(X, weights, start, stop, arranged, arranged.scratch, labels, total.sums, total.counts)
        return Statistics(total.sums, total.counts, inertia)

    first, *others = _in_parts(task, X, n_threads, _ROWS_PER_PART)
    total = sum(others, first)
    check_cost(total.inertia)
    return total


def assign(X, centers, n_threads: int | None = None) -> np.ndarray:
    """The nearest centre (n,) of every row as int32, the lowest index in a tie."""
    labels, arranged = np.empty(len(X), np.int32), Tiles.of(X, centers)
    if any(_in_parts(lambda *rows: _label(X, *rows, arranged, arranged.scratch, labels), X, n_threads)):
        check_cost(np.inf)
    return labels


def costs(X, centers, labels, n_threads: int | None = None) -> np.ndarray:
    """The squared distance (n,) of every row to the centre of its label as float64, from the differences."""
    out = np.empty(len(X))
    centers = np.ascontiguousarray(centers, dtype=np.float64)
    check_centers(X, centers)
    check_lengths(len(X), labels=labels)
    check_labels(labels, len(centers))
    _in_parts(lambda *rows: own_sq_distances(X, *rows, centers, labels, out), X, n_threads)
    return out


def distances(X, centers, n_threads: int | None = None) -> np.ndarray:
    """The distances (n, k) of the rows to the centres in the dtype of the rows, from the differences."""
    check_centers(X, centers)
    out = np.empty((len(X), len(centers)), X.dtype)
    tiles = tiles_of(centers, X.dtype)
    zeros = np.zeros((len(tiles), tiles.shape[2]), X.dtype)
    _in_parts(lambda *rows: _distances(X, *rows, tiles, zeros, Scratch.of(X.dtype, tiles, False), out), X, n_threads)
    return out


def sq_distances(X, centers, n_threads: int | None = None) -> np.ndarray:
    """The squared distances (n, k) as float64, from differences in double precision, accurate for any offset."""
    check_centers(X, centers)
    out = np.empty((len(X), len(centers)))
    columns = np.ascontiguousarray(np.asarray(centers, dtype=np.float64).T)
    _in_parts(lambda *rows: _sq_distances(X, *rows, columns, out), X, n_threads)
    return out


def _in_parts(task, X, n_threads: int | None, size: int = _ROWS_PER_THREAD) -> list:
    """``task(start, stop)`` of parts of at least ``size`` rows."""
    parts = threads.blocks(len(X), size, most=_PARTS)
    return threads.run(lambda p: task(*parts[p]), len(parts), threads.count(n_threads))


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
def _roots(values, out):
    for c in range(len(out)):
        out[c] = math.sqrt(values[c])


@kernel()
def _distances(X, start, stop, tiles, zeros, scratch, out):
    """The same as ``_sq_distances`` with the square root, in the precision of the rows, several rows at once."""
    places, minima = scratch.places, scratch.minima
    n_tiles, n_features, width = tiles.shape
    rows = scratch.scores.reshape((len(places), n_tiles * width))
    for begin in range(start, stop, len(places)):
        count = min(len(places), stop - begin)
        for p in range(len(places)):
            places[p] = min(begin + p, stop - 1)
        for t in range(n_tiles):
            for chunk in range(0, n_features, CHUNK):
                for first in range(0, count, ROWS):
                    sq_distances_of_places(X, places, 0, first, tiles, zeros, t, chunk, scratch.scores, minima)
        for p in range(count):
            _roots(rows[p], out[begin + p])
