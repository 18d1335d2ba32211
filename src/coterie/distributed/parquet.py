"""Parquet files as blocks of a Dask array, and labels as Parquet files."""

import glob
import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coterie.files import replacing
from coterie.tables.table import TableError

BLOCK_BYTES = 64 * 2**20  # of a block in memory; a row group is never cut


@dataclass(frozen=True)
class Stretch:
    """Row groups of one file that form one block."""

    path: str
    groups: tuple[int, ...]
    rows: int


@dataclass(frozen=True)
class ParquetRows:
    """Columns of Parquet files, divided into blocks. Only the footers have been read.

    ``others`` are columns that are no numbers, or that lack some.
    """

    names: tuple[str, ...]
    dtype: str
    stretches: tuple[Stretch, ...]
    others: tuple[str, ...] = ()

    @property
    def n_rows(self) -> int:
        return sum(one.rows for one in self.stretches)

    def array(self) -> Any:
        """A Dask array whose blocks are read on demand by the workers."""
        import dask.array as da
        from dask.base import tokenize

        name = f"coterie-parquet-{tokenize(self)}"
        graph = {(name, b, 0): (read, one, self.names, self.dtype) for b, one in enumerate(self.stretches)}
        chunks = (tuple(one.rows for one in self.stretches), (len(self.names),))
        return da.Array(graph, name, chunks, dtype=self.dtype)


def find(pattern: str | os.PathLike) -> list[Path]:
    """The files of a pattern, which is a file, a folder of .parquet files or a glob, sorted by name."""
    path = Path(pattern)
    if path.is_dir():
        files = sorted(path.glob("*.parquet"))
    else:
        files = [path] if path.is_file() else [Path(one) for one in sorted(glob.glob(str(pattern), recursive=True))]
    if not files:
        raise TableError(
            f"No file matches {pattern}: give a .parquet file, a folder of them, or a pattern like 'folder/*.parquet'."
        )
    other = [one for one in files if one.suffix.lower() not in (".parquet", ".pq")]
    if other:
        raise TableError(f"{other[0]} is not a Parquet file: only Parquet files can be read in blocks.")
    return files


