"""The one attention: each normaliser against its definition, its limits, weights as counts, and extreme scores."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linprog

from coterie import attention
from coterie.attention import (
    Gumbel,
    Identity,
    Limiting,
    Linear,
    NormMax,
    Softmax,
    Sparsemax,
    TopK,
    attend,
    dot_scores,
    normalise,
    sq_euclidean_scores,
)

SHIFT_INVARIANT = {
    "softmax": Softmax(0.7),
    "limiting": Limiting(),
    "first": Limiting("first"),
    "sparsemax": Sparsemax(0.7),
    "top-k": TopK(3, 0.7),
    "norm-max": NormMax(0.7),
    "norm-max-share": NormMax(keep=0.6),
}


def weights_of(normaliser, scores, key_weight=None):
    scores = torch.as_tensor(scores, dtype=torch.float64)
    weight = None if key_weight is None else torch.as_tensor(key_weight, dtype=torch.float64)
    return normalise(normaliser(scores, weight))


def test_the_documents_worked_example():
    """Equations (14) to (17) of document 002."""
    A = torch.tensor(
        [
            [-0.1, -0.2, -0.7, -0.2, -0.8, -0.3, -0.8, -0.2, -0.1],
            [-0.5, -0.1, -0.1, -0.4, -0.7, -0.2, -0.9, -0.3, -0.2],
            [-0.7, -0.3, -0.2, -0.6, -0.1, -0.3, -0.1, -0.7, -0.7],
        ],
        dtype=torch.float64,
    )
    chosen = normalise(Limiting()(A.T))
    assert chosen.argmax(1).tolist() == [0, 1, 1, 0, 2, 1, 2, 0, 0]
    assert set(chosen.flatten().tolist()) == {0.0, 1.0}
    B = normalise(Limiting()(chosen.T))
    expected = torch.tensor(
        [
            [1 / 4, 0, 0, 1 / 4, 0, 0, 0, 1 / 4, 1 / 4],
            [0, 1 / 3, 1 / 3, 0, 0, 1 / 3, 0, 0, 0],
            [0, 0, 0, 0, 1 / 2, 0, 1 / 2, 0, 0],
        ],
        dtype=torch.float64,
    )
    torch.testing.assert_close(B, expected, rtol=0, atol=1e-16)
    X = torch.arange(18, dtype=torch.float64).reshape(9, 2)
    centers = attend(torch.eye(3, dtype=torch.float64), chosen, X, dot_scores, Limiting())
    torch.testing.assert_close(centers[0], (X[0] + X[3] + X[7] + X[8]) / 4)
    torch.testing.assert_close(centers[2], (X[4] + X[6]) / 2)


def test_limiting_softmax_shares_ties_or_gives_them_to_the_first():
    scores = [[1.0, 0.0, 1.0, -2.0]]
    assert weights_of(Limiting(), scores).tolist() == [[0.5, 0.0, 0.5, 0.0]]
    assert weights_of(Limiting("first"), scores).tolist() == [[1.0, 0.0, 0.0, 0.0]]


def test_softmax_tends_to_the_limiting_softmax():
    scores = torch.randn(5, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(weights_of(Softmax(1e8), scores), weights_of(Limiting(), scores))


@pytest.mark.parametrize("gamma", [0.3, 1.0, 4.0])
def test_sparsemax_is_the_projection_on_the_simplex(gamma):
    z = gamma * torch.randn(20, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    p = weights_of(Sparsemax(gamma), z / gamma)
    torch.testing.assert_close(p.sum(-1), torch.ones(20, dtype=torch.float64))
    # Optimality: z - p is constant on the support and not larger off it.
    slack = z - p
    tau = torch.where(p > 0, slack, -torch.inf).amax(-1, keepdim=True)
    assert (torch.where(p > 0, (slack - tau).abs(), 0) < 1e-12).all()
    assert (slack <= tau + 1e-12).all()


@pytest.mark.parametrize("gamma", [0.05, 0.5, 5.0])
def test_norm_max_solves_its_linear_programme(gamma):
    """max ⟨gamma s, z⟩ - t over the simplex with z ≤ t, equation (30) for alpha → ∞, by a general solver."""
    rng = np.random.default_rng(2)
    for _ in range(10):
        s = rng.normal(size=8)
        n = len(s)
        A = np.c_[np.eye(n), -np.ones(n)]
        solved = linprog(np.r_[-gamma * s, 1.0], A, np.zeros(n), np.r_[np.ones(n), 0][None], [1.0], bounds=(0, 1))
        np.testing.assert_allclose(weights_of(NormMax(gamma), s[None])[0].numpy(), solved.x[:n], atol=1e-9)


def test_norm_max_with_a_share_keeps_that_share_of_each_querys_own_keys():
    own = torch.tensor([[0.0, -1, -2, -3, -4, -5, -6, -7, -8, -9], [-50, -51, -52, -53, -54, -55, -56, -57, 0.0, -1]])
    kept = weights_of(NormMax(keep=0.5, gap=20.0), own) > 0
    assert kept.sum(1).tolist() == [5, 1]
    assert kept[0, :5].all()


def test_one_gamma_of_norm_max_is_not_a_percentile():
    """The same gamma keeps different shares of a narrow and of a wide cluster."""
    narrow, wide = -0.01 * torch.arange(10.0), -1.0 * torch.arange(10.0)
    kept = [int((weights_of(NormMax(1.0), row[None]) > 0).sum()) for row in (narrow, wide)]
    assert kept == [10, 1]


def test_top_k_keeps_ties_with_the_kth():
    assert (weights_of(TopK(2), [[3.0, 2.0, 2.0, 1.0]]) > 0).tolist() == [[True, True, True, False]]
    torch.testing.assert_close(weights_of(TopK(9), [[1.0, 2.0]]), weights_of(Softmax(), [[1.0, 2.0]]))


def test_linear_and_identity_take_the_scores_as_they_are():
    assert weights_of(Linear(), [[1.0, 3.0]]).tolist() == [[0.25, 0.75]]
    key = torch.eye(2, dtype=torch.float64)
    value = torch.tensor([[1.0], [10.0]], dtype=torch.float64)
    query = torch.tensor([[2.0, 3.0]], dtype=torch.float64)
    assert attend(query, key, value, dot_scores, Identity()).item() == 32.0


def test_a_query_that_scores_nothing_looks_at_all_keys_alike():
    value = torch.tensor([[1.0], [3.0]])
    assert attend(torch.zeros(1, 2), torch.eye(2), value, dot_scores, Linear()).item() == 2.0


def test_gumbel_samples_follow_the_categorical_distribution():
    scores = torch.log(torch.tensor([0.1, 0.2, 0.7], dtype=torch.float64)).expand(40_000, 3)
    draw = Gumbel(torch.Generator().manual_seed(0))(scores)
    assert ((draw == 0) | (draw == 1)).all()
    torch.testing.assert_close(draw.mean(0), torch.tensor([0.1, 0.2, 0.7], dtype=torch.float64), atol=0.01, rtol=0)
    again = Gumbel(torch.Generator().manual_seed(0))(scores)
    assert torch.equal(draw, again)


SCORES = arrays(np.float64, (3, 6), elements=st.floats(-30, 30))


@pytest.mark.parametrize("name", SHIFT_INVARIANT)
@settings(deadline=None, max_examples=40)
@given(scores=SCORES, counts=st.lists(st.integers(1, 4), min_size=6, max_size=6))
def test_a_key_of_weight_m_is_that_key_m_times(name, scores, counts):
    normaliser = SHIFT_INVARIANT[name]
    if name == "first":
        counts = [1] * 6  # the first of equal keys is one key, whatever it weighs
    scores = np.round(scores, 1)
    weighted = weights_of(normaliser, scores, counts)
    repeated = weights_of(normaliser, np.repeat(scores, counts, axis=1))
    summed = torch.zeros(3, 6, dtype=torch.float64)
    summed.index_add_(1, torch.from_numpy(np.repeat(np.arange(6), counts)), repeated)
    torch.testing.assert_close(weighted, summed, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", SHIFT_INVARIANT)
@settings(deadline=None, max_examples=40)
@given(scores=SCORES)
def test_weights_form_a_distribution_and_ignore_a_shift(name, scores):
    scores = np.round(scores, 1)
    p = weights_of(SHIFT_INVARIANT[name], scores)
    assert (p >= 0).all()
    torch.testing.assert_close(p.sum(-1), torch.ones(3, dtype=torch.float64))
    torch.testing.assert_close(p, weights_of(SHIFT_INVARIANT[name], scores + 64.0), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("gamma", [1.0, 1e4, 1e8])
@pytest.mark.parametrize("low", [-1.0, -1e30])
def test_extreme_scores_and_temperatures_stay_finite(dtype, gamma, low):
    scores = torch.tensor([[0.0, low], [low, low], [low, low / 2]], dtype=dtype, requires_grad=True)
    for normaliser in (Softmax(gamma), Sparsemax(gamma), TopK(1, gamma), NormMax(gamma), Limiting()):
        p = normalise(normaliser(scores))
        assert p.dtype == dtype
        assert torch.isfinite(p).all()
        torch.testing.assert_close(p.sum(-1), torch.ones(3, dtype=dtype))
        if p.requires_grad:
            (grad,) = torch.autograd.grad(p[:, 0].sum(), scores)
            assert torch.isfinite(grad).all()


@pytest.mark.parametrize("normaliser", [Softmax(0.7), Sparsemax(0.7), Linear(), TopK(3, 0.5)], ids=str)
def test_gradients_agree_with_differences(normaliser):
    g = torch.Generator().manual_seed(3)
    q = torch.rand(2, 4, 3, dtype=torch.float64, generator=g).requires_grad_()
    k = torch.rand(2, 5, 3, dtype=torch.float64, generator=g).requires_grad_()
    v = torch.rand(2, 5, 2, dtype=torch.float64, generator=g).requires_grad_()
    assert torch.autograd.gradcheck(lambda *a: attend(*a, dot_scores, normaliser), (q, k, v))


def test_euclidean_scores_are_exactly_zero_at_equal_points():
    x = torch.randn(50, 3, generator=torch.Generator().manual_seed(4)) * 1e6
    assert (sq_euclidean_scores(x, x).diagonal() == 0).all()


def test_blocks_change_nothing(monkeypatch):
    g = torch.Generator().manual_seed(5)
    q, k = torch.randn(2, 37, 3, generator=g), torch.randn(2, 11, 3, generator=g)
    whole = attend(q, k, k, sq_euclidean_scores, Softmax(2.0))
    monkeypatch.setattr(attention, "BLOCK_VALUES", 200)
    torch.testing.assert_close(attend(q, k, k, sq_euclidean_scores, Softmax(2.0)), whole)
