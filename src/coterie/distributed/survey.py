"""The first pass over Dask blocks, which checks every value and returns what a fit needs to know."""

from dataclasses import dataclass, replace

import numpy as np

from coterie import starts
from coterie.kmeans.block_statistics import Block
from coterie.kmeans.iteration import moments


@dataclass(frozen=True)
class Survey:
    """Size and moments of blocks. The surveys of two sets of blocks can be added."""

    sizes: dict[int, int]  # rows by block
    rows: int  # of positive weight
    weight: float
    mean: np.ndarray  # (d,)
    sq: np.ndarray  # (d,) weighted squares around the mean
    largest: float  # absolute value
    fingerprint: int  # of all rows and their weights, in any order

    def __add__(self, other: "Survey") -> "Survey":
        weight = self.weight + other.weight
        delta = other.mean - self.mean
        mean = self.mean + delta * (other.weight / weight)
        sq = self.sq + other.sq + delta**2 * (self.weight * other.weight / weight)
        sizes = {**self.sizes, **other.sizes}
        largest = max(self.largest, other.largest)
        fingerprint = (self.fingerprint + other.fingerprint) % 2**64
        return Survey(sizes, self.rows + other.rows, weight, mean, sq, largest, fingerprint)

    def scaled(self, exponent: int) -> "Survey":
        """The survey of the same rows multiplied by 2^exponent."""
        moments = {"mean": np.ldexp(self.mean, exponent), "sq": np.ldexp(self.sq, 2 * exponent)}
        return replace(self, **moments, largest=float(np.ldexp(self.largest, exponent)))

    @property
    def mean_variance(self) -> float:
        """The mean of the variances of the columns, which ``tol`` is relative to."""
        return float(np.mean(self.sq / self.weight))


def survey(block: Block, _: None) -> Survey:
    """The survey of one block."""
    X = block.X
    found = moments(X, block.weight)
    weight = float(found.weight[0])
    sizes = {block.number: block.n_rows}
    largest = max(float(X.max()), -float(X.min()))
    sq = found.variance * weight
    fingerprint = starts.fingerprint(starts.hash_rows(X, 1), block.weight)
    return Survey(sizes, len(X), weight, found.mean, sq, largest, fingerprint)
