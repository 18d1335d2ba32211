"""The first pass over Dask blocks, which checks every value and returns what a fit needs to know."""

from dataclasses import dataclass

import numpy as np

from coterie import starts
from coterie.kmeans.block_statistics import Block
from coterie.kmeans.iteration import moments


@dataclass(frozen=True)
class Survey:
    """Size, moments and some distinct rows of blocks. The surveys of two sets of blocks can be added."""

    sizes: dict[int, int]  # rows by block
    rows: int  # of positive weight
    weight: float
    mean: np.ndarray  # (d,)
    sq: np.ndarray  # (d,) weighted squares around the mean
    largest: float  # absolute value
    hashes: np.ndarray  # of distinct rows: as many as there are clusters, or all
    wanted: int
    fingerprint: int  # of all rows and their weights, in any order

    def __add__(self, other: "Survey") -> "Survey":
        weight = self.weight + other.weight
        delta = other.mean - self.mean
        mean = self.mean + delta * (other.weight / weight)
        sq = self.sq + other.sq + delta**2 * (self.weight * other.weight / weight)
        hashes = np.union1d(self.hashes, other.hashes)[: self.wanted]
        sizes = {**self.sizes, **other.sizes}
        largest = max(self.largest, other.largest)
        fingerprint = (self.fingerprint + other.fingerprint) % 2**64
        return Survey(sizes, self.rows + other.rows, weight, mean, sq, largest, hashes, self.wanted, fingerprint)

    @property
    def mean_variance(self) -> float:
        """The mean of the variances of the columns, which ``tol`` is relative to."""
        return float(np.mean(self.sq / self.weight))


def survey(block: Block, n_clusters: int) -> Survey:
    """The survey of one block."""
    X = block.X
    keys = starts.hash_rows(X, 1)
    hashes = np.unique(keys[: 4 * n_clusters + 64])
    if len(hashes) < n_clusters:
        hashes = np.unique(keys)
    found = moments(X, block.weight)
    weight = float(found.weight[0])
    sizes = {block.number: block.n_rows}
    largest = max(float(X.max()), -float(X.min()))
    sq = found.variance * weight
    fingerprint = starts.fingerprint(keys, block.weight)
    return Survey(sizes, len(X), weight, found.mean, sq, largest, hashes[:n_clusters], n_clusters, fingerprint)
