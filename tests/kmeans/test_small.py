"""Small tables: batches of runs by array operations, compared with the compiled engine."""

import numpy as np
import pytest

from coterie import KMeans, SphericalKMeans
from coterie.kmeans import engines, lazy, single_pass, small
from coterie.kmeans.algorithm import Algorithm
from coterie.starts import hash_kernels, row_order
from coterie.starts.plus_plus import kmeans_plus_plus
from coterie.starts.small_plus_plus import plus_plus

LOOP = {"max_iter": 50, "tol": 0.0}


def rows(seed=0, n=200, d=4, dtype=np.float64):
    return np.random.RandomState(seed).normal(size=(n, d)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_batch_of_runs_gives_what_the_lazy_engine_gives_run_by_run(dtype, weighted):
    X = rows(dtype=dtype)
    weight = np.random.RandomState(1).rand(len(X)) + 0.1 if weighted else None
    begins = [X[seed : seed + 6] for seed in range(0, 60, 6)]
    batch = small.run(X, np.stack(begins), spherical=False, sample_weight=weight, **LOOP)
    for begin, one in zip(begins, batch):
        other = lazy.run(X, begin, sample_weight=weight, n_threads=1, **LOOP)
        np.testing.assert_array_equal(one.labels, other.labels)
        np.testing.assert_allclose(one.centers, other.centers, rtol=1e-6 if dtype == np.float32 else 1e-12, atol=1e-12)
        assert (one.n_iter, one.converged) == (other.n_iter, other.converged)
        assert one.inertia == pytest.approx(other.inertia, rel=1e-6)


def test_ties_go_to_the_lowest_index_and_empty_clusters_are_filled_as_elsewhere():
    X = np.random.RandomState(2).randint(0, 4, (150, 2)).astype(float)  # most rows are equally far from two centres
    begin = np.array([[1.0, 1.0], [2.0, 2.0], [1.0, 1.0], [50.0, 50.0], [0.0, 3.0]])
    one = small.run(X, begin[None], spherical=False, sample_weight=None, **LOOP)[0]
    other = lazy.run(X, begin, n_threads=1, **LOOP)
    np.testing.assert_array_equal(one.labels, other.labels)
    np.testing.assert_allclose(one.centers, other.centers, rtol=1e-12)
    labels, sq = small.choose(X, begin)
    np.testing.assert_array_equal(labels, single_pass.assign(X, begin, 1))
    np.testing.assert_allclose(sq, single_pass.costs(X, begin, labels, 1))


def test_fits_of_small_tables_equal_fits_by_the_lazy_engine_from_the_same_seed():
    X = rows(3)
    auto, named = (KMeans(5, n_init=4, random_state=0, engine=engine).fit(X) for engine in ("auto", "lazy"))
    np.testing.assert_array_equal(auto.labels_, named.labels_)
    assert auto.n_iter_ == named.n_iter_
    assert engines.in_one_call(X, 5, Algorithm())
    sphere = SphericalKMeans(4, random_state=0).fit(X)
    np.testing.assert_allclose(np.linalg.norm(sphere.cluster_centers_, axis=1), 1.0)
    np.testing.assert_array_equal(sphere.labels_, sphere.predict(X))


def test_batched_starts_are_those_of_the_compiled_start_from_the_same_seed():
    X, weights = rows(4), np.random.RandomState(5).rand(200) + 0.1
    batch = plus_plus(X, 7, np.random.RandomState(6), weights, 3)
    rng, order = np.random.RandomState(6), row_order.Order.of(row_order.hash_rows(X, 1))
    for one in batch:
        np.testing.assert_array_equal(one, kmeans_plus_plus(X, 7, rng, weights, 1, order))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_compiled_hashes_are_those_of_the_definition(dtype):
    X = rows(7, dtype=dtype)
    X[:5, 1] = [0.0, -0.0, np.inf, 1e-30, -1.0]
    hashes = np.empty(len(X), np.uint64)
    room = np.empty(X.shape[1])
    hash_kernels.hash_dense(X, 0, len(X), room, room.view(np.uint64), hashes)
    np.testing.assert_array_equal(hashes, row_order.hash_small(X))
