"""CSV and TSV files: find the encoding, the separator, the decimal mark and the header, then parse with Arrow."""

import csv
import io
import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from coterie.tables.columns import TableError
from coterie.tables.numbers_and_dates import dates, decimal_mark, is_missing
from coterie.tables.raw_files import FIRST_READ, first_bytes, has_hexadecimal, open_bytes, unpacked_size
from coterie.wording import quoted

FIRST_BLOCK = 2**24  # bytes from which the types of the columns are guessed
LARGEST_BLOCK = 2**31 - 2
SEEN_LINES = 50
COMMENTS = ("#", "%", "//")  # at the beginning of lines that are no rows
UNNAMED = "(unnamed)"  # a column whose cell in the header is empty
MISSING = ("?", "-", "--", "–", "—", "na", "n.a.", "n/A", "None", "none", "NONE", "missing")  # beside those of Arrow
FALLBACK = "cp1252"  # of text that is not UTF-8: what spreadsheets on Windows write


@dataclass(frozen=True)
class Form:
    """How a text file is written.

    ``names`` are the columns, each once. ``skip`` is the number of lines before the table, and ``header`` how many of
    its lines hold the names.
    """

    encoding: str
    delimiter: str
    decimal: str
    names: list[str]
    header: int
    notes: tuple[str, ...] = ()
    skip: int = 0
    spaces: bool = False  # whether cells are separated by any number of spaces


def read_text(
    path: Path, delimiter: str | None, header: bool | None, skip_rows: int = 0, *, cells: bool = False
) -> tuple[Any, Any, Form]:
    """The Arrow table in a text file, the texts of its cells if they are wanted, and how the file is written.

    Without ``delimiter``, it is the separator that gives every line the same number of cells. Without ``header``, the
    types of the cells say whether the first line holds names; see :func:`_holds_names`. It follows ``skip_rows`` lines.
    """
    import pyarrow as pa

    form = _form(path, delimiter, header, skip_rows)
    try:
        try:
            table, texts = _parsed(path, form, cells)
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            if "UTF8" not in str(error) and not isinstance(error, UnicodeDecodeError):
                raise
            table = texts = None
        if table is None or any(pa.types.is_binary(field.type) for field in table.schema):
            form = replace(form, encoding=FALLBACK)
            table, texts = _parsed(path, form, cells)
    except (pa.ArrowInvalid, pa.ArrowMemoryError, UnicodeDecodeError, OSError) as error:
        if isinstance(error, OSError) and error.errno:
            raise
        raise TableError(_about_parsing(path, error)) from error
    return table, texts, form


