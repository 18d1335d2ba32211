"""Nearest centres of Dask rows, lazily, by the compiled kernel: what ``KMeans.predict`` is on blocks."""

from functools import partial

import numpy as np

from coterie.distributed.blocks import Layout, open_block, single_columns
from coterie.kmeans import single_pass


def labels(X, layout: Layout, centers: np.ndarray):
    """A lazy Dask array of int32 with the blocks of X."""
    X = single_columns(X.to_dask_array() if hasattr(X, "to_dask_array") else X)
    function = partial(_block_labels, layout=layout, centers=centers)
    return X.map_blocks(function, drop_axis=1, dtype=np.int32, meta=np.empty(0, np.int32))


def _block_labels(raw, *, layout: Layout, centers: np.ndarray, block_info=None) -> np.ndarray:
    number = block_info[0]["chunk-location"][0] if block_info else 0
    block = open_block(raw, None, number, layout, check=True)
    return single_pass.assign(block.X, centers, n_threads=1) if len(block.X) else np.empty(0, np.int32)
