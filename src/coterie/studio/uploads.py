"""Uploaded files as tables: recognised by their first bytes, unpacked within limits, then read like any file."""

import gzip
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from coterie.tables.columns import TableError, described, holds_dates
from coterie.tables.table import Table

BLOCK = 2**20
SHOWN_ROWS = 20
LONGEST_TEXT = 300
LONGEST_NAME = 1_000  # of a column
PREVIEW_LETTERS = 200_000  # of all texts in the first rows
LEFT_OUT = -2  # label of rows that take no part because of missing values
# The first bytes of files that are not tables, and what to do with such files.
STRANGERS = {
    b"PK\x03\x04": "is a ZIP archive or another kind of document: unpack it, or save its table as .xlsx or CSV",
    b"\xd0\xcf\x11\xe0": "is an old spreadsheet: save the sheet as .xlsx or CSV",
    b"%PDF": "is a PDF: save the table in it as CSV first",
    b"\x89PNG": "is a picture, not a table: open a CSV, Excel or Parquet file",
    b"\xff\xd8\xff": "is a picture, not a table: open a CSV, Excel or Parquet file",
    b"\x93NUMPY": "is a NumPy array: save it as CSV or Parquet, or use coterie cluster",
}


def read_upload(path: Path, name: str, header: bool | None, bounds: dict[str, int]) -> tuple[Table, list[str]]:
    """The table in an uploaded file, and notes about it. ``name`` is used in messages only.

    ``header`` says whether the first line of a text contains column names; None leaves this to its cells.
    """
    try:
        if _first_line(path).startswith(b"\x1f\x8b"):
            path = _unpack(path, bounds)
        begin = _first_line(path)
        if _is_workbook(path):
            with zipfile.ZipFile(path) as archive:  # its sizes may be false; the limits of the process hold in any case
                _check_bytes(path, sum(one.file_size for one in archive.infolist()), bounds)
            path = path.rename(path.with_suffix(".xlsx"))
        elif stranger := next((what for magic, what in STRANGERS.items() if begin.startswith(magic)), None):
            raise TableError(f"{path} {stranger}.")
        elif begin.startswith(b"PAR1"):
            _check_parquet(path, bounds)
            path = path.rename(path.with_suffix(".parquet"))
        elif begin.startswith(b"{") and begin.endswith(b"}"):  # such a line has commas too, but it is not CSV
            path = path.rename(path.with_suffix(".jsonl"))
        else:
            path = path.rename(path.with_suffix(".tsv" if ".tsv" in name.lower() else ".csv"))
            _check_text(path, bounds)
        table = Table.read(path, header=header, cells=True)
        notes = [note.replace(path.name, name) for note in table.notes]
        _check_size(path, len(table), len(table.names), bounds)
        longest = max(table.names, key=len, default="")
        if len(longest) > LONGEST_NAME:
            shown = f"{longest[:30]}…"
            raise TableError(f"{path} has a column whose name has {len(longest):,} letters ({shown}): shorten it.")
    except TableError as error:
        raise TableError(str(error).replace(str(path), name)) from None
    return table, notes


def _is_workbook(path: Path) -> bool:
    """Whether the file is an Excel workbook and not another ZIP archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            return "xl/workbook.xml" in archive.namelist()
    except (zipfile.BadZipFile, OSError):
        return False


def _check_bytes(path: Path, size: int, bounds: dict[str, int]) -> None:
    """Refuse a file that is too large when it is unpacked."""
    if size > bounds["table_bytes"]:
        raise TableError(f"{path} unpacks to more than {bounds['table_bytes'] / 2**20:,.0f} MB, which is the limit.")


def _first_line(path: Path) -> bytes:
    with open(path, "rb") as file:
        return file.readline(BLOCK).lstrip(b"\xef\xbb\xbf").strip()


def _unpack(path: Path, bounds: dict[str, int]) -> Path:
    """Unpack a gzip file, as far as it is not too large."""
    unpacked, size = path.with_suffix(".unpacked"), 0
    try:
        with gzip.open(path, "rb") as packed, open(unpacked, "wb") as out:
            while block := packed.read(BLOCK):
                size += len(block)
                _check_bytes(path, size, bounds)
                out.write(block)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise TableError(f"{path} is not a complete gzip file: compress it again.") from None
    path.unlink()
    return unpacked.rename(path)


def _check_parquet(path: Path, bounds: dict[str, int]) -> None:
    """Check the metadata before anything is unpacked; the limits of the process stop a file with false metadata."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        said = pq.read_metadata(path)
        groups = [said.row_group(i) for i in range(said.num_row_groups)]
        size = sum(group.column(i).total_uncompressed_size for group in groups for i in range(group.num_columns))
    except (pa.ArrowException, OSError):
        raise TableError(f"{path} is not a complete Parquet file: write it again.") from None
    _check_size(path, said.num_rows, said.num_columns, bounds)
    _check_bytes(path, size, bounds)


