"""How numbers are arranged for vector instructions: centres in tiles, rows in batches; and what is computed of them.

A tile is a group of centres in 64 bytes: 16 in single precision, 8 in double precision. That is one vector of AVX-512,
two of AVX2 and four of NEON. Scores of several rows against one tile are accumulated in registers, and the number of
rows is chosen such that the registers suffice. The order of the additions for a row does not depend on the other rows,
so a score is the same number in every batch.
"""

import functools

import numpy as np
from numba.core import codegen, config


@functools.cache
def vector_bits() -> int:
    """The width of the vectors of the processor for which numba compiles, in bits."""
    given = getattr(config, "CPU_FEATURES", None)  # NUMBA_CPU_FEATURES
    enabled = (codegen.get_host_cpu_features() if given is None else given).split(",")
    return 512 if "+avx512f" in enabled else 256 if "+avx" in enabled else 128


# Rows scored at a time. Tiles of 8 rows need 8 vectors of AVX-512, which has 32; tiles of 4 rows need 8 of the 16
# vectors of AVX2, or 16 of the 32 of NEON.
ROWS = 8 if vector_bits() == 512 else 4
STRETCH = 64  # coordinates summed apart from the rest: rounding grows with the stretch, not with their number
CHUNK = 4 * STRETCH  # coordinates of a tile that stay in the nearest cache while rows pass


def lanes(itemsize: int) -> int:
    """The number of lanes of a tile for numbers of this size in bytes."""
    return 64 // itemsize


def as_tiles(values: np.ndarray) -> np.ndarray:
    """A copy of ``values`` (tiles, lanes, d) as (tiles, d, lanes), in which every vector is in one cache line."""
    shape = (values.shape[0], values.shape[2], values.shape[1])
    room = np.empty(values.nbytes + 64, np.uint8)
    begin = -room.ctypes.data % 64
    tiles = room[begin : begin + values.nbytes].view(values.dtype).reshape(shape)
    tiles[:] = values.transpose(0, 2, 1)
    return tiles


def tiles_of(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """``values`` (k, d) as tiles (tiles, d, lanes) of this dtype, in their order, with zeros in the last lanes."""
    width, (k, d) = lanes(dtype.itemsize), values.shape
    padded = np.zeros((-(-k // width) * width, d), dtype)
    padded[:k] = values
    return as_tiles(padded.reshape(-1, width, d))


def offsets_of(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """``values`` (k,) as (tiles, lanes) of this dtype, with infinity, never nearest, in the last lanes."""
    width, k = lanes(dtype.itemsize), len(values)
    padded = np.full(-(-k // width) * width, np.inf, dtype)
    padded[:k] = values
    return padded.reshape(-1, width)
