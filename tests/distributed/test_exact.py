"""Every member of the family on Dask gives what it gives in memory, from the same start."""

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from coterie import KMeans, RobustKMeans, SoftKMeans, SphericalKMeans, TrimmedKMeans
from coterie.kmeans.block_statistics import NearRows

K = 6


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def points(dtype="float64", n=1500, seed=0):
    rng = np.random.default_rng(seed)
    middles = 4 * rng.normal(size=(K, 3))
    return (middles[rng.integers(0, K, n)] + rng.normal(size=(n, 3))).astype(dtype)


MEMBERS = {
    "kmeans": KMeans(K),
    "kmeans to the end": KMeans(K, tol=0),
    "soft": SoftKMeans(K),
    "soft with weights": SoftKMeans(K, mixing_weights=True, gamma=0.5),
    "spherical": SphericalKMeans(K),
    "trimmed": TrimmedKMeans(K, outliers=0.1),
    "trimmed per cluster": TrimmedKMeans(K, per_cluster=True),
    "robust softmax": RobustKMeans(K),
    "robust sparsemax": RobustKMeans(K, weighting="sparsemax"),
    "robust top-k": RobustKMeans(K, weighting="top-k", top=30),
}


@pytest.mark.parametrize("name", MEMBERS)
def test_blocks_in_single_precision_give_the_result_of_memory(name):
    """In double precision, with weights, and with several starts: tests/estimators/test_sources.py."""
    X = points("float32")
    member = clone(MEMBERS[name]).set_params(init=X[:K])
    here = clone(member).fit(X)
    there = clone(member).fit(da.from_array(X, chunks=(271, 2)))
    scale = np.abs(here.cluster_centers_).max()
    np.testing.assert_allclose(there.cluster_centers_, here.cluster_centers_, atol=1e-6 * scale, rtol=0)
    assert there.n_iter_ == here.n_iter_
    assert there.inertia_ == pytest.approx(here.inertia_, rel=1e-6)
    np.testing.assert_array_equal(there.labels_.compute(), here.labels_)


@pytest.mark.parametrize("dtype, exponent", [("float32", -35), ("float64", 470)])
@pytest.mark.parametrize("name", [*MEMBERS, "kmeans from random rows"])
def test_a_power_of_two_as_the_unit_changes_nothing(name, dtype, exponent):
    X = points(dtype, n=300)
    member = clone(MEMBERS.get(name, KMeans(K, init="random"))).set_params(random_state=0, n_init=1)
    plain = clone(member).fit(da.from_array(X, chunks=(200, 3)))
    if isinstance(gamma := getattr(member, "gamma", None), float):  # an inverse squared distance
        member.set_params(gamma=float(np.ldexp(gamma, -2 * exponent)))
    moved = clone(member).fit(da.from_array(np.ldexp(X, exponent), chunks=(200, 3)))
    unit = 0 if name == "spherical" else exponent
    np.testing.assert_array_equal(moved.cluster_centers_, np.ldexp(plain.cluster_centers_, unit))
    np.testing.assert_array_equal(moved.labels_.compute(), plain.labels_.compute())


def test_empty_clusters_are_filled_by_the_same_rule():
    X = points("float32")
    far = np.full((3, 3), 50, "float32") + np.eye(3, dtype="float32")
    init = np.concatenate([X[: K - 3], far])
    for member in (KMeans(K, init=init), TrimmedKMeans(K, init=init), RobustKMeans(K, init=init, weighting="top-k")):
        for max_iter in (1, 2, 300):
            member.set_params(max_iter=max_iter)
            here = clone(member).fit(X)
            there = clone(member).fit(da.from_array(X, chunks=(100, 3)))
            np.testing.assert_allclose(there.cluster_centers_, here.cluster_centers_, rtol=1e-6, atol=1e-6)
            assert there.n_iter_ == here.n_iter_


