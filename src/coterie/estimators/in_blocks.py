"""Rows in any place for any estimator: in memory, in files that are read in blocks, or on Dask.

``rows_in`` turns what a user passes into rows in memory or into :class:`InBlocks`. An estimator needs of the latter
some rows by their places, sums over blocks, or an answer for every row; the catalogue says which.
"""

import copy
import functools
import inspect
import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_feature_names, _check_n_features, check_is_fitted

from coterie.distributed import is_dask
from coterie.distributed.chunks import Chunks, can_be_cut, is_relation
from coterie.estimators.capabilities import encodes_tables
from coterie.estimators.validation import check_rows
from coterie.tables.encoding import Encoded

_OF_ROWS = ("labels_", "trajectory_", "noise_", "certainty_", "outliers_", "start_labels_", "label_draws_")


class InBlocks(ABC):
    """Rows that are read in blocks. ``mixed``: whether blocks are tables as they are, or arrays of numbers."""

    given: Any  # as the user gave it, for callbacks
    names: list[str] | None = None
    mixed: bool

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def total(self, function: Callable[[Any, Any], Any], state: Any) -> Any:
        """The sum of ``function(block, state)`` over all blocks."""

    @abstractmethod
    def opened(self, spherical: bool) -> AbstractContextManager[Any]:
        """Passes over the blocks while they are read many times; with ``spherical`` the rows have length one.

        They divide rows by 2 to the power ``exponent``, which can be set.
        """

    @abstractmethod
    def take(self, places: np.ndarray) -> Any:
        """The rows at some places, which rise, as an array or, of mixed columns, as a DataFrame."""

    @abstractmethod
    def answers(self, answer: Callable[[Any], np.ndarray]) -> Any:
        """What ``answer`` gives for every row: one array, or a lazy Dask array with the blocks of the rows."""

    @abstractmethod
    def example(self) -> Any:
        """No or few rows with the columns of a block."""

    def check(self, estimator: Any, *, reset: bool) -> None:
        """Compare names and number of the columns with those of ``fit``, or with ``reset`` remember them."""
        rows = self.example()
        if not self.mixed and self.names is not None:
            import pandas as pd

            rows = pd.DataFrame(np.empty((0, len(self.names))), columns=self.names)
        _check_feature_names(estimator, rows, reset=reset)
        _check_n_features(estimator, rows, reset=reset)

    @abstractmethod
    def arrays(self) -> Iterator[np.ndarray]:
        """The rows of one block after another, in this process."""

    def mapped(self, change: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """``change(block)`` of all blocks as one float32 array, which is in a temporary file instead of memory."""
        rows, first = None, 0
        for block in self.arrays():
            made = change(block)
            if rows is None:
                with tempfile.TemporaryFile() as file:
                    rows = np.memmap(file, np.float32, "w+", shape=(len(self), made.shape[1]))
            rows[first : first + len(made)] = made
            first += len(made)
        assert rows is not None
        return rows.view(np.ndarray)


class InFiles(InBlocks):
    """Parquet and NPY files and other :class:`Chunks`, one block in memory at a time."""

    def __init__(self, chunks: Chunks, mixed: bool):
        from coterie.kmeans.block_statistics import ChunkPasses

        self.given = self.chunks = chunks
        self.mixed = mixed
        self.names = chunks.names
        self.passes = ChunkPasses(chunks.tables() if mixed else chunks)

    @functools.cached_property
    def _n_rows(self) -> int:
        return self.chunks.n_rows

    def __len__(self):
        return self._n_rows

    def total(self, function, state):
        return self.passes.total(function, state)

    @contextmanager
    def opened(self, spherical):
        from coterie.kmeans.block_statistics import ChunkPasses

        yield ChunkPasses(self.chunks, spherical=spherical)

    def take(self, places):
        return self.chunks.take(places, mixed=self.mixed)

    def arrays(self):
        return (block.X for block in self.passes.blocks())

    def answers(self, answer):
        return np.concatenate([answer(block.X) for block in self.passes.blocks()])

    def example(self):
        return next(iter(self.passes.chunks))[:1]


class OnDask(InBlocks):
    """A Dask array or DataFrame."""

    def __init__(self, X: Any, mixed: bool, sample_weight: Any = None):
        try:
            import dask.array  # noqa: F401
        except ImportError as error:
            raise ImportError("Dask data need the package dask: pip install 'coterie[dask]'.") from error
        from coterie.distributed.blocks import blocks_of

        self.given = self.X = X
        self.mixed = mixed
        self.blocks = blocks_of(X, sample_weight, mixed=mixed)
        layout = self.blocks.layout
        self.names = None if layout.names is None else list(layout.names)

    @functools.cached_property
    def _passes(self) -> Any:
        from coterie.distributed.passes import Passes

        return Passes(self.blocks)

    @functools.cached_property
    def _sizes(self) -> np.ndarray:
        """The number of rows of every block."""
        chunks = getattr(self.X, "chunks", ((np.nan,),))[0]
        if not np.isnan(chunks).any():
            return np.array(chunks)
        counted = self.total(_count, None) or {}
        return np.array([counted.get(number, 0) for number in range(self.blocks.layout.n_blocks)])

    def __len__(self):
        return int(self._sizes.sum())

    def total(self, function, state):
        return self._passes.total(function, state)

    @contextmanager
    def opened(self, spherical):
        from coterie.distributed.passes import Passes, held

        layout = replace(self.blocks.layout, spherical=spherical)
        with held(replace(self.blocks, layout=layout)) as blocks:
            yield Passes(blocks)

    def take(self, places):
        ends = self._sizes.cumsum()
        wanted = np.split(places, np.searchsorted(places, ends[:-1]))
        found = self.total(_take, [own - end + size for own, end, size in zip(wanted, ends, self._sizes)])
        parts = [found[number] for number in sorted(found)]
        if isinstance(parts[0], np.ndarray):
            return np.concatenate(parts)
        import pandas as pd

        return pd.concat(parts, ignore_index=True)

    def arrays(self):
        from coterie.distributed.blocks import open_block

        for number, raw in enumerate(self.blocks.rows):
            yield open_block(raw.compute(), None, number, self.blocks.layout, check=True).X

    def answers(self, answer):
        import dask
        import dask.array as da

        from coterie.distributed.blocks import single_columns
        from coterie.distributed.sources import delayed_blocks

        layout = self.blocks.layout
        with np.errstate(all="ignore"):
            like = answer(self.example())[:0]
        X = self.X if layout.names is not None else single_columns(self.X)
        sizes = getattr(X, "chunks", None)
        sizes = [np.nan] * layout.n_blocks if sizes is None else sizes[0]
        of_block = dask.delayed(_answer_of_block, pure=True)
        parts = [
            da.from_delayed(of_block(raw, answer, number, layout, like), (size, *like.shape[1:]), meta=like)
            for number, (raw, size) in enumerate(zip(delayed_blocks(X), sizes))
        ]
        return da.concatenate(parts)

    def like_rows(self, values: np.ndarray) -> Any:
        """Values of all rows as a Dask array with the blocks of the rows."""
        import dask.array as da

        return da.from_array(values, chunks=(tuple(self._sizes),))

    def example(self):
        layout = self.blocks.layout
        return (
            self.X._meta_nonempty[:1] if self.mixed and layout.names else np.zeros((1, layout.n_features), layout.dtype)
        )


def _count(block: Any, _: None) -> "_ByBlock":
    return _ByBlock({block.number: block.n_rows})


def _take(block: Any, places: Sequence[np.ndarray]) -> "_ByBlock":
    own = places[block.number]
    return _ByBlock({block.number: block.X[own] if isinstance(block.X, np.ndarray) else block.X.iloc[own]})


class _ByBlock(dict):
    """Values by the number of a block, which can be added."""

    def __add__(self, other: "_ByBlock") -> "_ByBlock":
        return _ByBlock({**self, **other})


def _answer_of_block(raw: Any, answer: Callable[[Any], np.ndarray], number: int, layout: Any, like: np.ndarray) -> Any:
    from coterie.distributed.blocks import open_block

    block = open_block(raw, None, number, layout, check=True)
    return answer(block.X) if block.n_rows else like


def rows_in(X: Any, estimator: Any = None, sample_weight: Any = None) -> Any:
    """Rows in memory as they are, or read from a file that is not read in blocks; else :class:`InBlocks`."""
    if isinstance(X, np.ndarray | InBlocks):
        return X
    mixed = encodes_tables(estimator)
    if is_dask(X):
        return OnDask(X, mixed, sample_weight)
    is_path = isinstance(X, str | os.PathLike)
    if is_path and not can_be_cut(X):
        from coterie.tables.table import read_table

        table = read_table(X)
        return table.to_numpy() if Path(str(X)).suffix == ".npy" else table
    if is_path or is_relation(X):
        X = Chunks(X)
    if isinstance(X, Chunks):
        return InFiles(X, mixed)
    if type(X).__module__.startswith("pyarrow"):
        return X.to_pandas()
    return X


def checked_rows_in(estimator: Any, X: Any, **in_memory_only: Any) -> Any:
    """The rows of ``fit``, whose columns the estimator remembers. ``in_memory_only``: arguments that need an array."""
    rows = rows_in(X, estimator)
    if not isinstance(rows, InBlocks):
        return check_rows(estimator, rows, reset=True)
    for name, value in in_memory_only.items():
        if value is not None:
            raise ValueError(
                f"{type(estimator).__name__} takes {name} for rows in memory only: pass an array or a DataFrame, or "
                f"fit without {name}."
            )
    rows.check(estimator, reset=True)
    return rows


def drawn(rows: Any, most: int, random: Any) -> tuple[Any, np.ndarray]:
    """A sample of rows in any place in their order, or all if they are not more, and their places.

    The places depend on the number of rows and the seed alone, not on blocks and workers.
    """
    n = len(rows)
    places = np.arange(n) if n <= most else np.sort(random.choice(n, most, replace=False))
    if isinstance(rows, InBlocks):
        return rows.take(places), places
    if n <= most:
        return rows, places
    return (rows.take(places) if isinstance(rows, Encoded) else _safe_indexing(rows, places)), places


_NEW_ROWS = """Parameters
----------
X : array or DataFrame of shape (n_samples, n_features), Dask array or DataFrame, path, or ``Chunks``
    New rows. What is returned for rows in files is one array, and for Dask data a lazy Dask array.

Returns
-------"""


_ASSIGN = """assign : "nearest" or None, default=None
    What happens to outliers: None labels them -1, "nearest" gives them the cluster that they would belong to."""


def per_row(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method that answers for every row of an array, made to answer for rows in any place.

    Its docstring says what it returns; what it takes is added.
    """

    @functools.wraps(method)
    def answered(self, X, **how):
        rows = rows_in(X, self)
        if not isinstance(rows, InBlocks):
            return method(self, rows, **how)
        check_is_fitted(self)
        rows.check(self, reset=False)
        return answers_in(self, method.__name__, rows, **how)

    if method.__doc__:
        text = inspect.cleandoc(method.__doc__)
        new = _NEW_ROWS.replace("\n\nReturns", f"\n{_ASSIGN}\n\nReturns") if "<assign>\n\n" in text else _NEW_ROWS
        answered.__doc__ = text.replace("<assign>\n\n", "").replace("Returns\n-------", new)
    return answered


def answers_in(estimator: Any, question: str, rows: Any, **how: Any) -> Any:
    """What a method answers for every row, in memory or in blocks."""
    if not isinstance(rows, InBlocks):
        return getattr(estimator, question)(rows, **how)
    answer = getattr(light(estimator, rows.mixed), question)
    return rows.answers(functools.partial(answer, **how) if how else answer)


def light(estimator: Any, names: bool = False) -> Any:
    """A copy with one thread and nothing about the rows of ``fit``; without ``names``, blocks may be plain arrays."""
    small = copy.copy(estimator)
    for name in (*_OF_ROWS, *(() if names else ("feature_names_in_",))):
        vars(small).pop(name, None)
    small.random_state = None
    if hasattr(small, "n_jobs"):
        small.n_jobs = 1
    if not isinstance(getattr(small, "init", ""), str):
        small.init = "random"
    return small
