"""A mergeable sketch of the costs per cluster, from which the percentile for trimming is computed.

Costs are divided into bins by the leading bits of their binary representation: the exponent and ``bits`` bits of the
fraction. The width of a bin is less than 2^-bits, relative to the costs in it. A bin stores its total weight and its
largest cost. Sketches can be added in any order and any grouping. They start with all 52 bits, which is exact, and
reduce the number of bits while they have more than 65,536 bins, down to 10 bits.

The resulting threshold is a cost that occurs. It is never below the exact percentile and exceeds it by less than
2^-bits of its value (one part in 1,024 for the coarsest sketch). So trimming keeps at least the required share, and in
excess of it at most the weight of one bin.
"""

from dataclasses import dataclass

import numpy as np

ALL_BITS = 52
LEAST_BITS = 10
MOST_BINS = 2**16


@dataclass(frozen=True)
class CostSketch:
    """Non-empty bins, ordered by group and cost."""

    groups: np.ndarray  # (b,) int64: the cluster, or 0 for all
    bins: np.ndarray  # (b,) int64
    weights: np.ndarray  # (b,)
    largest: np.ndarray  # (b,)
    bits: int = ALL_BITS

    @classmethod
    def of(cls, groups: np.ndarray, costs: np.ndarray, weights: np.ndarray) -> "CostSketch":
        costs = np.ascontiguousarray(costs, dtype=np.float64) + 0.0  # at least 0, so their bits are in their order
        return cls(np.asarray(groups, np.int64), costs.view(np.int64), np.asarray(weights, np.float64), costs)._small()

    @property
    def error(self) -> float:
        """The largest relative excess of a threshold over the exact one."""
        return 0.0 if self.bits == ALL_BITS else 2.0**-self.bits

    def __add__(self, other: "CostSketch") -> "CostSketch":
        bits = min(self.bits, other.bits)
        pairs = zip(self._cut(bits)._columns(), other._cut(bits)._columns())
        groups, bins, weights, largest = map(np.concatenate, pairs)
        return CostSketch(groups, bins, weights, largest, bits)._small()

    def _columns(self) -> tuple[np.ndarray, ...]:
        return self.groups, self.bins, self.weights, self.largest

    def _cut(self, bits: int) -> "CostSketch":
        return CostSketch(self.groups, self.bins >> (self.bits - bits), self.weights, self.largest, bits)

    def _small(self) -> "CostSketch":
        sketch = self._merged()
        while len(sketch.bins) > MOST_BINS and sketch.bits > LEAST_BITS:
            sketch = sketch._cut(max(LEAST_BITS, sketch.bits - (26 if sketch.bits == ALL_BITS else 2)))._merged()
        return sketch

    def _merged(self) -> "CostSketch":
        order = np.lexsort((self.bins, self.groups))
        groups, bins = self.groups[order], self.bins[order]
        starts = np.flatnonzero(np.r_[True, (groups[1:] != groups[:-1]) | (bins[1:] != bins[:-1])])
        weights = np.add.reduceat(self.weights[order], starts)
        largest = np.maximum.reduceat(self.largest[order], starts)
        return CostSketch(groups[starts], bins[starts], weights, largest, self.bits)

    def thresholds(self, keep: float, n_groups: int) -> np.ndarray:
        """The largest costs (n_groups,) to keep, so that at least the share ``keep`` of the weight is kept."""
        limits = np.full(n_groups, -np.inf)
        for group in np.unique(self.groups):
            members = self.groups == group
            running = np.cumsum(self.weights[members])
            wanted = keep * running[-1] * (1 - 4 * np.finfo(np.float64).eps)  # 0.9 of 10 is 9, not a little more
            at = int(np.searchsorted(running, wanted, side="left"))
            limits[group] = self.largest[members][min(at, len(running) - 1)]
        return limits
