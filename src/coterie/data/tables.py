"""Tables from files: CSV, TSV, Parquet and NPY in; labels out.

Everything that can be wrong with a file or a column is a :class:`TableError` whose one sentence says what to do.
"""

import csv
import difflib
import gzip
import io
import os
import re
import shlex
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from coterie.files import check_writable, replacing

READABLE = (".csv", ".tsv", ".parquet", ".npy")
WRITABLE = (".csv", ".tsv", ".parquet", ".npy")
SAMPLES = Path(__file__).parent / "samples"
_SPREADSHEETS = (".xls", ".xlsx", ".ods")
_FIRST_BLOCK = 2**24
_LARGEST_BLOCK = 2**31 - 2


class TableError(ValueError):
    """A table that cannot be used as it is. The message says what to do."""


def read_table(path: str | os.PathLike, *, header: bool | None = None) -> pd.DataFrame:
    """The table in a file, by the ending of its name: .csv, .tsv (both also with .gz), .parquet or .npy.

    ``header`` says whether the first line of a text file holds the names of the columns. None, the default, believes so
    unless that line holds nothing but numbers; then the question is put to the caller. Columns without names are called
    x0, x1, ...
    """
    path = Path(path)
    kind = _kind(path, READABLE)
    if path.is_dir():
        raise TableError(f"{path} is a folder: give one of the files in it.")
    if not path.exists():
        near = difflib.get_close_matches(path.name, _names_in(path.parent), n=1)
        raise TableError(f"There is no file {path}." + (f" Did you mean {path.with_name(near[0])}?" if near else ""))
    try:
        if path.stat().st_size == 0:
            raise TableError(f"{path} is empty: it needs a line of column names and at least one row.")
        if kind == ".npy":
            frame = _read_npy(path)
        elif kind == ".parquet":
            frame = _read_parquet(path)
        else:
            frame = _read_text(path, "\t" if kind == ".tsv" else None, header)
    except OSError as error:
        raise TableError(f"{path} cannot be read: {error.strerror or error}.") from error
    _refuse_doubled(frame, path)
    if not frame.shape[1]:
        raise TableError(f"{path} has no columns.")
    if not len(frame):
        raise TableError(f"{path} has column names but no rows: there is nothing to cluster.")
    return frame


def numeric_matrix(frame: pd.DataFrame, columns: Sequence[str] | None = None) -> tuple[np.ndarray, list[str]]:
    """The named columns (default: all) as one float matrix, and their names.

    float32 where every column is float32, float64 otherwise; integers and truth values count as numbers. Text, dates,
    float16 and missing or infinite values are refused, with their place.
    """
    names = column_names(frame, columns)
    chosen = frame[names]
    text = [name for name in names if not is_number(chosen[name])]
    if text:
        raise TableError(_about_text(frame, text))
    half = [name for name in names if chosen[name].dtype == np.float16]
    if half:
        raise TableError(
            f"{listed(half)} {'holds' if len(half) == 1 else 'hold'} float16 numbers, too coarse for "
            "sums of squares: convert to float32 first."
        )
    single = all(chosen[name].dtype == np.float32 for name in names)
    matrix = np.ascontiguousarray(chosen.to_numpy(dtype=np.float32 if single else np.float64, na_value=np.nan))
    refuse_holes(matrix, names)
    return matrix, names


def column_names(frame: pd.DataFrame, columns: Sequence[str] | None = None) -> list[str]:
    """The named columns, each of which must be there once, or all."""
    return [str(name) for name in frame.columns] if columns is None else _resolve(columns, frame)


def all_but(frame: pd.DataFrame, columns: Sequence[str]) -> list[str]:
    """The names of all other columns."""
    excluded = _resolve(columns, frame)
    return [name for name in frame.columns if name not in excluded]


