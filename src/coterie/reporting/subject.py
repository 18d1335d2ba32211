"""What a report is about: a fitted estimator, the rows as it saw them, and the rows as people know them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.preprocessing import normalize
from sklearn.utils.validation import check_is_fitted

from coterie.selection import on_sphere

MAX_CELLS = 50_000_000


@dataclass(frozen=True)
class Subject:
    """``X`` is what the estimator saw, ``values`` the same rows in their own units; ``table`` may know more columns."""

    estimator: Any
    X: np.ndarray
    names: list[str]
    labels: np.ndarray
    values: np.ndarray
    value_names: list[str]
    table: pd.DataFrame
    pipeline: Any = None

    @classmethod
    def of(cls, estimator: Any, X: Any, table: Any = None, columns: Sequence[Any] | None = None) -> "Subject":
        """``table``: the rows in their own units; ``columns``: which of its columns X was made from."""
        pipeline, given = None, X
        if hasattr(estimator, "steps"):
            pipeline, estimator = estimator, estimator[-1]
            X = pipeline[:-1].transform(X) if len(pipeline.steps) > 1 else X
        check_is_fitted(estimator)
        matrix = _matrix(X)
        labels = np.asarray(getattr(estimator, "labels_", ())).reshape(-1).astype(np.int64)
        if len(labels) != len(matrix):
            raise ValueError(
                f"X has {len(matrix):,} rows, but the estimator was fitted on {len(labels):,}: report on the rows it "
                "was fitted on, or fit it on these."
            )
        names = _names(X, estimator, matrix.shape[1])
        source = table if table is not None else given
        columns = list(columns) if columns is not None else None
        frame = source if isinstance(source, pd.DataFrame) else None
        if frame is not None and len(frame) != len(matrix):
            raise ValueError(
                f"table has {len(frame):,} rows and X {len(matrix):,}: give the same rows in the same order."
            )
        values, value_names = matrix, names
        if frame is not None:
            wanted = columns or ([name for name in names if name in frame.columns] or list(frame.columns))
            wanted = [name for name in wanted if name in frame.columns and pd.api.types.is_numeric_dtype(frame[name])]
            if columns is not None or (wanted and (pipeline is not None or len(wanted) == len(names))):
                values, value_names = frame[wanted].to_numpy(dtype=np.float64), [str(name) for name in wanted]
        elif source is not X:
            values = _matrix(source)
            value_names = [str(name) for name in columns or range(values.shape[1])]
        if frame is None:
            frame = pd.DataFrame(values, columns=value_names)
        if values.shape[1] == matrix.shape[1] and pipeline is None:
            names = value_names
        return cls(estimator, matrix, names, labels, values, value_names, frame, pipeline)

    @property
    def n(self) -> int:
        return len(self.X)

    @property
    def k(self) -> int:
        return len(self.centers)

    @cached_property
    def spherical(self) -> bool:
        return on_sphere(self.estimator)

    @cached_property
    def space(self) -> np.ndarray:
        """The rows where distances mean something: on the unit sphere, for clusters of directions."""
        return normalize(self.X) if self.spherical else self.X

    @cached_property
    def centers(self) -> np.ndarray:
        """The estimator's centres, or the means of its clusters."""
        centers = getattr(self.estimator, "cluster_centers_", None)
        if centers is not None:
            return np.asarray(centers, dtype=np.float64)
        count = int(self.labels.max(initial=-1)) + 1
        means = [self.space[self.labels == j].mean(axis=0) for j in range(count) if (self.labels == j).any()]
        return np.array(means).reshape(-1, self.X.shape[1])

    @cached_property
    def sizes(self) -> np.ndarray:
        """(k,) rows of every cluster."""
        return np.bincount(self.labels[self.labels >= 0], minlength=self.k)

    @property
    def outliers(self) -> np.ndarray:
        return np.flatnonzero(self.labels < 0)

    @property
    def scaled(self) -> bool:
        """Whether the estimator saw other numbers than people know."""
        return self.pipeline is not None or (not np.shares_memory(self.X, self.values) and not self._same)

    @cached_property
    def _same(self) -> bool:
        return self.same_columns and bool(np.allclose(self.X[:100], self.values[:100], rtol=1e-5))

    @property
    def same_columns(self) -> bool:
        """Whether the estimator saw one column for each that people know."""
        return self.X.shape == self.values.shape

    @cached_property
    def value_means(self) -> np.ndarray:
        """(k, columns) means of the clusters' rows in people's units."""
        everywhere = self.values.mean(axis=0)
        members = [self.labels == j for j in range(self.k)]
        return np.array([self.values[own].mean(axis=0) if own.any() else everywhere for own in members])

    def own_units(self, rows: np.ndarray) -> np.ndarray | None:
        """Rows of the estimator's space in people's units, if the way there is a factor and a shift a column."""
        if not self.same_columns or self.spherical:
            return None
        seen = slice(0, 5_000)
        X, values = self.X[seen].astype(np.float64), self.values[seen].astype(np.float64)
        spread = X.std(axis=0)
        factor = np.where(spread > 0, values.std(axis=0) / np.where(spread > 0, spread, 1.0), 1.0)
        shift = values.mean(axis=0) - factor * X.mean(axis=0)
        near = np.abs(X * factor + shift - values).max(initial=0.0) <= 1e-3 * np.abs(values).max(initial=1e-12)
        return rows * factor + shift if near else None

    def distances(self, rows: np.ndarray | None = None) -> np.ndarray:
        """Distance of every row (or of some) to the centre of its cluster; of outliers, to the nearest centre."""
        rows = np.arange(self.n) if rows is None else rows
        result = np.empty(len(rows))
        labels = self.labels[rows]
        for j in range(self.k):
            own = labels == j
            result[own] = np.linalg.norm(self.space[rows[own]] - self.centers[j], axis=1)
        far = np.flatnonzero(labels < 0)
        if len(far):
            space = self.space[rows[far]]
            each = [np.linalg.norm(space - center, axis=1) for center in self.centers]
            result[far] = np.min(each, axis=0) if each else 0.0
        return result

    def row_name(self, row: int) -> str:
        return str(self.table.index[row])


