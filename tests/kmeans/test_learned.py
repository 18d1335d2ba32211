"""Learned Lloyd: the constructed layer with three numbers freed."""

import numpy as np
import pytest

from coterie import KMeans
from coterie.kmeans import learned
from coterie.starts import choose


@pytest.mark.parametrize("weighted", [False, True])
def test_the_learned_start_is_lower_and_a_weight_is_a_repeated_row(weighted):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4)) + 3 * rng.normal(size=(6, 4))[rng.integers(6, size=200)]
    weight = rng.integers(1, 4, size=len(X)).astype(float) if weighted else None
    start = choose(X, 6, "random", np.random.RandomState(0))
    better = learned.improved_start(X, start, weight)
    assert (
        KMeans(6, init=better, max_iter=1).fit(X).inertia_ < KMeans(6, init=start, max_iter=10).fit(X).inertia_ * 1.05
    )
    if weight is not None:
        repeated = learned.improved_start(np.repeat(X, weight.astype(int), axis=0), start)
        np.testing.assert_allclose(better, repeated, atol=1e-9)


def test_kmeans_learned_ends_in_a_fixed_point():
    X = np.random.default_rng(0).uniform(size=(2000, 3))
    learned = KMeans(12, algorithm="learned", init="random", n_init=1, random_state=0, tol=0).fit(X)
    again = KMeans(12, init=learned.cluster_centers_, tol=0).fit(X)
    np.testing.assert_allclose(again.cluster_centers_, learned.cluster_centers_, atol=1e-12)
