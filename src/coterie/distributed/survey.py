"""The first pass: every value is looked at once, and what the loop needs to know of the data comes back."""

from dataclasses import dataclass

import numpy as np

from coterie import starts
from coterie.distributed.blocks import Opened

_PIECE = 65_536  # rows in double precision at a time


@dataclass(frozen=True)
class Survey:
    """Size, moments and some distinct rows of blocks; surveys add."""

    sizes: dict[int, int]  # rows by block
    rows: int  # of positive weight
    weight: float
    mean: np.ndarray  # (d,)
    sq: np.ndarray  # (d,) weighted squares around the mean
    hashes: np.ndarray  # of distinct rows: as many as there are clusters, or all
    wanted: int

    def __add__(self, other: "Survey") -> "Survey":
        weight = self.weight + other.weight
        delta = other.mean - self.mean
        mean = self.mean + delta * (other.weight / weight)
        sq = self.sq + other.sq + delta**2 * (self.weight * other.weight / weight)
        hashes = np.union1d(self.hashes, other.hashes)[: self.wanted]
        sizes = {**self.sizes, **other.sizes}
        return Survey(sizes, self.rows + other.rows, weight, mean, sq, hashes, self.wanted)

    @property
    def mean_variance(self) -> float:
        """The mean of the columns' variances: what ``tol`` is relative to."""
        return float(np.mean(self.sq / self.weight))


def survey(block: Opened, n_clusters: int) -> Survey:
    """The survey of one block."""
    X, weight = block.X, block.weight
    hashes = np.unique(starts.hash_rows(X[: 4 * n_clusters + 64], 1))
    if len(hashes) < n_clusters and len(X) > 4 * n_clusters + 64:
        hashes = np.unique(starts.hash_rows(X, 1))
    total: Survey | None = None
    for first in range(0, len(X), _PIECE):
        piece = X[first : first + _PIECE].astype(np.float64)
        counts = None if weight is None else weight[first : first + _PIECE]
        step = float(len(piece)) if counts is None else float(counts.sum())
        mean = piece.mean(axis=0) if counts is None else counts @ piece / step
        piece -= mean
        sq = np.einsum("nd,nd->d", piece, piece) if counts is None else counts @ piece**2
        part = Survey({}, 0, step, mean, sq, hashes[:0], n_clusters)
        total = part if total is None else total + part
    assert total is not None
    sizes = {block.number: block.n_rows}
    return Survey(sizes, len(X), total.weight, total.mean, total.sq, hashes[:n_clusters], n_clusters)
