"""The columns of the user behind the values of a clustered table, each with its kind and its way of being written."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.tables.columns import holds_dates
from coterie.tabular.clustered_table import ClusteredTable
from coterie.wording import number

if TYPE_CHECKING:
    import pandas as pd

NUMBER, DATE, CATEGORY = "number", "date", "category"
NEGLIGIBLE = 1e-10  # of the largest value of a column: smaller means are rounding errors


@dataclass(frozen=True)
class Field:
    """One column of the user: ``first`` to ``last`` are the places of its values, one per level of a category."""

    name: str
    kind: str
    first: int
    last: int
    levels: tuple[str, ...] = ()
    unit: str = ""
    largest: float = 1.0
    hours: bool = False  # whether dates have a time of day

    def show(self, value: float) -> str:
        """A value or a mean as the user would write it."""
        if self.kind == CATEGORY:
            return f"{value:.0%}"
        if not np.isfinite(value):
            return "–"
        if self.kind == DATE:
            return _date(value, self.hours)
        value = 0.0 if abs(value) < NEGLIGIBLE * self.largest else value
        return f"{number(value)}{self.unit}" if self.unit == "%" else f"{number(value)} {self.unit}".strip()

    def shares(self, means: np.ndarray, count: int = 3) -> str:
        """The most frequent levels of a category with their shares, from the means of its values."""
        order = np.argsort(-means, kind="stable")[:count]
        return ", ".join(f"{self.levels[i]} {means[i]:.0%}" for i in order if means[i] >= 0.005) or "missing"


def fields_of(clustered: ClusteredTable) -> list[Field]:
    """The columns that were clustered, in their order."""
    largest = np.abs(clustered.values).max(axis=0, initial=0.0)
    encoding = clustered.encoding
    if encoding is None or len(encoding.value_names) != len(clustered.value_names):
        return [_field(clustered, name, place, largest) for place, name in enumerate(clustered.value_names)]
    fields, first = [], 0
    for place, column in enumerate(encoding.columns):
        name = column.name or f"x{place}"
        if column.levels is None:
            kind, unit = (getattr(column, part, "") for part in ("kind", "unit"))
            fields.append(_field(clustered, name, first, largest, kind, unit))
        else:
            fields.append(Field(name, CATEGORY, first, first + column.width, tuple(column.named_levels)))
        first += column.width
    return fields


def _field(
    clustered: ClusteredTable, name: str, place: int, largest: np.ndarray, kind: str = "", unit: str = ""
) -> Field:
    table = clustered.table
    is_date = kind == DATE or (not kind and table.is_frame and name in table.names and holds_dates(table.frame[name]))
    hours = is_date and bool((clustered.values[:, place] % 1 > 1e-6).any())
    return Field(name, DATE if is_date else NUMBER, place, place + 1, (), unit, float(largest[place]), hours)


def own_frame(clustered: ClusteredTable) -> "pd.DataFrame":
    """The rows in the columns of the user: numbers in their units, dates as dates, categories as texts."""
    import pandas as pd

    columns: dict[str, Any] = {}
    for one in fields_of(clustered):
        values = clustered.values[:, one.first : one.last]
        if one.kind == CATEGORY:
            codes = np.where(values.max(axis=1) > 0, values.argmax(axis=1), -1)
            columns[one.name] = pd.Categorical.from_codes(codes, one.levels)
        elif one.kind == DATE:
            columns[one.name] = pd.to_datetime(np.round(values[:, 0] * 86_400), unit="s", errors="coerce")
        else:
            columns[one.name] = values[:, 0]
    return pd.DataFrame(columns)


def _date(days: float, hours: bool) -> str:
    try:
        moment = datetime(1970, 1, 1) + timedelta(days=float(days))
    except OverflowError:
        return number(days)
    return f"{moment:%Y-%m-%d %H:%M}" if hours else f"{moment + timedelta(hours=12):%Y-%m-%d}"
