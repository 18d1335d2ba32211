"""What a fit remembers of its clusters, so that later rows can be compared with them: sizes, means and variances.

Two arrays are fitted attributes of an estimator, and are saved with it. ``value_profile_`` (k + 1, 1 + 2 D) has the
number of rows, the means and the variances of every cluster in the units of the table, and last those of the outliers.
``point_profile_`` (k, 2 + 2 E) has the number of rows, a limit, means and variances as the estimator sees the rows: 99%
of the rows of the fit are nearer to the mean of their cluster than the limit.
"""

from typing import Any, NamedTuple

import numpy as np

from coterie.living.rows import points_of, values_of

INSIDE = 0.99  # share of the rows of a cluster that are inside of its limit


class Moments(NamedTuple):
    """The number of rows of a cluster, and the mean and the variance of every column."""

    rows: float
    mean: np.ndarray
    variance: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray) -> "Moments":
        if not len(rows):
            return cls(0.0, np.zeros(rows.shape[1]), np.zeros(rows.shape[1]))
        return cls(float(len(rows)), rows.mean(axis=0), rows.var(axis=0))

    @classmethod
    def by_label(cls, values: np.ndarray, labels: np.ndarray) -> "dict[int, Moments]":
        return {label: cls.of(values[labels == label]) for label in np.unique(labels).tolist()}

    @classmethod
    def of_estimator(cls, estimator: Any) -> "dict[int, Moments]":
        """Those that a fit remembers, by label, with the outliers as -1; empty if it remembers none."""
        profile = getattr(estimator, "value_profile_", None)
        if profile is None:
            return {}
        width = (profile.shape[1] - 1) // 2
        found = [cls(float(one[0]), one[1 : 1 + width], one[1 + width :]) for one in profile]
        return {label if label < len(found) - 1 else -1: one for label, one in enumerate(found)}


def pooled(parts: list[Moments]) -> Moments:
    """The moments of several clusters together."""
    count = sum(one.rows for one in parts)
    if not count:
        return parts[0]
    mean = sum(one.rows * one.mean for one in parts) / count
    variance = sum(one.rows * (one.variance + (one.mean - mean) ** 2) for one in parts) / count
    return Moments(count, np.asarray(mean), np.asarray(variance))


def remember(estimator: Any, X: Any) -> Any:
    """The fitted estimator, which now remembers the rows of its fit. X are these rows."""
    labels, k = np.asarray(estimator.labels_), count_of(estimator)
    points, (values, _) = points_of(estimator, X), values_of(estimator, X)
    inside, all_values = [], []
    for label in (*range(k), -1):
        own = labels == label
        all_values.append(np.concatenate([[own.sum()], *Moments.of(values[own])[1:]]))
        if label >= 0:
            found = Moments.of(points[own])
            inside.append(np.concatenate([[own.sum(), _limit(points[own], found)], *found[1:]]))
    estimator.value_profile_, estimator.point_profile_ = np.array(all_values), np.array(inside)
    return estimator


def count_of(estimator: Any) -> int:
    """The number of labels of a fitted estimator, empty clusters included."""
    centers = getattr(estimator, "cluster_centers_", None)
    return int(np.max(estimator.labels_, initial=-1)) + 1 if centers is None else len(centers)


def outside(estimator: Any, X: Any, labels: np.ndarray) -> np.ndarray | None:
    """(N,) which rows are farther from their cluster than nearly all rows of the fit; None if that is not known."""
    profile = getattr(estimator, "point_profile_", None)
    if profile is None:
        return None
    points, width = points_of(estimator, X), (profile.shape[1] - 2) // 2
    far = np.zeros(len(points), dtype=bool)
    for label, (count, limit, *rest) in enumerate(profile):
        own = labels == label
        found = Moments(count, np.array(rest[:width]), np.array(rest[width:]))
        far[own] = _distance(points[own], found) > limit
    return far


def expected_outside(estimator: Any) -> float:
    """The share of rows that are outside if nothing has changed."""
    count = estimator.point_profile_[:, 0]
    return float((count * np.maximum(1 - INSIDE, 1 / (count + 1))).sum() / max(count.sum(), 1))


def _distance(points: np.ndarray, found: Moments) -> np.ndarray:
    """The distance to the mean in standard deviations of every column. A new row differs from an estimated mean."""
    spread = found.variance * (1 + 1 / max(found.rows, 1)) + _tiny(found)
    return np.sqrt(((points - found.mean) ** 2 / spread).mean(axis=1))


def _limit(points: np.ndarray, found: Moments) -> float:
    """The distance within which 99% of the rows are, each measured with the moments of the others."""
    n = len(points)
    if n < 2:
        return 0.0 if n else -1.0
    sq = (points - found.mean) ** 2 * n / (n - 1)
    without = np.maximum(n * found.variance - sq, 0) / (n - 1)
    away = np.sqrt((sq * n / (n - 1) / (without * n / (n - 1) + _tiny(found))).mean(axis=1))
    return float(np.sort(away)[min(n, int(np.ceil(INSIDE * (n + 1)))) - 1])


def _tiny(found: Moments) -> np.ndarray:
    """What keeps a constant column from deciding alone."""
    return 1e-9 + 1e-6 * max(float(found.variance.max(initial=0.0)), 0.0) + 1e-12 * found.mean**2
