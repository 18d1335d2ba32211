import numpy as np
import pytest

from coterie.kmeans import single_pass
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
