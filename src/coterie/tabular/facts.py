"""The facts of a clustering, which every front shows: sizes, centres, notes and cautions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.data.encoding import Encoding
from coterie.selection import Choice
from coterie.tabular.cautions import Caution, cautions
from coterie.tabular.clustered_table import ClusteredTable, Run


@dataclass(frozen=True)
class ClusterSummary:
    """One cluster: its size, its centre in the units of the table, and how far that is from the mean of each column.

    ``center`` is the centre of the estimator or, where that has no such units (directions and categories), the mean of
    the rows. ``deviation`` is measured in standard deviations of the column. Outliers are summarised under the label
    -1, with their mean as the centre.
    """

    label: int
    size: int
    share: float
    center: dict[str, float]
    deviation: dict[str, float]

    def distinctive(self, count: int = 3) -> list[str]:
        """The columns in which the cluster is farthest from the mean of all rows."""
        return sorted(self.deviation, key=lambda name: -abs(self.deviation[name]))[:count]


@dataclass(frozen=True)
class Facts:
    """What there is to say about a clustering, whether its rows are in memory or in blocks."""

    run: Run
    encoding: Encoding
    rows: int
    summaries: tuple[ClusterSummary, ...]
    notes: tuple[str, ...]
    inertia: float | None
    iterations: int | None

    @classmethod
    def of(
        cls, run: Run, encoding: Encoding, estimator: Any, summaries: Sequence[ClusterSummary], found: Sequence[Caution]
    ) -> "Facts":
        inertia, iterations = getattr(estimator, "inertia_", None), getattr(estimator, "n_iter_", None)
        return cls(
            run,
            encoding,
            sum(one.size for one in summaries),
            tuple(summaries),
            (*run.notes, *(caution.text for caution in found)),
            None if inertia is None else float(inertia),
            None if iterations is None else int(iterations),
        )

    @property
    def n_clusters(self) -> int:
        return sum(one.label >= 0 for one in self.summaries)

    @property
    def outliers(self) -> int:
        return sum(one.size for one in self.summaries if one.label < 0)

    @property
    def choice(self) -> Choice | None:
        return self.run.choice


def facts_of(clustered: ClusteredTable) -> Facts:
    encoding = clustered.encoding or Encoding.affine(clustered.value_names)
    return Facts.of(clustered.run, encoding, clustered.estimator, summaries_of(clustered), cautions(clustered))


def summaries_of(clustered: ClusteredTable) -> list[ClusterSummary]:
    """Every cluster of the estimator, including empty ones, then the outliers if there are any."""
    mean = clustered.values.mean(axis=0, dtype=np.float64)
    deviation = clustered.values.std(axis=0, dtype=np.float64)
    centers = dict(enumerate(clustered.value_centers))
    if len(clustered.outliers):
        centers[-1] = clustered.values[clustered.outliers].mean(axis=0, dtype=np.float64)
    sizes = {**dict(enumerate(clustered.sizes.tolist())), -1: len(clustered.outliers)}
    return [summary(label, sizes[label], clustered.n, center, clustered.value_names, mean, deviation)
            for label, center in centers.items()]  # fmt: skip


def summary(
    label: int, size: int, rows: int, center: np.ndarray, names: Sequence[str], mean: np.ndarray, deviation: np.ndarray
) -> ClusterSummary:
    """One summary, from the mean and the standard deviation of every column."""
    away = (center - mean) / np.where(deviation > 0, deviation, 1.0)
    return ClusterSummary(
        label, int(size), size / rows, dict(zip(names, center.tolist())), dict(zip(names, away.tolist()))
    )
