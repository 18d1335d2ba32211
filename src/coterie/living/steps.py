"""The steps that lead from the labels of a fitted estimator to those that people work with.

A cluster has an id, which no other cluster ever gets. Every step is a value that can be applied to the labels of any
rows, to the ids and names that exist, and to the moments that were measured when the estimator was fitted.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from coterie.living.moments import Moments, pooled
from coterie.living.rows import given_to, points_of, take
from coterie.wording import joined, plural

NEAR = 1e-6  # relative difference of two values that counts as none: encoding rounds


@dataclass(frozen=True)
class Clusters:
    """The ids that exist, the next one that is free, and the names that were given."""

    ids: tuple[int, ...]
    next_id: int
    names: Mapping[int, str] = field(default_factory=dict)

    def require(self, *labels: int) -> None:
        for label in labels:
            if label not in self.ids:
                known = joined([str(one) for one in self.ids], limit=20)
                raise ValueError(f"There is no cluster {label}: the clusters are {known}.")

    def with_ids(self, ids: Any, next_id: int | None = None) -> "Clusters":
        kept = tuple(sorted(set(ids)))
        names = {label: name for label, name in self.names.items() if label in kept}
        return Clusters(kept, max(self.next_id, next_id or 0), names)


@dataclass(frozen=True)
class Merge:
    """Several clusters become the first of them."""

    labels: tuple[int, ...]

    @property
    def told(self) -> str:
        return f"Merged {joined([str(one) for one in self.labels])} into {self.labels[0]}."

    def after(self, clusters: Clusters) -> Clusters:
        clusters.require(*self.labels)
        names = [clusters.names[one] for one in self.labels if one in clusters.names]
        made = clusters.with_ids(set(clusters.ids) - set(self.labels[1:]))
        return replace(made, names={**made.names, self.labels[0]: names[0]}) if names else made

    def of_fit(self, labels: np.ndarray) -> np.ndarray:
        return np.where(np.isin(labels, self.labels[1:]), self.labels[0], labels).astype(labels.dtype)

    def of_rows(self, labels: np.ndarray, X: Any, base: Any) -> np.ndarray:
        return self.of_fit(labels)

    def moments(self, known: dict[int, Moments]) -> dict[int, Moments]:
        found = [known[one] for one in self.labels if one in known]
        rest = {label: one for label, one in known.items() if label not in self.labels}
        return {**rest, self.labels[0]: pooled(found)} if len(found) == len(self.labels) else rest


@dataclass(frozen=True)
class Split:
    """A cluster is divided by a fitted estimator. The largest part keeps the id."""

    label: int
    parts: tuple[int, ...]  # the id of every label of the estimator
    estimator: Any

    @property
    def told(self) -> str:
        return f"Split {self.label} into {joined([str(one) for one in sorted(self.parts)])}."

    def after(self, clusters: Clusters) -> Clusters:
        clusters.require(self.label)
        return clusters.with_ids({*clusters.ids, *self.parts}, max(self.parts) + 1)

    def of_fit(self, labels: np.ndarray) -> np.ndarray:
        return self._divided(labels, labels == self.label, np.asarray(self.estimator.labels_))

    def of_rows(self, labels: np.ndarray, X: Any, base: Any) -> np.ndarray:
        own = labels == self.label
        if not own.any():
            return labels
        return self._divided(
            labels, own, np.asarray(self.estimator.predict(given_to(self.estimator, take(X, np.flatnonzero(own)))))
        )

    def _divided(self, labels: np.ndarray, own: np.ndarray, part: np.ndarray) -> np.ndarray:
        """Rows that the estimator takes for outliers stay in the cluster that keeps the id."""
        divided = labels.copy()
        divided[own] = np.where(part < 0, self.label, np.asarray(self.parts)[part])
        return divided

    def moments(self, known: dict[int, Moments]) -> dict[int, Moments]:
        rest = {label: one for label, one in known.items() if label != self.label}
        return rest | {self.parts[part]: one for part, one in Moments.of_estimator(self.estimator).items() if part >= 0}


@dataclass(frozen=True)
class Name:
    """A cluster gets a name; an empty one takes it away."""

    label: int
    name: str

    @property
    def told(self) -> str:
        return f"Named {self.label} {self.name!r}." if self.name else f"Removed the name of {self.label}."

    def after(self, clusters: Clusters) -> Clusters:
        clusters.require(self.label)
        others = {label: name for label, name in clusters.names.items() if label != self.label}
        if self.name in others.values():
            raise ValueError(f"Two clusters would be named {self.name!r}: give each cluster a name of its own.")
        return replace(
            clusters, names=dict(sorted({**others, **({self.label: self.name} if self.name else {})}.items()))
        )

    def of_fit(self, labels: np.ndarray) -> np.ndarray:
        return labels

    def of_rows(self, labels: np.ndarray, X: Any, base: Any) -> np.ndarray:
        return labels

    def moments(self, known: dict[int, Moments]) -> dict[int, Moments]:
        return known


@dataclass(frozen=True)
class Pin:
    """Single rows belong to a cluster, whatever the estimator says; rows that equal them do so, too."""

    label: int
    places: np.ndarray  # (m,) of the rows of the fit
    points: np.ndarray  # (m, e) these rows as the estimator sees them

    @property
    def told(self) -> str:
        return f"Pinned {plural(len(self.points), 'row')} to {self.label}."

    def after(self, clusters: Clusters) -> Clusters:
        clusters.require(self.label)
        return clusters

    def of_fit(self, labels: np.ndarray) -> np.ndarray:
        pinned = labels.copy()
        pinned[self.places] = self.label
        return pinned

    def of_rows(self, labels: np.ndarray, X: Any, base: Any) -> np.ndarray:
        pinned, points = labels.copy(), points_of(base, X)
        for point in self.points:
            near = NEAR * np.maximum(np.abs(point), np.abs(self.points).max(initial=1e-300))
            pinned[(np.abs(points - point) <= near).all(axis=1)] = self.label
        return pinned

    def moments(self, known: dict[int, Moments]) -> dict[int, Moments]:
        return known


@dataclass(frozen=True)
class Continue:
    """The clusters of a new fit get the ids of the older clusters that they continue, or ids that were never used."""

    ids: tuple[int, ...]  # of the labels 0, 1, ... of the new fit
    before: tuple[int, ...]  # the ids that existed
    next_id: int
    names: Mapping[int, str] = field(default_factory=dict)  # that were given before

    @property
    def told(self) -> str:
        new, ended = sorted(set(self.ids) - set(self.before)), sorted(set(self.before) - set(self.ids))
        parts = [f"{plural(len(set(self.ids) & set(self.before)), 'cluster')} continued"]
        parts += [f"new: {joined([str(one) for one in new])}"] if new else []
        parts += [f"ended: {joined([str(one) for one in ended])}"] if ended else []
        return f"Continued an earlier model: {'; '.join(parts)}."

    def after(self, clusters: Clusters) -> Clusters:
        made = Clusters(self.before, self.next_id, self.names)
        return made.with_ids(self.ids, max(self.ids, default=-1) + 1)

    def of_fit(self, labels: np.ndarray) -> np.ndarray:
        return np.where(labels < 0, -1, np.asarray(self.ids)[labels]).astype(labels.dtype)

    def of_rows(self, labels: np.ndarray, X: Any, base: Any) -> np.ndarray:
        return self.of_fit(labels)

    def moments(self, known: dict[int, Moments]) -> dict[int, Moments]:
        found: dict[int, list[Moments]] = {}
        for label, one in known.items():
            found.setdefault(self.ids[label] if label >= 0 else -1, []).append(one)
        return {label: pooled(each) for label, each in found.items()}


Step = Merge | Split | Name | Pin | Continue
