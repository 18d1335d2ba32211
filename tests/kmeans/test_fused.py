"""The fused engine against the literal one and the plain algorithms."""

import itertools
import os
import resource

import numpy as np
import pytest
import torch
from scipy import sparse

from coterie.kmeans import fused, literal, reference
from coterie.kmeans.algorithm import Algorithm
from coterie.kmeans.family import TABLE
from coterie.kmeans.fused import Fused
from coterie.kmeans.iteration import Centers
from coterie.kmeans.rows import rows_of
from tests.forked import forked
from tests.kmeans.cases import algorithm_for, instance


@pytest.mark.parametrize("name", TABLE)
def test_fused_equals_literal_layer_by_layer(name):
    row = TABLE[name]
    for seed in range(8):
        X, C = instance(2000 + seed, row)
        engine = Fused(X, algorithm_for(row))
        state = Centers(torch.from_numpy(C))
        for out in literal.layers(algorithm_for(row), X, C, 5):
            one_hot = np.isin(out.assignments, (0, 1)).all() and out.assignments.any(axis=0).all()
            if not row.variant.soft and not one_hot:
                break  # a tie or an empty cluster, where the bare network has a behaviour of its own
            state = engine.m_step(state, engine.e_step(state))
            exact = row.variant.points != "sinkhorn"  # whose weights are the limit of an iteration
            np.testing.assert_allclose(state.places.numpy(), out.centers, rtol=0, atol=1e-10 if exact else 1e-8)


@pytest.mark.parametrize("name", ["lloyd", "trimmed", "robust-softmax", "robust-sparsemax", "robust-topk"])
def test_both_engines_run_to_the_same_end_with_weights_and_empty_clusters(name):
    row = TABLE[name]
    rng = np.random.default_rng(3)
    X = rng.normal(size=(120, 2))
    C = np.vstack([X[:3], [[50.0, 50.0], [60.0, -40.0]]])  # two starts that no point chooses
    weight = rng.integers(1, 4, size=120).astype(float)
    kind = {"sample_weight": weight, "max_iter": 25, "tol": 0.0}
    slow = literal.run(X, C, algorithm_for(row), **kind)
    fast = fused.run(X, C, algorithm_for(row), **kind)
    np.testing.assert_allclose(fast.centers, slow.centers, atol=1e-9)
    assert len(np.unique(fast.labels[fast.labels >= 0])) == 5
    assert np.abs(fast.centers).max() < 10


def test_blocks_change_nothing(monkeypatch):
    X, C = instance(5)
    whole = fused.run(X, C, Algorithm(TABLE["soft"], gamma=0.5), max_iter=5)
    monkeypatch.setattr("coterie.kmeans.rows.CPU_SCORES", 1)
    blocked = fused.run(X, C, Algorithm(TABLE["soft"], gamma=0.5), max_iter=5)
    np.testing.assert_allclose(blocked.centers, whole.centers, atol=1e-12)


def test_sparse_rows_give_the_dense_answer():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 12)) * (rng.random((200, 12)) < 0.3)
    dense = fused.run(X, X[:5], Algorithm(), max_iter=20)
    thin = fused.run(sparse.csr_matrix(X), X[:5], Algorithm(), max_iter=20)
    assert np.array_equal(dense.labels, thin.labels)
    np.testing.assert_allclose(dense.centers, thin.centers, atol=1e-10)
    assert thin.inertia == pytest.approx(dense.inertia)


def test_a_far_origin_costs_no_digits():
    """Distances are taken from the centres' mean: float32 data far from zero cluster as well as near it."""
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(500, 3)) + 6 * rng.integers(0, 3, size=(500, 1))).astype(np.float32)
    near = fused.run(X, X[:3], Algorithm(), max_iter=30)
    far = fused.run(X + np.float32(4096), X[:3] + np.float32(4096), Algorithm(), max_iter=30)
    assert np.mean(near.labels == far.labels) > 0.99


@pytest.mark.parametrize("name", ["soft", "robust-softmax"])
def test_fused_is_differentiable_for_finite_gamma(name):
    X, C = instance(9, most_clusters=3)
    x = torch.from_numpy(X[:16]).requires_grad_()
    c = torch.from_numpy(C).requires_grad_()

    def centers(x, c):
        engine, state = Fused(x, Algorithm(TABLE[name], gamma=0.3)), Centers(c)
        for _ in range(2):
            state = engine.m_step(state, engine.e_step(state))
        return state.places

    assert torch.autograd.gradcheck(centers, (x, c))


def test_the_objective_never_rises():
    for seed in range(20):
        X, C = instance(seed)
        seen = []
        fused.run(X, C, Algorithm(), on_iteration=lambda it, s=seen: s.append(it.expectation.objective))
        assert all(b <= a * (1 + 1e-12) for a, b in itertools.pairwise(seen))


def test_soft_k_means_with_mixing_weights_is_em_for_a_spherical_mixture():
    """One step against the formulas of EM with known variance, written out."""
    X, C = instance(4)
    k, gamma = len(C), 0.4
    pi = np.full(k, 1 / k)
    result = fused.run(X, C, Algorithm(TABLE["soft"], gamma=gamma, mixing_weights=True), max_iter=2)
    for _ in range(2):
        log_r = gamma * reference.scores(X, C) + np.log(pi)
        r = np.exp(log_r - log_r.max(axis=1, keepdims=True))
        r /= r.sum(axis=1, keepdims=True)
        C, pi = (r.T @ X) / r.sum(axis=0)[:, None], r.mean(axis=0)
    np.testing.assert_allclose(result.centers, C, atol=1e-10)
    np.testing.assert_allclose(result.weights, pi, atol=1e-12)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_million_rows_need_little_memory_beyond_themselves():
    """n = 1e6, d = 16, k = 64, float32: less than 500 MB above the data, measured in a process of its own."""

    def most() -> float:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    def above_the_data() -> float:
        X = np.random.default_rng(0).standard_normal((1_000_000, 16), dtype=np.float32)
        before = most()
        fused.run(X, X[:64], Algorithm(), max_iter=1)
        return most() - before

    assert 0 < forked(above_the_data) < 500


def test_read_only_arrays_are_taken():
    X = np.ones((3, 2))
    X.flags.writeable = False
    assert rows_of(X).n == 3
