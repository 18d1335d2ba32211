"""An algorithm of the family: a row of the table with its settings, which every engine runs.

Estimators turn their parameters into an :class:`Algorithm`. The engines in memory, the fits on chunks and on Dask and
the replay of a report read this value and nothing else of the estimator.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from coterie.constraints import Constraints
from coterie.kmeans.family import TABLE, Row, Variant
from coterie.kmeans.transport import Sizes, bounds, n_kept


@dataclass(frozen=True)
class Algorithm:
    """One algorithm of the family. A row that does not use a setting ignores it."""

    row: Row = TABLE["lloyd"]
    gamma: float | None = 1.0  # inverse temperature of softmax and sparsemax; None: chosen by the start's mean cost
    keep: float = 1.0  # share of the weight that trimming keeps
    per_cluster: bool = True  # whether trimming keeps that share of every cluster, or of all points together
    trim_gamma: float | None = None  # norm-max with this one gamma instead of a share to keep
    top: int = 50  # points that a centre attends to with top-k
    delta: float = 10.0  # gap of randomised k-medoids: points of other clusters score 2 delta lower
    mixing_weights: bool = False  # whether the shares of the clusters are estimated as well
    outliers: float = 0.0  # share of the points that the start, and the choice among several runs, leave out
    seed: int = 0  # of the Gumbel noise
    sizes: Sizes = "balanced"  # fewest and most rows of a cluster, in rows of the table that bound them
    prices: np.ndarray | None = field(default=None, compare=False)  # (k,) of a fitted row that bounds sizes
    constraints: Constraints | None = field(default=None, compare=False)  # on the rows of a fit; Lloyd's algorithm only

    def with_sizes(self, sizes: Sizes | None) -> "Algorithm":
        """The same algorithm with bounds on the sizes of its clusters, if there are any."""
        if sizes is None:
            return self
        return replace(self, row=self.row.with_sizes(), sizes=sizes)

    def check_sizes(self, n: int, k: int) -> None:
        """Raise ValueError if the bounds on sizes, if there are any, are impossible for n rows and k clusters."""
        if self.variant.sized:
            bounds(self.sizes, n_kept(n, self.outliers), k)

    @property
    def variant(self) -> Variant:
        return self.row.variant

    @property
    def spherical(self) -> bool:
        return self.row.form.spherical

    @property
    def hard_means(self) -> bool:
        """Whether centres are the plain means of the points nearest to them, as in Lloyd's algorithm."""
        return self.variant.points == self.variant.centers == "limiting"

    @property
    def labels_decide(self) -> bool:
        """Whether equal labels lead to equal centres, so that a run can stop when the labels repeat."""
        return not self.variant.soft and self.variant.centers in ("limiting", "norm-max")

    @property
    def uses_gamma(self) -> bool:
        rules = (self.variant.points, self.variant.centers)
        return any(rule in ("softmax", "sinkhorn", "sparsemax", "top-k") for rule in rules)

    @property
    def draws(self) -> bool:
        """Whether centres are points drawn at random, so that a run never converges."""
        return self.variant.centers == "gumbel"

    def with_gamma(self, mean_cost: float, n_features: int) -> "Algorithm":
        """The same algorithm with gamma set, if it is None, from the mean cost of the points at the initial centres."""
        if self.gamma is not None:
            return self
        scale = n_features / 2 if self.variant.gaussian_gamma else 1.0
        return replace(self, gamma=scale / mean_cost if mean_cost > 0 else 1.0)
