"""The rows of a picture, as an array or as a DataFrame with dates and categories."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from coterie.wording import number

DAY = 86_400
NEGLIGIBLE = 1e-10  # of the largest value of a column: smaller means are rounding errors


class Column(NamedTuple):
    """One column: numbers, days since 1970, or codes of ``levels`` (-1 is missing)."""

    name: str
    values: np.ndarray
    levels: tuple[str, ...] | None = None
    dates: bool = False

    def show(self, value: float) -> str:
        """A number of this column in words."""
        if not np.isfinite(value):
            return "–"
        if self.dates:
            return f"{datetime(1970, 1, 1) + timedelta(days=float(value) + 0.5 / DAY):%Y-%m-%d}"
        return number(0.0 if abs(value) < NEGLIGIBLE * np.nanmax(np.abs(self.values), initial=0.0) else value)


def columns_of(X: Any, names: Sequence[Any] | None = None) -> list[Column]:
    """The columns of an array or of a DataFrame (of pandas, or with ``to_pandas``)."""
    if hasattr(X, "to_pandas"):
        X = X.to_pandas()
    if not hasattr(X, "iloc"):
        matrix = X.toarray() if sparse.issparse(X) else np.asarray(X)
        called = [f"x{i}" for i in range(matrix.shape[1])] if names is None else names
        return [Column(str(name), matrix[:, i].astype(np.float64)) for i, name in enumerate(called)]
    called = X.columns if names is None else names
    return [_column(str(name), X.iloc[:, i]) for i, name in enumerate(called)]


def _column(name: str, series: Any) -> Column:
    import pandas as pd

    kind = getattr(series.dtype, "kind", "O")
    if kind in "mM":
        if getattr(series.dtype, "tz", None) is not None:
            series = series.dt.tz_convert(None)
        moments = series.to_numpy().astype(f"{kind}8[us]").astype(np.int64) / (1e6 * DAY)
        return Column(name, np.where(series.isna(), np.nan, moments), dates=kind == "M")
    if kind in "iufb" or str(series.dtype) in ("boolean", "Int64", "Float64"):
        return Column(name, series.to_numpy(dtype=np.float64, na_value=np.nan))
    codes, levels = pd.factorize(series, sort=not isinstance(series.dtype, pd.CategoricalDtype))
    if isinstance(series.dtype, pd.CategoricalDtype):
        codes, levels = series.cat.codes.to_numpy(), series.cat.categories
    return Column(name, np.asarray(codes, dtype=np.int64), tuple(str(level) for level in levels))


def labels_of(labels: Any, n_rows: int) -> np.ndarray:
    """The labels as an array, or an error if there is not one label per row."""
    labels = np.asarray(labels)
    if labels.shape != (n_rows,):
        raise ValueError(f"labels must have one label per row, shape ({n_rows},); got shape {labels.shape}.")
    return labels


def matrix_of(X: Any, names: Sequence[Any] | None = None) -> tuple[np.ndarray, list[str] | None]:
    """Rows for a map, and the names of their columns.

    An array is taken as it is. Columns of a DataFrame that are not all numbers are brought to a common scale, with one
    coordinate per level of a category; missing values become the mean.
    """
    if not hasattr(X, "iloc") and not hasattr(X, "to_pandas"):
        return (X.toarray() if sparse.issparse(X) else np.asarray(X)), None if names is None else list(map(str, names))
    read = columns_of(X, names)
    if all(one.levels is None and not one.dates and np.isfinite(one.values).all() for one in read):
        return np.column_stack([one.values for one in read]), [one.name for one in read]
    parts, called = [], []
    for one in read:
        if one.levels is None:
            known = one.values[np.isfinite(one.values)]
            mean, spread = (known.mean(), known.std()) if len(known) else (0.0, 0.0)
            parts.append(np.nan_to_num((one.values - mean) / (spread if spread > 0 else 1.0))[:, None])
            called.append(one.name)
        else:
            flags = (one.values[:, None] == np.arange(len(one.levels))) - np.mean(
                one.values[:, None] == np.arange(len(one.levels)), axis=0
            )
            parts.append(flags)
            called += [f"{one.name} = {level}" for level in one.levels]
    return np.hstack(parts), called
