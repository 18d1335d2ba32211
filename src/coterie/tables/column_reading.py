"""The columns of a table with their kinds: guessed, or as they were asked for.

Texts are read as numbers or dates where all of them are. Columns that cannot help to find clusters (identifiers, row
numbers, free text, constants) are not used unless they are kept. Columns that hold one value of a category each (a
one-hot encoding) become that category again.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.tables import multiple_choice
from coterie.tables import numbers_and_dates as written
from coterie.tables.codes import with_codes
from coterie.tables.columns import Column, TableError, as_texts, category_texts, holds_dates, is_empty, values_of
from coterie.tables.kinds import (
    CATEGORY,
    CYCLE,
    DATE,
    EMPTY,
    FEW,
    ID,
    KINDS,
    LATITUDE,
    LONGITUDE,
    MOSTLY,
    NUMBER,
    ORDINAL,
    TEXT,
    Guess,
    Sight,
    guess,
    may_be_round,
    shown,
)
from coterie.tables.undo_one_hot import levels_of_block, merged, with_blocks
from coterie.wording import quoted

if TYPE_CHECKING:
    import pandas as pd

COPIES = 4  # of every row at most in a table that was exported or joined several times
MOST_ROWS_COMPARED = 200_000  # beyond, equal rows are not looked for
STRANGERS = 0.02  # share of the rows with another text at which a column still holds numbers
STRANGERS_AS_ASKED = 0.5  # the same if a user says that it holds numbers
ABSENT, OPEN = "far from the others counts as missing", "the values leave it open"
_ABSENT = "-?(9+|88+|77+)"  # numbers that stand for a missing answer
_TRUE, _FALSE = ("true", "yes", "y", "t", "1", "ja", "oui", "on"), ("false", "no", "n", "f", "0", "nein", "non", "off")


def read_columns(
    frame: "pd.DataFrame",
    names: Sequence[str] | None = None,
    *,
    kinds: Mapping[str, str] | None = None,
    keep: Iterable[str] = (),
    named: Iterable[str] = (),
) -> list[Column]:
    """Read columns of a table, by default all, in the order of ``names``.

    The kinds of some columns are given in ``kinds`` instead of guessed (:data:`coterie.tables.kinds.KINDS`). For a date
    whose day and month could be exchanged, "date:dmy" or "date:mdy" says which comes first. Columns in ``keep`` are
    used even if they seem to be of no use; those in ``named`` even if they seem to be identifiers or are constant, but
    not free text. A category that was stored as one column per value stands at the first of them.
    """
    names = list(frame.columns) if names is None else list(names)
    wanted, kept, chosen = dict(kinds or {}), set(keep), set(named)
    different_rows = _DifferentRows(frame)
    read: list[Column] = []
    for name in names:
        series = frame[name]
        column = _guessed(name, series, different_rows, first=name == frame.columns[0])
        if name in wanted:
            column = _as_asked(column, series, wanted[name])
        elif not column.used and (name in kept or (name in chosen and column.kind != TEXT)):
            column = _kept(column)
        elif column.kind in (CATEGORY, TEXT) and (mark := multiple_choice.separator(_different(column.values)[0])):
            read += multiple_choice.split(replace(column, used=True), mark)
            continue
        read.append(column)
    free = {column.name for column in read if column.name not in wanted}
    return with_blocks(with_codes(_with_places(read), free), free)


def _with_places(read: list[Column]) -> list[Column]:
    """Latitudes and longitudes in pairs; one without the other is a number."""
    halves = [[place for place, one in enumerate(read) if one.kind == kind] for kind in (LATITUDE, LONGITUDE)]
    paired = min(map(len, halves))
    for place in (*halves[0][paired:], *halves[1][paired:]):
        read[place] = replace(read[place], kind=NUMBER)
    for pair in zip(*halves):
        names = " and ".join(repr(read[place].name) for place in pair)
        for place in pair:
            read[place] = replace(read[place], why=f"{read[place].why}: {names} are one place on the globe")
    return read


def read_again(
    frame: "pd.DataFrame",
    name: str,
    kind: str,
    sources: Sequence[str],
    spelled: str,
    levels: Sequence[str] | None,
    absent: Sequence[float] = (),
) -> np.ndarray:
    """The values of a column of another table, read as the column of that name was read before."""
    values = _read_again(frame, name, kind, sources, spelled, levels)
    if not len(absent):
        return values
    if values.dtype != object:
        return np.where(np.isin(values, absent), np.nan, values)
    codes = {f"{one:.15g}" for one in absent}
    return as_texts(None if text in codes else text for text in values)


def _read_again(
    frame: "pd.DataFrame", name: str, kind: str, sources: Sequence[str], spelled: str, levels: Sequence[str] | None
) -> np.ndarray:
    if len(sources) > 1:
        return merged([values_of(frame[source]) for source in sources], levels_of_block(name, sources))
    series = frame[sources[0] if sources else name]
    values = values_of(series)
    if kind == CATEGORY and len(spelled) > 1:
        return multiple_choice.chosen(category_texts(values, series), spelled)
    if levels is not None:
        texts = _known_truth(category_texts(values, series), levels)
        return texts if values.dtype == object or set(texts) & set(levels) else values
    if values.dtype != object or is_empty(values):
        return values if values.dtype != object else np.full(len(values), np.nan)
    read = _read_texts(values, kind, spelled)
    return values if read is None else read[0]


def written_numbers(series: "pd.Series", decimal: str | None = None) -> np.ndarray | None:
    """The numbers of a column of text; None if it holds anything else."""
    values = values_of(series)
    if values.dtype != object:
        return None if holds_dates(series) else values
    different, places = _different(values)
    found = written.numbers(different, decimal)
    return _spread(found.values, places) if found else np.full(len(values), np.nan) if not different else None


def parse_kinds(text: str, known: Sequence[str]) -> dict[str, str]:
    """``column=kind,...`` as a dictionary. Names and kinds are checked, and an error says what is possible."""
    found: dict[str, str] = {}
    parts = re.findall(r"(.+?)=([^,=]*)(?:,|$)", text)
    if "".join(f"{name}={kind}," for name, kind in parts) != text.rstrip(",") + ",":
        raise TableError(f"{text!r} is not of the form COLUMN=KIND,..., for example year=category,account_no=id.")
    for name, kind in parts:
        name, kind = name.strip(), kind.strip().casefold()
        if name not in known:
            raise TableError(f"There is no column {name!r}. The columns are {quoted(known)}.")
        check_kind(name, kind)
        found[name] = kind
    return found


def check_kind(name: str, kind: str) -> None:
    main, _, how = kind.partition(":")
    fits = main != CYCLE if not how else how in written.ORDERS if main == DATE else main == CYCLE and _length(how) > 0
    if main not in KINDS or not fits:
        raise TableError(
            f"{name!r} cannot be of the kind {kind!r}: kinds are {', '.join(KINDS)}; a date can have an order, such as "
            "date:dmy, and a cycle has a length, such as cycle:12."
        )


def _length(text: str) -> float:
    """The length of a cycle; 0 if the text is no such number."""
    return float(text) if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text) else 0.0


class _DifferentRows:
    """The number of different rows of a table, counted only if a column asks for it."""

    def __init__(self, frame: "pd.DataFrame"):
        self.frame, self.found = frame, 0

    def __call__(self, distinct: int) -> int:
        """For a column with so many different values."""
        rows = len(self.frame)
        if distinct >= 0.95 * rows or distinct < rows / COPIES or distinct < 5 or rows > MOST_ROWS_COMPARED:
            return rows
        if not self.found:
            try:
                self.found = int((~self.frame.duplicated()).sum())
            except TypeError:  # lists and other values that cannot be compared
                self.found = rows
        return self.found


def _guessed(name: str, series: "pd.Series", different_rows: _DifferentRows, *, first: bool) -> Column:
    values, is_date, is_clock = values_of(series), holds_dates(series), False
    how, spelled, unit, absent = "", "", "", ()  # type: str, str, str, tuple[float, ...]
    if not is_date and not may_be_round(name) and _plainly_numbers(values):  # at once, since tables can be wide
        values, absent = _without_sentinels(values)
        return Column(name, NUMBER, values, "numbers" + _about_absent(absent), True, (name,), absent=absent)
    if values.dtype == object and not _declared(series):
        different, places = _different(values)
        if found := written.numbers(different):
            values, spelled, unit = _spread(found.values, places), found.decimal, found.unit
            parts = ["with a decimal comma"] * (found.decimal == "," and any("," in text for text in different))
            how = " ".join([*parts, *[f"in {unit}"] * bool(unit)]) or "written as text"
        elif dated := written.dates(different):
            values, spelled, is_date = _spread(dated.values, places), dated.order, True
            how = _about_dates(dated)
        elif timed := written.times(different):
            values, is_clock, unit = _spread(timed.values, places), timed.of_day, "h"
            how = "" if is_clock else "durations in hours"
        elif mostly := _mostly_numbers(different, places, STRANGERS):
            values, spelled, unit = _spread(mostly.values, places), mostly.decimal, mostly.unit
            how = _about_strangers(mostly)
    if values.dtype != object and not is_date:
        values, absent = _without_sentinels(values)
    different_values, counts = _counted(values)
    blank = 1 - counts.sum() / max(1, len(values))
    sight = Sight(name, different_values, counts, different_rows(len(counts)), first, is_date, blank, is_clock)
    made = guess(sight)
    ordered = _declared(series) and bool(series.dtype.ordered) and len(series.dtype.categories) > 2
    if ordered and made.kind in (CATEGORY, ORDINAL):
        made = Guess(ORDINAL, "steps of a scale: " + " < ".join(map(str, series.dtype.categories)))
    why = made.why + _about_absent(absent)
    read = Column(name, made.kind, values, why, made.used, (name,), spelled, made.unit or unit, absent, made.cycle)
    return _as(read, series, how)


def _without_sentinels(values: np.ndarray) -> tuple[np.ndarray, tuple[float, ...]]:
    """Numbers without the smallest or largest that stand for missing values, as 99 or 77 and 99, and what these were.

    They are negative where all others are not, or at least as far from them as they are from each other.
    """
    known, absent = values[np.isfinite(values)], list[float]()
    for most, sign in ((np.min, -1), (np.max, 1)):
        others, ends = known, list[float]()
        while len(others) and re.fullmatch(_ABSENT, f"{(end := float(most(others))):.15g}") and end * sign >= 9 * sign:
            others, ends = others[others != end], [*ends, end]
            if len(others) <= max(FEW, len(known) / 2) or (low := others.min()) == (high := others.max()):
                break
            if abs(end) == 9 and (others != np.round(others)).any():  # one digit is a code among codes only
                break
            if (end - high if sign > 0 else low - end) >= high - low or end < 0 <= low:
                absent, known = absent + ends, others
                break
    return (np.where(np.isin(values, absent), np.nan, values) if absent else values), tuple(absent)


def _about_absent(absent: Sequence[float]) -> str:
    return f"; {' and '.join(f'{one:.15g}' for one in absent)} {ABSENT}" if absent else ""


def _mostly_numbers(
    different: Sequence[str], places: np.ndarray, share: float, decimal: str = ""
) -> written.Numbers | None:
    counts = np.bincount(places[places >= 0], minlength=len(different))
    return written.mostly_numbers(different, counts, share, decimal or None)


def _plainly_numbers(values: np.ndarray) -> bool:
    """Whether the first values already show that a column holds measurements: many different fractions, few gaps."""
    if values.dtype == object:
        return False
    known = np.unique(values[:1_000][np.isfinite(values[:1_000])])
    if np.isnan(values).mean() > MOSTLY:
        return False
    return len(known) > FEW and bool((known != np.round(known)).mean() > 0.5)


def _as(column: Column, series: "pd.Series", how: str = "") -> Column:
    """The column with its values in the form of its kind."""
    values, why = column.values, column.why
    if column.kind == CATEGORY:
        values = category_texts(values, series)
    elif how and (column.kind != DATE or column.used or OPEN in how):
        why = how if column.kind == DATE and column.used else f"{why}, {how}"
    return replace(column, values=values, why=why)


def _as_asked(column: Column, series: "pd.Series", wanted: str) -> Column:
    kind, _, order = wanted.partition(":")
    values, spelled, why = values_of(series), column.spelling, "as asked for"
    if kind in (ID, TEXT):
        return replace(column, kind=kind, why=why, used=False)
    if column.kind == EMPTY:
        return column
    if kind == CATEGORY:
        return replace(
            column, kind=kind, values=category_texts(values, series), why=why, used=True, spelling="", absent=()
        )
    column = replace(column, absent=(), cycle=float(order) if kind == CYCLE else 0.0)
    if values.dtype != object or kind == ORDINAL:
        return _as(replace(column, kind=kind, values=values, why=why, used=True), series)
    read = _read_texts(values, kind, order if kind == DATE else "")
    if read is None:
        what, how = ("dates", written.dates) if kind == DATE else ("numbers", written.numbers)
        raise TableError(f"{column.name!r} cannot be read as {what} ({_stranger(_different(values)[0], how)}).")
    values, spelled, told = read
    why += f"; {told}" if told else ""
    return replace(column, kind=kind, values=values, why=why, used=True, spelling=spelled)


def _read_texts(values: np.ndarray, kind: str, spelled: str) -> tuple[np.ndarray, str, str] | None:
    """Texts that are known to be dates or numbers, how they are spelled, and a remark; None if they are not."""
    different, places = _different(values)
    if kind == DATE:
        dated = written.dates(different, spelled or None)
        return None if dated is None else (_spread(dated.values, places), dated.order, _about_dates(dated))
    if timed := written.times(different):
        return _spread(timed.values, places), "", ""
    found = written.numbers(different, spelled or None)
    found = found or _mostly_numbers(different, places, STRANGERS_AS_ASKED, spelled)
    if found is None:
        return None
    return _spread(found.values, places), found.decimal, _about_strangers(found) if found.strange else ""


def _kept(column: Column) -> Column:
    if column.kind == EMPTY:
        return column
    kind = column.kind if column.kind not in (ID, TEXT) else CATEGORY if column.values.dtype == object else NUMBER
    return replace(column, kind=kind, used=True, why=f"kept: {column.why}")


def _known_truth(values: np.ndarray, levels: Sequence[str]) -> np.ndarray:
    """Yes and no of one table as True and False of another."""
    by_truth = {truth: level for level in levels for truth in (_truth(level),) if truth is not None}
    if len(by_truth) < 2 or len(levels) != 2:
        return values
    unknown = {value for value in values if value is not None} - set(levels)
    meant = {value: by_truth.get(bool(_truth(value)), value) for value in unknown if _truth(value) is not None}
    return as_texts(meant.get(value, value) for value in values) if unknown else values


def _truth(text: str) -> bool | None:
    folded = text.strip().casefold()
    return True if folded in _TRUE else False if folded in _FALSE else None


def _different(values: np.ndarray) -> tuple[list[str], np.ndarray]:
    """The different texts of a column, and the place of every row's text among them (-1 is missing)."""
    import pandas as pd

    places, different = pd.factorize(values, use_na_sentinel=True)
    return [str(text) for text in different], places


def _spread(values: np.ndarray, places: np.ndarray) -> np.ndarray:
    return np.append(values, np.nan)[places]


def _counted(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different known values and how often they occur."""
    if values.dtype == object:
        different, places = _different(values)
        return as_texts(different), np.bincount(places[places >= 0], minlength=len(different))
    return np.unique(values[np.isfinite(values)], return_counts=True)


def _declared(series: "pd.Series") -> bool:
    import pandas as pd

    return isinstance(series.dtype, pd.CategoricalDtype)


def _about_strangers(found: written.Numbers) -> str:
    one = found.strange_rows == 1
    some = ", ".join(map(shown, found.strange[:3])) + (", …" if len(found.strange) > 3 else "")
    many = "one value is no number and counts" if one else f"{found.strange_rows:,} values are no number and count"
    return f"{many} as missing: {some}"


def _about_dates(dated: written.Dates) -> str:
    order = written.ORDERS[dated.order]
    return f"dates: {order}" if dated.certain else f"dates, taken as {order} ({OPEN})"


def _stranger(different: Sequence[str], read: Any) -> str:
    strange = next((text for text in different if read([text]) is None), different[0])
    return f"for example {shown(strange)}"
