"""Definitions 2.1-2.5: the layers do what they say and nothing else."""

import numpy as np
import pytest
import torch

from coterie_research.incontext_em.theory.modules import (
    Block,
    FullyConnected,
    SoftmaxAttention,
    Transformer,
    TransformerPlus,
    UnnormalisedAttention,
    parameter_norm,
)


def normal(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def random_heads(m=3, r=4, width=5):
    return normal(m, r, width, seed=1), normal(m, r, width, seed=2), normal(m, width, width, seed=3)


def columns(h, q, k, v, normalise):
    """The document's formula, tokens as columns."""
    H = h.numpy().T
    total = H.copy()
    for Q, K, V in zip(q.numpy(), k.numpy(), v.numpy()):
        scores = (Q @ H).T @ (K @ H)
        if normalise:
            scores = np.exp(scores) / np.exp(scores).sum(axis=0, keepdims=True)
        total += (V @ H) @ scores
    return total.T


@pytest.mark.parametrize("layer,normalise", [(SoftmaxAttention, True), (UnnormalisedAttention, False)])
def test_attention_is_the_documents_formula_with_tokens_as_columns(layer, normalise):
    q, k, v = random_heads()
    h = 0.3 * normal(7, 5)
    built = layer(q, k, v)
    wanted = columns(h, q, k, v, normalise)
    np.testing.assert_allclose(built(h).numpy(), wanted, atol=1e-12)
    np.testing.assert_allclose(built.definition(h).numpy(), wanted, atol=1e-12)


def test_tokens_that_no_query_tells_apart_are_grouped_without_changing_the_layer():
    q, k, v = random_heads()
    q[:, :, 2:] = 0.0
    h = normal(40, 5)
    h[:, :2] = torch.randint(2, (40, 2), generator=torch.Generator().manual_seed(0)).to(h)
    built = SoftmaxAttention(q, k, v)
    torch.testing.assert_close(built(h), built.definition(h), atol=1e-12, rtol=0)


def test_a_head_whose_query_is_zero_brings_the_mean_of_all_tokens():
    nothing = torch.zeros(1, 1, 5, dtype=torch.float64)
    h = normal(6, 5)
    built = SoftmaxAttention(nothing, nothing, torch.eye(5, dtype=torch.float64).unsqueeze(0))
    torch.testing.assert_close(built(h), h + h.mean(0))


def test_a_layer_without_heads_is_the_identity():
    none = torch.zeros(0, 5, 5, dtype=torch.float64)
    h = normal(6, 5)
    for layer in (SoftmaxAttention, UnnormalisedAttention):
        assert torch.equal(layer(none, none, none)(h), h)


def test_the_fully_connected_layer_keeps_its_residual():
    w1, w2, h = normal(3, 5, seed=1), normal(5, 3, seed=2), normal(6, 5)
    wanted = h.numpy() + np.maximum(h.numpy() @ w1.numpy().T, 0) @ w2.numpy().T
    np.testing.assert_allclose(FullyConnected(w1, w2)(h).numpy(), wanted, atol=1e-14)


def network(kind, layer):
    blocks = [Block(layer(*random_heads()), FullyConnected(normal(3, 5, seed=4), normal(5, 3, seed=5)))] * 2
    return kind(blocks, normal(2, 5, seed=6))


def test_a_transformer_refuses_an_unnormalised_layer():
    with pytest.raises(TypeError, match="layer 0 of a Transformer must be SoftmaxAttention"):
        network(Transformer, UnnormalisedAttention)
    assert len(network(Transformer, SoftmaxAttention).blocks) == 2


def test_the_parameter_norm_of_diagonal_matrices_by_hand():
    diagonal = [torch.diag(torch.tensor([s, 0.0], dtype=torch.float64)) for s in (2.0, 3.0, 5.0, 7.0)]
    q, k = torch.stack([diagonal[0], diagonal[1]]), torch.stack([diagonal[1], diagonal[0]])
    v = torch.stack([diagonal[2], diagonal[2]])
    built = TransformerPlus([Block(SoftmaxAttention(q, k, v), FullyConnected(diagonal[3], diagonal[0]))], diagonal[0])
    # max(2, 3) + (5 + 5) + 2 · (7 + 2) + ‖w0‖ + ‖identity‖
    assert parameter_norm(built) == pytest.approx(3 + 10 + 18 + 2 + 1)
    assert parameter_norm(built, per_head=False) == pytest.approx(3 + 10 + 9 + 2 + 1)
