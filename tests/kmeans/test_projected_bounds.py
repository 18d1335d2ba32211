"""Exclusion of centres by leading dimensions: labels are those of all distances."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from coterie.kmeans import lazy
from coterie.kmeans.lazy import engine
from coterie.kmeans.lazy.projected_bounds import ProjectedBounds, directions_of

N, D, K = 2_400, 256, 512


def embeddings(dtype, offset=0.0):
    random = np.random.RandomState(0)
    rows = random.randn(40, 20)[random.randint(40, size=N)] + 0.5 * random.randn(N, 20)
    return (rows @ random.randn(20, D) + 0.3 * random.randn(N, D) + offset).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_labels_are_those_of_all_distances_while_centres_move(dtype, offset):
    X = embeddings(dtype, offset)
    X[1::7] = X[::7][: len(X[1::7])]  # equal rows, and equal centres: the lowest index wins
    assigner = lazy.Assigner(X)
    centers = X[:K].astype(np.float64)
    for number in range(6):
        labels = assigner.assign(centers)
        assert isinstance(assigner.bounds, ProjectedBounds)
        np.testing.assert_array_equal(labels, cdist(X.astype(np.float64), centers, "sqeuclidean").argmin(axis=1))
        centers = assigner.means() if number % 2 else centers + 0.01 * np.random.RandomState(number).randn(K, D)
    assert assigner.work["scores"] < 0.5 * assigner.work["plain"]


@pytest.mark.parametrize("weighted", [False, True])
def test_a_run_equals_one_with_bounds_for_groups(weighted, monkeypatch):
    X = embeddings(np.float32)
    settings = {"max_iter": 20, "sample_weight": np.random.RandomState(1).rand(N) + 0.1 if weighted else None}
    one = lazy.run(X, X[:K], n_threads=2, **settings)
    monkeypatch.setattr(engine, "directions_of", lambda X, k: None)
    other = lazy.run(X, X[:K], **settings)
    np.testing.assert_array_equal(one.labels, other.labels)
    np.testing.assert_array_equal(one.centers, other.centers)
    assert (one.n_iter, one.inertia) == (other.n_iter, other.inertia)


def test_rows_without_leading_directions_and_few_centres_are_left_to_other_bounds():
    isotropic = np.random.RandomState(2).randn(N, D)
    assert directions_of(isotropic, K) is None
    assert directions_of(embeddings(np.float32), 100) is None
    assert directions_of(np.zeros((N, D)), K) is None
    mean, directions = directions_of(embeddings(np.float32, 5.0), K)
    np.testing.assert_allclose(mean, 5.0, atol=2.0)
    np.testing.assert_allclose(directions.T @ directions, np.eye(directions.shape[1]), atol=1e-12)
