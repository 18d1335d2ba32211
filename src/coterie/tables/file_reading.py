"""Tables from text, Parquet, Feather, NPY, JSON, Excel, Stata and SPSS files, from databases and from standard input.

Everything that can be wrong with a file raises a :class:`TableError` whose message says what to do.
"""

import difflib
import os
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coterie.tables.columns import TableError
from coterie.tables.databases import (
    DATABASES,
    JSON_LINES,
    STATISTICS,
    WORKBOOKS,
    is_url,
    name_of_url,
    read_duckdb,
    read_json,
    read_json_lines,
    read_sqlite,
    read_statistics,
    read_url,
    read_workbook,
)
from coterie.tables.raw_files import read_npy
from coterie.tables.table import Table
from coterie.tables.text_files import FALLBACK, SEEN_LINES, heading, read_text, unique_names
from coterie.wording import shown

if TYPE_CHECKING:
    import pandas as pd

TEXT_TYPES = (".csv", ".tsv", *JSON_LINES)  # also with .gz
FILE_TYPES = (*TEXT_TYPES, ".json", ".parquet", ".feather", ".npy", *WORKBOOKS, *STATISTICS, *DATABASES)
STDIN = "-"
_MAGIC = {
    b"PAR1": ".parquet", b"ARROW1": ".feather", b"\x93NUM": ".npy", b"PK\x03\x04": ".xlsx", b"SQLi": ".sqlite",
    b"\x1f\x8b": ".csv.gz", b"<stata": ".dta",
}  # fmt: skip


def read(
    source: str | os.PathLike,
    *,
    header: bool | None = None,
    skip_rows: int = 0,
    query: str | None = None,
    cells: bool = False,
) -> Table:
    """The table in a file, a database or standard input; see :meth:`coterie.tables.table.Table.read`."""
    if str(source) == STDIN:
        return _from_stdin(header=header, skip_rows=skip_rows, query=query, cells=cells)
    if is_url(source):
        return _checked(Table.of(read_url(str(source), query)), source_name(source))
    path = Path(source)
    kind = file_type(path)
    if query is not None and kind not in (*WORKBOOKS, *DATABASES):
        raise TableError(f"{path} is not a database: --query is for databases and Excel workbooks. Remove it.")
    if path.is_dir():
        raise TableError(f"{path} is a folder: give one of the files in it.")
    if not path.exists():
        raise TableError(f"There is no file {path}.{_instead_of(path)}")
    try:
        if path.stat().st_size == 0:
            raise TableError(f"{path} is empty: it needs a line of column names and at least one row.")
        return _checked(_reader(kind, query, header, skip_rows, cells)(path), path)
    except OSError as error:
        raise TableError(f"{path} cannot be read: {error.strerror or error}.") from error


def _reader(kind: str, query: str | None, *how: Any) -> Callable[[Path], Table]:
    """What reads a file of a type; ``how`` a text is read are arguments of :func:`_from_text`."""
    if kind in WORKBOOKS:
        return lambda path: _from_workbook(path, query, how[0])
    if kind in DATABASES:
        read_database = read_duckdb if kind == ".duckdb" else read_sqlite
        return lambda path: Table.of(read_database(path, query))
    if kind in STATISTICS:
        return lambda path: Table.of(read_statistics(path))
    others: dict[str, Callable[[Path], Table]] = {
        ".npy": lambda path: Table.of((array := read_npy(path)).astype(array.dtype.newbyteorder("="), copy=False)),
        ".parquet": lambda path: _from_arrow(_read_columns(path, "Parquet")),
        ".feather": lambda path: _from_arrow(_read_columns(path, "Feather")),
        ".json": lambda path: _from_arrow(read_json(path)),
        **dict.fromkeys(JSON_LINES, lambda path: _from_arrow(read_json_lines(path))),
    }
    return others.get(kind) or (lambda path: _from_text(path, "\t" if kind == ".tsv" else None, *how))


