"""The grouping of centres: near centres share a tile of vector lanes, and neighbouring tiles share a bound."""

from dataclasses import dataclass

import numpy as np


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
