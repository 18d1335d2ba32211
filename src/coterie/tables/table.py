"""Tables, read from text, Parquet, NPY and Excel files and from databases.

Everything that can be wrong with a file or a column raises a :class:`TableError` whose message says what to do.
"""

import difflib
import os
import shlex
import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.tables.columns import (
    BadValuesError,
    Column,
    TableError,
    holds_numbers,
    is_empty,
    require_finite,
    split_names,
)
from coterie.tables.databases import (
    DATABASES,
    JSON_LINES,
    WORKBOOKS,
    is_url,
    name_of_url,
    read_duckdb,
    read_json_lines,
    read_sqlite,
    read_url,
    read_workbook,
)
from coterie.tables.encoding import Encoding
from coterie.tables.kinds import EMPTY, NUMBER
from coterie.tables.precision import HALF, is_half, working_dtype
from coterie.tables.raw_files import read_npy
from coterie.tables.text_files import FALLBACK, read_text, unique_names
from coterie.wording import quoted, shown

if TYPE_CHECKING:
    import pandas as pd

TEXT_TYPES = (".csv", ".tsv", *JSON_LINES)  # also with .gz
FILE_TYPES = (*TEXT_TYPES, ".parquet", ".npy", *WORKBOOKS, *DATABASES)
SAMPLES = Path(__file__).parent / "samples"
STDIN = "-"
_MAGIC = {b"PAR1": ".parquet", b"\x93NUM": ".npy", b"PK\x03\x04": ".xlsx", b"SQLi": ".sqlite", b"\x1f\x8b": ".csv.gz"}


