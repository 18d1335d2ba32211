"""The annealed sampler and its swaps."""

import itertools

import numpy as np
import pytest

from coterie.kmeans import medoids

pytest.importorskip("kmedoids", reason="FasterPAM is the yardstick: pip install kmedoids")


def best_by_enumeration(X, k):
    sq = ((X[:, None] - X[None]) ** 2).sum(-1)
    return min(sq[:, list(rows)].min(axis=1).sum() for rows in itertools.combinations(range(len(X)), k))


@pytest.mark.parametrize("k", [1, 2, 3])
def test_small_problems_are_solved_exactly(k):
    for seed in range(5):
        X = np.random.default_rng(seed).normal(size=(14, 2))
        rng = np.random.RandomState(seed)
        restarts = [medoids.anneal(X, np.ones(14), rng.permutation(14)[:k], rng, max_iter=60) for _ in range(8)]
        assert min(found.objective for found in restarts) == pytest.approx(best_by_enumeration(X, k))


def test_no_single_swap_betters_the_result():
    rng = np.random.default_rng(1)
    X, weight = rng.normal(size=(60, 3)), rng.integers(1, 4, size=60).astype(float)
    found = medoids.anneal(X, weight, np.arange(5), np.random.RandomState(0), max_iter=20)
    sq = ((X[:, None] - X[None]) ** 2).sum(-1)
    for place, row in itertools.product(range(5), range(60)):
        changed = found.indices.copy()
        changed[place] = row
        assert weight @ sq[:, changed].min(axis=1) >= found.objective * (1 - 1e-9)


def test_the_sampler_alone_is_a_random_walk():
    """The document's sampler ends far above what annealing reaches."""
    X = np.random.default_rng(2).normal(size=(200, 2))
    walk, kept = [], []
    for seed in range(5):
        start = np.arange(6)
        rng = np.random.RandomState(seed)
        walk.append(medoids.sample(X, np.ones(200), start, rng, gamma=1.0, delta=10.0, max_iter=60).objective)
        kept.append(medoids.anneal(X, np.ones(200), start, np.random.RandomState(seed), max_iter=60).objective)
    assert np.mean(walk) > 1.2 * np.mean(kept)


def test_the_scale_of_the_weights_does_not_matter():
    X = np.random.default_rng(5).normal(size=(80, 2))
    weight = np.random.default_rng(6).integers(1, 5, 80).astype(float)
    found = [
        medoids.anneal(X, scale * weight, np.arange(5), np.random.RandomState(0), max_iter=60)
        for scale in (1.0, 1e-6, 1e6)
    ]
    for other in found[1:]:
        np.testing.assert_array_equal(other.indices, found[0].indices)
