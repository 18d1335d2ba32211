"""The values of columns as arrays: floats (NaN is missing) or texts (None is missing).

What the values mean is guessed in :mod:`coterie.tables.kinds`; :mod:`coterie.tables.column_reading` brings both
together.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta, timezone
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.tables.kinds import CYCLE, DATE, shown
from coterie.tables.numbers_and_dates import is_missing
from coterie.wording import number, time_of_day

if TYPE_CHECKING:
    import pandas as pd

SECONDS_PER_DAY = 86_400
SHOWN_VALUES = 3
DATE_TYPES = ("date", "datetime", "timedelta")  # pandas' names for objects that are read as days


class TableError(ValueError):
    """A table that cannot be used as it is. The message says what to change."""


@dataclass(frozen=True)
class Column:
    """One column as it was read.

    ``values`` are floats (NaN is missing) or texts (None is missing). ``why`` is the reason for the kind, in words.
    ``sources`` are the columns of the table behind it: more than one for a category that was stored as one column per
    value. ``spelling`` is how texts were read: the decimal mark of numbers, or the order of dates ("dmy").
    ``unit`` is what stood behind or before every number, such as "%". ``absent`` are numbers that stood for a missing
    value, such as -999. ``cycle`` is the length of the circle on which numbers run, as 24 for hours. For one of the
    choices of a column of several (see :mod:`coterie.tables.multiple_choice`), ``spelling`` is the separator and the
    choice.
    """

    name: str
    kind: str
    values: np.ndarray
    why: str = ""
    used: bool = True
    sources: tuple[str, ...] = ()
    spelling: str = ""
    unit: str = ""
    absent: tuple[float, ...] = ()
    cycle: float = 0.0

    @property
    def missing(self) -> np.ndarray:
        """(N,) which rows have no value."""
        if self.values.dtype == object:
            return np.array([value is None for value in self.values], dtype=bool)
        return np.isnan(self.values)

    @property
    def infinite(self) -> np.ndarray:
        """(N,) which rows have an infinite value."""
        return np.zeros(len(self.values), dtype=bool) if self.values.dtype == object else np.isinf(self.values)


def described(column: Column) -> dict[str, Any]:
    """A column as every front shows it, with the range of its numbers or dates, or its most frequent texts."""
    if column.values.dtype == object:
        common = Counter(value for value in column.values if value is not None).most_common(SHOWN_VALUES + 1)
        few = ", ".join(value if len(value) <= 20 else value[:19] + "…" for value, _ in common[:SHOWN_VALUES])
        values = few + ", …" * (len(common) > SHOWN_VALUES)
    else:
        known = column.values[np.isfinite(column.values)]
        ends = [float(known.min()), float(known.max())] if len(known) else []
        by_clock = column.kind == CYCLE and column.unit == "h"
        write = time_of_day if by_clock else partial(shown, is_date=True) if column.kind == DATE else number
        values = " to ".join(dict.fromkeys(write(one) for one in ends))
        values += f" {column.unit}" * bool(values and column.unit and not by_clock)
    return {
        "name": column.name, "kind": column.kind, "used": column.used, "why": column.why,
        "missing": int((column.missing | column.infinite).sum()), "values": values, "unit": column.unit,
        "sources": list(column.sources),
    }  # fmt: skip


def values_of(series: "pd.Series") -> np.ndarray:
    """The values of one column: floats (NaN is missing) or, if they are not numbers, texts (None is missing)."""
    import pandas as pd

    missing = series.isna().to_numpy()
    if holds_dates(series):
        return np.where(missing, np.nan, _microseconds(series) / (1e6 * SECONDS_PER_DAY))
    if getattr(series.dtype, "kind", "O") in "iufb" or str(series.dtype) == "boolean":
        return series.to_numpy(dtype=np.float64, na_value=np.nan)
    values = [None if gone else value for value, gone in zip(series.tolist(), missing)]
    declared = isinstance(series.dtype, pd.CategoricalDtype)
    if not declared and all(value is None or isinstance(value, int | float | np.number | Decimal) for value in values):
        return np.array([np.nan if value is None else float(value) for value in values])
    texts = {value: _stripped(str(value)) for value in _different(values)}
    known = {value: None if is_missing(text) else text for value, text in texts.items()}
    return as_texts(None if value is None else known[_key(value)] for value in values)


def _stripped(text: str) -> str:
    """A text without spaces around it, and without quotation marks, which a file has behind a space."""
    text = text.strip()
    return text[1:-1].strip() if len(text) > 2 and text[0] == text[-1] == '"' else text


def _key(value: Any) -> Any:
    """The value if it can be looked up, and otherwise (a list, for example) its text."""
    return value if isinstance(value, str | int | float | bool) else str(value)


def _different(values: Sequence[Any]) -> set[Any]:
    return {_key(value) for value in values if value is not None}


def holds_dates(series: "pd.Series") -> bool:
    """Whether a column holds dates, times or durations, which are read as numbers of days."""
    import pandas as pd

    if getattr(series.dtype, "kind", "O") in "mM":
        return True
    return series.dtype == object and pd.api.types.infer_dtype(series, skipna=True) in DATE_TYPES


def holds_numbers(series: "pd.Series") -> bool:
    """Whether the type of a column is numeric or boolean."""
    import pandas as pd

    return pd.api.types.is_bool_dtype(series) or (
        pd.api.types.is_numeric_dtype(series) and not pd.api.types.is_complex_dtype(series)
    )


def is_empty(values: np.ndarray) -> bool:
    """Whether every value of a column is missing."""
    return all(value is None for value in values) if values.dtype == object else bool(np.isnan(values).all())


def as_texts(values: Iterable[str | None]) -> np.ndarray:
    """An object array of texts and None."""
    texts = list(values)
    result = np.empty(len(texts), dtype=object)
    result[:] = texts
    return result


def category_texts(values: np.ndarray, series: "pd.Series | None" = None) -> np.ndarray:
    """Values as the levels of a category; 1 and 0 of a boolean column are True and False."""
    if values.dtype == object:
        return values
    truth = series is not None and str(series.dtype) in ("bool", "boolean", "bool[pyarrow]")
    different, places = np.unique(values, return_inverse=True)
    texts = [None if np.isnan(one) else str(bool(one)) if truth else f"{one:.15g}" for one in different]
    return as_texts(texts)[places]


def _microseconds(series: "pd.Series") -> np.ndarray:
    """Microseconds since 1970, or of a duration; arbitrary where a value is missing."""
    import pandas as pd

    if isinstance(series.dtype, pd.ArrowDtype):
        series = series.astype(object)
    if series.dtype != object:
        try:
            return series.dt.as_unit("us").array.asi8
        except (ValueError, OverflowError) as error:
            raise TableError(
                f"The column {series.name!r} has dates that are too far away ({error}): correct or exclude it."
            ) from error
    known: list[Any] = [None if pd.isna(value) else value for value in series]
    known = [at.astimezone(timezone.utc).replace(tzinfo=None) if getattr(at, "tzinfo", None) else at for at in known]
    kind = "m8" if any(isinstance(value, timedelta) for value in known) else "M8"
    return np.array(known, dtype=f"{kind}[us]").astype(np.int64)


class BadValuesError(TableError):
    """Values that cannot be used as numbers. ``what`` says which; the message adds what to do when clustering."""

    def __init__(self, what: str, advice: str):
        super().__init__(f"{what}: {advice}")
        self.what = what


def require_finite(matrix: np.ndarray, names: Sequence[str]) -> None:
    """Raise an error that names the first missing or infinite value and its row and column."""
    finite = np.isfinite(matrix)
    if finite.all():
        return
    wrong = ~finite
    row, column = (int(i) for i in np.argwhere(wrong)[0])
    if np.isnan(matrix[:, column]).all():
        raise BadValuesError(f"The column {names[column]!r} has no values", "exclude it.")
    value, advice = "a missing value", "fill missing values with --encode, remove"
    if np.isinf(matrix[row, column]):
        value, advice = "an infinite value", "remove"
    others = int(wrong.sum()) - 1
    also = f" (there are {others:,} more, in {int(wrong.any(axis=1).sum()):,} rows in total)" if others else ""
    raise BadValuesError(
        f"Row {row + 1} has {value} in the column {names[column]!r}{also}",
        f"{advice} such rows, or exclude the column.",
    )


def split_names(text: str, known: Sequence[str] = ()) -> list[str]:
    """Column names separated by commas; a name in ``known`` may itself contain commas."""
    return [text] if text in known else [name if name in known else name.strip() for name in text.split(",")]
