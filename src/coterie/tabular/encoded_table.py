"""The reading of a table: which columns are used, what they hold, how they become points, and what to say about it."""

import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coterie.estimators.capabilities import encodes_tables
from coterie.tables import common_scale
from coterie.tables.column_reading import ABSENT, OPEN
from coterie.tables.columns import BadValuesError, Column, TableError, require_finite
from coterie.tables.encoding import Encoded, Encoding
from coterie.tables.kinds import CATEGORY, CYCLE, DATE, ID, LATITUDE, LONGITUDE, ORDINAL, ROUND
from coterie.tables.multiple_choice import is_choice
from coterie.tables.table import Table
from coterie.wording import joined, quoted

FAR, FEW_FAR = 20.0, 0.002  # spreads from the middle, and share of the rows, of values that may be errors
BY_KIND = (CATEGORY, DATE, ORDINAL, *ROUND)  # kinds that need more than the numbers as they are


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
        exclude: str | Sequence[str] | None = None,
        scale: bool | str = "auto",
        encode: bool | None = False,
        drop_missing: bool = False,
        kinds: str | Mapping[str, str] | None = None,
        keep: str | Sequence[str] = (),
    ) -> "EncodedTable":
        """Learn an encoding of a table and apply it.

        Parameters
        ----------
        table : DataFrame, array or :class:`coterie.tables.table.Table`
        columns, exclude : names of the columns to use, or of columns not to use; all are used by default
            Identifiers are ignored unless ``columns`` names them.
        scale : bool or str
            Numbers that are not encoded: True standardises every column to mean 0 and standard deviation 1. With
            ``encode``, as in :meth:`coterie.tables.encoding.Encoding.learn`.
        encode : bool or None
            Compare columns by their kind: read text and codes as categories and dates as days, fill missing values, and
            scale. Columns that cannot help (empty, constant or free text) are ignored. With False, columns must hold
            complete numbers; None encodes only if they do not.
        drop_missing : bool
            Leave out rows with missing values in these columns.
        kinds : kinds of columns that are not guessed, as a dictionary or as a text ``column=kind,...``
            A kind that is no number implies ``encode``.
        keep : names of columns to use even if they seem to be identifiers or of no use
        """
        table, places = Table.of(table), None
        told = table.notes
        read = table.read_columns(columns, exclude, kinds=kinds, keep=keep)
        ids = [column for column in read if column.kind == ID or (column.kind == DATE and not column.used)]
        if drop_missing:
            places = _complete_rows([column for column in read if column.used])
            if places is not None:
                table = table.take(places)
                read = [replace(column, values=column.values[places]) for column in read]
        aside = {column.name for column in ids}
        names = list(dict.fromkeys(source for one in read if one.name not in aside for source in one.sources))
        asked = kinds and any(column.why.startswith("as asked for") and column.kind in BY_KIND for column in read)
        if encode or asked or (encode is None and not table.is_complete(names)):
            return cls._learn_mixed(table, read, places, told, scale)
        if not names:
            raise TableError(
                f"{_columns([one.name for one in ids])} taken for identifiers, and there are no other columns: use "
                "--keep to include columns that seem to be identifiers."
            )
        matrix = table.matrix(names)
        encoding = Encoding.affine(names)
        if scale is True:
            with np.errstate(over="ignore", invalid="ignore"):
                deviation = matrix.std(axis=0, dtype=np.float64)
                mean = matrix.mean(axis=0, dtype=np.float64)
            if not np.isfinite(deviation).all():
                name = names[int((~np.isfinite(deviation)).argmax())]
                raise TableError(
                    f"The column {name!r} has values that are too large to be scaled: divide them by a constant, or "
                    "exclude the column."
                )
            encoding = Encoding.affine(names, mean, np.where(deviation > 0, deviation, 1.0))
        return cls(table, encoding.encode(matrix), (*told, *_unused_notes(ids)), places)

    @classmethod
    def _learn_mixed(
        cls, table: Table, read: list[Column], places: np.ndarray | None, told: tuple[str, ...], scale: bool | str
    ) -> "EncodedTable":
        used = [column for column in read if column.used]
        if len(table) == 1:
            raise TableError("The table has only one row: there is nothing to compare.")
        if not used:
            if read and all(column.why.startswith("every value is") for column in read):
                raise TableError("All rows are equal in the chosen columns: there is nothing to compare.")
            some = "; ".join(f"{column.name!r}: {column.why}" for column in read[:3])
            raise TableError(
                f"There is nothing to compare ({some}): choose other columns, or correct their kinds with --kind."
            )
        for column in used:
            if column.values.dtype != object:
                require_finite(np.nan_to_num(column.values, posinf=np.inf, neginf=-np.inf)[:, None], [column.name])
        try:
            encoding = Encoding.learn(used, scale=scale)
        except ValueError as error:
            raise TableError(str(error)) from error
        if not encoding.point_names:
            raise TableError("All rows are equal in the chosen columns: there is nothing to compare.")
        made = encoding.value_names
        if len(set(made)) < len(made):
            repeated = next(name for i, name in enumerate(made) if name in made[:i])
            raise TableError(f"A column is named {repeated!r}, which is also a value of another column: rename it.")
        rows = _comparable(encoding, [column.values for column in used])
        notes = (*told, *_unused_notes(read), *_column_notes(used, encoding), *_value_notes(used, encoding))
        return cls(table, rows, (*notes, *_far_notes(rows)), places)

    @classmethod
    def apply(cls, encoding: Encoding, table: Any) -> "EncodedTable":
        """Encode other rows as the encoding was learned. Columns are found by name."""
        table = Table.of(table)
        if encoding.complete:
            try:
                matrix = table.matrix(table.choose(encoding.names))
            except BadValuesError as error:
                raise TableError(
                    f"{error.what}: the model needs complete numbers. Correct the values, remove such rows, or fit a "
                    "model with --encode."
                ) from error
            return cls(table, encoding.encode(matrix))
        values = table.columns_for(encoding)
        try:
            rows = _comparable(encoding, values)
        except ValueError as error:
            raise TableError(str(error)) from error
        read = [Column(one.name, one.kind, found) for one, found in zip(encoding.columns, values)]
        return cls(table, rows, tuple(_value_notes(read, encoding)))

    @property
    def points(self) -> np.ndarray:
        """The rows as numbers that are comparable across columns, shape (n_rows, n_encoded)."""
        return self.rows.points

    @property
    def encoding(self) -> Encoding:
        """How the points were made from the table."""
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


