"""The center-based estimators on Dask data: fit by passes over the blocks, the other methods as lazy arrays.

A module of its own, imported when Dask data come in, so that plain arrays need neither dask nor this code.
"""

import copy
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import numpy as np
from sklearn.utils.validation import _check_feature_names, _check_n_features, check_is_fitted

from coterie.estimators.sources import Source
from coterie.estimators.validation import check_size_of_all
from coterie.kmeans.sphere import on_sphere


class DaskRows(Source):
    """A Dask array or dataframe; ``labels_`` is a lazy Dask array. ``known`` is a survey made before, if any."""

    def __init__(self, estimator, X, sample_weight=None, known=None):
        _require_dask()
        from coterie.distributed.blocks import blocks_of

        super().__init__(estimator)
        estimator._require_plain_fit("Dask data")
        self.X, self.known = X, known
        self.blocks = blocks_of(X, sample_weight, spherical=self.algorithm.spherical)
        _check_shape(estimator, X, self.blocks.layout, reset=True)
        self.parameters = {name: copy.deepcopy(value) for name, value in estimator.get_params(deep=False).items()}

    @contextmanager
    def opened(self):
        from coterie.distributed import fitting
        from coterie.distributed.holding import held
        from coterie.distributed.passes import Passes

        with held(self.blocks) as blocks:
            self._passes = Passes(blocks)
            known = fitting.look(self._passes, self.estimator.n_clusters) if self.known is None else self.known
            layout = blocks.layout
            check_size_of_all(known.largest, layout.dtype, known.rows, layout.n_features)
            self._scale(1.0 if layout.spherical else known.largest, layout.dtype)
            self._passes.layout = replace(layout, exponent=self.exponent)
            self.known = known.scaled(-self.exponent)
            yield

    def passes(self):
        return self._passes

    def starts(self, n_runs, random_state):
        from coterie.distributed import fitting

        one = self.estimator
        for _ in range(n_runs):
            init = one.init(self.X, one.n_clusters, random_state=random_state) if callable(one.init) else one.init
            chosen = fitting.first_centers(self._passes, one.n_clusters, init, random_state, self.known, self.algorithm)
            yield on_sphere(chosen) if self.algorithm.spherical else chosen

    def runs(self, n_runs, random_state, watch):
        from coterie.distributed import checkpointing

        if n_runs > 1 and checkpointing.current() is not None:
            raise ValueError("A checkpoint holds one run: set n_init=1, or fit outside coterie.distributed.checkpoint.")
        return super().runs(n_runs, random_state, watch)

    def run(self, starts, algorithm, random_state, on_iteration):
        from coterie.distributed import fitting

        one = self.estimator
        return fitting.run(
            self._passes,
            starts,
            algorithm,
            self.known,
            parameters=self.parameters,
            device=one._device(),
            max_iter=one.max_iter,
            tol=one.tol * self.known.mean_variance,
            on_iteration=on_iteration,
        )

    def labels(self, result):
        return predict(self.estimator, self.X)


def predict(estimator, X):
    """Labels as a lazy Dask array with the blocks of X."""
    return _per_row(estimator, X, "predict", None, np.dtype(np.int32))


def per_cluster(estimator, X, method: str):
    """``transform`` or ``predict_proba``: a lazy Dask array with one column per cluster."""
    return _per_row(estimator, X, method, len(estimator.cluster_centers_), None)


def score(estimator, X, sample_weight=None) -> float:
    """The sum of the blocks' scores."""
    _require_dask()
    check_is_fitted(estimator)
    from coterie.distributed.blocks import blocks_of
    from coterie.distributed.passes import Passes

    blocks = blocks_of(X, sample_weight)
    _check_shape(estimator, X, blocks.layout, reset=False)
    total = Passes(blocks).total(_score_block, _light(estimator), check=True)
    return 0.0 if total is None else float(total)


def _score_block(block, estimator) -> float:
    return estimator.score(block.X, sample_weight=block.weight)


def _per_row(estimator, X, method: str, n_columns: int | None, dtype):
    _require_dask()
    check_is_fitted(estimator)
    from coterie.distributed.blocks import blocks_of, single_columns

    layout = blocks_of(X).layout
    _check_shape(estimator, X, layout, reset=False)
    if hasattr(X, "to_dask_array"):
        X = X.to_dask_array()
    X = single_columns(X)
    dtype = np.dtype(layout.dtype) if dtype is None else dtype
    function = partial(_block_rows, estimator=_light(estimator), method=method, layout=layout)
    empty = np.empty((0,) if n_columns is None else (0, n_columns), dtype)
    if n_columns is None:
        return X.map_blocks(function, drop_axis=1, dtype=dtype, meta=empty, name=None)
    return X.map_blocks(function, chunks=(X.chunks[0], (n_columns,)), dtype=dtype, meta=empty)


def _block_rows(raw, *, estimator, method: str, layout, block_info=None):
    """One block's rows of the answer."""
    from coterie.distributed.blocks import open_block

    number = block_info[0]["chunk-location"][0] if block_info else 0
    block = open_block(raw, None, number, layout, check=True)
    if not len(block.X):
        shape = (0,) if method == "predict" else (0, len(estimator.cluster_centers_))
        return np.empty(shape, np.int32 if method == "predict" else layout.dtype)
    return getattr(estimator, method)(block.X)


def _light(estimator):
    """A copy for workers with one thread, without labels, random state and column names: blocks may be plain arrays."""
    light = copy.copy(estimator)
    for name in ("labels_", "trajectory_", "feature_names_in_"):
        vars(light).pop(name, None)
    light.random_state = None
    light.n_jobs = 1
    if not isinstance(light.init, str):
        light.init = "k-means++"
    return light


def _check_shape(estimator, X, layout, *, reset: bool) -> None:
    _check_feature_names(
        estimator, X._meta if layout.names is not None else np.empty((0, layout.n_features)), reset=reset
    )
    _check_n_features(estimator, np.empty((0, layout.n_features)), reset=reset)


def _require_dask() -> None:
    try:
        import dask
        import dask.array  # noqa: F401
    except ImportError as error:
        raise ImportError("Dask data need the package dask: pip install 'coterie[dask]'.") from error
