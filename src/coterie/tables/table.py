"""Tables: rows with named columns. Files and databases are read in :mod:`coterie.tables.file_reading`."""

import difflib
import os
import shlex
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
from coterie.tables.encoding import Encoding
from coterie.tables.kinds import EMPTY, NUMBER
from coterie.tables.precision import HALF, is_half, working_dtype
from coterie.wording import quoted, shown

if TYPE_CHECKING:
    import pandas as pd

SAMPLES = Path(__file__).parent / "samples"


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
    def read(cls, source: str | os.PathLike, *, cells: bool = False, **how: Any) -> "Table":
        """The table in a file; see :func:`read_table`. ``cells``: whether to keep the texts of its cells."""
        from coterie.tables.file_reading import read

        return read(source, cells=cells, **how)

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
        """Columns with their kinds (:func:`coterie.tables.column_reading.read_columns`). Those of an array are numbers.

        ``kinds`` may be a text, ``column=kind,...``, and ``keep`` a text with commas between the names. Identifiers are
        used if ``columns`` names them.
        """
        names = self.choose(columns, exclude)
        kept = self._found(keep) if keep else []
        if self._array is None or kinds:
            from coterie.tables import column_reading

            asked = column_reading.parse_kinds(kinds, self.names) if isinstance(kinds, str) else dict(kinds or {})
            for name, kind in asked.items():
                self._found([name])
                column_reading.check_kind(name, kind)
            named = () if columns is None else names
            return column_reading.read_columns(self.frame, names, kinds=asked, keep=kept, named=named)
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
        from coterie.tables.column_reading import read_again

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
            from coterie.tables.column_reading import written_numbers

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
        if absent := [name for name in names if name not in known]:
            raise TableError(self._without(absent))
        if not names:
            raise TableError("No column was chosen: name at least one.")
        if len(set(names)) < len(names):
            repeated = next(name for i, name in enumerate(names) if name in names[:i])
            raise TableError(f"The column {repeated!r} is named twice: name it once.")
        return names

    def _without(self, absent: list[str]) -> str:
        """What to say about columns that the table does not have."""
        if len(absent) > 1:
            return f"There are no columns {quoted(absent)}. The columns are {quoted(self.names)}."
        by_folded = {other.strip().casefold(): other for other in self.names}
        near = difflib.get_close_matches(absent[0].strip().casefold(), by_folded, n=3)
        said = f"There is no column {absent[0]!r}."
        if near:
            return f"{said} Did you mean {quoted([by_folded[n] for n in near], 'or')}?"
        return f"{said} The columns are {quoted(self.names)}."


def read_table(
    path: str | os.PathLike, *, header: bool | None = None, skip_rows: int = 0, query: str | None = None
) -> "pd.DataFrame":
    """Read a table from a file or a database.

    Parameters
    ----------
    path : path or str
        A .csv, .tsv or .jsonl file (also with .gz), a .parquet, .feather, .json or .npy file, an Excel workbook
        (.xlsx), a file of Stata (.dta) or SPSS (.sav), a SQLite or DuckDB file, the URL of a database for SQLAlchemy,
        or "-" for standard input. The extension decides how it is read. The separator, the
        decimal mark and the character encoding of a text file are found from its first lines.
    header : bool, optional
        Whether the first line of a text file contains the column names. By default it does, unless its cells look like
        those below. Columns without names are called x0, x1, ...
    skip_rows : int
        The number of lines of a text file to skip before that line. Comments and titles are found without it.
    query : str, optional
        The SQL query of a database, or the name of a sheet of a workbook. By default the only table, or the first
        sheet.

    Returns
    -------
    pandas.DataFrame
    """
    return Table.read(path, header=header, skip_rows=skip_rows, query=query).frame


def sample(name: str) -> "pd.DataFrame":
    """A real table that is part of the package: "wine" (178 Italian wines, 13 measurements, and their cultivar)."""
    known = sorted(path.stem for path in SAMPLES.glob("*.csv"))
    if name not in known:
        raise TableError(f"There is no sample {name!r}: choose {quoted(known, 'or')}.")
    return read_table(SAMPLES / f"{name}.csv")


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