def _complete_rows(columns: list[Column]) -> np.ndarray | None:
    """Places of the rows without missing values; None if that is all of them."""
    missing = np.logical_or.reduce([column.missing | column.infinite for column in columns])
    if missing.all():
        raise TableError("Every row has a missing value in one of the chosen columns: choose fewer columns.")
    return np.flatnonzero(~missing) if missing.any() else None


def _unused_notes(read: list[Column]) -> list[str]:
    """Which columns were ignored, and why."""
    by_reason: dict[str, list[str]] = defaultdict(list)
    for column in read:
        if not column.used:
            by_reason[re.sub(r" \([\d,]+ different values\)", "", column.why)].append(column.name)
    return [f"{_columns(names)} ignored: {why}." for why, names in by_reason.items()]


def _column_notes(used: list[Column], encoding: Encoding) -> list[str]:
    """How columns were read whose values do not speak for themselves."""
    texts = [column.name for column in used if column.values.dtype == object]
    categories, dates = _columns(texts), _columns([column.name for column in used if column.kind == DATE])
    notes = []
    if categories and encoding.has_shared_factors:
        what = "a category, by what it shares" if len(texts) == 1 else "categories, by what they share"
        notes.append(f"{categories} compared as {what} with other columns.")
    elif categories:
        notes.append(f"{categories} ignored: unrelated to every other column.")
    if dates:
        notes.append(f"{dates} read as dates, in days.")
    cycles = [column.name for column in used if column.kind == CYCLE]
    if cycles and encoding.scale == common_scale.EACH:
        notes.append(f"{_columns(cycles)} compared on a circle: the largest values are near to the smallest.")
    for pair in zip(*([column.name for column in used if column.kind == kind] for kind in (LATITUDE, LONGITUDE))):
        notes.append(f"{_columns(list(pair))} compared as one place on the globe.")
    boxes = [column.name for column, learned in zip(used, encoding.columns) if learned.is_box]
    if boxes:
        notes.append(f"{_columns(boxes)} read as boxes that are ticked or not: a blank means no.")
    for name, count in Counter(column.sources[0] for column in used if is_choice(column)).items():
        notes.append(f"{name!r} has several choices in one cell: it was read as {count} columns of yes and no.")
    for column in used:
        if column.absent:
            far = joined([f"{one:.15g}" for one in column.absent])
            notes.append(f"{column.name!r}: {far} {ABSENT}. Change this with --kind {shlex.quote(column.name)}=number.")
        if column.kind == DATE and OPEN in column.why:
            notes.append(f"{column.name!r}: {column.why}. Change this with --kind {shlex.quote(column.name)}=date:dmy.")
        elif len(column.sources) > 1:
            notes.append(f"{column.name!r} is one category: {column.why}.")
        elif not column.absent and column.spelling in (".", ",") and column.kind != CATEGORY:
            asked = f"{column.kind}s, " if column.why.startswith("as asked for") else ""
            notes.append(f"{column.name!r} was read as {asked}{column.why}.")
    if encoding.scale in common_scale.WORDS:
        why = f"{encoding.why}: " if encoding.why else ""
        notes.append(f"Columns: {why}{common_scale.WORDS[encoding.scale]} (scale={encoding.scale!r}).")
    if encoding.log_names:
        notes.append(f"{_columns(encoding.log_names)} compared on a log scale: the distribution of values is skewed.")
    return notes