def _instead_of(path: Path) -> str:
    """A question that names the file that may be meant; the extension alone is no likeness."""
    try:
        files = [
            other for other in os.listdir(path.parent) if Path(other).suffix.lower() in (*FILE_TYPES, ".gz", ".pq")
        ]
    except OSError:
        return ""
    stems = {other.split(".")[0].casefold(): other for other in files}
    near = difflib.get_close_matches(path.name.split(".")[0].casefold(), stems, n=1)
    return f" Did you mean {path.with_name(stems[near[0]])}?" if near else ""


def file_type(path: Path) -> str:
    """The extension of a table file, without .gz; .ndjson, .sqlite3 and so on are their own."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    last = suffixes[-1] if suffixes else ""
    if last == ".gz" and suffixes[-2:-1] and suffixes[-2] in TEXT_TYPES:
        return suffixes[-2]
    if last in FILE_TYPES:
        return last
    if last in (".pq", ".arrow"):
        return ".parquet" if last == ".pq" else ".feather"
    hint = {".npz": " (np.save writes one array as .npy)", ".txt": " (rename it to .csv or .tsv)"}.get(last, "")
    hint = " (save it as .xlsx or CSV)" if last in (".xls", ".ods") else hint
    what = f"the extension {last!r} is not supported" if last else "the file name has no extension"
    some = ".csv, .tsv, .parquet, .feather, .xlsx, .json, .jsonl, .npy, .dta, .sav, .sqlite, .duckdb"
    raise TableError(f"{path}: {what}{hint}. Supported are {some}.")


def source_name(source: str | os.PathLike) -> str:
    """What a source is called in results: no folders, and no password of a database."""
    if is_url(source):
        return name_of_url(str(source))
    return "standard input" if str(source) == STDIN else Path(source).name


def _checked(table: Table, source: object) -> Table:
    """The table, if it has rows and columns, with every name once."""
    if len(set(table.names)) < len(table.names):
        names, numbered = unique_names(table.names)
        notes, table = table.notes, Table.of(table.frame.set_axis(names, axis=1))
        table.notes = notes + numbered
    if not table.names:
        raise TableError(f"{source} has no columns.")
    if not len(table):
        raise TableError(f"{source} has column names but no rows: there is nothing to cluster.")
    return table


def _from_stdin(**how: Any) -> Table:
    """The table that is piped in; the first bytes say what it is."""
    content = sys.stdin.buffer.read()
    if not content.strip():
        raise TableError("Standard input is empty: pipe a table into the command, for example cat a.csv | coterie ...")
    ending = next((ending for magic, ending in _MAGIC.items() if content.startswith(magic)), None)
    if ending is None:
        ending = {b"{": ".jsonl", b"[": ".json"}.get(content.lstrip()[:1], ".csv")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"stdin{ending}"
        path.write_bytes(content)
        try:
            return read(path, **how)
        except TableError as error:
            raise TableError(str(error).replace(str(path), "Standard input")) from None


def _from_workbook(path: Path, query: str | None, header: bool | None) -> Table:
    import pandas as pd

    rows, notes = read_workbook(path, query)
    seen = [["" if cell is None else str(cell) for cell in row] for row in rows[:SEEN_LINES]]
    before, named, names, about = heading(seen, header)
    rows = rows[before + named :]
    table = Table.of(pd.DataFrame(rows, columns=names).infer_objects())
    for name, cells in zip(names, zip(*rows)):
        if table.frame[name].dtype == float:  # integers with gaps, too
            table.exact[name] = pd.Series(cells, dtype=object)
    table.notes = notes + about
    return table


def _from_arrow(read: Any, texts: Any = None) -> Table:
    """A table that remembers what a DataFrame of numbers does not keep.

    These are integers and truth values with gaps, decimals, and, in ``texts``, numbers that are codes: with zeros
    before them, or with more digits than a float.
    """
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc

    called, numbered = unique_names(read.column_names)
    read = read.rename_columns(called) if numbered else read
    table = Table.of(_to_frame(read))
    table.notes = numbered
    for place, (name, column) in enumerate(zip(read.column_names, read.columns)):
        whole, kind = pa.types.is_integer(column.type), column.type
        codes = r"^\s*[+-]?0\d" if whole else r"^\s*[+-]?(0\d|\d{16,}\s*$)"
        number = texts is not None and (whole or pa.types.is_floating(kind))
        if number and pc.any(pc.match_substring_regex(texts.column(place), codes)).as_py():
            table.exact[name] = texts.column(place).to_pandas()
        elif name not in table.names:
            continue  # an index of pandas
        elif pa.types.is_decimal(kind) or (column.null_count and (whole or pa.types.is_boolean(kind))):
            table.exact[name] = column.to_pandas(types_mapper=pd.ArrowDtype)
    return table


def as_frame(batch: Any) -> "pd.DataFrame":
    """An Arrow table, or a part of one, as the reader of files gives it."""
    import pyarrow as pa

    return _from_arrow(pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch).frame


def _from_text(path: Path, delimiter: str | None, header: bool | None, skip_rows: int, cells: bool) -> Table:
    """The table in a text file, with notes where its form had to be guessed."""
    from coterie.tables.column_reading import written_numbers

    read, texts, form = read_text(path, delimiter, header, skip_rows, cells=cells)
    table = _from_arrow(read, texts)
    table.texts = texts.to_pandas() if cells else None
    if form.decimal == ",":  # thousands are then separated by points, which Arrow does not read
        for name in table.names:
            if table.frame[name].dtype == object or str(table.frame[name].dtype) in ("str", "string"):
                numbers = written_numbers(table.frame[name], ",")
                if numbers is not None:
                    table.frame[name] = numbers
    table.notes += form.notes
    if form.encoding == FALLBACK:
        table.notes += (f"{path.name} is not UTF-8 and was read as Windows text (cp1252).",)
    return table


def _read_columns(path: Path, kind: str) -> Any:
    """The Arrow table in a Parquet or Feather file."""
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.parquet

    try:
        if kind == "Feather":
            return pyarrow.feather.read_table(path)
        with pyarrow.parquet.ParquetFile(path) as file:
            return file.read()
    except (pa.ArrowException, OSError, ValueError, MemoryError, OverflowError) as error:
        if isinstance(error, OSError) and error.errno:
            raise
        raise TableError(f"{path} is not a complete {kind} file: write it again, or check its extension.") from error


def _to_frame(table: Any) -> "pd.DataFrame":
    """An Arrow table as a DataFrame; columns that Arrow knows to be numbers or missing stay so."""
    import pyarrow as pa

    columns = []
    for column in table.columns:
        if pa.types.is_boolean(column.type) and column.null_count > 0:
            column = column.cast(pa.uint8()).cast(pa.float64())
        elif pa.types.is_decimal(column.type) or pa.types.is_null(column.type):
            column = column.cast(pa.float64())
        columns.append(column)
    schema = pa.schema(zip(table.column_names, (column.type for column in columns)), table.schema.metadata)
    made = pa.Table.from_arrays(columns, schema=schema)  # at once: thousands of changed tables would be slow
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Arrow's and pandas' own
        try:
            made.validate(full=True)  # texts may be no UTF-8, which pandas finds out when they are used
            try:
                return made.to_pandas().reset_index(drop=True)
            except (KeyError, TypeError, AttributeError, IndexError):  # damaged notes of pandas about its index
                return made.replace_schema_metadata(None).to_pandas().reset_index(drop=True)
        except (ValueError, OverflowError, ArithmeticError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            message = shown(str(error).splitlines()[0][:200])
            raise TableError(
                f"The table has values that cannot be read ({message}): correct or remove them."
            ) from error