def _parsed(path: Path, form: Form, cells: bool) -> tuple[Any, Any]:
    """The table and, if they are wanted or needed, the texts of its cells."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv

    def read(block_size: int, use_threads: bool, types: dict[str, Any] | None = None) -> Any:
        source: Any = path
        if form.spaces:  # cells are separated by any number of spaces
            with open_bytes(path) as file:
                text = file.read().decode(form.encoding, errors="replace")
            text = re.sub(r"(?m)^[ \t]+|[ \t]+$", "", re.sub(r"[ \t]+", " ", text))
            source = pa.BufferReader(text.encode())
        convert = pyarrow.csv.ConvertOptions(decimal_point=form.decimal, column_types=types)
        convert.null_values = [*convert.null_values, *MISSING]
        reading = pyarrow.csv.ReadOptions(
            use_threads=use_threads,
            block_size=block_size,
            column_names=form.names,
            skip_rows=form.skip,
            skip_rows_after_names=form.header,
            encoding="utf8" if form.spaces else form.encoding,
        )
        parsing = pyarrow.csv.ParseOptions(
            delimiter=form.delimiter,
            newlines_in_values=True,
            invalid_row_handler=lambda row: "skip" if (row.text or "").startswith(COMMENTS) else "error",
        )
        usual, sys.unraisablehook = sys.unraisablehook, lambda *_: None  # Arrow prints a row that is not UTF-8
        try:
            return pyarrow.csv.read_csv(source, reading, parsing, convert)
        finally:
            sys.unraisablehook = usual

    how = (FIRST_BLOCK, True)
    try:
        table = read(*how)
    except pa.ArrowInvalid:
        # A type guessed from the first block may not hold for the rest; and only one thread can number the lines.
        how = (min(LARGEST_BLOCK, unpacked_size(path) + 1), False)  # Arrow allocates it at once
        table = read(*how)
    integers = [place for place, field in enumerate(table.schema) if pa.types.is_integer(field.type)]
    coded = bool(integers) and has_hexadecimal(path)
    texts: Any = read(*how, dict.fromkeys(table.column_names, pa.string())) if cells or coded else None
    for place in integers if coded else ():  # text where Arrow read hexadecimal codes as numbers
        if pc.any(pc.match_substring_regex(texts.column(place), "^[ +-]*0[xX]")).as_py():
            table = table.set_column(place, table.field(place).name, texts.column(place))
    return table, texts


def unique_names(names: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """Names of which none is empty or occurs twice, and a note if any was numbered."""
    called = [name or UNNAMED for name in names]
    taken, counts, made = set(called), Counter[str](), []
    for name in called:
        new, counts[name] = name, counts[name] + 1
        while counts[name] > 1 and new in taken:
            new, counts[name] = f"{name} ({counts[name]})", counts[name] + (new != name)
        taken.add(new)
        made.append(new)
    repeated = [name for name, count in counts.items() if count > 1]
    return made, (f"Columns that are called alike were numbered: {quoted(repeated)}.",) if repeated else ()


def _form(path: Path, delimiter: str | None, header: bool | None, skip_rows: int) -> Form:
    """How a file is written, from its first lines."""
    start = first_bytes(path)
    encoding = _encoding(start)
    if b"\x00" in start and encoding == "utf8":
        raise TableError(f"{path} is not text: a .csv or .tsv file was expected. Check its extension.")
    try:
        text = start.decode("utf-8-sig" if encoding == "utf8" else encoding)
    except UnicodeDecodeError as error:
        if encoding == "utf8" and error.start < len(start) - 4:
            encoding = FALLBACK
        text = start.decode("utf-8-sig" if encoding == "utf8" else encoding, errors="replace")
    whole = len(start) < FIRST_READ
    every = re.split(r"\r\n|\r|\n", text)  # not str.splitlines, which also splits at characters that cells may contain
    lines = [line for line in (every if whole else every[:-1] or [text])[skip_rows:] if line.strip()]
    if not lines:
        raise TableError(f"{path} contains only blank lines: it needs a line of column names and at least one row.")
    if re.match(r"\s*<(!doctype|html|\?xml|table|head|body)\b", text, re.IGNORECASE):
        raise TableError(f"{path} is a web page or XML, not a table: save the table in it as CSV or .xlsx first.")
    told = re.fullmatch(r"sep=(.)", lines[0].strip("\r\n"), re.IGNORECASE)  # an instruction for spreadsheets
    if told:
        lines, delimiter = lines[1:], told[1]
    delimiter = delimiter or _delimiter(lines)
    rows = _cells(lines, delimiter)
    if not rows:
        raise TableError(f"{path} contains only blank lines: it needs a line of column names and at least one row.")
    before, lines_of_names, names, notes = heading(rows, header)
    skip = every.index(lines[before], every.index(lines[0], skip_rows) + before)
    decimal = _decimal(rows[before:], delimiter)
    return Form(encoding, delimiter, decimal, names, lines_of_names, notes, skip, delimiter == " ")


def heading(rows: list[list[str]], header: bool | None = None) -> tuple[int, int, list[str], tuple[str, ...]]:
    """How many lines stand before a table, how many of its lines hold names, the names of the columns, and notes."""
    before, notes = _lines_before(rows), []
    if before:
        notes.append(f"The first {'line is' if before == 1 else f'{before} lines are'} not part of the table.")
    rows = rows[before:]
    cells = [cell.strip() for cell in rows[0]]
    if header is None:
        header = _holds_names(rows)
        if not header:
            notes.append("The first line was read as data: it looks like the lines below (--header reads it as names).")
    row_names = len(rows) > 1 and all(len(row) == len(cells) + 1 for row in rows[1:])
    if not header:
        return before, 0, [f"x{i}" for i in range(len(cells) + row_names)], tuple(notes)
    lines = 1 + _names_go_on(rows)
    if lines == 2:
        cells = _joined_names(cells, [cell.strip() for cell in rows[1]])
        notes.append("The names of the columns stand in two lines.")
    cells[0] = cells[0].removeprefix("#").strip() or cells[0]
    names, numbered = unique_names([""] * row_names + cells)
    return before, lines, names, (*notes, *numbered)


def _names_go_on(rows: list[list[str]]) -> bool:
    """Whether the second line has names, too: texts where the first is empty, and above a column of numbers."""
    if len(rows) < 3 or len({len(row) for row in rows}) > 1:
        return False
    empty = [place for place, cell in enumerate(rows[0]) if not cell.strip()]
    if max(empty, default=0) == 0 or any(is_missing(rows[1][place]) or _kind_of([rows[1][place]]) for place in empty):
        return False
    above = [place for place, cell in enumerate(rows[1]) if not is_missing(cell) and not _kind_of([cell])]
    return any(_kind_of([row[place] for row in rows[2:]]) == "number" for place in above)


def _joined_names(first: list[str], second: list[str]) -> list[str]:
    """Names in two lines as one: the first stands above several columns where the cells to its right are empty."""
    made, above = [], ""
    for place, (name, part) in enumerate(zip(first, second)):
        above = name or above
        alone = name and (place + 1 == len(first) or first[place + 1])
        made.append(name if alone or not part else f"{above}: {part}" if above else part)
    return made


def _lines_before(rows: list[list[str]]) -> int:
    """The number of lines before a table: comments, or titles of one cell above a line of names."""
    usual = _usual_width(rows)
    filled = [sum(bool(cell.strip()) for cell in row) for row in rows]
    for start, row in enumerate(rows):
        is_comment = row[0].startswith(COMMENTS) and (usual == 1 or len(row) != usual)
        if not is_comment and len(row) in (usual, usual - 1) and filled[start] >= min(usual, 2):
            break
    if all(row[0].startswith(COMMENTS) for row in rows[:start]):
        return start
    is_table = usual > 2 and all(len(row) == usual for row in rows[start + 1 :]) and _holds_names(rows[start:])
    return start if is_table and max(filled[:start]) == 1 else 0


def _usual_width(rows: list[list[str]]) -> int:
    widths = Counter(len(row) for row in rows)
    return max(widths, key=lambda width: (widths[width], width))


def _holds_names(rows: list[list[str]]) -> bool:
    """Whether the first line of a table holds names of columns and not values like those below it.

    It holds values if it has a number or date wherever all cells below are numbers or dates, or, without such columns,
    if most of its cells occur again below. Years in even steps and 0, 1, 2, ... are names nevertheless.
    """
    first, body = rows[0], [row for row in rows[1:] if len(row) == len(rows[0])]
    if not body:
        return not all(map(_is_number, first))
    typed = [place for place, cells in enumerate(zip(*body)) if _kind_of(cells) != ""]
    known = [place for place in typed if not is_missing(first[place])]
    if any(_kind_of([first[place]]) != _kind_of([row[place] for row in body]) for place in known):
        return True
    if known:
        return _counts([first[place] for place in known]) and not _counts([body[0][place] for place in known])
    return sum(cell in cells for cell, cells in zip(first, zip(*body))) <= len(first) / 2


def _kind_of(cells: Sequence[str]) -> str:
    """Whether all known cells are numbers, or all are dates."""
    known = [cell for cell in cells if not is_missing(cell)]
    if known and all(map(_is_number, known)):
        return "number"
    return "date" if known and dates(known) is not None else ""


def _counts(cells: Sequence[str]) -> bool:
    """Whether cells are names that count: 0, 1, 2, ..., or years in even steps."""
    if len(cells) < 2 or not all(re.fullmatch(r"\d+", cell.strip()) for cell in cells):
        return False
    numbers = np.array([int(cell) for cell in cells])
    steps = set(np.diff(numbers).tolist())
    are_years = numbers.min() >= 1800 and numbers.max() <= 2100
    return len(steps) == 1 and (min(steps) > 0 if are_years else numbers[:3].tolist() == [0, 1, 2])


def _encoding(start: bytes) -> str:
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    if len(start) >= 8 and not any(start[1:64:2]) and all(start[:64:2]):
        return "utf-16-le"
    if len(start) >= 8 and not any(start[:64:2]) and all(start[1:64:2]):
        return "utf-16-be"
    return "utf8"


def _delimiter(lines: list[str]) -> str:
    """The separator for which most lines have the same number of cells."""
    best, score = ",", (0.0, 0)
    for delimiter in ",;\t|":
        rows = _cells(lines, delimiter)
        count = _usual_width(rows) if rows else 0
        found = (sum(len(row) == count for row in rows) / max(1, len(rows)), count)
        if count > 1 and found > score:
            best, score = delimiter, found
    if score[1] == 0:
        cells = [line.split() for line in lines[:SEEN_LINES]]
        counts = {len(row) for row in cells[1:]}
        numeric = [_is_number(cell) for row in cells[1:] for cell in row]
        if (
            len(cells) > 1
            and len(cells[0]) > 1
            and counts <= {len(cells[0]), len(cells[0]) + 1}
            and np.mean(numeric) >= 0.5
        ):
            return " "
    return best


def _cells(lines: list[str], delimiter: str) -> list[list[str]]:
    if delimiter == " ":
        return [line.split() for line in lines[:SEEN_LINES]]
    try:
        rows = list(csv.reader(io.StringIO("\n".join(lines), newline=""), delimiter=delimiter))
    except csv.Error:
        rows = [line.split(delimiter) for line in lines]
    return [row for row in rows if row][:SEEN_LINES]


def _decimal(rows: list[list[str]], delimiter: str) -> str:
    """A comma if numbers are written with one and never with a decimal point."""
    if delimiter == ",":
        return "."
    cells = [cell.strip().lstrip("+-") for row in rows[1:] for cell in row]
    numbers = [cell for cell in cells if re.fullmatch(r"[\d.]*,\d+|\d{1,3}(\.\d{3})*|\d+\.\d+", cell)]
    return "," if decimal_mark(numbers) == "," and any("," in number for number in numbers) else "."


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[-+]?(\d+([.,]\d*)?|[.,]\d+)([eE][-+]?\d+)?", text.strip()) is not None


def _about_parsing(path: Path, error: Exception) -> str:
    message = str(error).split("\n")[0]
    if "Expected" in message and "got" in message:
        place, _, rest = message.partition("Expected ")
        line = place.rpartition("#")[2].strip(" :") or "?"
        expected, _, got = rest.partition(" columns, got ")
        got = got.split(":")[0]
        return f"{path} is ragged: line {line} has {got} cells, but the first line has {expected}. Correct that line."
    if isinstance(error, UnicodeDecodeError):
        return f"{path} is neither UTF-8 nor Windows text: save it as UTF-8, or check its extension."
    return f"{path} cannot be read as a table: {message[:200]}"
