"""Tables, read from CSV, TSV, Parquet and NPY files.

Everything that can be wrong with a file or a column raises a :class:`TableError` whose message says what to do.
"""

import difflib
import os
import shlex
import warnings
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.data.columns import (
    EMPTY,
    NUMBER,
    ColumnValues,
    TableError,
    holds_numbers,
    is_empty,
    require_finite,
    split_names,
)
from coterie.data.raw_files import read_npy
from coterie.data.text_files import read_text, require_unique_names
from coterie.wording import quoted, shown

if TYPE_CHECKING:
    import pandas as pd

FILE_TYPES = (".csv", ".tsv", ".parquet", ".npy")
SAMPLES = Path(__file__).parent / "samples"
_SPREADSHEETS = (".xls", ".xlsx", ".ods")


class Table:
    """Rows with named columns. An array of numbers becomes a DataFrame only when :attr:`frame` is used."""

    def __init__(self, names: Sequence[str], *, frame: "pd.DataFrame | None" = None, array: np.ndarray | None = None):
        self.names = list(names)
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
    def read(cls, path: str | os.PathLike, *, header: bool | None = None) -> "Table":
        """The table in a file; see :func:`read_table`."""
        path = Path(path)
        kind = file_type(path)
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
                table = cls.of(_to_frame(_read_parquet(path)))
            else:
                table = cls.of(_to_frame(read_text(path, "\t" if kind == ".tsv" else None, header)))
        except OSError as error:
            raise TableError(f"{path} cannot be read: {error.strerror or error}.") from error
        require_unique_names(table.names, path)
        if not table.names:
            raise TableError(f"{path} has no columns.")
        if not len(table):
            raise TableError(f"{path} has column names but no rows: there is nothing to cluster.")
        return table

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
        return Table(self.names, frame=self.frame.iloc[rows].reset_index(drop=True))

    def choose(
        self, columns: str | Sequence[str] | None = None, exclude: str | Sequence[str] | None = None
    ) -> list[str]:
        """The named columns, or all columns but the excluded ones. A text holds names separated by commas."""
        if exclude is not None:
            excluded = self._found(exclude)
            return [name for name in self.names if name not in excluded]
        return list(self.names) if columns is None else self._found(columns)

    def column(self, name: str) -> ColumnValues:
        """One column with its kind and its values."""
        if self._array is None:
            return ColumnValues.of(name, self.frame[name])
        values = self._array[:, self.names.index(name)].astype(np.float64)
        return ColumnValues(name, EMPTY if is_empty(values) else NUMBER, values)

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
            dtype = np.float32 if array.dtype == np.float32 else np.float64
            matrix = np.ascontiguousarray(array, dtype=dtype)
        else:
            matrix = self._frame_matrix(names)
        require_finite(matrix, names)
        return matrix

    def _frame_matrix(self, names: list[str]) -> np.ndarray:
        chosen = self.frame[names]
        text = [name for name in names if not holds_numbers(chosen[name])]
        if text:
            raise TableError(_about_text(self.frame, text))
        half = [name for name in names if chosen[name].dtype == np.float16]
        if half:
            raise TableError(
                f"{quoted(half)} {'holds' if len(half) == 1 else 'hold'} float16 numbers, which are too coarse for "
                "sums of squares: convert to float32 first."
            )
        single = all(chosen[name].dtype == np.float32 for name in names)
        return np.ascontiguousarray(chosen.to_numpy(dtype=np.float32 if single else np.float64, na_value=np.nan))

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


def read_table(path: str | os.PathLike, *, header: bool | None = None) -> "pd.DataFrame":
    """Read a table from a file.

    Parameters
    ----------
    path : path
        A .csv or .tsv file (also with .gz), a .parquet file or a .npy file. The extension decides how it is read.
    header : bool, optional
        Whether the first line of a text file contains the column names. By default it does, unless the line contains
        only numbers: that raises an error that asks for this argument. Columns without names are called x0, x1, ...

    Returns
    -------
    pandas.DataFrame
    """
    return Table.read(path, header=header).frame


def sample(name: str) -> "pd.DataFrame":
    """A real table that is part of the package: "wine" (178 Italian wines, 13 measurements, and their cultivar)."""
    known = sorted(path.stem for path in SAMPLES.glob("*.csv"))
    if name not in known:
        raise TableError(f"There is no sample {name!r}: choose {quoted(known, 'or')}.")
    return read_table(SAMPLES / f"{name}.csv")


def file_type(path: Path) -> str:
    """The extension of a table file, without .gz."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    last = suffixes[-1] if suffixes else ""
    if last == ".gz" and suffixes[-2:-1] in ([".csv"], [".tsv"]):
        return suffixes[-2]
    if last in FILE_TYPES:
        return last
    if last == ".pq":
        return ".parquet"
    hint = {".npz": " (np.save writes one array as .npy)", ".txt": " (rename it to .csv or .tsv)"}.get(last, "")
    hint = " (save the sheet as CSV)" if last in _SPREADSHEETS else hint
    what = f"the extension {last!r} is not supported" if last else "the file name has no extension"
    raise TableError(f"{path}: {what}{hint}. Supported are {', '.join(FILE_TYPES)}.")


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
    require_unique_names(table.column_names, path)
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
            return made.to_pandas().reset_index(drop=True)
        except (ValueError, OverflowError, ArithmeticError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            message = shown(str(error).splitlines()[0][:200])
            raise TableError(
                f"The table has values that cannot be read ({message}): correct or remove them."
            ) from error


def _about_text(frame: "pd.DataFrame", text: list[str]) -> str:
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
        return f"{start}, and the table has no other columns: encode them as numbers with --encode."
    it = "it" if len(text) == 1 else "them"
    some = shlex.quote(",".join(numbers[:8])) + (",..." if len(numbers) > 8 else "")
    excluded = f"exclude {it} with --exclude {shlex.quote(','.join(text))}"
    return f"{start}: {excluded}, encode {it} as numbers with --encode, or choose columns with --columns {some}"
