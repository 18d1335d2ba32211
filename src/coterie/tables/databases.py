"""Tables that are not text: workbooks, JSON, files of Stata and SPSS, and databases with a query."""

import codecs
import io
import json
import re
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coterie.tables.columns import TableError
from coterie.tables.raw_files import unpacking
from coterie.wording import quoted
from coterie.wording import shown as printable

if TYPE_CHECKING:
    import pandas as pd

WORKBOOKS = (".xlsx", ".xlsm")
DATABASES = (".sqlite", ".sqlite3", ".db", ".duckdb")
JSON_LINES = (".jsonl", ".ndjson")
STATISTICS = (".dta", ".sav", ".zsav")  # of Stata and SPSS
QUERY_SECONDS = 120.0  # of a file: a view can be written so that it never ends
CHUNK = 1_000_000  # rows
READING = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)
READ_ONLY_TRANSACTIONS = ("postgresql", "mysql", "mariadb", "oracle")  # databases that have them
_FILE_URL = re.compile(r"(sqlite|duckdb)(?:\+\w+)?:///([^?]+)")
_QUOTED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|--[^\n]*|/\*(?!!).*?\*/", re.DOTALL)
_WRITING = re.compile(r";|/\*|\bINTO\b", re.IGNORECASE)  # SELECT ... INTO makes tables and files


def require_package(package: str, what: str, extra: str) -> None:
    """Raise an error that says how to install an optional package."""
    if find_spec(package) is None:
        raise TableError(f"{what} needs the package {package}: pip install 'coterie[{extra}]'.")


def read_workbook(path: Path, sheet: str | None) -> tuple[list[tuple], tuple[str, ...]]:
    """The rows of a sheet of an Excel workbook, the first one by default, and notes."""
    require_package("openpyxl", "Reading an Excel workbook", "excel")
    sheets, rows = _sheet(path, sheet)
    if not rows:
        raise TableError(f"The sheet {sheet or sheets[0]!r} of {path} is empty.")
    width = max(i + 1 for row in rows for i, cell in enumerate(row) if cell is not None)
    whole = [(*row, *[None] * width)[:width] for row in rows]  # empty cells at the end may be left out
    if len(sheets) == 1 or sheet is not None:
        return whole, ()
    note = f"{path.name} has {len(sheets)} sheets; {sheets[0]!r} was read."
    return whole, (f"{note} --query NAME on the command line reads another one.",)


def _sheet(path: Path, sheet: str | None) -> tuple[list[str], list[tuple]]:
    """The names of all sheets, and the rows of one that are not empty."""
    import openpyxl

    content = io.BytesIO(path.read_bytes())
    try:
        with closing(openpyxl.load_workbook(content, read_only=True, data_only=True)) as book:
            sheets = list(book.sheetnames)
            if sheet is not None and sheet not in sheets:
                raise TableError(f"{path} has no sheet {sheet!r}: its sheets are {quoted(sheets)}.")
            wanted = book[sheet or sheets[0]]
            wanted.reset_dimensions()  # what the file says about its size may be wrong: all rows are read
            return sheets, [row for row in wanted.iter_rows(values_only=True) if any(c is not None for c in row)]
    except TableError:
        raise
    except Exception as error:  # the file has been read, so whatever openpyxl says is about its bytes
        raise TableError(f"{path} is not a complete Excel workbook: save it again as .xlsx, or as CSV.") from error


