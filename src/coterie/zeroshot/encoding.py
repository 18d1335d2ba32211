"""Tables as points: numbers scaled, categories spread over columns of their own, gaps filled.

Every column of the table counts alike: a number has spread one, and a category is scaled so that two rows drawn at
random are as far apart in it, on average, as in a number.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

LEVELS = 32  # of a category; rarer ones share a level


@dataclass
class Column:
    """How one column is read: a number by its middle and spread, a category by its levels and their size."""

    middle: float = 0.0
    spread: float = 1.0
    levels: list[str] | None = None

    @property
    def width(self) -> int:
        return 1 if self.levels is None else len(self.levels) + 1


@dataclass
class Encoding:
    columns: list[Column] = field(default_factory=list)

    @classmethod
    def of(cls, columns: Sequence[np.ndarray]) -> "Encoding":
        """``columns``: float arrays (NaN is missing) and object arrays (None is missing)."""
        return cls([_category(values) if values.dtype == object else _number(values) for values in columns])

    def points(self, columns: Sequence[np.ndarray]) -> np.ndarray:
        """(N, D), each row on its own."""
        parts = [_read(column, values, number) for number, (column, values) in enumerate(zip(self.columns, columns))]
        return np.concatenate(parts, axis=1)

    def filled(self, columns: Sequence[np.ndarray]) -> np.ndarray:
        """The numbers in their own units, gaps filled by the middle; categories are NaN. (N, columns)"""
        parts = []
        for column, values in zip(self.columns, columns):
            if column.levels is None:
                parts.append(np.where(np.isnan(values), column.middle, values))
            else:
                parts.append(np.full(len(values), np.nan))
        return np.column_stack(parts)

    def to_json(self) -> str:
        return json.dumps([asdict(column) for column in self.columns])

    @classmethod
    def from_json(cls, text: str) -> "Encoding":
        return cls([Column(**values) for values in json.loads(text)])


def _number(values: np.ndarray) -> Column:
    known = values[~np.isnan(values)]
    if not len(known):
        return Column()
    unit = float(np.abs(known).max()) or 1.0  # squares of very large or small numbers would not be numbers
    low, middle, high = np.percentile(known / unit, (25, 50, 75))
    reach = 3 * (high - low) if high > low else np.inf  # single far values do not count for the spread
    spread = unit * float(np.clip(known / unit, low - reach, high + reach).std())
    return Column(unit * float(middle), spread if spread > 0 else 1.0)


def _category(values: np.ndarray) -> Column:
    known = np.array([str(value) for value in values if value is not None], dtype=object)
    names, counts = np.unique(known.astype(str), return_counts=True) if len(known) else (np.array([]), np.array([]))
    order = np.lexsort((names, -counts))
    levels = [str(name) for name in names[order][:LEVELS]]
    shares = np.append(counts[order][:LEVELS], len(values) - counts[order][:LEVELS].sum()) / max(1, len(values))
    apart = 1 - float((shares**2).sum())  # chance that two rows differ
    return Column(0.0, float(np.sqrt(apart)) if apart > 0 else 1.0, levels)


def _read(column: Column, values: np.ndarray, number: int) -> np.ndarray:
    was_text, is_text = column.levels is not None, values.dtype == object
    if was_text != is_text:
        if not all(value is None or value != value for value in values):
            held, holds = ("text" if text else "numbers" for text in (was_text, is_text))
            raise ValueError(f"Column {number} held {held} when the estimator was fitted and holds {holds} now.")
        values = np.array([None if was_text else np.nan] * len(values), dtype=object if was_text else np.float64)
    if column.levels is None:
        return np.where(np.isnan(values), 0.0, (values - column.middle) / column.spread)[:, None]
    place = {name: number for number, name in enumerate(column.levels)}
    found = [place.get(str(value), len(column.levels)) if value is not None else len(column.levels) for value in values]
    return np.eye(column.width)[found] / column.spread


def columns_of(X: Any) -> list[np.ndarray]:
    """A DataFrame's or array's columns as float arrays or, where they are not numbers, object arrays without NaN."""
    if not hasattr(X, "columns"):
        return list(np.asarray(X, dtype=np.float64).T)
    if hasattr(X, "to_pandas"):  # polars and Arrow
        X = X.to_pandas()
    return [_values(X.iloc[:, place]) for place in range(X.shape[1])]


def _values(series: Any) -> np.ndarray:
    kind = getattr(series.dtype, "kind", "O")
    missing = series.isna().to_numpy()
    if kind in "mM":  # moments and durations, as seconds
        return np.where(missing, np.nan, series.dt.as_unit("ns").array.asi8 / 1e9)
    if kind in "iufb" or str(series.dtype) == "boolean":
        return series.to_numpy(dtype=np.float64, na_value=np.nan)
    values = np.array([None if gone else value for value, gone in zip(series.tolist(), missing)], dtype=object)
    if all(value is None or isinstance(value, int | float | np.number | bool) for value in values):
        return np.array([np.nan if value is None else float(value) for value in values])
    return values
