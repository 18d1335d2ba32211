"""Dividing one cluster: along the hierarchy of the estimator, or by another fit of it to the rows of the cluster."""

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import silhouette_score

from coterie.estimators.capabilities import has_parameter, start_was_given
from coterie.living.moments import count_of, remember
from coterie.living.rows import given_to, points_of
from coterie.selection import SAMPLE_ROWS, stratified_sample

MOST_PARTS = 6  # that are tried
LEAST_PART = 0.05  # share of the rows that every part of a number that was not given has, if possible


def divided(model: Any, label: int, n_parts: int | None, X: Any) -> tuple[Any, np.ndarray]:
    """An estimator that was fitted to the rows X of a cluster and has the parts as its labels, and their sizes.

    Without X, a model with a hierarchy is divided on the rows that it read, and has no ``labels_``.
    """
    base = model.estimator_
    if n_parts is not None and n_parts < 2:
        raise ValueError(f"A cluster is split into at least 2 parts; got {n_parts}.")
    if hasattr(base, "_within"):
        part = _along_hierarchy(model, label, n_parts, X)
        sizes = _sizes(part)
        if X is None:  # what is known of all rows does not hold for the parts
            for name in ("labels_", "value_profile_", "point_profile_"):
                vars(part).pop(name, None)
        return part, sizes
    if X is None:
        raise ValueError(
            f"{type(base).__name__} has no hierarchy and is fitted again to split a cluster: pass the rows of the fit "
            "as X (--rows on the command line)."
        )
    n = len(points_of(base, X))
    if n < max(2, n_parts or 2):
        raise ValueError(f"Cluster {label} has {n} rows, too few to split it into {n_parts or 2} parts.")
    settings: dict[str, Any] = {"init": "k-means++"} if start_was_given(base) else {}
    if not has_parameter(base, "n_clusters"):
        if n_parts is not None:
            raise ValueError(f"{type(base).__name__} determines the number of parts itself: do not give one.")
        part = _fitted(base, X, settings)
    else:
        counts = [n_parts] if n_parts else [k for k in range(2, MOST_PARTS + 1) if k < n] or [2]
        fits = [_fitted(base, X, {**settings, "n_clusters": k}) for k in counts]
        part = _clearest(fits, points_of(base, X))
    if len(np.unique(part.labels_[part.labels_ >= 0])) < 2:
        raise ValueError(f"{type(base).__name__} finds no parts in cluster {label}.")
    return part, _sizes(part)


def _sizes(part: Any) -> np.ndarray:
    return np.bincount(part.labels_[part.labels_ >= 0], minlength=count_of(part))


def _fitted(base: Any, X: Any, settings: dict[str, Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return remember(clone(base).set_params(**settings).fit(given_to(base, X)), X)


def _along_hierarchy(model: Any, label: int, n_parts: int | None, X: Any) -> Any:
    """The hierarchy of the rows that were read of this cluster, cut into parts."""
    base = model.estimator_
    read = base._read()
    own = np.flatnonzero(model.predict(read) == label)
    if len(own) < max(2, n_parts or 2):
        raise ValueError(
            f"Of cluster {label}, {len(own)} rows were read, too few to split it into {n_parts or 2} parts."
        )
    within, rows = base._within(own), read.take(own) if X is None else X
    counts = [n_parts] if n_parts else [k for k in range(2, MOST_PARTS + 1) if k < len(own)] or [2]
    part = _clearest([within.recut(rows, k) for k in counts], points_of(base, rows))
    return part if X is None else remember(part, X)


def _clearest(fits: list[Any], points: np.ndarray) -> Any:
    """The fit whose parts have the best silhouette, none of which is only a few rows."""
    if len(fits) == 1:
        return fits[0]

    def silhouette(one: Any) -> float:
        labels = np.asarray(one.labels_)
        kept = np.flatnonzero(labels >= 0)
        kept = kept[stratified_sample(labels[kept], SAMPLE_ROWS)]
        found = len(np.unique(labels[kept]))
        return float(silhouette_score(points[kept], labels[kept])) if 2 <= found < len(kept) else -1.0

    return max(fits, key=lambda one: (_sizes(one).min() >= LEAST_PART * _sizes(one).sum(), silhouette(one)))
