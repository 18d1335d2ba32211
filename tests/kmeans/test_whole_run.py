"""Whole runs in one call, compared with the engine that returns to Python after every iteration."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from coterie import KMeans
from coterie.kmeans import engines, lazy, small, whole_run
from coterie.kmeans.algorithm import Algorithm
from coterie.kmeans.kernel_input import NotFiniteError

LOOP = {"max_iter": 60, "tol": 0.0}


def rows(n=3_000, d=9, k=12, offset=0.0, dtype=np.float32):
    return (make_blobs(n, d, centers=k, cluster_std=5.0, random_state=0)[0] + offset).astype(dtype)


def assert_same(one, other, rtol, inertia=1e-12):
    np.testing.assert_array_equal(one.labels, other.labels)
    np.testing.assert_allclose(one.centers, other.centers, rtol=rtol)
    assert (one.n_iter, one.converged) == (other.n_iter, other.converged)
    assert one.inertia == pytest.approx(other.inertia, rel=inertia)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0.0, 3.0, 1e4])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_run_in_one_call_is_the_run_of_the_lazy_engine(dtype, offset, weighted):
    X = rows(offset=offset, dtype=dtype)
    weight = np.random.RandomState(1).rand(len(X)) + 0.1 if weighted else None
    starts = [X[:12], X[100:112], X[200:220]]
    assert all(whole_run.suits(X, len(start)) for start in starts)
    for start, one in zip(starts, whole_run.run(X, starts, sample_weight=weight, **LOOP)):
        other = lazy.run(X, start, sample_weight=weight, n_threads=2, **LOOP)
        assert_same(one, other, 1e-6 if dtype == np.float32 else 1e-12)


def test_the_number_of_threads_changes_nothing():
    X = rows()
    starts = [X[first : first + 8] for first in range(0, 80, 8)]
    one, four = (whole_run.run(X, starts, n_threads=n_threads, **LOOP) for n_threads in (1, 4))
    for a, b in zip(one, four):
        np.testing.assert_array_equal(a.centers, b.centers)
        np.testing.assert_array_equal(a.labels, b.labels)
        assert a.inertia == b.inertia


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ties_and_empty_clusters_are_settled_as_elsewhere(dtype):
    X = np.random.RandomState(2).randint(0, 4, (4_000, 3)).astype(dtype)  # most rows are equally far from two centres
    start = np.array([[1, 1, 1], [2, 2, 2], [1, 1, 1], [50, 50, 50], [0, 3, 0], [70, 0, 0]], dtype)
    one = whole_run.run(X, [start], **LOOP)[0]
    assert_same(one, lazy.run(X, start, **LOOP), 1e-6)
    assert_same(one, small.run(X, start[None], spherical=False, sample_weight=None, **LOOP)[0], 1e-6, inertia=1e-6)


@pytest.mark.parametrize("max_iter, tol", [(1, 0.0), (3, 0.0), (60, 0.5), (60, 1e9)])
def test_the_loop_stops_by_the_shared_rule(max_iter, tol):
    X = rows(dtype=np.float64)
    one = whole_run.run(X, [X[:12]], max_iter=max_iter, tol=tol)[0]
    assert_same(one, lazy.run(X, X[:12], max_iter=max_iter, tol=tol), 1e-12)


def test_one_cluster_and_rows_far_from_the_origin_in_a_table_that_is_not_copied(monkeypatch):
    from coterie.kmeans.lazy import single_bound

    X = rows(offset=1e3, dtype=np.float64)
    np.testing.assert_allclose(whole_run.run(X, [X[:1]], **LOOP)[0].centers[0], X.mean(axis=0), rtol=1e-12)
    copied = whole_run.run(X, [X[:12]], **LOOP)[0]
    monkeypatch.setattr(single_bound, "_COPIED", 0)
    assert not len(single_bound.Table.of(X, np.empty(0)).values)
    assert_same(whole_run.run(X, [X[:12]], **LOOP)[0], copied, 1e-12)


def test_bounds_skip_most_rows_of_a_run_that_is_nearly_settled():
    X = rows(20_000, k=6)
    assigner = lazy.Assigner(X)
    centers = X[:6]
    for _ in range(30):
        assigner.assign(centers)
        centers = assigner.means()
    before = assigner.work["scores"]
    assigner.assign(centers)
    assert assigner.work["scores"] - before < 0.1 * len(X) * 16


def test_damaged_rows_are_reported():
    X = rows()
    X[17, 3] = np.nan
    with pytest.raises(NotFiniteError):
        whole_run.run(X, [X[:12]], **LOOP)


def test_fits_of_medium_tables_run_in_one_call_and_equal_the_lazy_engine():
    X = rows()
    auto, named = (KMeans(12, n_init=3, random_state=0, engine=engine).fit(X) for engine in ("auto", "lazy"))
    assert engines.in_one_call(X, 12, Algorithm())
    assert "one call" in auto.engine_info_
    assert "one call" not in named.engine_info_
    np.testing.assert_array_equal(auto.labels_, named.labels_)
    np.testing.assert_array_equal(auto.labels_, auto.predict(X))
    assert (auto.n_iter_, auto.inertia_) == (named.n_iter_, pytest.approx(named.inertia_, rel=1e-12))
