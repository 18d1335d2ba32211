import numpy as np
import pytest

from coterie.kmeans import single_pass
from coterie.kmeans.kernel_input import NotFiniteError
from coterie.kmeans.lazy import Assigner


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n, d, k", [(1, 1, 1), (7, 3, 2), (1000, 8, 32), (3000, 40, 17), (500, 2, 100)])
def test_one_pass_gives_the_labels_and_sums_of_the_lazy_engine(n, d, k, dtype):
    rng = np.random.default_rng(n + d + k)
    X = (rng.normal(size=(n, d)) + 5).astype(dtype)
    centers = (rng.normal(size=(k, d)) + 5).astype(dtype)
    weight = rng.uniform(0.5, 2, n)
    assigner = Assigner(X, weight, 1)
    labels = assigner.assign(centers)
    np.testing.assert_array_equal(single_pass.assign(X, centers), labels)
    found = single_pass.statistics(X, centers, weight)
    np.testing.assert_allclose(found.sums, assigner.statistics.sums, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.counts, assigner.statistics.counts)
    assert found.inertia == pytest.approx(assigner.inertia(), rel=1e-5)


def test_ties_go_to_the_lowest_index_and_threads_change_nothing():
    X = np.array([[0.5], [1.5], [1.0]], "float32")
    np.testing.assert_array_equal(single_pass.assign(X, np.array([[1.0], [0.0], [2.0], [1.0]])), [0, 0, 0])
    rng = np.random.default_rng(0)
    X, centers = rng.normal(size=(100_000, 4)).astype("float32"), rng.normal(size=(9, 4))
    one, two = (single_pass.statistics(X, centers, n_threads=threads) for threads in (1, 2))
    np.testing.assert_array_equal(one.sums, two.sums)
    assert one.inertia == two.inertia


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("place", [0, 3, 999])
def test_a_row_of_nan_writes_nowhere_and_is_named(dtype, place):
    X = np.random.default_rng(0).normal(size=(1000, 3)).astype(dtype)
    X[place, 1] = np.nan
    for k in (1, 2, 17):
        with pytest.raises(NotFiniteError, match="rows contain NaN"):
            single_pass.statistics(X, np.arange(3.0 * k).reshape(k, 3))


def test_what_does_not_fit_is_rejected_before_a_kernel_sees_it():
    X, good = np.zeros((4, 3)), np.zeros((2, 3))
    for bad in (np.zeros((2, 2)), np.zeros((0, 3)), np.zeros(3), np.zeros((2, 3, 1))):
        for use in (single_pass.assign, single_pass.distances, single_pass.sq_distances):
            with pytest.raises(ValueError, match=r"centres must have the shape \(k, 3\)"):
                use(X, bad)
        with pytest.raises(ValueError, match="centres must have the shape"):
            Assigner(X).assign(bad)
    for use in (single_pass.assign, single_pass.sq_distances, Assigner(X).assign):
        with pytest.raises(NotFiniteError, match="centres contain NaN"):
            use(*([] if use.__name__ == "assign" and hasattr(use, "__self__") else [X]), np.full((2, 3), np.nan))
    for rows in (X[:, ::2], X.astype(np.float16), np.asfortranarray(np.ones((4, 3)))):
        with pytest.raises(ValueError, match="C-contiguous"):
            single_pass.assign(rows, np.zeros((2, rows.shape[1])))
    with pytest.raises(ValueError, match="sample_weight must have one value"):
        single_pass.statistics(X, good, np.ones(3))
    with pytest.raises(ValueError, match="sample_weight must have one value"):
        Assigner(X, np.ones(5))
    with pytest.raises(ValueError, match="labels must have one value"):
        single_pass.statistics(X, good, labels=np.zeros(3, np.int32))
    for label in (-1, 2):
        with pytest.raises(ValueError, match="between 0 and 1"):
            single_pass.costs(X, good, np.full(4, label, np.int32))


def test_labels_costs_and_distances_do_not_depend_on_the_number_of_threads():
    X = np.random.default_rng(3).normal(size=(20_000, 4)).astype(np.float32)  # two parts
    centers = X[:7].copy()
    labels = single_pass.assign(X, centers, 1)
    np.testing.assert_array_equal(single_pass.assign(X, centers, 2), labels)
    for function in (single_pass.distances, single_pass.sq_distances):
        np.testing.assert_array_equal(function(X, centers, 2), function(X, centers, 1))
    costs = [single_pass.costs(X, centers, labels, n_threads) for n_threads in (1, 2)]
    np.testing.assert_array_equal(*costs)