def _check_size(path: Path, rows: int, columns: int, bounds: dict[str, int]) -> None:
    if rows > bounds["rows"]:
        most = bounds["rows"]
        raise TableError(
            f"{path} has {rows:,} rows, but the limit of the studio is {most:,}: use coterie cluster, or a sample."
        )
    if columns > bounds["columns"]:
        raise TableError(f"{path} has {columns:,} columns, but the limit of the studio is {bounds['columns']:,}.")


def _check_text(path: Path, bounds: dict[str, int]) -> None:
    """Check by the first line that the file is a table."""
    if path.stat().st_size > bounds["table_bytes"]:
        raise TableError(f"{path} is larger than {bounds['table_bytes'] / 2**20:,.0f} MB, which is the limit.")
    with open(path, "rb") as file:
        start = file.read(BLOCK)
    if b"\x00" in start and start[:2] not in (b"\xff\xfe", b"\xfe\xff"):
        raise TableError(f"{path} is not a table: open a CSV, TSV, JSON lines, Excel or Parquet file.")
    line = start.lstrip(b"\xef\xbb\xbf\r\n").split(b"\n", 1)[0].decode("utf-8", errors="replace")
    delimiter = max(",;\t", key=line.count)
    if line.count(delimiter) >= bounds["columns"]:
        _check_size(path, 0, line.count(delimiter) + 1, bounds)
    if not line.count(delimiter) and start.lstrip()[:1] in (b"{", b"[", b"<"):
        raise TableError(f"{path} is not a table: open a CSV, TSV, JSON lines, Excel or Parquet file.")


def describe(frame: pd.DataFrame) -> dict[str, Any]:
    """What is needed to choose columns: their kinds and ranges, and the first rows.

    ``part_of`` names the category whose values are in several columns.
    """
    read = Table.of(frame).read_columns()
    by_source = {source: column for column in read for source in column.sources}
    columns = [described(by_source[str(name)]) | {"name": str(name)} for name in frame.columns]
    for one in columns:
        column = by_source[one["name"]]
        one["part_of"] = column.name if len(column.sources) > 1 else None
    most = max(20, min(LONGEST_TEXT, PREVIEW_LETTERS // (SHOWN_ROWS * max(1, frame.shape[1]))))
    return {"rows": len(frame), "columns": columns, "preview": cells(frame.head(SHOWN_ROWS), most)}


def cells(frame: pd.DataFrame, most: int = LONGEST_TEXT) -> list[list[Any]]:
    """Rows for JSON: finite numbers as they are, other values as texts of ``most`` letters, None for missing values."""
    return [[_cell(value, most) for value in row] for row in frame.itertuples(index=False, name=None)]


def _cell(value: Any, most: int) -> Any:
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, int | float | np.integer | np.floating):
        number = value.item() if isinstance(value, np.generic) else value
        return number if np.isfinite(float(number)) and abs(number) < 2**53 else _words(value, most)
    return _words(value, most)


def _words(value: Any, most: int = LONGEST_TEXT) -> str | None:
    if value is None or value is pd.NaT or value is pd.NA or (isinstance(value, float) and value != value):
        return None
    text = str(value)
    return text if len(text) <= most else text[: most - 1] + "…"


def plain(frame: pd.DataFrame) -> pd.DataFrame:
    """The table with numbers, dates and texts only; other values (lists, structures) become texts."""
    for name in frame.columns:
        if frame[name].dtype == object and holds_dates(frame[name]):
            frame[name] = pd.to_datetime(frame[name])
        elif frame[name].dtype == object:
            frame[name] = pd.Series([_words(value) for value in frame[name]], dtype="str", index=frame.index)
    return frame
