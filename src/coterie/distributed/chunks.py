"""Rows of files that are larger than memory, read in chunks."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from coterie.tables.columns import TableError
from coterie.tables.precision import working_dtype
from coterie.tables.raw_files import read_npy
from coterie.wording import shown

CHUNK_BYTES = 32 * 2**20


class Chunks:
    """Chunks of rows (C-contiguous float32 or float64 arrays) that can be read repeatedly.

    Parameters
    ----------
    source : path, DuckDB relation, array, sequence of arrays, or callable
        A Parquet file, a folder or a pattern of such files (read in batches) or an NPY file (memory-mapped); a
        relation such as ``duckdb.sql("SELECT ...")``, whose query runs once per pass; an array, which is divided into
        chunks; a sequence of arrays; or a function without arguments that returns an iterator of arrays.
    columns : list of str, optional
        Columns of Parquet files or of the relation; all by default.
    dtype : numpy dtype, optional
        float32 or float64. By default it is float32 if all columns are float32, and float64 otherwise.
    """

    def __init__(self, source: Any, columns: list[str] | None = None, dtype: Any = None):
        self.names: list[str] | None = None
        self.dtype = np.dtype(dtype) if dtype is not None else None
        self._count: int | None = None
        self._others: list[str] = []  # columns that are not numbers
        self._read: Callable[[], Iterable[Any]]  # arrays, or batches of Parquet files
        if isinstance(source, (str, os.PathLike)):
            self._read = self._reader(Path(source), columns)
        elif is_relation(source):
            self._read = self._relation(source, columns)
        elif isinstance(source, np.ndarray):
            self._read, self._count = lambda: _cut(source), len(source)
        elif callable(source):
            self._read = source
        else:
            blocks = list(source)
            self._read = lambda: iter(blocks)

    def __iter__(self) -> Iterator[np.ndarray]:
        first, width = 0, 0
        for block in self._read():
            block = self._as_rows(block)
            if block.ndim != 2:
                raise TableError(f"A chunk must have rows and columns; got an array of shape {block.shape}.")
            width = width or block.shape[1]
            if block.shape[1] != width:
                raise TableError(
                    f"The chunk from row {first} has {block.shape[1]} columns, those before it have {width}: all "
                    "chunks must have the same columns."
                )
            if self.dtype is None:
                self.dtype = working_dtype([block.dtype])
            block = np.ascontiguousarray(block, dtype=self.dtype)
            if not np.isfinite(block).all():
                row, column = np.argwhere(~np.isfinite(block))[0]
                raise TableError(
                    f"Row {first + row}, column {column} is {block[row, column]}: fill or remove such values first."
                )
            first += len(block)
            if len(block):
                yield block

    def tables(self) -> "_Tables":
        """The same chunks, where those of Parquet files are DataFrames with columns of any type."""
        return _Tables(self._read)

    @property
    def n_rows(self) -> int:
        """The number of rows, for which files are not read but other sources are."""
        if self._count is None:
            self._count = sum(len(block) for block in self._read())
        return self._count

    def take(self, places: np.ndarray, *, mixed: bool = False) -> Any:
        """The rows at some places, which rise: an array, or with ``mixed`` a DataFrame if the source is Parquet."""
        if self.names is None or not mixed:
            return _taken(self._read() if mixed else self, places, np.concatenate)
        import pyarrow as pa

        from coterie.tables.file_reading import as_frame

        return as_frame(_taken(self._read(), places, pa.Table.from_batches))

    def _reader(self, path: Path, columns: list[str] | None) -> Callable[[], Iterable[Any]]:
        if not path.exists() and not _is_pattern(path):
            raise FileNotFoundError(f"There is no file {path}.")
        if path.suffix.lower() == ".npy":
            return lambda: _cut(read_npy(path, mapped=True))
        if not can_be_cut(path):
            raise ValueError(
                f"{path.name} cannot be read in chunks: give a .parquet or .npy file, a folder of .parquet files, or "
                "an iterable of arrays."
            )
        from coterie.distributed import parquet

        return self._parquet(parquet.find(path), columns)

    def _relation(self, relation: Any, columns: list[str] | None) -> Callable[[], Iterable[Any]]:
        import pyarrow as pa

        chosen = relation if columns is None else relation.select(*columns)
        self._describe(pa.RecordBatchReader.from_stream(chosen.limit(0)).schema, chosen.columns)
        return lambda: pa.RecordBatchReader.from_stream(chosen)

    def _describe(self, schema: Any, names: Sequence[str]) -> None:
        """Take names and types from the schema of the batches."""
        import pyarrow as pa

        self.names = list(names)
        kinds = [schema.field(name).type for name in names]
        numbers = (pa.types.is_floating, pa.types.is_integer, pa.types.is_boolean, pa.types.is_decimal)
        self._others = [name for name, kind in zip(names, kinds) if not any(is_kind(kind) for is_kind in numbers)]
        if self.dtype is None:
            single = all(pa.types.is_float32(kind) for kind in kinds)
            self.dtype = np.dtype(np.float32 if single else np.float64)

    def _parquet(self, files: Sequence[Path], columns: list[str] | None) -> Callable[[], Iterable[Any]]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        from coterie.distributed import parquet

        def opened(path: Path) -> Any:
            try:
                return pq.ParquetFile(path)
            except (pa.ArrowException, OSError, ValueError) as error:
                raise _damaged(path, error) from error

        self._count, schema = 0, None
        for path in files:
            with opened(path) as file:
                schema = schema or file.schema_arrow
                self._count += file.metadata.num_rows
                names = columns or parquet.own_columns(schema)
                if missing := [name for name in names if name not in schema.names]:
                    has = f"Its columns are {', '.join(schema.names)}."
                    raise TableError(f"{path.name} has no column {missing[0]!r}. {has}")
                parquet.require_same(schema, file.schema_arrow, names, files[0], path)
        assert schema is not None
        if not names:
            raise TableError(f"{files[0].name} has no columns.")
        self._describe(schema, names)
        assert self.dtype is not None
        size = max(1, CHUNK_BYTES // (len(names) * self.dtype.itemsize))

        def read():
            for path in files:
                try:
                    with opened(path) as file:
                        yield from file.iter_batches(batch_size=size, columns=self.names)
                except (pa.ArrowException, OSError, MemoryError, OverflowError) as error:
                    raise _damaged(path, error) from error

        return read

    def _as_rows(self, block: Any) -> np.ndarray:
        if self.names is None:
            return np.asarray(block)
        if self._others:
            raise TableError(
                f"There are columns that are not numbers: {', '.join(map(repr, self._others))}. Choose others with "
                "Chunks(path, columns=[...]), or use ZeroShotClusterer or cluster_table, which read them."
            )
        rows = np.empty((block.num_rows, block.num_columns), self.dtype)
        for j, column in enumerate(block.columns):
            rows[:, j] = column.to_numpy(zero_copy_only=False)
        return rows


class _Tables:
    """Chunks with columns of any type."""

    def __init__(self, read: Callable[[], Iterable[Any]]):
        self._read = read

    def __iter__(self) -> Iterator[Any]:
        from coterie.tables.file_reading import as_frame

        for block in self._read():
            if len(block):
                yield block if isinstance(block, np.ndarray) else as_frame(block)


def _taken(blocks: Iterable[Any], places: np.ndarray, join: Callable[[list[Any]], Any]) -> Any:
    """The rows of blocks at places that rise."""
    found, first = [], 0
    for block in blocks:
        low, high = np.searchsorted(places, [first, first + len(block)])
        if high > low:
            own = places[low:high] - first
            found.append(block[own] if isinstance(block, np.ndarray) else block.take(own))
        first += len(block)
    return join(found)


def _damaged(path: Path, error: Exception) -> TableError:
    reason = shown(str(error).splitlines()[0][:200]) if str(error) else type(error).__name__
    return TableError(f"{path.name} is not a complete Parquet file ({reason}): write it again, or check its extension.")


def can_be_cut(path: str | os.PathLike) -> bool:
    """Whether a path is one of files that are read in chunks: NPY, Parquet, a folder or a pattern."""
    where = Path(path)
    return where.suffix.lower() in (".parquet", ".pq", ".npy") or where.is_dir() or _is_pattern(where)


def is_relation(source: Any) -> bool:
    """Whether a source is a DuckDB relation. This does not import duckdb."""
    return type(source).__module__.partition(".")[0].lstrip("_") == "duckdb" and hasattr(source, "__arrow_c_stream__")


def _is_pattern(path: Path) -> bool:
    return not path.exists() and any(sign in str(path) for sign in "*?[") and "://" not in str(path)


def _cut(rows: np.ndarray) -> Iterator[np.ndarray]:
    """An array in chunks of about CHUNK_BYTES."""
    if rows.ndim != 2:
        raise ValueError(f"The array must have rows and columns; got shape {rows.shape}.")
    size = max(1, CHUNK_BYTES // max(1, rows.shape[1] * rows.dtype.itemsize))
    for first in range(0, len(rows), size):
        yield rows[first : first + size]