def read_json_lines(path: Path) -> Any:
    """An Arrow table from a file with one JSON object per line."""
    records = []
    with unpacking(path) as stream:
        content = stream.read().removeprefix(codecs.BOM_UTF8)
    for number, line in enumerate(content.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            records.append(json.loads(line.decode("utf-8", errors="replace")))
        except (ValueError, RecursionError):
            records.append(None)
        if not isinstance(records[-1], dict):
            raise TableError(f"Line {number} of {path} is not a JSON object: one object per line was expected.")
    return _of_records(records)


def read_json(path: Path) -> Any:
    """An Arrow table from a JSON document: a list of objects, or an object with one list or object per column.

    A file with one object per line is read as well.
    """
    try:
        found = json.loads(path.read_bytes().removeprefix(codecs.BOM_UTF8).decode("utf-8", errors="replace"))
    except (ValueError, RecursionError):
        return read_json_lines(path)
    if isinstance(found, dict) and found and all(isinstance(values, dict) for values in found.values()):
        rows = dict.fromkeys(row for values in found.values() for row in values)  # pandas' default: rows by their names
        found = {name: [values.get(row) for row in rows] for name, values in found.items()}
    if isinstance(found, dict) and found and all(isinstance(values, list) for values in found.values()):
        most = max(map(len, found.values()))
        if all(len(values) == most for values in found.values()):
            found = [dict(zip(found, row)) for row in zip(*found.values())]
    records = [found] if isinstance(found, dict) else found
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records) or not records:
        raise TableError(f"{path} is not a table: a list of JSON objects, one per row, was expected.")
    return _of_records(records)


def _of_records(records: list[dict[str, Any]]) -> Any:
    """An Arrow table; of texts if a column has values of several types, or texts that are not UTF-8."""
    import pandas as pd
    import pyarrow as pa

    names = dict.fromkeys(key for one in records for key in one)
    with suppress(pa.ArrowException, UnicodeEncodeError, OverflowError):
        return pa.table({name: pa.array([one.get(name) for one in records]) for name in names})
    valid = [{_valid(key): _plain(value) for key, value in record.items()} for record in records]
    return pa.Table.from_pandas(pd.DataFrame(valid).astype("string"), preserve_index=False)


def read_statistics(path: Path) -> "pd.DataFrame":
    """The table in a file of Stata or SPSS. Values with labels are categories."""
    import pandas as pd

    is_stata = path.suffix.lower() == ".dta"
    if not is_stata:
        require_package("pyreadstat", "Reading an SPSS file", "spss")
    try:
        if not is_stata:
            return pd.read_spss(path)
        try:
            return pd.read_stata(path, order_categoricals=False)
        except ValueError as error:
            if "abel" not in str(error):
                raise
            return pd.read_stata(path, convert_categoricals=False)  # two values have the same label
    except OSError:
        raise
    except Exception as error:  # the file is there, so whatever the reader says is about its bytes
        program = "Stata" if is_stata else "SPSS"
        raise TableError(f"{path} is not a complete {program} file: save it again, or save it as CSV.") from error


def _plain(value: Any) -> str | None:
    return value if value is None else _valid(value if isinstance(value, str) else json.dumps(value))


def _valid(text: str) -> str:
    """A text without halves of surrogate pairs, which JSON can express and UTF-8 cannot."""
    return text.encode("utf-8", errors="replace").decode()


def is_url(source: object) -> bool:
    """Whether a table is named by the URL of a database. Such a text is never a path or a pattern of files."""
    return "://" in str(source)


def name_of_url(url: str) -> str:
    """What a database is called in results: its name, without user, password and options."""
    place = url.partition("://")[2].rpartition("@")[2].partition("?")[0]
    return place.rpartition("/")[2] if "/" in place else "database"


def read_sqlite(path: Path, query: str | None) -> "pd.DataFrame":
    """The result of a query of a SQLite file. The connection can do nothing but read that file."""
    import pandas as pd

    # Without a log beside the file no other program writes to it, and SQLite need not make files of its own there.
    how = "mode=ro" if path.with_name(f"{path.name}-wal").exists() else "mode=ro&immutable=1"
    end = time.monotonic() + QUERY_SECONDS
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?{how}", uri=True)) as connection:
        connection.text_factory = lambda text: text.decode("utf-8", errors="replace")
        connection.set_authorizer(lambda action, *_: sqlite3.SQLITE_OK if action in READING else sqlite3.SQLITE_DENY)
        connection.set_progress_handler(lambda: time.monotonic() > end, 100_000)
        try:
            if query is None:
                names = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')").fetchall()
                query = _only_table(path, [name for (name,) in names])
            return _together(pd.read_sql_query(_one_select(query), connection, chunksize=CHUNK))
        except (sqlite3.Error, pd.errors.DatabaseError, UnicodeDecodeError) as error:
            raise TableError(_about_query(path, error, end)) from error