def open_files(
    files: Sequence[Path],
    columns: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    block_bytes: int = BLOCK_BYTES,
) -> ParquetRows:
    """Read the footers, check that all files have the same columns, and divide the files into blocks."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    first, stretches, lacking = None, [], set()
    names: list[str] = []
    width = 8
    for path in files:
        try:
            footer = pq.ParquetFile(path)
        except (OSError, pa.ArrowInvalid) as error:
            raise TableError(f"{path} cannot be read as Parquet: {error}") from error
        with footer as file:
            schema = file.schema_arrow
            if first is None:
                first = schema
                names = _chosen(schema, path, columns, exclude)
                single = all(pa.types.is_float32(schema.field(name).type) for name in names)
                width = len(names) * (4 if single else 8)
            require_same(first, schema, names, files[0], path)
            stretches += _cut(str(path.absolute()), file.metadata, max(1, block_bytes // width))
            lacking |= _lacking(file.metadata)
    if not stretches:
        raise TableError("The files have no rows.")
    dtype = "float32" if width == 4 * len(names) else "float64"
    return ParquetRows(tuple(names), dtype, tuple(stretches), _others(first, names, lacking))


def _chosen(schema, path: Path, columns, exclude) -> list[str]:
    for name in [*(columns or []), *exclude]:
        if name not in schema.names:
            raise TableError(f"{path.name} has no column {name!r}; it has {', '.join(schema.names)}.")
    names = list(columns) if columns else [name for name in own_columns(schema) if name not in exclude]
    if not names:
        raise TableError("No columns are left to cluster: exclude fewer columns.")
    return names


def _lacking(metadata) -> set[str]:
    """The columns in which some values are missing, by the counts in the footer."""
    chunks = (
        metadata.row_group(g).column(c) for g in range(metadata.num_row_groups) for c in range(metadata.num_columns)
    )
    return {one.path_in_schema for one in chunks if one.statistics is not None and one.statistics.null_count}


def _others(schema, names: Sequence[str], lacking: set[str]) -> tuple[str, ...]:
    import pyarrow as pa

    kinds = (pa.types.is_float32, pa.types.is_float64, pa.types.is_integer, pa.types.is_boolean)
    numbers = {name for name in names if any(is_kind(schema.field(name).type) for is_kind in kinds)}
    return tuple(name for name in names if name not in numbers or name in lacking)


def own_columns(schema) -> list[str]:
    """The schema without the columns in which pandas stores an index."""
    return [name for name in schema.names if not name.startswith("__index_level_")]


def require_same(first, schema, names: Sequence[str], first_path: Path, path: Path) -> None:
    for name in names:
        if name not in schema.names:
            raise TableError(
                f"{path} has no column {name!r}, but {first_path} does: all files must have the same columns."
            )
        if schema.field(name).type != first.field(name).type:
            raise TableError(
                f"The column {name!r} is {schema.field(name).type} in {path}, but {first.field(name).type} in "
                f"{first_path}: all files must have the same types."
            )
    extra = [name for name in own_columns(schema) if name not in first.names]
    if extra:
        raise TableError(
            f"{path} has a column {extra[0]!r}, but {first_path} does not: all files must have the same columns."
        )


def _cut(path: str, metadata, most_rows: int) -> list[Stretch]:
    stretches: list[Stretch] = []
    groups: list[int] = []
    rows = 0
    for number in range(metadata.num_row_groups):
        size = metadata.row_group(number).num_rows
        if groups and rows + size > most_rows:
            stretches.append(Stretch(path, tuple(groups), rows))
            groups, rows = [], 0
        if size:
            groups.append(number)
            rows += size
    return [*stretches, Stretch(path, tuple(groups), rows)] if rows else stretches


def read_frame(stretch: Stretch, names: Sequence[str]) -> Any:
    """The rows of a block as a DataFrame, with columns of any type."""
    import pyarrow.parquet as pq

    from coterie.tables.file_reading import as_frame

    with pq.ParquetFile(stretch.path) as file:
        return as_frame(file.read_row_groups(list(stretch.groups), columns=list(names), use_threads=False))


def read(stretch: Stretch, names: Sequence[str], dtype: str) -> np.ndarray:
    """The rows of a block as a C-contiguous array (n, d). Missing values become NaN."""
    import pyarrow.parquet as pq

    rows = np.empty((stretch.rows, len(names)), dtype)
    at = 0
    with pq.ParquetFile(stretch.path) as file:
        for group in stretch.groups:  # one at a time: a group in Arrow's form and its copy, never two of them
            table = file.read_row_group(group, columns=list(names), use_threads=False)
            _interleave([table.column(name) for name in names], rows[at : at + table.num_rows])
            at += table.num_rows
    return rows


def _interleave(columns, rows: np.ndarray) -> None:
    """Copy columns into rows, in pieces that fit into the cache."""
    arrays = [column.to_numpy() for column in columns]
    for first in range(0, len(rows), 4_096):
        piece = rows[first : first + 4_096]
        for j, array in enumerate(arrays):
            piece[:, j] = array[first : first + 4_096]


# --- labels -----------------------------------------------------------------------------------------------


def labels_folder(pattern: str | os.PathLike, files: Sequence[Path]) -> Path:
    """The default folder for labels: next to the input, where the pattern of the input does not match it."""
    folder = files[0].absolute().parent
    one = Path(pattern)
    return folder / f"{one.stem}-clusters" if one.is_file() else folder.with_name(f"{folder.name}-clusters")


class LabelParts:
    """A folder of Parquet files with the single column ``cluster``, in the order of the rows of the input.

    Workers write the files atomically into a hidden folder next to it, which gets its name when all of them are
    complete. Workers on other machines need access to the same file system.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.hidden = folder.with_name(f".{folder.name}-{os.getpid()}")

    def write(self, stretches: Sequence[Stretch], labels: Iterable[Any]) -> np.ndarray:
        """Write the delayed labels of every stretch, and return the number of rows per label, starting with -1."""
        import dask

        self.hidden.mkdir()
        try:
            names = [f"{b:06d}-{Path(one.path).stem}.parquet" for b, one in enumerate(stretches)]
            parts = [dask.delayed(write_part)(one, str(self.hidden / name)) for one, name in zip(labels, names)]
            counts = dask.compute(*parts)
            for left in self.hidden.glob(".*"):  # by workers that died while they wrote
                left.unlink()
            os.replace(self.hidden, self.folder)
        finally:
            shutil.rmtree(self.hidden, ignore_errors=True)
        total = np.zeros(max(map(len, counts)), np.int64)
        for one in counts:
            total[: len(one)] += one
        return total


def write_part(labels: np.ndarray, path: str) -> np.ndarray:
    """Write one file, and return the number of rows per label, starting with label -1."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with replacing(path) as temporary:
        pq.write_table(pa.table({"cluster": pa.array(labels, pa.int32())}), temporary)
    return np.bincount(labels + 1)
