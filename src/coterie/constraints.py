"""What a user knows about some rows: their labels, pairs that share a cluster, and pairs that do not.

Semi-supervised estimators of scikit-learn take the label -1 for rows whose class is unknown; so do these. Rows that
must share a cluster form groups: two groups are apart if a pair says so, or if their labels differ.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

UNKNOWN = -1


@dataclass(frozen=True)
class Constraints:
    """Groups of rows that share a cluster, the label of each group, and pairs of groups that do not share one."""

    group: np.ndarray  # (N,) the group of a row, -1 for a row about which nothing is known
    label: np.ndarray  # (G,) the given label of a group, -1 if none is given
    apart: np.ndarray  # (P, 2) pairs of groups, those with different labels not included

    @classmethod
    def of(cls, n: int, y: Any = None, must_link: Any = None, cannot_link: Any = None) -> "Constraints | None":
        """Constraints on ``n`` rows, or None if nothing is known.

        ``y`` counts only if it holds whole numbers, of which at least one is -1 (unknown) and one is not: scikit-learn
        passes complete targets to every step of a pipeline, and clusterers ignore them.
        """
        given = _given(n, y)
        must, cannot = _pairs(n, must_link, "must_link"), _pairs(n, cannot_link, "cannot_link")
        if given is None and not len(must) and not len(cannot):
            return None
        given = np.full(n, UNKNOWN) if given is None else given
        linked = [must, *(_chain(np.flatnonzero(given == label)) for label in range(given.max(initial=-1) + 1))]
        ends = np.concatenate(linked)
        graph = coo_matrix((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(n, n))
        part = connected_components(graph, directed=False)[1]
        rows = np.unique(np.concatenate([ends.ravel(), cannot.ravel(), np.flatnonzero(given >= 0)]))
        group = np.full(n, -1)
        group[rows] = np.unique(part[rows], return_inverse=True)[1]
        made = cls(group, np.full(group.max() + 1, UNKNOWN), np.unique(np.sort(group[cannot], axis=1), axis=0))
        return made._labelled(given)._checked()

    def _labelled(self, given: np.ndarray) -> "Constraints":
        label = self.label.copy()
        known = np.flatnonzero(given >= 0)
        label[self.group[known]] = given[known]
        wrong = known[label[self.group[known]] != given[known]]
        if len(wrong):
            raise ValueError(
                f"must_link connects row {wrong[0]} (label {given[wrong[0]]}) with a row of another label: remove one "
                "of the two."
            )
        return replace(self, label=label)

    def _checked(self) -> "Constraints":
        labels = self.label[self.apart]
        same = (self.apart[:, 0] == self.apart[:, 1]) | ((labels[:, 0] == labels[:, 1]) & (labels[:, 0] >= 0))
        if same.any():
            rows = [int(np.flatnonzero(self.group == one)[0]) for one in self.apart[same.argmax()]]
            raise ValueError(
                f"cannot_link separates rows that must share a cluster (the groups of rows {rows[0]} and {rows[1]}): "
                "remove one of the two."
            )
        return self

    @property
    def n_labels(self) -> int:
        """The number of different labels that were given."""
        return int(self.label.max(initial=-1)) + 1

    @property
    def given(self) -> np.ndarray:
        """(N,) the label that each row must have, -1 where none is known."""
        return np.where(self.group >= 0, self.label[self.group], UNKNOWN)

    @property
    def n_groups(self) -> int:
        return len(self.label)

    def take(self, rows: np.ndarray) -> "Constraints":
        """The constraints on some rows. Groups keep their numbers."""
        return replace(self, group=self.group[rows])

    def completed(self, labels: np.ndarray, kept: np.ndarray) -> np.ndarray:
        """Labels in which every row has the cluster of its group, which those ``kept`` have already."""
        cluster = self.label.copy()
        bound = kept[self.group[kept] >= 0]
        cluster[self.group[bound]] = labels[bound]
        own = np.where(self.group >= 0, cluster[self.group], UNKNOWN)
        return np.where(own >= 0, own, labels).astype(labels.dtype)

    def included(self, sample: np.ndarray, most: int) -> np.ndarray:
        """A sample of rows with rows about which something is known in place of others: half of it at most."""
        room = min(most, len(sample)) // 2
        linked = np.flatnonzero((self.group >= 0) & (self.given < 0))
        labelled = np.flatnonzero(self.given >= 0)
        first = labelled[np.unique(self.given[labelled], return_index=True)[1]]
        if len(linked) + len(first) > room:
            raise ValueError(
                f"{len(linked) + len(first):,} rows are in pairs or are the first with their label, but at most "
                f"{room:,} can be read beside others: give fewer pairs, or labels (y) instead."
            )
        rest = np.setdiff1d(labelled, first)
        count = min(len(rest), room - len(linked) - len(first))
        needed = np.concatenate([linked, first, rest[np.linspace(0, len(rest) - 1, count).astype(int)]])
        others = sample[~np.isin(sample, needed)]
        return np.concatenate([needed, others[: len(sample) - len(needed)]])

    def separated_from(self, group: int) -> np.ndarray:
        """The groups that must not share a cluster with this one."""
        found = [self.apart[self.apart[:, 0] == group, 1], self.apart[self.apart[:, 1] == group, 0]]
        if self.label[group] >= 0:
            found.append(np.flatnonzero((self.label >= 0) & (self.label != self.label[group])))
        return np.unique(np.concatenate(found))


def _given(n: int, y: Any) -> np.ndarray | None:
    """Labels with -1 for unknown rows; None if y is a complete target, or none."""
    if y is None:
        return None
    labels = np.asarray(y)
    if labels.ndim != 1:
        return None
    if len(labels) != n:
        raise ValueError(f"y must have one label per row of X: {n}, got {len(labels)}.")
    if labels.dtype.kind == "f":
        labels = np.where(np.isnan(labels), UNKNOWN, labels)  # what pandas makes of integers with missing values
        if not (labels == np.round(labels)).all():
            return None
        labels = labels.astype(np.int64)
    if labels.dtype.kind not in "iu" or not (labels < 0).any() or not (labels >= 0).any():
        return None
    if labels.min() < UNKNOWN:
        raise ValueError(f"Labels must be 0, 1, ... or -1 for unknown rows; got {labels.min()}.")
    found = np.unique(labels[labels >= 0])
    if found[-1] != len(found) - 1:
        raise ValueError(
            f"Given labels must be 0, 1, ... without a gap, because they become numbers of clusters; got "
            f"{found[:10].tolist()}. Number them with numpy.unique(labels, return_inverse=True)."
        )
    return labels.astype(np.int64)


def _pairs(n: int, given: "Iterable[Any] | None", name: str) -> np.ndarray:
    """(P, 2) row numbers."""
    if given is None:
        return np.empty((0, 2), dtype=np.int64)
    pairs = np.asarray(list(given) if not isinstance(given, np.ndarray) else given)
    if pairs.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise ValueError(f"{name} must hold pairs of row numbers, shape (n_pairs, 2); got shape {pairs.shape}.")
    if pairs.min() < 0 or pairs.max() >= n:
        wrong = int(pairs[(pairs < 0) | (pairs >= n)][0])
        raise ValueError(f"{name} names row {wrong}, but X has the rows 0 to {n - 1}.")
    return pairs.astype(np.int64)


def _chain(rows: np.ndarray) -> np.ndarray:
    """Links between consecutive rows, so that all of them are one group."""
    return np.column_stack([rows[:-1], rows[1:]])
