"""Bounds for many centres: one lower bound per row and group of near centres, for the kernel of the lazy engine.

Near centres share a tile of vector lanes, and neighbouring tiles share a bound.
"""

from dataclasses import dataclass

import numpy as np

from coterie import threads
from coterie.kmeans.lazy import distances, kernel
from coterie.kmeans.lazy.lanes import as_tiles, lanes

_PARTS = 8  # of the centres, for distances between them
_ROWS_PER_CENTER = 64  # with fewer, distances between centres cost more than they save


@dataclass(frozen=True)
class Grouping:
    """Centres in tiles, and tiles in groups."""

    tile_index: np.ndarray  # (tiles, lanes) centre in each lane, ascending; -1 where there is none
    group_begin: np.ndarray  # (groups + 1,) first tile of each group
    group_of: np.ndarray  # (k,) group of each centre

    @property
    def n_groups(self) -> int:
        return len(self.group_begin) - 1

    @classmethod
    def of(cls, centers: np.ndarray, lanes: int, most_groups: int) -> "Grouping":
        """Divide the centres in two along their widest direction until every part fits into a tile."""
        parts = list(_bisected(np.asarray(centers, dtype=np.float64), np.arange(len(centers)), lanes))
        tile_index = np.full((len(parts), lanes), -1)
        for tile, part in zip(tile_index, parts):
            tile[: len(part)] = np.sort(part)
        n_groups = min(len(parts), most_groups)
        group_begin = np.array([len(parts) * g // n_groups for g in range(n_groups + 1)])
        group_of = np.empty(len(centers), np.int64)
        for g in range(n_groups):
            members = tile_index[group_begin[g] : group_begin[g + 1]]
            group_of[members[members >= 0]] = g
        return cls(tile_index, group_begin, group_of)

    def tiles(self, values: np.ndarray, empty: float) -> np.ndarray:
        """``values`` (k, ...) arranged as (tiles, lanes, ...), with ``empty`` in lanes without a centre."""
        arranged = values[self.tile_index]
        arranged[self.tile_index < 0] = empty
        return arranged

    def largest(self, values: np.ndarray) -> np.ndarray:
        """The largest of ``values`` (k,) in every group."""
        largest = np.zeros(self.n_groups)
        np.maximum.at(largest, self.group_of, values)
        return largest


def _bisected(centers, members, lanes):
    if len(members) <= lanes:
        yield members
        return
    values = centers[members] - centers[members].mean(axis=0)
    direction = values[np.argmax(np.einsum("kd,kd->k", values, values))]
    for _ in range(4):  # a few power steps towards the first principal direction
        direction = values.T @ (values @ direction)
        direction /= max(np.linalg.norm(direction), np.finfo(np.float64).tiny)
    order = members[np.argsort(values @ direction, kind="stable")]
    n_tiles = -(-len(members) // lanes)
    half = -(-len(members) * (n_tiles // 2) // n_tiles) if n_tiles > 2 else len(members) // 2
    half = min(half, (n_tiles // 2) * lanes)
    yield from _bisected(centers, order[:half], lanes)
    yield from _bisected(centers, order[half:], lanes)


class GroupBounds:
    """The rows of an assigner with one lower bound per group of centres."""

    def __init__(self, X, weights, labels, centers):
        n, d = X.shape
        self.X, self.weights, self.labels = X, weights, labels
        step = max(1, n // 4_096)
        self.mean = X[::step].mean(axis=0, dtype=np.float64).astype(X.dtype)  # any vector near the data is good enough
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