def read_duckdb(path: Path, query: str | None) -> "pd.DataFrame":
    """The result of a query of a DuckDB file. The connection can do nothing but read that file."""
    require_package("duckdb", "Reading a DuckDB file", "duckdb")
    import duckdb

    end = time.monotonic() + QUERY_SECONDS
    try:
        with duckdb.connect(str(path), read_only=True, config={"enable_external_access": "false"}) as connection:
            limit = threading.Timer(QUERY_SECONDS, connection.interrupt)
            limit.daemon = True
            limit.start()
            try:
                if query is None:
                    query = _only_table(path, [row[0] for row in connection.execute("SHOW TABLES").fetchall()])
                return connection.execute(_one_select(query)).df()
            finally:
                limit.cancel()
    except duckdb.Error as error:
        raise TableError(_about_query(path, error, end)) from error


def read_url(url: str, query: str | None) -> "pd.DataFrame":
    """The result of a query of the database at a SQLAlchemy URL. Those of files need no SQLAlchemy."""
    if file := _FILE_URL.match(url):
        path = Path(file[2])
        if not path.is_file():
            raise TableError(f"There is no file {path}.")
        return (read_sqlite if file[1] == "sqlite" else read_duckdb)(path, query)
    require_package("sqlalchemy", "Reading from a database", "sql")
    import pandas as pd
    import sqlalchemy

    try:
        engine = sqlalchemy.create_engine(url, poolclass=sqlalchemy.NullPool)  # closed connections end at once
        with closing(engine.connect()) as connection:  # and nothing is committed
            if engine.dialect.name in READ_ONLY_TRANSACTIONS:
                connection.exec_driver_sql("SET TRANSACTION READ ONLY")
            if query is None:
                query = _only_table(name_of_url(url), sqlalchemy.inspect(connection).get_table_names())
            return pd.read_sql_query(sqlalchemy.text(_one_select(query)), connection)
    except (sqlalchemy.exc.SQLAlchemyError, ImportError, ValueError) as error:
        if isinstance(error, TableError):
            raise
        secret = url.partition("://")[2].rpartition("@")[0]
        said = str(error).replace(url, name_of_url(url)).replace(secret.partition(":")[2] or url, "…")
        raise TableError(_about_query(url.partition("://")[0] + "://…", said)) from None


def _only_table(source: object, tables: list[str]) -> str:
    if len(tables) == 1:
        return 'SELECT * FROM "{}"'.format(tables[0].replace('"', '""'))  # noqa: S608 - a name that the database gave
    has = f"has the tables {quoted(tables)}" if tables else "has no tables"
    raise TableError(f"{source} {has}: say what to read with --query.")


def _one_select(query: str) -> str:
    """The query, if it is one statement that reads; what stands in quotes and comments is ignored."""
    bare = _QUOTED.sub(" ", query).strip().rstrip("; \n\t")
    if not re.match(r"[(\s]*(SELECT|WITH|FROM|VALUES|TABLE)\b", bare, re.IGNORECASE) or _WRITING.search(bare):
        raise TableError("--query must be one SELECT statement, which only reads: remove all others.")
    return query


def _together(parts: "Iterator[pd.DataFrame]") -> "pd.DataFrame":
    """One table of the parts of an answer, which take less memory than the rows of the database."""
    import pandas as pd

    read = list(parts)
    return read[0] if len(read) == 1 else pd.concat(read, ignore_index=True).infer_objects()


def _about_query(source: object, error: object, end: float = float("inf")) -> str:
    if time.monotonic() > end:
        return (
            f"The query of {source} took longer than {QUERY_SECONDS:g} s: select fewer rows, or write its result to a "
            "Parquet file with the program of the database."
        )
    return f"The query of {source} failed: {printable(' '.join(str(error).split())[:200])}"
