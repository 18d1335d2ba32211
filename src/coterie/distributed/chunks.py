"""Rows of files that are larger than memory, read in chunks."""

import os
from collections.abc import Callable, Iterable, Iterator
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
    source : path, array, sequence of arrays, or callable
        A Parquet file (read in batches) or an NPY file (memory-mapped); an array, which is divided into chunks; a
        sequence of arrays; or a function without arguments that returns an iterator of arrays.
    columns : list of str, optional
        Columns of a Parquet file, which must be numeric; all by default.
    dtype : numpy dtype, optional
        float32 or float64. By default it is float32 if all columns are float32, and float64 otherwise.
    """

    def __init__(self, source: Any, columns: list[str] | None = None, dtype: Any = None):
        self.columns = columns
        self.dtype = np.dtype(dtype) if dtype is not None else None
        self._read: Callable[[], Iterable[np.ndarray]]
        if isinstance(source, (str, os.PathLike)):
            self._read = self._reader(Path(source))
        elif isinstance(source, np.ndarray):
            self._read = lambda: _cut(source)
        elif callable(source):
            self._read = source
        else:
            blocks = list(source)
            self._read = lambda: iter(blocks)

    def __iter__(self) -> Iterator[np.ndarray]:
        first, width = 0, 0
        for block in self._read():
            block = np.asarray(block)
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

    def _reader(self, path: Path) -> Callable[[], Iterable[np.ndarray]]:
        if not path.is_file():
            raise FileNotFoundError(f"There is no file {path}.")
        suffix = path.suffix.lower()
        if suffix == ".npy":
            return lambda: _cut(read_npy(path, mapped=True))
        if suffix in (".parquet", ".pq"):
            return self._parquet(path)
        raise ValueError(
            f"{path.name} cannot be read in chunks: give a .parquet or .npy file, or an iterable of arrays."
        )

    def _parquet(self, path: Path) -> Callable[[], Iterable[np.ndarray]]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            schema = pq.read_schema(path)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise _damaged(path, error) from error
        names = self.columns or schema.names
        if not names:
            raise TableError(f"{path.name} has no columns.")
        missing = [name for name in names if name not in schema.names]
        if missing:
            raise TableError(f"{path.name} has no column {missing[0]!r}. Its columns are {', '.join(schema.names)}.")
        kinds = [schema.field(name).type for name in names]
        wrong = [n for n, t in zip(names, kinds) if not (pa.types.is_floating(t) or pa.types.is_integer(t))]
        if wrong:
            raise TableError(
                f"{path.name} has columns that are not numbers: {', '.join(map(repr, wrong))}. "
                "Choose columns with columns=[...]."
            )
        if self.dtype is None:
            single = all(pa.types.is_float32(kind) for kind in kinds)
            self.dtype = np.dtype(np.float32 if single else np.float64)
        dtype = self.dtype
        size = max(1, CHUNK_BYTES // (len(names) * dtype.itemsize))

        def read():
            try:
                with pq.ParquetFile(path) as file:
                    for batch in file.iter_batches(batch_size=size, columns=names):
                        yield _as_rows(batch, dtype)
            except (pa.ArrowException, OSError, MemoryError, OverflowError) as error:
                raise _damaged(path, error) from error

        return read


def _as_rows(batch: Any, dtype: np.dtype) -> np.ndarray:
    block = np.empty((batch.num_rows, batch.num_columns), dtype)
    for j, column in enumerate(batch.columns):
        block[:, j] = column.to_numpy(zero_copy_only=False)
    return block


def _damaged(path: Path, error: Exception) -> TableError:
    reason = shown(str(error).splitlines()[0][:200]) if str(error) else type(error).__name__
    return TableError(f"{path.name} is not a complete Parquet file ({reason}): write it again, or check its extension.")


def is_chunked(X: Any) -> bool:
    """Whether X names a file or is a :class:`Chunks`."""
    return isinstance(X, (str, os.PathLike, Chunks))


def _cut(rows: np.ndarray) -> Iterator[np.ndarray]:
    """An array in chunks of about CHUNK_BYTES."""
    if rows.ndim != 2:
        raise ValueError(f"The array must have rows and columns; got shape {rows.shape}.")
    size = max(1, CHUNK_BYTES // max(1, rows.shape[1] * rows.dtype.itemsize))
    for first in range(0, len(rows), size):
        yield rows[first : first + size]