def test_equal_rows_in_different_blocks_fill_an_empty_cluster_together():
    X = np.repeat([[0.0], [1.0], [2.0], [10.0]], 4, axis=0)[[0, 4, 8, 12] * 4 + list(range(16))]
    init = np.array([[1.0], [2.0], [100.0]])
    here = KMeans(3, init=init, max_iter=1).fit(X)
    there = KMeans(3, init=init, max_iter=1).fit(da.from_array(X, chunks=(5, 1)))
    np.testing.assert_array_equal(there.cluster_centers_, here.cluster_centers_)


def test_the_cut_into_blocks_changes_nothing():
    X = points()
    fits = [KMeans(K, random_state=0).fit(da.from_array(X, chunks=(size, 3))) for size in (1500, 400, 37)]
    for one in fits[1:]:
        np.testing.assert_allclose(one.cluster_centers_, fits[0].cluster_centers_, rtol=1e-9)


def test_answers_stay_lazy_and_are_those_of_memory():
    X = points()
    D = da.from_array(X, chunks=(400, 3))
    fitted = SoftKMeans(K, random_state=0).fit(D)
    memory = SoftKMeans(K, init=fitted.cluster_centers_, gamma=fitted.gamma_, max_iter=1, tol=1e9).fit(X)
    memory.cluster_centers_ = fitted.cluster_centers_
    for method in ("predict", "transform", "predict_proba"):
        lazy = getattr(fitted, method)(D)
        assert isinstance(lazy, da.Array)
        assert lazy.chunks[0] == D.chunks[0]
        here = getattr(memory, method)(X)
        assert lazy.dtype == here.dtype
        assert lazy.shape == here.shape
        np.testing.assert_allclose(lazy.compute(), here, rtol=1e-9, atol=1e-12)
    assert isinstance(fitted.score(D), float)
    assert fitted.score(D) == pytest.approx(memory.score(X))
    assert isinstance(fitted.fit_predict(D), da.Array)


def test_dataframes_keep_the_names_of_their_columns():
    frame = pd.DataFrame(points(n=300), columns=["a", "b", "c"])
    parts = dd.from_pandas(frame, npartitions=4)
    fitted = KMeans(K, init=frame.to_numpy()[:K]).fit(parts, sample_weight=parts["a"].abs())
    here = KMeans(K, init=frame.to_numpy()[:K]).fit(frame, sample_weight=frame["a"].abs())
    assert list(fitted.feature_names_in_) == ["a", "b", "c"]
    np.testing.assert_allclose(fitted.cluster_centers_, here.cluster_centers_, rtol=1e-9)
    np.testing.assert_array_equal(fitted.predict(parts).compute(), here.labels_)
    assert fitted.score(parts) == pytest.approx(here.score(frame))
    with pytest.raises(ValueError, match="feature names"):
        fitted.predict(parts[["b", "a", "c"]])


def test_several_starts_and_random_ones():
    D = da.from_array(points(), chunks=(400, 3))
    one = KMeans(K, init="random", n_init=1, random_state=0).fit(D)
    best = KMeans(K, init="random", n_init=5, random_state=0).fit(D)
    assert best.inertia_ <= one.inertia_
    again = KMeans(K, init="random", n_init=5, random_state=0).fit(D)
    np.testing.assert_array_equal(again.cluster_centers_, best.cluster_centers_)
    given = KMeans(K, init=lambda X, k, random_state: X[:k]).fit(D)
    assert given.n_iter_ > 0


def test_progress_is_shown_with_the_share_that_moved(capsys):
    KMeans(K, random_state=0, verbose=1).fit(da.from_array(points(), chunks=(400, 3)))
    shown = capsys.readouterr().err
    assert "moved" in shown
    assert "objective" in shown


def test_only_rows_that_count_travel():
    from coterie.kmeans.algorithm import Algorithm
    from coterie.kmeans.block_statistics import Block, Step, step
    from coterie.kmeans.family import TABLE

    X = points(n=1000)
    wanted = Step(Algorithm(TABLE["robust-topk"], top=5), X[:K])
    near = step(Block(0, X, None, len(X)), wanted).statistics
    assert isinstance(near, NearRows)
    assert len(near.rows) <= 5 * K
