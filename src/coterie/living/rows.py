"""Rows in any form that an estimator takes, or as a table was encoded for it: some of them, and their numbers."""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import _safe_indexing

from coterie.estimators.capabilities import encodes_tables
from coterie.tables.encoding import Encoded


def take(X: Any, rows: np.ndarray) -> Any:
    """Some of the rows, in the same form."""
    return X.take(rows) if isinstance(X, Encoded) else _safe_indexing(X, rows)


def encoded_by(estimator: Any, X: Any) -> Any:
    """The rows as the estimator encoded them, if it encodes tables; else as they are."""
    return estimator._encoded(X, reset=False) if encodes_tables(estimator) and not isinstance(X, Encoded) else X


def given_to(estimator: Any, X: Any) -> Any:
    """The rows in the form in which the estimator takes them: rows that were encoded for it as points."""
    if not isinstance(X, Encoded) or encodes_tables(estimator):
        return X
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        return X.points
    import pandas as pd

    return pd.DataFrame(X.points, columns=names)


def points_of(estimator: Any, X: Any) -> np.ndarray:
    """(N, E) the rows as the estimator compares them."""
    X = encoded_by(estimator, X)
    if isinstance(X, Encoded):
        return np.asarray(X.points, dtype=np.float64)
    return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)


def values_of(estimator: Any, X: Any) -> tuple[np.ndarray, list[str]]:
    """(N, D) the rows in the units of their table, and the names of these values."""
    X = encoded_by(estimator, X)
    if isinstance(X, Encoded):
        return np.asarray(X.values, dtype=np.float64), [
            name or f"x{i}" for i, name in enumerate(X.encoding.value_names)
        ]
    points = points_of(estimator, X)
    names = getattr(estimator, "feature_names_in_", range(points.shape[1]))
    return points, [name if isinstance(name, str) else f"x{name}" for name in names]