def write_labels(path: str | os.PathLike, labels: np.ndarray, frame: pd.DataFrame | None = None) -> Path:
    """One label a row, in the order of the rows, in a column ``cluster``; with ``frame``, after its own columns.

    The format follows the ending: .csv, .tsv, .parquet, .npy. The file is written whole or not at all.
    """
    path = check_labels_place(path, with_data=frame is not None)
    kind = _kind(path, WRITABLE)
    if kind == ".npy":
        with replacing(path) as temporary, open(temporary, "wb") as file:
            np.save(file, labels)
        return path
    column = pd.Series(labels, name="cluster")
    if frame is None:
        table = column.to_frame()
    else:
        table = frame.reset_index(drop=True)
        table[_free_name("cluster", table.columns)] = column
    with replacing(path) as temporary:
        if kind == ".parquet":
            table.to_parquet(temporary, index=False)
        else:
            table.to_csv(temporary, index=False, sep="\t" if kind == ".tsv" else ",", compression=_compression(path))
    return path


def check_labels_place(path: str | os.PathLike, *, with_data: bool = False) -> Path:
    """Refuse a place or an ending for labels before any work is done."""
    path = Path(path)
    if _kind(path, WRITABLE) == ".npy" and with_data:
        raise TableError(f"{path} can hold labels only: to write them with the data, use .csv, .tsv or .parquet.")
    return check_writable(path)


def sample(name: str) -> pd.DataFrame:
    """A real table that comes with the package: "wine" (178 Italian wines, 13 measurements, and their cultivar)."""
    known = sorted(path.stem for path in SAMPLES.glob("*.csv"))
    if name not in known:
        raise TableError(f"There is no sample {name!r}: choose {listed(known, 'or')}.")
    return read_table(SAMPLES / f"{name}.csv")


def _kind(path: Path, known: Sequence[str]) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    last = suffixes[-1] if suffixes else ""
    if last == ".gz" and suffixes[-2:-1] in ([".csv"], [".tsv"]):
        return suffixes[-2]
    if last in known:
        return last
    if last == ".pq":
        return ".parquet"
    hint = {".npz": " (np.save writes one array as .npy)", ".txt": " (rename it to .csv or .tsv)"}.get(last, "")
    hint = " (save the sheet as CSV)" if last in _SPREADSHEETS else hint
    what = f"the ending {last!r} is not known" if last else "the name has no ending that says what the file is"
    raise TableError(f"{path}: {what}{hint}. Known are {', '.join(known)}.")


def _compression(path: Path) -> Any:
    return "gzip" if path.suffix.lower() == ".gz" else None


