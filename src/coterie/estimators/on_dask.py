"""Estimators on Dask data: fit by passes over the blocks, predict and transform as lazy arrays, score at once."""

import copy
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_feature_names, _check_n_features, check_is_fitted

from coterie.estimators.progress import watching


def fit(estimator, X, sample_weight=None, known=None):
    """Fit on a Dask array or dataframe; ``labels_`` is a lazy Dask array. ``known``: a survey that was made before."""
    _require_dask()
    from coterie.distributed import checkpointing, engine
    from coterie.distributed.blocks import blocks_of
    from coterie.distributed.passes import Passes

    blocks = blocks_of(X, sample_weight, spherical=estimator._spherical)
    plan = plan_of(estimator, blocks.layout.n_features)
    _check_shape(estimator, X, blocks.layout, reset=True)
    n_init = estimator._n_runs()
    if n_init > 1 and checkpointing.current() is not None:
        raise ValueError("A checkpoint holds one run: set n_init=1, or fit outside coterie.distributed.checkpoint.")
    known = engine.look(Passes(blocks), estimator.n_clusters) if known is None else known
    rng = check_random_state(estimator.random_state)
    best = None
    with watching(estimator, X, n_init, estimator.max_iter) as watch:
        for number in range(n_init):
            with watch.run(number) as on_iteration:
                ran = engine.fit(
                    blocks,
                    plan,
                    estimator.n_clusters,
                    _init_of(estimator, X, rng),
                    rng,
                    max_iter=estimator.max_iter,
                    tol=estimator.tol,
                    known=known,
                    on_iteration=on_iteration,
                )
            if best is None or ran.result.inertia < best.result.inertia:
                best = ran
        assert best is not None
        if hasattr(estimator, "gamma"):
            estimator.gamma_ = best.gamma
        estimator._keep(best.result, np.arange(0))
        estimator.labels_ = predict(estimator, X)
        watch.close(vars(estimator))
    return estimator


def plan_of(estimator, n_features: int) -> Any:
    """What an estimator's parameters mean for the engine on blocks."""
    from coterie.distributed.block_statistics import Plan

    given = estimator.get_params(deep=False)
    name = type(estimator).__name__
    if not estimator._takes_dask:
        raise ValueError(f"{name} needs all rows in memory: pass X.compute(), or a sample of the rows.")
    if given.get("algorithm", "lloyd") != "lloyd" or given.get("engine", "auto") not in ("auto", "fused", "lazy"):
        raise ValueError("Dask data are clustered with algorithm='lloyd' and engine='auto' only.")
    variant = f"robust-{given['weighting'].replace('-', '')}" if "weighting" in given else estimator._variant.name
    gamma = given.get("gamma", 1.0)
    return Plan(
        variant,
        spherical=estimator._spherical,
        gamma=None if isinstance(gamma, str) else float(gamma),
        gamma_scale=n_features / 2 if variant == "soft" else 1.0,
        keep=1.0 - given.get("trim", 0.0),
        per_cluster=bool(given.get("per_cluster", False)),
        top=given.get("top", 10),
        mixing_weights=bool(given.get("mixing_weights", False)),
        trim_start=estimator._start_trim(),
        device=str(estimator._device()),
    )


def predict(estimator, X):
    """Labels as a lazy Dask array with the blocks of X."""
    if estimator._variant.name == "lloyd" and not estimator._spherical and estimator._device().type == "cpu":
        _require_dask()
        check_is_fitted(estimator)
        from coterie.distributed.blocks import blocks_of
        from coterie.distributed.nearest import labels

        layout = blocks_of(X).layout
        _check_shape(estimator, X, layout, reset=False)
        return labels(X, layout, estimator.cluster_centers_)
    return _per_row(estimator, X, "predict", None, np.dtype(np.int32))


def per_cluster(estimator, X, method: str):
    """``transform`` or ``predict_proba``: a lazy Dask array with a column for each cluster."""
    return _per_row(estimator, X, method, len(estimator.cluster_centers_), None)


def score(estimator, X, sample_weight=None) -> float:
    """The sum of the blocks' scores."""
    _require_dask()
    check_is_fitted(estimator)
    from coterie.distributed.blocks import blocks_of
    from coterie.distributed.passes import Passes

    blocks = blocks_of(X, sample_weight)
    _check_shape(estimator, X, blocks.layout, reset=False)
    total = Passes(blocks).total(_score_block, _light(estimator, names=False), check=True)
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
    function = partial(_block_rows, estimator=_light(estimator, names=False), method=method, layout=layout)
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


def _light(estimator, *, names: bool):
    """A copy that carries no labels and no random state; without ``names``, blocks may come as plain arrays."""
    light = copy.copy(estimator)
    for name in ("labels_", "trajectory_", *(() if names else ("feature_names_in_",))):
        vars(light).pop(name, None)
    light.random_state = None
    if not isinstance(light.init, str):
        light.init = "k-means++"
    return light


def _init_of(estimator, X, rng):
    if not callable(estimator.init):
        return estimator.init
    return np.asarray(estimator.init(X, estimator.n_clusters, random_state=rng))


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
        raise ImportError("Dask data need dask: pip install 'coterie[dask]'.") from error