class Table:
    """Rows with named columns. An array of numbers becomes a DataFrame only when :attr:`frame` is used."""

    def __init__(self, names: Sequence[str], *, frame: "pd.DataFrame | None" = None, array: np.ndarray | None = None):
        self.names = list(names)
        self.notes: tuple[str, ...] = ()  # about the file that the table was read from
        self.texts: pd.DataFrame | None = None  # of the cells of a text file, if they are kept
        self.exact: dict[str, pd.Series] = {}  # columns with values that they do not keep in ``frame``
        self._frame, self._array = frame, array

    @classmethod
    def of(cls, rows: Any) -> "Table":
        """From a DataFrame, whose column names become texts, or from a two-dimensional array."""
        if isinstance(rows, Table):
            return rows
        if not hasattr(rows, "columns"):
            array = np.asarray(rows)
            return cls([f"x{i}" for i in range(array.shape[1])], array=array)
        frame = rows.to_pandas() if hasattr(rows, "to_pandas") else rows
        if not all(isinstance(name, str) for name in frame.columns):
            frame = frame.rename(columns=str)
        return cls(list(frame.columns), frame=frame)

    @classmethod
    def read(
        cls,
        source: str | os.PathLike,
        *,
        header: bool | None = None,
        query: str | None = None,
        cells: bool = False,
    ) -> "Table":
        """The table in a file; see :func:`read_table`. ``cells``: whether to keep the texts of its cells."""
        if str(source) == STDIN:
            return _from_stdin(header=header, query=query, cells=cells)
        if is_url(source):
            table = cls.of(read_url(str(source), query))
            return _checked(table, source_name(source))
        path = Path(source)
        kind = file_type(path)
        if query is not None and kind not in (*WORKBOOKS, *DATABASES):
            raise TableError(f"{path} is not a database: --query is for databases and Excel workbooks. Remove it.")
        if path.is_dir():
            raise TableError(f"{path} is a folder: give one of the files in it.")
        if not path.exists():
            near = difflib.get_close_matches(path.name, _names_in(path.parent), n=1)
            raise TableError(
                f"There is no file {path}." + (f" Did you mean {path.with_name(near[0])}?" if near else "")
            )
        try:
            if path.stat().st_size == 0:
                raise TableError(f"{path} is empty: it needs a line of column names and at least one row.")
            if kind == ".npy":
                array = read_npy(path)
                table = cls.of(np.asarray(array, dtype=array.dtype.newbyteorder("=")))
            elif kind == ".parquet":
                table = _from_arrow(_read_parquet(path))
            elif kind in JSON_LINES:
                table = _from_arrow(read_json_lines(path))
            elif kind in WORKBOOKS:
                table = _from_workbook(path, query)
            elif kind in DATABASES:
                is_duckdb = kind == ".duckdb"
                table = cls.of(read_duckdb(path, query) if is_duckdb else read_sqlite(path, query))
            else:
                table = _from_text(path, "\t" if kind == ".tsv" else None, header, cells)
        except OSError as error:
            raise TableError(f"{path} cannot be read: {error.strerror or error}.") from error
        return _checked(table, path)

    def __len__(self) -> int:
        return len(self.frame) if self._array is None else len(self._array)

    @property
    def is_frame(self) -> bool:
        """Whether the table was made from a DataFrame, so that its columns have names of their own."""
        return self._frame is not None

    @cached_property
    def frame(self) -> "pd.DataFrame":
        if self._frame is not None:
            return self._frame
        import pandas as pd

        return pd.DataFrame(self._array, columns=self.names, copy=False)

    def take(self, rows: np.ndarray) -> "Table":
        """Some of the rows, numbered from 0 again."""
        if self._array is not None:
            return Table(self.names, array=self._array[rows])
        taken = Table(self.names, frame=self.frame.iloc[rows].reset_index(drop=True))
        taken.exact = {name: column.iloc[rows].reset_index(drop=True) for name, column in self.exact.items()}
        taken.texts = None if self.texts is None else self.texts.iloc[rows].reset_index(drop=True)
        return taken

    def cells(self, *, as_text: bool) -> "pd.DataFrame":
        """The cells as they were read: as texts, if these were kept and are wanted, or with the values of the file."""
        if as_text and self.texts is not None:
            return self.texts
        return self.frame.reset_index(drop=True).assign(**self.exact)

    def choose(
        self, columns: str | Sequence[str] | None = None, exclude: str | Sequence[str] | None = None
    ) -> list[str]:
        """The named columns, or all columns but the excluded ones. A text holds names separated by commas."""
        if exclude is not None:
            excluded = self._found(exclude)
            return [name for name in self.names if name not in excluded]
        return list(self.names) if columns is None else self._found(columns)

    def read_columns(
        self,
        columns: str | Sequence[str] | None = None,
        exclude: str | Sequence[str] | None = None,
        *,
        kinds: "str | Mapping[str, str] | None" = None,
        keep: str | Sequence[str] = (),
    ) -> list[Column]:
        """Columns with their kinds; see :func:`coterie.tables.reading.read_columns`. Those of an array are numbers.

        ``kinds`` may be a text, ``column=kind,...``, and ``keep`` a text with commas between the names. Identifiers are
        used if ``columns`` names them.
        """
        names = self.choose(columns, exclude)
        kept = self._found(keep) if keep else []
        if self._array is None or kinds:
            from coterie.tables import reading

            asked = reading.parse_kinds(kinds, self.names) if isinstance(kinds, str) else dict(kinds or {})
            for name, kind in asked.items():
                self._found([name])
                reading.check_kind(name, kind)
            named = () if columns is None else names
            return reading.read_columns(self.frame, names, kinds=asked, keep=kept, named=named)
        read = [(name, self._array[:, self.names.index(name)].astype(np.float64)) for name in names]
        return [
            Column(name, EMPTY, values, "it has no values", False, (name,)) if is_empty(values)
            else Column(name, NUMBER, values, "numbers", True, (name,))
            for name, values in read
        ]  # fmt: skip

    def columns_for(self, encoding: Encoding) -> list[np.ndarray]:
        """The values of the columns of an encoding, read as they were when it was learned."""
        self._found(encoding.sources)
        if self._array is not None:
            return [self._array[:, self.names.index(name)].astype(np.float64) for name in encoding.names]
        from coterie.tables.reading import read_again

        return [
            read_again(self.frame, one.name, one.kind, one.sources, one.spelling, one.levels, one.absent)
            for one in encoding.columns
        ]

    def is_complete(self, names: Sequence[str]) -> bool:
        """Whether the columns hold numbers and no missing values."""
        if self._array is not None:
            return bool(np.isfinite(self._array).all())
        chosen = (self.frame[name] for name in names)
        return all(holds_numbers(series) and not series.isna().any() for series in chosen)

    def matrix(self, names: Sequence[str] | None = None) -> np.ndarray:
        """The named columns (default: all) as one matrix of floats.

        The matrix is float32 if every column is float32, and float64 otherwise; integers and booleans are numbers.
        Text, dates, float16 and missing or infinite values raise an error that names their place.
        """
        names = self.choose(names)
        if self._array is not None:
            places = [self.names.index(name) for name in names]
            array = self._array if names == self.names else self._array[:, places]
            matrix = np.ascontiguousarray(array, dtype=working_dtype([array.dtype]))
        else:
            matrix = self._frame_matrix(names)
        require_finite(matrix, names)
        return matrix

    def _frame_matrix(self, names: list[str]) -> np.ndarray:
        chosen = self.frame[names]
        text = [name for name in names if not holds_numbers(chosen[name])]
        if text:
            from coterie.tables.reading import written_numbers

            written = {name: written_numbers(self.frame[name]) for name in text}
            strange = [name for name, values in written.items() if values is None]
            if strange:
                raise BadValuesError(*(shown(part) for part in _about_text(self.frame, strange)))
            chosen = chosen.assign(**written)
        half = [name for name in names if is_half(chosen[name].dtype)]
        if half:
            raise TableError(f"{quoted(half)} {'holds' if len(half) == 1 else 'hold'} {HALF}")
        dtype = working_dtype(chosen[name].dtype for name in names)
        return np.ascontiguousarray(chosen.to_numpy(dtype=dtype, na_value=np.nan))

    def _found(self, columns: str | Sequence[str]) -> list[str]:
        """The named columns, each of which must exist and be named once."""
        names = split_names(columns, self.names) if isinstance(columns, str) else list(columns)
        known = set(self.names)
        for name in names:
            if name in known:
                continue
            by_folded = {other.strip().casefold(): other for other in self.names}
            near = difflib.get_close_matches(name.strip().casefold(), by_folded, n=3)
            if near:
                meant = quoted([by_folded[n] for n in near], "or")
                raise TableError(f"There is no column {name!r}. Did you mean {meant}?")
            raise TableError(f"There is no column {name!r}. The columns are {quoted(self.names)}.")
        if not names:
            raise TableError("No column was chosen: name at least one.")
        if len(set(names)) < len(names):
            repeated = next(name for i, name in enumerate(names) if name in names[:i])
            raise TableError(f"The column {repeated!r} is named twice: name it once.")
        return names


