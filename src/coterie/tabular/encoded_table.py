"""The reading of a table: which columns are used, what they hold, how they become points, and what to say about it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.capabilities import encodes_tables
from coterie.data.columns import CATEGORY, DATE, EMPTY, TEXT, USABLE, ColumnValues, TableError, require_finite
from coterie.data.encoding import Encoded, Encoding
from coterie.data.tables import Table
from coterie.wording import joined, quoted


@dataclass(frozen=True)
class EncodedTable:
    """A table, its rows as values and points, and notes about how they were made.

    ``places`` are the places of the rows in the table that was read, if rows with missing values were left out.
    """

    table: Table
    rows: Encoded
    notes: tuple[str, ...] = ()
    places: np.ndarray | None = None

    @classmethod
    def learn(
        cls,
        table: Any,
        columns: str | Sequence[str] | None = None,
        *,
        scale: bool = False,
        encode: bool | None = False,
        drop_missing: bool = False,
    ) -> "EncodedTable":
        """Learn an encoding of a table and apply it.

        Parameters
        ----------
        table : DataFrame, array or :class:`coterie.data.tables.Table`
        columns : names of the columns to use; all by default
        scale : bool
            Standardise every column to mean 0 and standard deviation 1.
        encode : bool or None
            Read text as categories and dates as days, fill missing values, and scale. Empty columns and free text, in
            which nearly every value is different, are ignored. With False, columns must hold complete numbers; None
            encodes only if they do not.
        drop_missing : bool
            Leave out rows with missing values in these columns.
        """
        table, places = Table.of(table), None
        names = table.choose(columns)
        if drop_missing:
            places = _complete_rows(table, names)
            table = table if places is None else table.take(places)
        if encode or (encode is None and not table.is_complete(names)):
            return cls._learn_mixed(table, names, places)
        matrix = table.matrix(names)
        encoding = Encoding.affine(names)
        if scale:
            deviation = matrix.std(axis=0, dtype=np.float64)
            mean = matrix.mean(axis=0, dtype=np.float64)
            encoding = Encoding.affine(names, mean, np.where(deviation > 0, deviation, 1.0))
        return cls(table, encoding.encode(matrix), places=places)

    @classmethod
    def _learn_mixed(cls, table: Table, names: list[str], places: np.ndarray | None) -> "EncodedTable":
        read = [table.column(name) for name in names]
        used = [column for column in read if column.kind in USABLE]
        if not used:
            raise TableError("Every chosen column is empty or free text: there is nothing to compare.")
        for column in used:
            if column.values.dtype != object:
                require_finite(np.nan_to_num(column.values, posinf=np.inf, neginf=-np.inf)[:, None], [column.name])
        values = [column.values for column in used]
        encoding = Encoding.of(values, [column.name for column in used])
        if not encoding.point_names:
            raise TableError("All rows are equal in the chosen columns: there is nothing to compare.")
        made = encoding.value_names
        if len(set(made)) < len(made):
            repeated = next(name for i, name in enumerate(made) if name in made[:i])
            raise TableError(f"A column is named {repeated!r}, which is also a value of another column: rename it.")
        notes = (*_column_notes(read, encoding), *_value_notes(used, encoding))
        return cls(table, _comparable(encoding, values), notes, places)

    @classmethod
    def apply(cls, encoding: Encoding, table: Any) -> "EncodedTable":
        """Encode other rows as the encoding was learned. Columns are found by name."""
        table = Table.of(table)
        names = table.choose(encoding.names)
        if encoding.complete:
            return cls(table, encoding.encode(table.matrix(names)))
        read = [table.column(name) for name in names]
        try:
            rows = _comparable(encoding, [column.values for column in read])
        except ValueError as error:
            raise TableError(str(error)) from error
        return cls(table, rows, tuple(_value_notes(read, encoding)))

    @property
    def points(self) -> np.ndarray:
        return self.rows.points

    @property
    def encoding(self) -> Encoding:
        return self.rows.encoding

    def input(self, estimator: Any) -> Any:
        """What the estimator is fitted to, or predicts from.

        Columns that are used as they are keep their names, so that the estimator can check them.
        """
        if encodes_tables(estimator):
            return self.rows
        fitted = hasattr(estimator, "n_features_in_")
        named = hasattr(estimator, "feature_names_in_") if fitted else self.table.is_frame
        if not (named and self.encoding.is_identity):
            return self.rows.points
        import pandas as pd

        return pd.DataFrame(self.rows.points, columns=self.encoding.names)


def _comparable(encoding: Encoding, values: list[np.ndarray]) -> Encoded:
    """The encoded rows, or an error if their points are not finite numbers."""
    with np.errstate(over="ignore", invalid="ignore"):
        rows = encoding.encode(values)
    require_finite(rows.values, encoding.value_names)
    infinite = ~np.isfinite(rows.points).all(axis=0)
    if infinite.any():
        name = encoding.point_names[int(infinite.argmax())]
        raise TableError(f"The values of {name!r} differ too much in size to be compared: scale or exclude the column.")
    return rows


def _complete_rows(table: Table, names: list[str]) -> np.ndarray | None:
    """Places of the rows without missing values; None if that is all of them."""
    columns = [table.column(name) for name in names]
    missing = np.logical_or.reduce([column.missing | column.infinite for column in columns])
    if missing.all():
        raise TableError("Every row has a missing value in one of the chosen columns: choose fewer columns.")
    return np.flatnonzero(~missing) if missing.any() else None


def _column_notes(read: list[ColumnValues], encoding: Encoding) -> list[str]:
    """What each kind of column was read as."""
    by_kind = {kind: [column.name for column in read if column.kind == kind] for kind in (EMPTY, TEXT, CATEGORY, DATE)}
    empty, text, categories, dates = (_columns(by_kind[kind]) for kind in (EMPTY, TEXT, CATEGORY, DATE))
    notes = []
    if empty:
        notes.append(f"{empty} ignored: no values.")
    if text:
        notes.append(f"{text} ignored: nearly every value is different (an identifier?).")
    if categories and encoding.has_shared_factors:
        one = len(by_kind[CATEGORY]) == 1
        what = "a category, which is compared by what it shares" if one else "categories, compared by what they share"
        notes.append(f"{categories} read as {what} with other columns.")
    elif categories:
        notes.append(f"{categories} ignored: unrelated to every other column.")
    if dates:
        notes.append(f"{dates} read as dates, in days.")
    return notes


def _value_notes(read: list[ColumnValues], encoding: Encoding) -> list[str]:
    """Which missing values were filled, and which values of categories did not occur when the encoding was learned."""
    filled, unseen = [], []
    for column, learned in zip(read, encoding.columns):
        if learned.levels is None and column.values.dtype != object and (count := int(column.missing.sum())):
            filled.append(f"{column.name!r} ({count:,})")
        if learned.levels is not None and not learned.rest and column.values.dtype == object:
            count = sum(value is not None and value not in learned.levels for value in column.values)
            unseen += [f"{column.name!r} ({count:,})"] if count else []
    how = "with the median" if encoding.donors is None else "from the most similar row"
    notes = [f"Missing values were filled {how}: {joined(filled)}."] if filled else []
    return notes + ([f"Some values did not occur during fit: {joined(unseen)}."] if unseen else [])


def _columns(names: list[str]) -> str:
    """The beginning of a sentence about columns; nothing without columns."""
    if not names:
        return ""
    return f"Column {quoted(names)} was" if len(names) == 1 else f"Columns {quoted(names)} were"
