"""Which clusters of a new fit continue which earlier ones, and what became of the others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from coterie.living.steps import Clusters, Merge

LEAST_OVERLAP = 0.3  # Jaccard index of two clusters from which one continues the other
MOSTLY = 0.5  # share of the rows of a cluster that come from, or go to, one other cluster


def counts_of(before: np.ndarray, after: np.ndarray, old: Sequence[int], new: Sequence[int]) -> np.ndarray:
    """(old + 1, new + 1) the numbers of rows that two labellings share; last those that are in no cluster."""
    place_old = {label: i for i, label in enumerate(old)}
    place_new = {label: i for i, label in enumerate(new)}
    rows = [place_old.get(label, len(old)) for label in before.tolist()]
    columns = [place_new.get(label, len(new)) for label in after.tolist()]
    counts = np.zeros((len(old) + 1, len(new) + 1), dtype=np.int64)
    np.add.at(counts, (rows, columns), 1)
    return counts


def partners(counts: np.ndarray, least: float = LEAST_OVERLAP) -> dict[int, int]:
    """The place of the earlier cluster that each new one continues: the best sum of Jaccard indices of the pairs."""
    inside = counts[:-1, :-1]
    union = counts[:-1].sum(axis=1)[:, None] + counts[:, :-1].sum(axis=0)[None] - inside
    overlap = inside / np.maximum(union, 1)
    pairs = zip(*linear_sum_assignment(-np.where(overlap >= least, overlap, 0)))
    return {int(j): int(i) for i, j in pairs if overlap[i, j] >= max(least, 1e-12)}


def continued(
    before: np.ndarray, labels: np.ndarray, earlier: Clusters, n_clusters: int, joined: set[int]
) -> tuple[int, ...]:
    """The ids of the labels of a new fit. ``joined`` are earlier clusters that were merged by hand."""
    counts = counts_of(before, labels, earlier.ids, range(n_clusters))
    chosen = partners(counts)
    ids, following = [], earlier.next_id
    for label in range(n_clusters):
        size = counts[:, label].sum()
        main = int(counts[:-1, label].argmax()) if len(earlier.ids) else -1
        part_of = main >= 0 and earlier.ids[main] in joined and counts[main, label] > MOSTLY * size
        if label in chosen or part_of:
            ids.append(earlier.ids[chosen.get(label, main)])
        else:
            ids.append(following)
            following += 1
    return tuple(ids)


def is_edit(before: Any, after: Any) -> bool:
    """Whether one of two edited models was made from the other, so that their ids are of the same clusters."""
    one, other, told = vars(before.estimator_), vars(after.estimator_), (before.history, after.history)
    arrays = {name: each for name, each in one.items() if isinstance(each, np.ndarray)}
    same_fit = type(before.estimator_) is type(after.estimator_) and all(
        name in other and np.array_equal(each, other[name], equal_nan=each.dtype.kind == "f")
        for name, each in arrays.items()
    )
    return same_fit and all(a == b for a, b in zip(*told))


def merged_since(before: Any, after: Any) -> dict[int, int]:
    """The cluster into which each of an earlier model was merged by hand, where ``after`` is an edit of it."""
    found: dict[int, int] = {}
    for step in after._steps[len(before._steps) :]:
        if isinstance(step, Merge):
            gone, to = set(step.labels[1:]), step.labels[0]
            found = {label: to if one in gone else one for label, one in found.items()} | dict.fromkeys(gone, to)
    return found


@dataclass(frozen=True)
class Flows:
    """How rows move between the clusters of two models: their sizes, flows, and what became of every cluster."""

    old: tuple[int, ...]
    new: tuple[int, ...]
    counts: np.ndarray  # (old + 1, new + 1); last the rows that fit no cluster
    same_ids: bool = False  # one model is an edit of the other
    merged: Mapping[int, int] = field(default_factory=dict)  # by hand: the new cluster of an earlier one

    @classmethod
    def of(cls, before: np.ndarray, after: np.ndarray, old: Sequence[int], new: Sequence[int], **more: Any) -> "Flows":
        return cls(tuple(old), tuple(new), counts_of(before, after, old, new), **more)

    @property
    def partner(self) -> dict[int, int]:
        """The earlier cluster that each new one continues."""
        if self.same_ids:
            return {label: label for label in self.new if label in self.old}
        return {self.new[j]: self.old[i] for j, i in partners(self.counts).items()}

    @property
    def came_from(self) -> dict[int, int | None]:
        """For every new cluster that continues none: the earlier one from which most of its rows come, if any."""
        partner = self.partner
        found: dict[int, int | None] = {}
        for j, label in enumerate(self.new):
            column = self.counts[:, j]
            main = int(column[:-1].argmax()) if len(self.old) else 0
            if label not in partner:
                mostly = len(self.old) and column[main] > MOSTLY * column.sum()
                found[label] = self.old[main] if mostly else None
        return found

    @property
    def went_to(self) -> dict[int, int | None]:
        """For every earlier cluster that none continues: the new one in which most of its rows are, if any."""
        continued = set(self.partner.values())
        found: dict[int, int | None] = {}
        for i, label in enumerate(self.old):
            row = self.counts[i]
            main = int(row[:-1].argmax()) if len(self.new) else 0
            if label not in continued:
                large = len(self.new) and row[main] > MOSTLY * max(row.sum(), 1) and row[main] > 0
                part = large and row[main] >= LEAST_OVERLAP / 3 * self.counts[:, main].sum()
                found[label] = self.merged.get(label, self.new[main] if part else None)
        return found