def read_table(path: str | os.PathLike, *, header: bool | None = None, query: str | None = None) -> "pd.DataFrame":
    """Read a table from a file or a database.

    Parameters
    ----------
    path : path or str
        A .csv, .tsv or .jsonl file (also with .gz), a .parquet or .npy file, an Excel workbook (.xlsx), a SQLite or
        DuckDB file, the URL of a database for SQLAlchemy, or "-" for standard input. The extension decides how it is
        read. The separator, the decimal mark and the character encoding of a text file are found from its first lines.
    header : bool, optional
        Whether the first line of a text file contains the column names. By default it does, unless its cells look like
        those below. Columns without names are called x0, x1, ...
    query : str, optional
        The SQL query of a database, or the name of a sheet of a workbook. By default the only table, or the first
        sheet.

    Returns
    -------
    pandas.DataFrame
    """
    return Table.read(path, header=header, query=query).frame


def sample(name: str) -> "pd.DataFrame":
    """A real table that is part of the package: "wine" (178 Italian wines, 13 measurements, and their cultivar)."""
    known = sorted(path.stem for path in SAMPLES.glob("*.csv"))
    if name not in known:
        raise TableError(f"There is no sample {name!r}: choose {quoted(known, 'or')}.")
    return read_table(SAMPLES / f"{name}.csv")


