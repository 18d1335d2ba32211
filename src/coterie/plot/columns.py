"""The rows of a picture, as an array or as a DataFrame with dates and categories."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from coterie.tables.column_encoding import ColumnEncoding
from coterie.tables.encoding import Encoded
from coterie.tables.kinds import CYCLE, DATE
from coterie.wording import number, short, time_of_day

DAY, DAY_IN_HOURS = 86_400, 24
NEGLIGIBLE = 1e-10  # of the largest value of a column: smaller means are rounding errors


@dataclass(frozen=True)
class Column:
    """One column of the user: numbers, days since 1970, or codes of ``levels`` (-1 is missing).

    ``unit`` is what the user writes behind numbers. In a clustered table, ``first`` is the place of its value, or of
    its first level, among all values. Numbers on a circle of length ``cycle`` may be beyond it.
    """

    name: str
    values: np.ndarray
    levels: tuple[str, ...] | None = None
    dates: bool = False
    unit: str = ""
    first: int = 0
    cycle: float = 0.0

    @property
    def own(self) -> slice:
        """The places of its values: one per level of a category."""
        return slice(self.first, self.first + (1 if self.levels is None else len(self.levels)))

    @cached_property
    def _largest(self) -> float:
        return float(np.nanmax(np.abs(self.values), initial=0.0))

    def show(self, value: float) -> str:
        """A value or a mean as the user would write it."""
        if self.levels is not None:
            return f"{value:.0%}"
        if not np.isfinite(value):
            return "–"
        if self.dates:
            return _date(float(value), hours=bool((self.values % 1 > 1e-6).any()))
        if self.cycle == DAY_IN_HOURS and self.unit == "h":
            return time_of_day(value)
        value = value % self.cycle if self.cycle else value
        written = number(0.0 if abs(value) < NEGLIGIBLE * self._largest else value)
        return f"{written}{self.unit}" if self.unit == "%" else f"{written} {self.unit}".strip()

    def shares(self, means: np.ndarray, count: int = 3) -> str:
        """The most frequent levels of a category with their shares, from the means of its values."""
        levels, order = self.levels or (), np.argsort(-means, kind="stable")[:count]
        return ", ".join(f"{levels[i]} {means[i]:.0%}" for i in order if means[i] >= 0.005) or "missing"

    def profile(self, labels: np.ndarray, found: Sequence[int]) -> tuple[list[float], list[str]]:
        """For every cluster, how far it is from all rows in standard deviations, and what it holds in words.

        A category is shown by its most frequent value in the cluster, and measured by its most distinctive one.
        """
        away, texts = [], []
        if self.levels is None:
            mean, spread = _moments(self.values)
            for label in found:
                here = _moments(self.values[labels == label])[0]
                away.append((here - mean) / spread if spread > 0 and np.isfinite(here) else 0.0)
                texts.append(self.show(here))
            return away, texts
        overall = shares_of(self.values, len(self.levels))
        spreads = np.sqrt(np.maximum(overall * (1 - overall), 1e-12))
        for label in found:
            shares = shares_of(self.values[labels == label], len(self.levels))
            apart = (shares - overall) / spreads
            away.append(float(apart[np.abs(apart).argmax()]) if len(apart) else 0.0)
            best = int(shares.argmax()) if len(shares) else 0
            texts.append(f"{short(self.levels[best], 18)} {shares[best]:.0%}" if shares.any() else "–")
        return away, texts


def _moments(values: np.ndarray) -> tuple[float, float]:
    known = values[np.isfinite(values)]
    return (float(known.mean()), float(known.std())) if len(known) else (float("nan"), 0.0)


def shares_of(codes: np.ndarray, count: int) -> np.ndarray:
    """The share of every level among codes, of which -1 is missing."""
    return np.bincount(codes[codes >= 0], minlength=count) / max(1, len(codes))


def _date(days: float, hours: bool) -> str:
    try:
        moment = datetime(1970, 1, 1) + timedelta(days=days)
    except OverflowError:
        return number(days)
    return f"{moment:%Y-%m-%d %H:%M}" if hours else f"{moment + timedelta(hours=12):%Y-%m-%d}"


def columns_of(X: Any, names: Sequence[Any] | None = None) -> list[Column]:
    """The columns of an array, of a DataFrame (of pandas, or with ``to_pandas``) or of encoded rows."""
    if isinstance(X, list) and X and isinstance(X[0], Column):
        return X
    if isinstance(X, Encoded):
        return encoded_columns(X.values, X.encoding.columns)
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


def encoded_columns(values: np.ndarray, encoded: Sequence[ColumnEncoding]) -> list[Column]:
    """The columns behind the values of encoded rows; a row without a level has the code -1."""
    found: list[Column] = []
    first = 0
    for place, column in enumerate(encoded):
        name, own = column.name or f"x{place}", values[:, first : first + column.width]
        if column.levels is None:
            is_date, cycle = column.kind == DATE, column.cycle * (column.kind == CYCLE)
            found.append(Column(name, own[:, 0], None, is_date, column.unit, first, cycle))
        else:
            codes = np.where(own.max(axis=1) > 0, own.argmax(axis=1), -1)
            found.append(Column(name, codes, tuple(column.named_levels), first=first))
        first += column.width
    return found


def labels_of(labels: Any, n_rows: int) -> np.ndarray:
    """The labels as an array, or an error if there is not one label per row."""
    labels = np.asarray(labels)
    if labels.shape != (n_rows,):
        raise ValueError(f"labels must have one label per row, shape ({n_rows},); got shape {labels.shape}.")
    return labels


def groups_of(labels: np.ndarray) -> list[tuple[int, int]]:
    """Labels in order, outliers last, and how many rows have each."""
    found, counts = np.unique(np.maximum(labels, -1), return_counts=True)
    return sorted(zip(found.tolist(), counts.tolist()), key=lambda pair: (pair[0] < 0, pair[0]))


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
            flags = one.values[:, None] == np.arange(len(one.levels))
            parts.append(flags - flags.mean(axis=0))
            called += [f"{one.name} = {level}" for level in one.levels]
    return np.hstack(parts), called