def sample(labels: np.ndarray, count: int, seed: int = 0, least: int = 20) -> np.ndarray:
    """Numbers of at most about ``count`` rows, at least ``least`` of every cluster that has so many."""
    if len(labels) <= count:
        return np.arange(len(labels))
    rng = np.random.default_rng(seed)
    rows = [rng.choice(len(labels), count, replace=False)]
    for label in np.unique(labels):
        own = np.flatnonzero(labels == label)
        if len(own) * count < 4 * least * len(labels):
            rows.append(rng.permutation(own)[:least])
    return np.unique(np.concatenate(rows))


def _matrix(X: Any) -> np.ndarray:
    if sparse.issparse(X):
        if X.shape[0] * X.shape[1] > MAX_CELLS:
            raise ValueError(
                f"A report of {X.shape[0]:,} sparse rows with {X.shape[1]:,} columns would not fit into memory: "
                "report on a sample of the rows, or reduce the columns first (sklearn.decomposition.TruncatedSVD)."
            )
        X = X.toarray()
    matrix = np.asarray(X)
    if matrix.ndim != 2:
        raise ValueError(f"X must be a table of rows and columns; got an array of shape {matrix.shape}.")
    try:
        matrix = matrix if matrix.dtype in (np.float32, np.float64) else matrix.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"A report draws numbers, and X holds others ({error}): leave such columns out.") from error
    if np.isnan(matrix).any():
        raise ValueError("A report needs complete rows, and X has missing values: fill them, or leave such rows out.")
    return matrix


def _names(X: Any, estimator: BaseEstimator, count: int) -> list[str]:
    if isinstance(X, pd.DataFrame):
        return [str(name) for name in X.columns]
    known = getattr(estimator, "feature_names_in_", None)
    return [f"x{i}" for i in range(count)] if known is None else [str(name) for name in known]