def _names_in(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _read_npy(path: Path) -> pd.DataFrame:
    with open(path, "rb") as file:
        if file.read(6) != b"\x93NUMPY":
            raise TableError(f"{path} is not an NPY file: write it again with np.save, or check its ending.")
    try:
        array = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        if "Object arrays" in str(error):
            raise TableError(
                f"{path} holds Python objects, which are never unpickled: save numbers, np.save(path, X.astype(float))."
            ) from error
        raise TableError(f"{path} is not a whole NPY file: write it again with np.save.") from error
    if array.dtype.names or array.dtype.kind not in "biuf":
        raise TableError(f"{path} holds values of type {array.dtype}: save numbers, np.save(path, X.astype(float)).")
    if array.dtype == np.float16:
        raise TableError(
            f"{path} holds float16 numbers, too coarse for sums of squares: np.save(path, X.astype('float32'))."
        )
    if array.ndim != 2:
        hint = "X.reshape(-1, 1) makes it one column" if array.ndim == 1 else "X.reshape(len(X), -1) makes it a table"
        raise TableError(f"{path} has {array.ndim} dimensions, not rows and columns: {hint}.")
    array = np.asarray(array, dtype=array.dtype.newbyteorder("="))
    return pd.DataFrame(array, columns=[f"x{i}" for i in range(array.shape[1])], copy=False)


def _read_parquet(path: Path) -> pd.DataFrame:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            table = file.read()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        if isinstance(error, OSError) and error.errno:
            raise
        raise TableError(f"{path} is not a whole Parquet file: write it again, or check its ending.") from error
    _refuse_doubled_names(table.column_names, path)
    return _to_frame(table)


def _read_text(path: Path, delimiter: str | None, header: bool | None) -> pd.DataFrame:
    import pyarrow as pa
    import pyarrow.csv

    first, delimiter = _first_line(path, delimiter)
    if header is None and _all_numbers(first):
        raise TableError(
            f"The first line of {path} holds only numbers ({', '.join(first[:3])}{', ...' if len(first) > 3 else ''}): "
            "say whether it is data (--no-header) or the names of the columns (--header)."
        )
    _refuse_doubled_names([] if header is False else first, path)
    names = [f"x{i}" for i in range(len(first))] if header is False else None

    def read(block_size: int, use_threads: bool) -> Any:
        return pyarrow.csv.read_csv(
            path,
            pyarrow.csv.ReadOptions(
                use_threads=use_threads, block_size=block_size, column_names=names, autogenerate_column_names=False
            ),
            pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        )

    try:
        try:
            table = read(_FIRST_BLOCK, True)
        except pa.ArrowInvalid:
            # A type guessed from the first block may not hold for the rest; and only one thread can number the lines.
            table = read(_whole(path), False)
    except (pa.ArrowInvalid, UnicodeDecodeError, OSError) as error:
        if isinstance(error, OSError) and error.errno:
            raise
        raise TableError(_about_parsing(path, error)) from error
    binary = [field.name for field in table.schema if pa.types.is_binary(field.type)]
    if binary:
        raise TableError(f"{path} is not UTF-8 (column {binary[0]!r}): save it again as UTF-8.")
    return _to_frame(table)


def _whole(path: Path) -> int:
    """The size of a block that holds all of a text. Its memory is taken at once, so it is no larger than need be."""
    return _LARGEST_BLOCK if _compression(path) else min(_LARGEST_BLOCK, path.stat().st_size + 1)


def _first_line(path: Path, delimiter: str | None) -> tuple[list[str], str]:
    """The cells of the first line that is not blank, and what separates them."""
    with gzip.open(path, "rb") if path.suffix.lower() == ".gz" else open(path, "rb") as file:
        try:
            start = file.read(2**16)
        except (gzip.BadGzipFile, EOFError) as error:
            raise TableError(f"{path} is not a whole gzip file: write it again, or check its ending.") from error
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise TableError(f"{path} is UTF-16: save it again as UTF-8.")
    if b"\x00" in start:
        raise TableError(f"{path} is not text: a .csv or .tsv file was expected. Check its ending.")
    text = start.decode("utf-8-sig", errors="replace")
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        raise TableError(f"{path} holds only blank lines: it needs a line of column names and at least one row.")
    if "\ufffd" in lines[0]:
        raise TableError(f"The first line of {path} is not UTF-8: save it again as UTF-8, or check its ending.")
    if lines[0].casefold().startswith("sep="):
        raise TableError(
            f"The first line of {path} is {lines[0].strip()!r}, a note for spreadsheets: delete that line."
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
        return f"{path} is ragged: line {line} has {got} cells, the first line {expected}. Mend that line."
    if isinstance(error, UnicodeDecodeError):
        return f"{path} is not UTF-8: save it again as UTF-8, or check its ending."
    return f"{path} cannot be read as a table: {message[:200]}"


def _to_frame(table: Any) -> pd.DataFrame:
    """An Arrow table as pandas; what Arrow knows to be numbers, or to be missing, stays so."""
    import pyarrow as pa

    for i, field in enumerate(table.schema):
        holes = table.column(i).null_count > 0
        if pa.types.is_boolean(field.type) and holes:
            table = table.set_column(i, field.name, table.column(i).cast(pa.uint8()).cast(pa.float64()))
        elif pa.types.is_decimal(field.type) or pa.types.is_null(field.type):
            table = table.set_column(i, field.name, table.column(i).cast(pa.float64()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Arrow's and pandas' own
        return table.to_pandas().reset_index(drop=True)


def is_number(column: pd.Series) -> bool:
    """Whether a column holds numbers or truth values."""
    return pd.api.types.is_bool_dtype(column) or (
        pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_complex_dtype(column)
    )


def _resolve(columns: Sequence[str], frame: pd.DataFrame) -> list[str]:
    known = [str(name) for name in frame.columns]
    for name in columns:
        if name in known:
            continue
        by_folded = {other.strip().casefold(): other for other in known}
        near = difflib.get_close_matches(name.strip().casefold(), by_folded, n=3)
        if near:
            meant = listed([by_folded[n] for n in near], "or")
            raise TableError(f"There is no column {name!r}. Did you mean {meant}?")
        raise TableError(f"There is no column {name!r}. The columns are {listed(known)}.")
    if not columns:
        raise TableError("No column was chosen: name at least one.")
    doubled = [name for i, name in enumerate(columns) if name in columns[:i]]
    if doubled:
        raise TableError(f"The column {doubled[0]!r} is named twice: name it once.")
    return list(columns)


def _about_text(frame: pd.DataFrame, text: list[str]) -> str:
    first = frame[text[0]].dropna()
    dates = pd.api.types.is_datetime64_any_dtype(first)
    strange = first.notna() if dates else pd.to_numeric(first, errors="coerce").isna()
    what = "dates" if dates else "text"
    example = f" (row {first.index[strange][0] + 1}: {str(first[strange].iloc[0])[:30]!r})" if strange.any() else ""
    numbers = [str(name) for name in frame.columns if is_number(frame[name])]
    verb = "holds" if len(text) == 1 else "hold"
    start = f"{listed(text)} {verb} {what}{example}, not numbers"
    if not numbers:
        return f"{start}, and so do all columns of this table: turn them into numbers with --encode."
    it = "it" if len(text) == 1 else "them"
    left = f"leave {it} out with --exclude {shlex.quote(','.join(text))}"
    return f"{start}: {left}, turn {it} into numbers with --encode, or name columns with --columns {_some(numbers)}"


def refuse_holes(matrix: np.ndarray, names: Sequence[str]) -> None:
    """Refuse missing and infinite values, with their place."""
    finite = np.isfinite(matrix)
    if finite.all():
        return
    holes = ~finite
    row, column = (int(i) for i in np.argwhere(holes)[0])
    value, advice = "a missing value", "fill them by --encode, remove"
    if np.isinf(matrix[row, column]):
        value, advice = "an infinite value", "remove"
    others = int(holes.sum()) - 1
    also = f" ({others:,} more in {int(holes.any(axis=1).sum()):,} rows in all)" if others else ""
    raise TableError(
        f"Row {row + 1} has {value} in the column {names[column]!r}{also}: {advice} such rows, or leave the column out."
    )


def _refuse_doubled(frame: pd.DataFrame, path: Path) -> None:
    frame.columns = [str(name) for name in frame.columns]
    _refuse_doubled_names(list(frame.columns), path)


def _refuse_doubled_names(names: Sequence[str], path: Path) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise TableError(f"{path} has two columns called {name!r}: rename one of them.")
        seen.add(name)


def _free_name(wanted: str, taken: Sequence[str] | pd.Index) -> str:
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    return name


def _some(names: Sequence[str]) -> str:
    return shlex.quote(",".join(names[:8])) + (",..." if len(names) > 8 else "")


def listed(names: Sequence[str], word: str = "and") -> str:
    """Names in a sentence, quoted; of many the first eight."""
    shown = [repr(name) for name in names[:8]]
    if len(names) > 8:
        return f"{', '.join(shown)} {word} {len(names) - 8} more"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} {word} {shown[-1]}"
