"""The first pass over blocks, which returns what a fit needs to know, and a sample that starts are made from."""

from dataclasses import dataclass, replace

import numpy as np

from coterie.geometry.spread import Spread
from coterie.kmeans.block_statistics import Block
from coterie.kmeans.scaling import largest_value, scaled
from coterie.starts.row_order import fingerprint, hash_rows

SAMPLE = 50_000  # distinct rows that a start is made from, at least


@dataclass(frozen=True)
class Sample:
    """The distinct rows with the smallest hashes, in this order, and the weight of all rows that equal each."""

    hashes: np.ndarray
    rows: np.ndarray
    weight: np.ndarray
    wanted: int

    def __add__(self, other: "Sample") -> "Sample":
        hashes = np.concatenate([self.hashes, other.hashes])
        rows, weight = np.concatenate([self.rows, other.rows]), np.concatenate([self.weight, other.weight])
        return _first(hashes, rows, weight, self.wanted)

    @property
    def is_complete(self) -> bool:
        """Whether it has all distinct rows, so that a start from it is the start from all rows."""
        return len(self.hashes) < self.wanted


def _first(hashes: np.ndarray, rows: np.ndarray, weight: np.ndarray, wanted: int) -> Sample:
    if len(hashes) > 4 * wanted:  # a few more than are wanted, unless these are the same rows many times
        some = np.flatnonzero(hashes <= np.partition(hashes, 2 * wanted)[2 * wanted])
        found = _first(hashes[some], rows[some], weight[some], wanted) if len(some) <= 4 * wanted else None
        if found is not None and not found.is_complete:
            return found
    hashes, firsts, group = np.unique(hashes, return_index=True, return_inverse=True)
    weight = np.bincount(group, weights=weight)
    return Sample(hashes[:wanted], rows[firsts[:wanted]], weight[:wanted], wanted)


@dataclass(frozen=True)
class Survey:
    """Size and moments of blocks. The surveys of two sets of blocks can be added."""

    sizes: dict[int, int]  # rows by block
    rows: int  # of positive weight
    spread: Spread
    largest: float  # absolute value
    fingerprint: int  # of all rows and their weights, in any order
    sample: Sample

    def __add__(self, other: "Survey") -> "Survey":
        with np.errstate(over="ignore", invalid="ignore"):  # refused later, by `largest`
            spread = self.spread + other.spread
        sizes = {**self.sizes, **other.sizes}
        largest = max(self.largest, other.largest)
        fingerprint = (self.fingerprint + other.fingerprint) % 2**64
        return Survey(sizes, self.rows + other.rows, spread, largest, fingerprint, self.sample + other.sample)

    def scaled(self, exponent: int) -> "Survey":
        """The survey of the same rows multiplied by 2^exponent."""
        mean, var = np.ldexp(self.spread.mean_D, exponent), np.ldexp(self.spread.var_D, 2 * exponent)
        sample, largest = (
            replace(self.sample, rows=scaled(self.sample.rows, exponent)),
            float(np.ldexp(self.largest, exponent)),
        )
        return replace(self, spread=Spread(self.spread.size, mean, var), largest=largest, sample=sample)

    @property
    def mean_variance(self) -> float:
        """The mean of the variances of the columns, which ``tol`` is relative to."""
        return float(np.mean(self.spread.var_D))


def survey(block: Block, n_clusters: int) -> Survey:
    """The survey of one block, for a number of clusters."""
    X, weight = block.X, block.weights
    with np.errstate(over="ignore", invalid="ignore"):  # the caller refuses such values
        spread = Spread.of_block(block)
    hashes = hash_rows(X, 1)
    sample = _first(hashes, X, weight, max(SAMPLE, 20 * n_clusters))
    told = fingerprint(hashes, block.weight)
    return Survey({block.number: block.n_rows}, len(X), spread, largest_value(X), told, sample)
