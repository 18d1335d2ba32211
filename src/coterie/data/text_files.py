"""CSV and TSV files: find the separator and the header, then parse with Arrow."""

import csv
import io
import re
from pathlib import Path
from typing import Any

import numpy as np

from coterie.data.columns import TableError
from coterie.data.raw_files import first_bytes, has_hexadecimal

FIRST_BLOCK = 2**24  # bytes from which the types of the columns are guessed
LARGEST_BLOCK = 2**31 - 2


def read_text(path: Path, delimiter: str | None, header: bool | None) -> Any:
    """The Arrow table in a text file. Without ``delimiter``, the most frequent separator of the first line is used."""
    import pyarrow as pa
    import pyarrow.csv

    first, delimiter = _first_line(path, delimiter)
    if header is None and _all_numbers(first):
        shown = ", ".join(first[:3]) + (", ..." if len(first) > 3 else "")
        raise TableError(
            f"The first line of {path} contains only numbers ({shown}): specify whether it is data (--no-header) or "
            "column names (--header)."
        )
    require_unique_names([] if header is False else first, path)
    names = [f"x{i}" for i in range(len(first))] if header is False else None

    def read(block_size: int, use_threads: bool, types: dict[str, Any] | None = None) -> Any:
        return pyarrow.csv.read_csv(
            path,
            pyarrow.csv.ReadOptions(
                use_threads=use_threads, block_size=block_size, column_names=names, autogenerate_column_names=False
            ),
            pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            pyarrow.csv.ConvertOptions(column_types=types),
        )

    try:
        try:
            table = read(FIRST_BLOCK, True)
        except pa.ArrowInvalid:
            # A type guessed from the first block may not hold for the rest; and only one thread can number the lines.
            table = read(_block_for_whole_file(path), False)
        integers = [field.name for field in table.schema if pa.types.is_integer(field.type)]
        if integers and has_hexadecimal(path):
            texts = read(_block_for_whole_file(path), False, dict.fromkeys(integers, pa.string()))
            table = _without_hexadecimal(table, texts, integers)
    except (pa.ArrowInvalid, UnicodeDecodeError, OSError) as error:
        if isinstance(error, OSError) and error.errno:
            raise
        raise TableError(_about_parsing(path, error)) from error
    binary = [field.name for field in table.schema if pa.types.is_binary(field.type)]
    if binary:
        raise TableError(f"{path} is not UTF-8 (column {binary[0]!r}): save it as UTF-8.")
    return table


def _without_hexadecimal(table: Any, texts: Any, integers: list[str]) -> Any:
    """The table with text where Arrow read hexadecimal codes as numbers."""
    import pyarrow.compute as pc

    for name in integers:
        if pc.any(pc.match_substring_regex(texts[name], "^[ +-]*0[xX]")).as_py():
            table = table.set_column(table.column_names.index(name), name, texts[name])
    return table


def require_unique_names(names: list[str], path: Path) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise TableError(f"{path} has two columns named {name!r}: rename one of them.")
        seen.add(name)


def _block_for_whole_file(path: Path) -> int:
    """A block size that holds the whole text. Arrow allocates it at once, so it is no larger than necessary."""
    return LARGEST_BLOCK if path.suffix.lower() == ".gz" else min(LARGEST_BLOCK, path.stat().st_size + 1)


def _first_line(path: Path, delimiter: str | None) -> tuple[list[str], str]:
    """The cells of the first line that is not blank, and their separator."""
    start = first_bytes(path)
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise TableError(f"{path} is UTF-16: save it as UTF-8.")
    if b"\x00" in start:
        raise TableError(f"{path} is not text: a .csv or .tsv file was expected. Check its extension.")
    text = start.decode("utf-8-sig", errors="replace")
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        raise TableError(f"{path} contains only blank lines: it needs a line of column names and at least one row.")
    if "\ufffd" in lines[0]:
        raise TableError(f"The first line of {path} is not UTF-8: save it as UTF-8, or check its extension.")
    if lines[0].casefold().startswith("sep="):
        raise TableError(
            f"The first line of {path} is {lines[0].strip()!r}, an instruction for spreadsheets: delete that line."
        )
    if delimiter is None:
        delimiter = max(",;\t|", key=re.sub(r'"[^"]*"', "", lines[0]).count)
    return next(csv.reader(io.StringIO(text.lstrip("\r\n"), newline=""), delimiter=delimiter)), delimiter


def _all_numbers(cells: list[str]) -> bool:
    try:
        return all(np.isfinite(float(cell)) for cell in cells)
    except ValueError:
        return False


def _about_parsing(path: Path, error: Exception) -> str:
    message = str(error).split("\n")[0]
    if "Expected" in message and "got" in message:
        place, _, rest = message.partition("Expected ")
        line = place.rpartition("#")[2].strip(" :") or "?"
        expected, _, got = rest.partition(" columns, got ")
        got = got.split(":")[0]
        return f"{path} is ragged: line {line} has {got} cells, but the first line has {expected}. Correct that line."
    if isinstance(error, UnicodeDecodeError):
        return f"{path} is not UTF-8: save it as UTF-8, or check its extension."
    return f"{path} cannot be read as a table: {message[:200]}"
