"""Tables that are not text: workbooks, lines of JSON, and databases with a query."""

import json
import sqlite3
import zipfile
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coterie.data.columns import TableError
from coterie.wording import quoted

if TYPE_CHECKING:
    import pandas as pd

WORKBOOKS = (".xlsx", ".xlsm")
DATABASES = (".sqlite", ".sqlite3", ".db", ".duckdb")
JSON_LINES = (".jsonl", ".ndjson")


def require_package(package: str, what: str, extra: str) -> None:
    """Raise an error that says how to install an optional package."""
    if find_spec(package) is None:
        raise TableError(f"{what} needs the package {package}: pip install 'coterie[{extra}]'.")


def read_workbook(path: Path, sheet: str | None) -> "tuple[pd.DataFrame, tuple[str, ...]]":
    """A sheet of an Excel workbook, the first one by default, and notes."""
    import pandas as pd

    require_package("openpyxl", "Reading an Excel workbook", "excel")
    import openpyxl
    from openpyxl.utils.exceptions import InvalidFileException

    try:
        with closing(openpyxl.load_workbook(path, read_only=True, data_only=True)) as book:
            sheets = book.sheetnames
            if sheet is not None and sheet not in sheets:
                raise TableError(f"{path} has no sheet {sheet!r}: its sheets are {quoted(sheets)}.")
            rows = [
                row for row in book[sheet or sheets[0]].iter_rows(values_only=True) if any(c is not None for c in row)
            ]
    except (InvalidFileException, zipfile.BadZipFile, KeyError, OSError, ValueError) as error:
        if isinstance(error, TableError) or (isinstance(error, OSError) and error.errno):
            raise
        raise TableError(f"{path} is not a complete Excel workbook: save it again as .xlsx, or as CSV.") from error
    if not rows:
        raise TableError(f"The sheet {sheet or sheets[0]!r} of {path} is empty.")
    width = max(i + 1 for row in rows for i, cell in enumerate(row) if cell is not None)
    names = [str(name) if name is not None else "" for name in rows[0][:width]]
    frame = pd.DataFrame([row[:width] for row in rows[1:]], columns=names).infer_objects()
    if len(sheets) == 1 or sheet is not None:
        return frame, ()
    note = f"{path.name} has {len(sheets)} sheets; {sheets[0]!r} was read."
    return frame, (f"{note} --query NAME on the command line reads another one.",)


def read_json_lines(path: Path) -> Any:
    """An Arrow table from a file with one JSON object per line."""
    import pyarrow as pa
    import pyarrow.json

    compression = "gzip" if path.suffix.lower() == ".gz" else None
    try:
        with pa.input_stream(str(path), compression=compression) as stream:
            return pyarrow.json.read_json(stream)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        pass  # a column with values of several types, or a line that is not JSON
    records = []
    with pa.input_stream(str(path), compression=compression) as stream:
        for number, line in enumerate(stream.read().decode("utf-8", errors="replace").splitlines(), 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                record = None
            if not isinstance(record, dict):
                raise TableError(f"Line {number} of {path} is not a JSON object: one object per line was expected.")
            records.append({key: _plain(value) for key, value in record.items()})
    import pandas as pd

    return pa.Table.from_pandas(pd.DataFrame(records).astype("string"), preserve_index=False)


def _plain(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)


def read_sqlite(path: Path, query: str | None) -> "pd.DataFrame":
    """The result of a query of a SQLite file, which is opened for reading only."""
    import pandas as pd

    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        try:
            if query is None:
                names = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')").fetchall()
                query = _only_table(path, [name for (name,) in names])
            return pd.read_sql_query(query, connection)
        except (sqlite3.Error, pd.errors.DatabaseError) as error:
            raise TableError(_about_query(path, error)) from error


def read_duckdb(path: Path, query: str | None) -> "pd.DataFrame":
    """The result of a query of a DuckDB file, which is opened for reading only."""
    require_package("duckdb", "Reading a DuckDB file", "duckdb")
    import duckdb

    try:
        with duckdb.connect(str(path), read_only=True) as connection:
            if query is None:
                query = _only_table(path, [row[0] for row in connection.execute("SHOW TABLES").fetchall()])
            return connection.execute(query).df()
    except duckdb.Error as error:
        raise TableError(_about_query(path, error)) from error


def read_url(url: str, query: str | None) -> "pd.DataFrame":
    """The result of a query of the database at a SQLAlchemy URL."""
    import pandas as pd

    if url.startswith("duckdb:///"):
        return read_duckdb(Path(url.removeprefix("duckdb:///")), query)
    require_package("sqlalchemy", "Reading from a database", "sql")
    import sqlalchemy

    try:
        engine = sqlalchemy.create_engine(url)
        shown = engine.url.render_as_string(hide_password=True)
        with closing(engine.connect()) as connection:
            if query is None:
                query = _only_table(shown, sqlalchemy.inspect(engine).get_table_names())
            return pd.read_sql_query(sqlalchemy.text(query), connection)
    except (sqlalchemy.exc.SQLAlchemyError, ImportError) as error:
        shown = url.partition("://")[0] + "://…"  # a URL may contain a password
        raise TableError(_about_query(shown, error)) from error


def _only_table(source: object, tables: list[str]) -> str:
    if len(tables) == 1:
        return 'SELECT * FROM "{}"'.format(tables[0].replace('"', '""'))  # noqa: S608 - a name that the database gave
    has = f"has the tables {quoted(tables)}" if tables else "has no tables"
    raise TableError(f"{source} {has}: say what to read with --query.")


def _about_query(source: object, error: Exception) -> str:
    return f"The query of {source} failed: {' '.join(str(error).split())[:200]}"
