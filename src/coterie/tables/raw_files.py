"""The bytes of table files before they are parsed: damaged or hostile files raise a :class:`TableError`."""

import gzip
import io
import os
import re
import tokenize
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np

from coterie.tables.columns import TableError
from coterie.tables.precision import HALF, is_half

FIRST_READ = 2**16
LONGEST_LINE = 2**26  # bytes; a longer first line is no line of column names
# A hexadecimal number, which Arrow would read as a number: it is more often a code.
HEXADECIMAL = re.compile(rb"(?<![0-9A-Za-z.])0[xX][0-9A-Fa-f]")


def open_bytes(path: Path) -> IO[bytes]:
    """The file, decompressed if its name ends in .gz."""
    return gzip.open(path, "rb") if path.suffix.lower() == ".gz" else open(path, "rb")  # type: ignore[return-value]


@contextmanager
def unpacking(path: Path) -> Iterator[IO[bytes]]:
    """The file, decompressed if its name ends in .gz; a TableError if that fails."""
    try:
        with open_bytes(path) as file:
            yield file
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise TableError(f"{path} is not a complete gzip file: write it again, or check its extension.") from error


def first_bytes(path: Path) -> bytes:
    """The beginning of a text file, with the whole first line that is not blank."""
    with unpacking(path) as file:
        start = file.read(FIRST_READ)
        while len(start) < LONGEST_LINE and b"\n" not in start.lstrip() and b"\r" not in start.lstrip():
            more = file.read(len(start) or FIRST_READ)
            if not more:
                break
            start += more
        return start


def has_hexadecimal(path: Path) -> bool:
    """Whether a text file contains something like 0x1F."""
    before = b""
    with unpacking(path) as file:
        while block := file.read(2**20):
            if HEXADECIMAL.search(before + block):
                return True
            before = block[-8:]
    return False


def unpacked_size(path: Path) -> int:
    """The length of a file in bytes, after decompression if its name ends in .gz."""
    if path.suffix.lower() != ".gz":
        return path.stat().st_size
    with unpacking(path) as packed:
        return sum(len(block) for block in iter(lambda: packed.read(2**20), b""))


def read_npy(path: Path, *, mapped: bool = False) -> np.ndarray:
    """The array in an NPY file, or memory-mapped. The file must be as long as its header says; nothing is unpickled."""
    with open(path, "rb") as file:
        _check_npy(path, file)
    try:
        return np.load(path, allow_pickle=False, mmap_mode="r" if mapped else None)
    except (ValueError, EOFError, SyntaxError, OverflowError) as error:
        raise TableError(f"{path} is not a complete NPY file: write it again with np.save.") from error


def _check_npy(path: Path, file: IO[bytes]) -> None:
    """Read the header alone, before memory of the size that it names is taken."""
    again = f"save numbers, np.save({path.name!r}, X.astype(float))."
    try:
        version = np.lib.format.read_magic(file)
    except ValueError as error:
        file.seek(0)
        what = "a complete NPY file: write it again" if file.read(6) == b"\x93NUMPY" else "an NPY file: write it"
        raise TableError(f"{path} is not {what} with np.save, or check its extension.") from error
    try:
        readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        shape, _, dtype = readers[version](io.BytesIO(file.read(2**16)))
        size = os.fstat(file.fileno()).st_size
    except (ValueError, EOFError, SyntaxError, KeyError, TypeError, OverflowError, MemoryError) as error:
        raise TableError(f"{path} is not a complete NPY file: write it again with np.save.") from error
    except (tokenize.TokenError, RecursionError, AttributeError) as error:
        raise TableError(f"{path} has a damaged header: write it again with np.save.") from error
    if dtype.hasobject:
        raise TableError(f"{path} holds Python objects, which are never unpickled: {again}")
    if dtype.names or dtype.kind not in "biuf":
        raise TableError(f"{path} holds values of type {dtype}: {again}")
    if is_half(dtype):
        raise TableError(f"{path} holds {HALF}")
    if len(shape) != 2:
        hint = "X.reshape(-1, 1) makes it one column" if len(shape) == 1 else "X.reshape(len(X), -1) makes it a table"
        raise TableError(f"{path} has {len(shape)} dimensions, but a table has rows and columns: {hint}.")
    if min(shape) < 0 or shape[0] * shape[1] * dtype.itemsize > size:
        raise TableError(f"{path} is not a complete NPY file: write it again with np.save.")
    if not shape[0]:
        raise TableError(f"{path} has no rows: there is nothing to cluster.")
    if not shape[1]:
        raise TableError(f"{path} has no columns.")