def _value_notes(read: list[Column], encoding: Encoding) -> list[str]:
    """Which missing values were filled, and which values of categories did not occur when the encoding was learned."""
    filled, unseen = [], []
    for column, learned in zip(read, encoding.columns):
        if not learned.is_box and (count := int(column.missing.sum())):
            filled.append(f"{column.name!r} ({count:,})")
        if learned.levels is not None and not learned.rest and column.values.dtype == object:
            count = sum(value is not None and value not in learned.levels for value in column.values)
            unseen += [f"{column.name!r} ({count:,})"] if count else []
    how = "with the median" if encoding.donors is None else "from the most similar row"
    notes = [f"Missing values were filled {how}: {joined(filled)}."] if filled else []
    return notes + ([f"Some values did not occur during fit: {joined(unseen)}."] if unseen else [])


def _far_notes(rows: Encoded) -> list[str]:
    """Rows with values that are so far from all others that they may be errors, or totals of the other rows."""
    encoding, found = rows.encoding, dict[int, str]()
    far_ND = np.abs((encoding.logged(rows.values) - encoding.middle) / encoding.spread)
    far_ND[:, encoding.of_category] = 0.0
    for d in np.flatnonzero(far_ND.max(axis=0) > FAR):
        limit = far_ND[:, d].max() / 2  # nothing lies between
        beyond = np.flatnonzero(far_ND[:, d] > limit)
        if len(beyond) <= max(2, FEW_FAR * len(rows)) and np.sort(far_ND[:, d])[-len(beyond) - 1] < FAR / 2:
            found |= {int(row) + 1: f"{encoding.value_names[d]!r} is {rows.values[row, d]:.6g}" for row in beyond}
    if not found:
        return []
    told = joined([f"in row {row}, {what}" for row, what in found.items()], limit=3)
    return [f"Some values are far from all others: {told}. Correct or remove such rows if they are errors or totals."]


def _columns(names: list[str]) -> str:
    """The beginning of a sentence about columns; nothing without columns."""
    if not names:
        return ""
    return f"Column {quoted(names)} was" if len(names) == 1 else f"Columns {quoted(names)} were"
