"""Mixed tables as points: numbers scaled, moments as days, gaps filled, categories by what they share.

Every value of a category as a column of its own would part the rows into islands, one for each combination of values,
and those hide the clusters. So categories count only by the factors that they share with other columns: the principal
axes of the whole table (numbers with spread one, values weighted by their rarity) whose variance is above that of a
column alone. A category that goes with nothing else counts nothing, unless there is nothing else.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

LEVELS = 32  # of a category; rarer ones share a level
FACTOR_WEIGHT = 0.7  # of categories beside numbers, chosen on drawn mixed tables (results/LOG.md)
FACTOR_ROWS = 50_000  # from which factors are found
SECONDS_OF_A_DAY = 86_400


@dataclass
class Column:
    """How one column is read: a number by its middle and spread, a category by its levels and their size.

    ``rest`` says that a last level stands for values that are rare or missing.
    """

    middle: float = 0.0
    spread: float = 1.0
    levels: list[str] | None = None
    rest: bool = True

    @property
    def width(self) -> int:
        return 1 if self.levels is None else len(self.levels) + self.rest


@dataclass
class Encoding:
    """``factors`` (D, F) makes F coordinates of all D scaled numbers; None where there are no categories."""

    columns: list[Column] = field(default_factory=list)
    factors: np.ndarray | None = None

    @classmethod
    def of(cls, columns: Sequence[np.ndarray], *, scale: bool = True) -> "Encoding":
        """``columns``: float arrays (NaN is missing) and object arrays (None is missing).

        Without ``scale`` every spread is one: ``points`` keeps distances as they are.
        """
        read = [_category(values) if values.dtype == object else _number(values) for values in columns]
        made = cls(read if scale else [replace(column, spread=1.0) for column in read])
        if made.of_category.any():
            every = -(-len(columns[0]) // FACTOR_ROWS)
            made.factors = _factors(made.numbers([values[::every] for values in columns]), made)
        return made

    def numbers(self, columns: Sequence[np.ndarray], names: Sequence[str] | None = None) -> np.ndarray:
        """(N, D) numbers in their own units, gaps filled by the middle; 1 for the level of a category, 0 for others.

        ``names`` are for the message that refuses a column of another kind than before.
        """
        called = [f"Column {number}" for number in range(len(columns))] if names is None else [repr(n) for n in names]
        return np.concatenate([_read(*each) for each in zip(self.columns, columns, called)], axis=1)

    def points(self, columns: Sequence[np.ndarray]) -> np.ndarray:
        """(N, E) where the rows lie, each on its own: the numbers scaled, then the factors of the categories."""
        return self.placed(self.numbers(columns))

    def placed(self, numbers_ND: np.ndarray) -> np.ndarray:
        """Where rows of ``numbers`` lie."""
        scaled_ND = (numbers_ND - self.middle) / self.spread
        if self.factors is None:
            return scaled_ND
        return np.hstack([scaled_ND[:, ~self.of_category], scaled_ND @ self.factors])

    def filled(self, columns: Sequence[np.ndarray]) -> np.ndarray:
        """The numbers in their own units, gaps filled by the middle; categories are NaN. (N, columns)"""
        parts = []
        for column, values in zip(self.columns, columns):
            if column.levels is None:
                parts.append(np.where(np.isnan(values), column.middle, values))
            else:
                parts.append(np.full(len(values), np.nan))
        return np.column_stack(parts)

    @property
    def middle(self) -> np.ndarray:
        """(D,) what ``placed`` puts at zero."""
        return np.repeat([column.middle for column in self.columns], self._widths)

    @property
    def spread(self) -> np.ndarray:
        """(D,) what ``placed`` divides by."""
        return np.repeat([column.spread for column in self.columns], self._widths)

    @property
    def of_category(self) -> np.ndarray:
        """(D,) whether a number stands for a level of a category."""
        return np.repeat([column.levels is not None for column in self.columns], self._widths)

    @property
    def _widths(self) -> list[int]:
        return [column.width for column in self.columns]

    def names(self, columns: Sequence[str]) -> list[str]:
        """(D,) names of the numbers, from those of the columns."""
        made = []
        for column, name in zip(self.columns, columns):
            if column.levels is None:
                made.append(name)
            else:
                made += [f"{name} = {level}" for level in column.levels] + [f"{name} = other"] * column.rest
        return made

    def place_names(self, columns: Sequence[str]) -> list[str]:
        """(E,) names of the coordinates of ``points``."""
        numbers = [name for column, name in zip(self.columns, columns) if column.levels is None]
        count = 0 if self.factors is None else self.factors.shape[1]
        return numbers + [f"categories, axis {number + 1}" for number in range(count)]

    def to_json(self) -> str:
        factors = None if self.factors is None else self.factors.tolist()
        return json.dumps({"columns": [asdict(column) for column in self.columns], "factors": factors})

    @classmethod
    def from_json(cls, text: str) -> "Encoding":
        stored = json.loads(text)
        columns = [Column(**values) for values in stored["columns"]]
        if stored["factors"] is None:
            return cls(columns)
        return cls(columns, np.array(stored["factors"]).reshape(sum(column.width for column in columns), -1))


def tells_rows_apart(values: np.ndarray) -> bool:
    """Whether a column of text is a name or a number of each row, with too many values for a category."""
    if values.dtype != object:
        return False
    known = [str(value) for value in values if value is not None]
    return len(set(known)) > max(LEVELS, len(known) / 2)


def _factors(numbers_ND: np.ndarray, encoding: Encoding) -> np.ndarray:
    """(D, F) what categories share with other columns, for ``placed``."""
    n, d = numbers_ND.shape
    mean_D, category_D = numbers_ND.mean(axis=0), encoding.of_category
    unit_D = np.where(category_D, np.sqrt(np.maximum(mean_D, 1 / n)), numbers_ND.std(axis=0))
    unit_D = np.where(unit_D > 0, unit_D, 1.0)
    z_ND = (numbers_ND - mean_D) / unit_D
    variance_D, axes_DD = np.linalg.eigh(z_ND.T @ z_ND / n)
    shared_D = variance_D > 1 + np.sqrt(d / n)  # a column alone has one, and chance adds to the largest
    weight = FACTOR_WEIGHT
    if not shared_D.any() and category_D.all():
        shared_D, weight = variance_D > 1e-9, 1.0
    axes_DF = axes_DD[:, shared_D]
    onto_DD = axes_DF @ axes_DF.T * category_D  # from z to the part of the categories that is shared
    part_ND = z_ND @ onto_DD
    variance_D, turn_DD = np.linalg.eigh(part_ND.T @ part_ND / n)  # the same points in as few coordinates as possible
    turn_DF = turn_DD[:, variance_D > 1e-9][:, ::-1]
    turn_DF = turn_DF * np.sign(turn_DF[np.abs(turn_DF).argmax(axis=0), np.arange(turn_DF.shape[1])])
    return weight * (encoding.spread / unit_D)[:, None] * (onto_DD @ turn_DF)


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
    order = np.lexsort((names, -counts))[:LEVELS]
    levels = [str(name) for name in names[order]]
    others = int(len(values) - counts[order].sum())
    shares = np.append(counts[order], others) / max(1, len(values))
    apart = 1 - float((shares**2).sum())  # chance that two rows differ
    return Column(0.0, float(np.sqrt(apart)) if apart > 0 else 1.0, levels, rest=others > 0)


def _read(column: Column, values: np.ndarray, called: str) -> np.ndarray:
    was_text, is_text = column.levels is not None, values.dtype == object
    if was_text != is_text:
        if not all(value is None or value != value for value in values):
            held, holds = ("text" if text else "numbers" for text in (was_text, is_text))
            raise ValueError(f"{called} held {held} when the estimator was fitted and holds {holds} now.")
        values = np.array([None if was_text else np.nan] * len(values), dtype=object if was_text else np.float64)
    if column.levels is None:
        return np.where(np.isnan(values), column.middle, values)[:, None]
    place = {name: number for number, name in enumerate(column.levels)}
    found = [place.get(str(value), len(column.levels)) if value is not None else len(column.levels) for value in values]
    return np.eye(len(column.levels) + 1)[found][:, : column.width]  # without a rest, what was never seen is no level


def columns_of(X: Any) -> list[np.ndarray]:
    """A DataFrame's or array's columns, each as ``values_of``."""
    if not hasattr(X, "columns"):
        return list(np.asarray(X, dtype=np.float64).T)
    if hasattr(X, "to_pandas"):  # polars and Arrow
        X = X.to_pandas()
    return [values_of(X.iloc[:, place]) for place in range(X.shape[1])]


def holds_moments(series: pd.Series) -> bool:
    """Whether a column holds dates, times of dates or durations, which are read as days."""
    if getattr(series.dtype, "kind", "O") in "mM":
        return True
    return series.dtype == object and pd.api.types.infer_dtype(series, skipna=True) in ("date", "datetime")


def values_of(series: pd.Series) -> np.ndarray:
    """One column: floats with NaN where something is missing or, where it does not hold numbers, objects with None."""
    missing = series.isna().to_numpy()
    if holds_moments(series):
        moments = pd.to_datetime(series) if series.dtype == object else series
        return np.where(missing, np.nan, moments.dt.as_unit("ns").array.asi8 / (1e9 * SECONDS_OF_A_DAY))
    if getattr(series.dtype, "kind", "O") in "iufb" or str(series.dtype) == "boolean":
        return series.to_numpy(dtype=np.float64, na_value=np.nan)
    blank = missing | np.array([isinstance(value, str) and not value.strip() for value in series], dtype=bool)
    values = np.array([None if gone else value for value, gone in zip(series.tolist(), blank)], dtype=object)
    if all(value is None or isinstance(value, int | float | np.number | bool) for value in values):
        return np.array([np.nan if value is None else float(value) for value in values])
    return values
