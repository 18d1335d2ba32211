"""CSV and TSV files: find the encoding, the separator, the decimal mark and the header, then parse with Arrow."""

import csv
import io
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from coterie.data.columns import TableError
from coterie.data.raw_files import FIRST_READ, first_bytes, has_hexadecimal, open_bytes, unpacked_size
from coterie.data.spelling import decimal_mark

FIRST_BLOCK = 2**24  # bytes from which the types of the columns are guessed
LARGEST_BLOCK = 2**31 - 2
SEEN_LINES = 50
UNNAMED = "(unnamed)"  # a column whose cell in the header is empty
MISSING = ("?", "-", "--", "–", "—", "na", "n.a.", "n/A", "None", "none", "NONE", "missing")  # beside those of Arrow
FALLBACK = "cp1252"  # of text that is not UTF-8: what spreadsheets on Windows write


@dataclass(frozen=True)
class Form:
    """How a text file is written. ``skip`` is the number of lines before the header."""

    encoding: str
    delimiter: str
    decimal: str
    first: list[str]
    skip: int = 0
    row_names: bool = False  # whether rows have one cell more than the header, at their beginning
    spaces: bool = False  # whether cells are separated by any number of spaces


def read_text(path: Path, delimiter: str | None, header: bool | None) -> tuple[Any, Form]:
    """The Arrow table in a text file, and how the file is written.

    Without ``delimiter``, it is the separator that gives every line the same number of cells.
    """
    import pyarrow as pa

    form = _form(path, delimiter)
    if header is None and _all_numbers(form):
        shown = ", ".join(form.first[:3]) + (", ..." if len(form.first) > 3 else "")
        raise TableError(
            f"The first line of {path} contains only numbers ({shown}): specify whether it is data (--no-header) or "
            "column names (--header)."
        )
    named = [] if header is False else [cell.strip() or UNNAMED for cell in form.first]
    require_unique_names(named, path)
    names = [f"x{i}" for i in range(len(form.first))] if header is False else None
    if form.row_names:
        names = [UNNAMED, *named] if header is not False else [f"x{i}" for i in range(len(form.first) + 1)]
    skip_header = form.row_names and header is not False
    try:
        try:
            table = _parsed(path, form, names, skip_header)
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            if "UTF8" not in str(error) and not isinstance(error, UnicodeDecodeError):
                raise
            table = None
        if table is None or any(pa.types.is_binary(field.type) for field in table.schema):
            form = replace(form, encoding=FALLBACK)
            table = _parsed(path, form, names, skip_header)
    except (pa.ArrowInvalid, pa.ArrowMemoryError, UnicodeDecodeError, OSError) as error:
        if isinstance(error, OSError) and error.errno:
            raise
        raise TableError(_about_parsing(path, error)) from error
    if names is not None:
        return table, form
    named = [name.strip() or UNNAMED for name in table.column_names]  # Arrow may see other cells in a damaged line
    require_unique_names(named, path)
    return table.rename_columns(named), form


def _without_hexadecimal(table: Any, texts: Any, integers: list[int]) -> Any:
    """The table with text where Arrow read hexadecimal codes as numbers; ``integers`` are positions of columns."""
    import pyarrow.compute as pc

    for place in integers:
        if pc.any(pc.match_substring_regex(texts.column(place), "^[ +-]*0[xX]")).as_py():
            table = table.set_column(place, table.field(place).name, texts.column(place))
    return table


def _parsed(path: Path, form: Form, names: list[str] | None, skip_header: bool) -> Any:
    import pyarrow as pa
    import pyarrow.csv

    def read(block_size: int, use_threads: bool, types: dict[str, Any] | None = None) -> Any:
        source = pa.BufferReader(_single_spaced(path, form)) if form.spaces else path
        convert = pyarrow.csv.ConvertOptions(decimal_point=form.decimal, column_types=types)
        convert.null_values = [*convert.null_values, *MISSING]
        return pyarrow.csv.read_csv(
            source,
            pyarrow.csv.ReadOptions(
                use_threads=use_threads,
                block_size=block_size,
                column_names=names,
                skip_rows=form.skip,
                skip_rows_after_names=int(skip_header),
                encoding="utf8" if form.spaces else form.encoding,
            ),
            pyarrow.csv.ParseOptions(delimiter=form.delimiter, newlines_in_values=True),
            convert,
        )

    try:
        table = read(FIRST_BLOCK, True)
    except pa.ArrowInvalid:
        # A type guessed from the first block may not hold for the rest; and only one thread can number the lines.
        table = read(_block_for_whole_file(path), False)
    integers = [place for place, field in enumerate(table.schema) if pa.types.is_integer(field.type)]
    if integers and has_hexadecimal(path):
        types = {table.field(place).name: pa.string() for place in integers}
        texts = read(_block_for_whole_file(path), False, types)
        table = _without_hexadecimal(table, texts, integers)
    return table


def _single_spaced(path: Path, form: Form) -> bytes:
    """The text of a file whose cells are separated by any number of spaces, with one space between them."""
    with open_bytes(path) as file:
        text = file.read().decode(form.encoding, errors="replace")
    return re.sub(r"(?m)^[ \t]+|[ \t]+$", "", re.sub(r"[ \t]+", " ", text)).encode()


def require_unique_names(names: list[str], path: object) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise TableError(f"{path} has two columns named {name!r}: rename one of them.")
        seen.add(name)


def _block_for_whole_file(path: Path) -> int:
    """A block size that holds the whole text. Arrow allocates it at once, so it is no larger than necessary."""
    return min(LARGEST_BLOCK, unpacked_size(path) + 1)


def _form(path: Path, delimiter: str | None) -> Form:
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
    lines = [line for line in (every if whole else every[:-1] or [text]) if line.strip()]
    if not lines:
        raise TableError(f"{path} contains only blank lines: it needs a line of column names and at least one row.")
    told = re.fullmatch(r"sep=(.)", lines[0].strip("\r\n"), re.IGNORECASE)  # an instruction for spreadsheets
    if told:
        lines, delimiter = lines[1:], told[1]
    delimiter = delimiter or _delimiter(lines)
    rows = _cells(lines, delimiter)
    if not rows:
        raise TableError(f"{path} contains only blank lines: it needs a line of column names and at least one row.")
    first, body = rows[0], rows[1:]
    row_names = bool(body) and all(len(row) == len(first) + 1 for row in body)
    skip = text[: text.find(lines[0])].count("\n") if told else 0
    return Form(encoding, delimiter, _decimal(rows, delimiter), first, skip, row_names, delimiter == " ")


def _encoding(start: bytes) -> str:
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    if len(start) >= 8 and not any(start[1:64:2]) and all(start[:64:2]):
        return "utf-16-le"
    if len(start) >= 8 and not any(start[:64:2]) and all(start[1:64:2]):
        return "utf-16-be"
    return "utf8"


def _delimiter(lines: list[str]) -> str:
    """The separator for which most lines have as many cells as the first one."""
    best, score = ",", (0.0, 0)
    for delimiter in ",;\t|":
        rows = _cells(lines, delimiter)
        count = len(rows[0]) if rows else 0
        found = (sum(len(row) in (count, count + 1) for row in rows) / max(1, len(rows)), count)
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


def _all_numbers(form: Form) -> bool:
    return all(_is_number(cell) for cell in form.first)


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
