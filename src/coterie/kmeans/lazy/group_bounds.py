"""Bounds for many centres: one lower bound per row and group of near centres, for the kernel of the lazy engine."""

import numpy as np

from coterie import threads
from coterie.kmeans.lazy import distances, kernel
from coterie.kmeans.lazy.grouping import Grouping
from coterie.kmeans.lazy.lanes import as_tiles, lanes

_PARTS = 8  # of the centres, for distances between them
_ROWS_PER_CENTER = 64  # with fewer, distances between centres cost more than they save


class GroupBounds:
    """The rows of an assigner with one lower bound per group of centres."""

    def __init__(self, X, weights, labels, centers):
        n, d = X.shape
        self.X, self.weights, self.labels = X, weights, labels
        self.mean = _mean(X)
        most_groups = max(1, (max(20, d * X.itemsize) - 8) // 4)  # bounds take at most as much memory as the rows
        self.grouping = Grouping.of(centers, lanes(X.itemsize), most_groups)
        self.upper = np.full(n, np.inf, np.float32)
        self.lower = np.empty((n, self.grouping.n_groups), np.float32)
        self.lower.fill(-np.inf)
        self.centers = centers
        self.moved = np.zeros(len(centers))
        self.group_moved = np.zeros(self.grouping.n_groups)

    def prepare(self, centers: np.ndarray, n_threads: int) -> None:
        step = np.sqrt(((centers - self.centers) ** 2).sum(axis=1))
        self.moved += step
        self.group_moved += self.grouping.largest(step)
        self.centers = centers
        self._arranged = self._arrange(centers, n_threads)

    def assign(self, start: int, stop: int, changes: kernel.Changes) -> None:
        rows = kernel.Rows(self.labels, self.upper, self.lower)
        kernel.assign(self.X, self.weights, start, stop, rows, self._arranged, changes)

    def _arrange(self, centers, n_threads) -> kernel.Centers:
        grouping = self.grouping
        near = centers.astype(self.X.dtype)
        error = float(np.sqrt(((near - centers) ** 2).sum(axis=1).max()))
        shifted = (centers - self.mean).astype(self.X.dtype)
        half_sq = 0.5 * np.einsum("kd,kd->k", shifted, shifted)
        up, down = 1 + distances.GROWTH, 1 - distances.GROWTH
        return kernel.Centers(
            centers,
            near,
            error,
            self.mean,
            as_tiles(grouping.tiles(-shifted, 0.0)),
            grouping.tiles(half_sq, np.inf),
            float(np.sqrt(2 * half_sq.max())),
            grouping.tile_index,
            grouping.group_begin,
            grouping.group_of,
            self._half_distances(near, error, n_threads),
            (self.moved * up).astype(np.float32),
            (self.moved * down).astype(np.float32),
            (self.group_moved * up).astype(np.float32),
            (self.group_moved * down).astype(np.float32),
        )

    def _half_distances(self, centers, error, n_threads):
        k = len(centers)
        out = np.zeros((k, self.grouping.n_groups), np.float32)
        if k <= self.X.shape[0] // _ROWS_PER_CENTER:
            cuts = threads.blocks(k, 32, most=_PARTS)

            def task(b):
                distances.half_distances(centers, error, *cuts[b], self.grouping.group_of, out)

            threads.run(task, len(cuts), n_threads)
        return out


def _mean(X):
    """Approximate mean of the rows. Any vector near the data keeps the scores accurate."""
    step = max(1, X.shape[0] // 4_096)
    return X[::step].mean(axis=0, dtype=np.float64).astype(X.dtype)
