"""Scores of a block of rows against all centres, without bounds: for single passes, and for runs with one bound a row.

Scores are |c|²/2 - x·c, computed tile by tile. They find the nearest centre of a row unless the two smallest are within
rounding of each other; then exact distances decide.
"""

import math
from typing import NamedTuple

import numpy as np

from coterie.kmeans.lazy.distances import LOOSE, exact_sq_distance, rounding
from coterie.kmeans.lazy.lanes import CHUNK, ROWS
from coterie.kmeans.lazy.llvm import first_and_second, score_places
from coterie.threads import kernel

_BLOCK = 256  # rows at a time, if they fit into the cache


class Scratch(NamedTuple):
    """Room for a block of rows and their scores."""

    values: np.ndarray  # (size, d) shifted rows, or (0, d)
    order: np.ndarray  # (size,) 0, 1, 2, ...: where shifted rows stand
    places: np.ndarray  # (size,) where other rows stand
    best: np.ndarray  # (size,) the smallest score
    second: np.ndarray  # (size,) the smallest of the others
    label: np.ndarray  # (size,) the centre of the smallest score
    scores: np.ndarray  # (size * tiles, lanes)
    minima: np.ndarray  # (size,) the smallest score of the tile at hand

    @classmethod
    def of(cls, dtype: np.dtype, tiles: np.ndarray, shifted: bool) -> "Scratch":
        """Room for rows of this dtype, and for their copies if they are ``shifted``.

        Each thread needs its own. Python makes it, because arrays that compiled code makes take long to compile.
        """
        n_tiles, n_features, width = tiles.shape
        size = max(16, min(_BLOCK, 131_072 // dtype.itemsize // max(n_features, n_tiles * width))) // ROWS * ROWS
        return cls(
            np.zeros((size if shifted else 0, n_features), dtype),
            np.arange(size),
            np.zeros(size, np.int64),
            np.empty(size, dtype),
            np.empty(size, dtype),
            np.zeros(size, np.int32),
            np.empty((size * n_tiles, width), dtype),
            np.empty(size, dtype),
        )


@kernel(fastmath=LOOSE, forceinline=True, inner=True)
def shift(X, i, origin, values, p):
    """Write row ``i``, less the origin, to row ``p`` of ``values``, and return its squared norm."""
    total = X[i, 0] * 0
    for j in range(X.shape[1]):
        value = X[i, j] - origin[j]
        values[p, j] = value
        total += value * value
    return total


@kernel(inner=True)
def score(values, places, count, tiles, offsets, scratch):
    """The two smallest scores of rows ``places`` of ``values``, and the centre of the smallest.

    Places beyond ``count``, to the next multiple of ``ROWS``, are read but not used.
    """
    best_of, second_of, label_of = scratch.best, scratch.second, scratch.label
    scores, minima = scratch.scores, scratch.minima
    n_tiles, n_features, width = tiles.shape
    for p in range(count):
        best_of[p] = np.inf
        second_of[p] = np.inf
    for t in range(n_tiles):
        for chunk in range(0, n_features, CHUNK):
            for first in range(0, count, ROWS):
                score_places(values, places, 0, first, tiles, offsets, t, chunk, scores, minima)
        for p in range(count):
            found, best = minima[p], best_of[p]
            second_of[p] = min(second_of[p], max(best, found))
            best_of[p] = min(best, found)
            label_of[p] = t if found < best else label_of[p]
    for p in range(count):
        tile = min(label_of[p], n_tiles - 1)
        lane, second = first_and_second(scores, p * n_tiles + tile, best_of[p])
        second_of[p] = min(second_of[p], second)
        label_of[p] = tile * width + lane


@kernel(inner=True)
def nearest(X, i, centers):
    """The nearest centre by exact distances, the lowest index in a tie; -1 if no distance is finite."""
    best, best_sq = -1, np.inf
    for c in range(centers.shape[0]):
        sq = exact_sq_distance(X, i, centers, c)
        if sq < best_sq:
            best, best_sq = c, sq
    return best


@kernel(fastmath=LOOSE, inner=True)
def _sq_sum(flat, start, stop):
    total = flat[0] * 0
    for i in range(np.uint64(start), np.uint64(stop)):  # an index that may be negative keeps it from being vectorised
        total += flat[i] * flat[i]
    return total


@kernel(inner=True)
def longest(values, start, stop):
    """A bound on the norm of rows ``start:stop``: that of all values of a few rows, which is faster than row by row."""
    sq_longest = 0.0
    flat, n_features = values.reshape(-1), values.shape[1]
    for first in range(start, stop, ROWS):
        last = min(first + ROWS, stop)
        sq_longest = max(sq_longest, np.float64(_sq_sum(flat, first * n_features, last * n_features)))
    return math.sqrt(sq_longest) * (1 + rounding(values) * ROWS)