def file_type(path: Path) -> str:
    """The extension of a table file, without .gz; .ndjson, .sqlite3 and so on are their own."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    last = suffixes[-1] if suffixes else ""
    if last == ".gz" and suffixes[-2:-1] and suffixes[-2] in TEXT_TYPES:
        return suffixes[-2]
    if last in FILE_TYPES:
        return last
    if last == ".pq":
        return ".parquet"
    hint = {".npz": " (np.save writes one array as .npy)", ".txt": " (rename it to .csv or .tsv)"}.get(last, "")
    hint = " (save it as .xlsx or CSV)" if last in (".xls", ".ods") else hint
    what = f"the extension {last!r} is not supported" if last else "the file name has no extension"
    some = ".csv, .tsv, .parquet, .xlsx, .jsonl, .npy, .sqlite, .duckdb"
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
        ending = ".jsonl" if content.lstrip()[:1] == b"{" else ".csv"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"stdin{ending}"
        path.write_bytes(content)
        try:
            return Table.read(path, **how)
        except TableError as error:
            raise TableError(str(error).replace(str(path), "Standard input")) from None


def _from_workbook(path: Path, query: str | None) -> Table:
    import pandas as pd

    names, rows, notes = read_workbook(path, query)
    names, numbered = unique_names(names)
    table = Table.of(pd.DataFrame(rows, columns=names).infer_objects())
    for name, cells in zip(names, zip(*rows)):
        if table.frame[name].dtype == float:  # integers with gaps, too
            table.exact[name] = pd.Series(cells, dtype=object)
    table.notes = notes + numbered
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


def _from_text(path: Path, delimiter: str | None, header: bool | None, cells: bool) -> Table:
    """The table in a text file, with notes where its form had to be guessed."""
    from coterie.tables.reading import written_numbers

    read, texts, form = read_text(path, delimiter, header, cells=cells)
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


def _names_in(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _read_parquet(path: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            table = file.read()
    except (pa.ArrowException, OSError, ValueError, MemoryError, OverflowError) as error:
        if isinstance(error, OSError) and error.errno:
            raise
        raise TableError(f"{path} is not a complete Parquet file: write it again, or check its extension.") from error
    return table


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


def _about_text(frame: "pd.DataFrame", text: list[str]) -> tuple[str, str]:
    """What is wrong with columns of text, and what to do."""
    import pandas as pd

    first = frame[text[0]].dropna()
    dates = pd.api.types.is_datetime64_any_dtype(first)
    strange = first.notna() if dates else pd.to_numeric(first, errors="coerce").isna()
    what = "dates" if dates else "text"
    example = f" (row {first.index[strange][0] + 1}: {str(first[strange].iloc[0])[:30]!r})" if strange.any() else ""
    numbers = [name for name in frame.columns if holds_numbers(frame[name])]
    verb = "holds" if len(text) == 1 else "hold"
    start = f"{quoted(text)} {verb} {what}{example}, not numbers"
    if not numbers:
        return f"{start}, and the table has no other columns", "encode them as numbers with --encode."
    it = "it" if len(text) == 1 else "them"
    some = shlex.quote(",".join(numbers[:8])) + (",..." if len(numbers) > 8 else "")
    excluded = f"exclude {it} with --exclude {shlex.quote(','.join(text))}"
    return start, f"{excluded}, encode {it} as numbers with --encode, or choose columns with --columns {some}"
