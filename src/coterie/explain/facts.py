"""The facts of a clustering, which every front shows: sizes, centres, the verdict, notes and cautions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from coterie.explain.cautions import cautions
from coterie.explain.certainty import count_probabilities, outlier_rows
from coterie.explain.verdict import Verdict
from coterie.selection import Choice
from coterie.tables.encoding import Encoding
from coterie.tables.texts import TextCluster
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
    texts: Mapping[str, str] = field(default_factory=dict)  # the centre as the user would write it

    def distinctive(self, count: int = 3) -> list[str]:
        """The values that are farthest from the mean, one per column: a category is named by its farthest level."""
        best: dict[str, str] = {}
        for name in sorted(self.deviation, key=lambda name: -abs(self.deviation[name])):
            best.setdefault(name.partition(" = ")[0], name)
        return list(best.values())[:count]


@dataclass(frozen=True)
class Facts:
    """What there is to say about a clustering, whether its rows are in memory or in blocks.

    ``outliers`` is the number of rows that are outliers, and None if the estimator does not look for any.
    ``count_probabilities`` has the probability of each number of clusters, the most probable first, and ``certainty``
    is the mean over all rows; they are empty or None where the estimator gives no probabilities. ``verdict`` is None
    for data in blocks.
    """

    run: Run
    encoding: Encoding
    rows: int
    summaries: tuple[ClusterSummary, ...]
    notes: tuple[str, ...]
    inertia: float | None
    iterations: int | None
    outliers: int | None = None
    verdict: Verdict | None = None
    count_probabilities: Mapping[int, float] = field(default_factory=dict)
    certainty: float | None = None
    names: Mapping[int, str] = field(default_factory=dict)
    texts: Mapping[int, TextCluster] = field(default_factory=dict)  # what clusters of texts are about

    @classmethod
    def of(
        cls, run: Run, encoding: Encoding, estimator: Any, summaries: Sequence[ClusterSummary], **more: Any
    ) -> "Facts":
        """``more`` are fields that not every clustering has."""
        inertia, iterations = getattr(estimator, "inertia_", None), getattr(estimator, "n_iter_", None)
        found = {
            "notes": run.notes, "inertia": None if inertia is None else float(inertia),
            "iterations": None if iterations is None else int(iterations),
            "outliers": sum(one.size for one in summaries if one.label < 0) or None,
        }  # fmt: skip
        return cls(run, encoding, sum(one.size for one in summaries), tuple(summaries), **{**found, **more})

    @property
    def n_clusters(self) -> int:
        return sum(one.label >= 0 for one in self.summaries)

    @property
    def choice(self) -> Choice | None:
        return self.run.choice

    def document(self) -> dict[str, Any]:
        """The same as JSON, which the command line prints and the page of the studio reads."""
        encoding, choice, verdict = self.encoding, self.choice, self.verdict
        return {
            "rows": self.rows,
            "columns": encoding.value_names,
            "scaled": not encoding.is_identity,
            "encoded": [] if encoding.complete else encoding.names,
            "algorithm": self.run.algorithm,
            "n_clusters": self.n_clusters,
            "seed": self.run.seed,
            "inertia": self.inertia,
            "iterations": self.iterations,
            "seconds": round(self.run.seconds or 0.0, 4),
            "clusters": [
                {"label": one.label, "name": self.names.get(one.label), "rows": one.size, "share": one.share,
                 "center": one.center, **(self.texts[one.label]._asdict() if one.label in self.texts else {})}
                for one in self.summaries if one.label >= 0
            ],
            "outliers": self.outliers or 0,
            "verdict": verdict and {**vars(verdict), "text": verdict.text},
            "n_clusters_proba": {str(k): round(p, 4) for k, p in self.count_probabilities.items()},
            "certainty": self.certainty,
            "choice": choice and choice.document(),
            "notes": list(self.notes),
        }  # fmt: skip


def facts_of(clustered: ClusteredTable) -> Facts:
    encoding = clustered.encoding or Encoding.affine(clustered.value_names)
    outliers, certainty = outlier_rows(clustered), getattr(clustered.estimator, "certainty_", None)
    return Facts.of(
        clustered.run,
        encoding,
        clustered.estimator,
        summaries_of(clustered),
        notes=(*clustered.run.notes, *(caution.text for caution in cautions(clustered))),
        outliers=None if outliers is None else int(outliers.sum()),
        verdict=clustered.verdict,
        count_probabilities=count_probabilities(clustered),
        certainty=None if certainty is None else float(np.mean(certainty)),
        names=clustered.names,
        texts=clustered.texts,
    )


def summaries_of(clustered: ClusteredTable) -> list[ClusterSummary]:
    """Every cluster of the estimator, including empty ones, then the outliers if there are any."""
    mean = clustered.values.mean(axis=0, dtype=np.float64)
    with np.errstate(over="ignore"):  # of values beyond 1e154, which zeroshot compares by their logarithms or ranks
        deviation = clustered.values.std(axis=0, dtype=np.float64)
    centers = {label: clustered.value_centers[label] for label in clustered.ids}
    if len(clustered.outliers):
        centers[-1] = clustered.values[clustered.outliers].mean(axis=0, dtype=np.float64)
    sizes = {**dict(enumerate(clustered.sizes.tolist())), -1: len(clustered.outliers)}
    made = []
    for label, center in centers.items():
        one = summary(label, sizes[label], clustered.n, center, clustered.value_names, mean, deviation)
        shown = [column.show(value) for column in clustered.fields for value in center[column.own]]
        made.append(replace(one, texts=dict(zip(clustered.value_names, shown))))
    return made


def summary(
    label: int, size: int, rows: int, center: np.ndarray, names: Sequence[str], mean: np.ndarray, deviation: np.ndarray
) -> ClusterSummary:
    """One summary, from the mean and the standard deviation of every column."""
    away = (center - mean) / np.where(deviation > 0, deviation, 1.0)
    center = np.where(np.abs(center) < 1e-10 * deviation, 0.0, center)  # rounding errors of a mean that is zero
    return ClusterSummary(
        label, int(size), size / rows, dict(zip(names, center.tolist())), dict(zip(names, away.tolist()))
    )
