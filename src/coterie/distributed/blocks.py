"""Dask arrays and DataFrames as blocks of rows, and how a worker opens a block."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from coterie.kmeans.block_statistics import Block
from coterie.kmeans.scaling import check_values, scaled
from coterie.kmeans.sphere import on_sphere
from coterie.tables.precision import working_dtype


@dataclass(frozen=True)
class Layout:
    """The properties that every block must have. It is sent with each pass."""

    n_blocks: int
    n_features: int
    dtype: str  # "float32" or "float64": what blocks are converted to
    names: tuple[str, ...] | None  # of the columns, for a dataframe
    spherical: bool = False
    exponent: int = 0  # rows are divided by 2 to this power
    mixed: bool = False  # blocks stay as they are, with columns of any type


@dataclass(frozen=True)
class Blocks:
    """The blocks as delayed values. ``weights`` has one entry per block, or is None."""

    layout: Layout
    rows: Sequence[Any]
    weights: Sequence[Any] | None
    n_rows: int | None = None  # of all blocks, if it is known
    origin: "Blocks | None" = None  # how to compute the rows again, where they are results that a cluster holds


def blocks_of(X, sample_weight=None, *, spherical: bool = False, mixed: bool = False) -> Blocks:
    """Divide a Dask array or DataFrame into its blocks. Nothing is computed; a block is checked when it is opened."""
    if hasattr(X, "npartitions") and hasattr(X, "columns"):
        names, dtype = tuple(map(str, X.columns)), np.dtype(float) if mixed else _frame_dtype(X)
        n_features = len(names)
        sizes = None
    else:
        X = single_columns(X)
        if X.dtype.kind not in "fiub":
            raise ValueError(f"X must be numeric; its dtype is {X.dtype}.")
        names, dtype = None, working_dtype([X.dtype])
        n_features = X.shape[1]
        sizes = X.chunks[0]
    if not n_features:
        raise ValueError("X has 0 columns: at least one is needed.")
    from coterie.distributed.sources import delayed_blocks

    rows = delayed_blocks(X)
    layout = Layout(len(rows), n_features, dtype.name, names, spherical, mixed=mixed)
    n_rows = None if sizes is None or np.isnan(sizes).any() else sum(sizes)
    return Blocks(layout, rows, _weight_blocks(sample_weight, len(rows), sizes), n_rows)


def single_columns(X):
    """Return the array with all columns in one block, or raise an error if it is not a two-dimensional array."""
    if not hasattr(X, "chunks") or getattr(X, "ndim", 0) != 2:
        kind = f"{getattr(X, 'ndim', '?')}-dimensional array" if hasattr(X, "chunks") else type(X).__name__
        raise ValueError(f"X must be a two-dimensional Dask array or a Dask DataFrame; got a {kind}.")
    if np.isnan(X.shape[1]):
        raise ValueError("X has an unknown number of columns: call X.compute_chunk_sizes() first.")
    return X if X.numblocks[1] == 1 else X.rechunk({1: -1})


def _frame_dtype(X) -> np.dtype:
    import pandas as pd

    bad = [str(name) for name, dtype in X.dtypes.items() if not pd.api.types.is_numeric_dtype(dtype)]
    if bad:
        raise ValueError(
            f"X has columns that are not numbers: {', '.join(map(repr, bad))}. Remove or encode them first."
        )
    return working_dtype(X.dtypes)


def _weight_blocks(sample_weight, n_blocks: int, sizes) -> Sequence[Any] | None:
    if sample_weight is None:
        return None
    from coterie.distributed.sources import delayed_blocks

    if hasattr(sample_weight, "to_delayed"):
        if (
            sizes is not None
            and hasattr(sample_weight, "chunks")
            and not np.isnan(sizes + sample_weight.chunks[0]).any()
        ):
            sample_weight = _same_rows(sample_weight, sizes).rechunk((sizes,))
        delayed = delayed_blocks(sample_weight)
        if len(delayed) != n_blocks:
            raise ValueError(
                f"sample_weight has {len(delayed)} blocks but X has {n_blocks}: divide both into the same blocks."
            )
        return delayed
    if sizes is None or np.isnan(sizes).any():
        raise ValueError(
            "The blocks of X have unknown sizes, so sample_weight must be a Dask array or Series with the same blocks. "
            "Alternatively, call X.compute_chunk_sizes() first."
        )
    import dask

    values = _same_rows(np.asarray(sample_weight, dtype=np.float64), sizes)
    cuts = np.cumsum((0, *sizes))
    return [dask.delayed(values[a:b], pure=True) for a, b in itertools.pairwise(cuts)]


def _same_rows(weight, sizes):
    if weight.ndim != 1 or weight.shape[0] != sum(sizes):
        raise ValueError(f"sample_weight has shape {weight.shape}; for this X it must be ({sum(sizes)},).")
    return weight


# --- on a worker ------------------------------------------------------------------------------------------


class BadBlock(ValueError):
    """Raised for a block that cannot be used. The message says which block it is and what to do."""


def open_block(raw, weight, number: int, layout: Layout, *, check: bool = False) -> Block:
    """Return the block as an array in the layout's dtype. With ``check``, every value is validated as well."""

    def refuse(what: str):
        raise BadBlock(f"Block {number} of X (of {layout.n_blocks}, counted from 0) {what}")

    if layout.names is not None and hasattr(raw, "columns"):
        names = tuple(map(str, raw.columns))
        if names != layout.names:
            refuse(
                f"has the columns {_listed(names)}, not {_listed(layout.names)}: all blocks must have the same columns."
            )
    if layout.mixed:
        return Block(number, raw, None, len(raw))
    if sparse.issparse(raw):
        refuse("is a sparse matrix: convert the blocks with X.map_blocks(lambda block: block.toarray()).")
    try:
        X = raw.to_numpy(layout.dtype, na_value=np.nan) if hasattr(raw, "to_numpy") else np.asarray(raw)
        X = np.ascontiguousarray(X, dtype=layout.dtype)
    except (TypeError, ValueError) as error:
        refuse(f"contains values that are not numbers ({error}).")
    if X.ndim != 2 or X.shape[1] != layout.n_features:
        width = X.shape[1] if X.ndim == 2 else X.shape
        refuse(f"has {width} columns, but X has {layout.n_features}: all blocks must have the same columns.")
    n_rows = len(X)
    if check and n_rows:
        try:
            check_values(X, lambda row, column: f"row {row} of the block, column {_column(layout, column)}", smallest=0)
        except ValueError as error:
            refuse(str(error))
    if weight is not None:
        weight = np.asarray(weight, dtype=np.float64).reshape(-1)
        if len(weight) != n_rows:
            refuse(f"has {n_rows} rows, but its block of sample_weight has {len(weight)}: use the same blocks.")
        if check and not (np.isfinite(weight).all() and (weight >= 0).all()):
            refuse("has sample weights that are negative, NaN or infinite: weights must be finite and at least 0.")
        if not weight.all():
            X, weight = X[weight > 0], weight[weight > 0]
    return Block(number, on_sphere(X) if layout.spherical else scaled(X, -layout.exponent), weight, n_rows)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:8])
    return f"({shown}{', ...' if len(names) > 8 else ''})"


def _column(layout: Layout, column: int) -> str:
    return f"{column} {layout.names[column]!r}" if layout.names is not None else str(column)
