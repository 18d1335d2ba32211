"""The skeleton: norms, the quadratic network, sockets and residuals."""

import math

import torch
from torch import Tensor

from coterie.attention import Limiting, Linear
from coterie.kmeans.algorithm import Algorithm
from coterie.kmeans.family import TABLE
from coterie.kmeans.transformer import Attention, FeedForward, Layer, LayerNorm, RMSNorm, unit
from coterie.kmeans.weights import Stream, layer


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_layer_norm_puts_zero_sum_vectors_on_the_sphere():
    """Lemma 3, on a span of the token; the other coordinates pass."""
    x = numbers(5, 4)
    token = torch.cat([x, -x, numbers(5, 3, seed=1)], dim=-1)
    out = LayerNorm(slice(0, 8))(token)
    torch.testing.assert_close(out[:, :8], token[:, :8] / token[:, :8].norm(dim=-1, keepdim=True))
    assert torch.equal(out[:, 8:], token[:, 8:])


def test_layer_norm_agrees_with_torchs_up_to_the_gain():
    x = numbers(6, 5)
    expected = torch.nn.functional.layer_norm(x, (5,), eps=0.0) / math.sqrt(5)
    torch.testing.assert_close(LayerNorm(slice(0, 5))(x), expected)


def test_rms_norm_needs_no_zero_sum_and_leaves_zeros_alone():
    x = torch.cat([numbers(3, 4), torch.zeros(1, 4, dtype=torch.float64)])
    out = RMSNorm(slice(0, 4))(x)
    torch.testing.assert_close(out.norm(dim=-1), torch.tensor([1.0, 1, 1, 0], dtype=torch.float64))
    assert torch.equal(unit(x), out)


def test_the_quadratic_network_computes_squares():
    ffn = FeedForward(torch.eye(2), torch.tensor([[1.0, 1.0]]), torch.tensor([-0.5]))
    assert ffn(torch.tensor([[3.0, 4.0]])).item() == 24.5


def test_the_lifted_form_keeps_its_squared_norms_up_to_date():
    """Theorem 3: after a layer, decoder tokens are lifted points again."""
    x, row = numbers(30, 3), TABLE["lloyd/dot"]
    c = x[:4].clone()
    stream = Stream(row, 3, 4)
    _, tokens = layer(Algorithm(row), x, c)(stream.embed_points(x), stream.embed_centers(c))
    torch.testing.assert_close(tokens, stream.embed_centers(stream.centers(tokens)))


def test_batches_are_data_sets_side_by_side():
    x, row = numbers(3, 40, 2), TABLE["soft"]
    c = x[:, :4].clone()
    stream = Stream(row, 2, 4)
    net = layer(Algorithm(row, gamma=0.5), x[0], c[0])
    together = net(*net(stream.embed_points(x), stream.embed_centers(c)))[1]
    for b in range(3):
        alone = net(*net(stream.embed_points(x[b]), stream.embed_centers(c[b])))[1]
        torch.testing.assert_close(together[b], alone)


def test_sockets_add_up_with_the_residual():
    eye, zero = torch.eye(2), torch.zeros(2, 2)
    nothing = Attention("dot", Linear(), eye, eye, zero)
    copy = Attention("l2", Limiting(), eye, eye, eye)
    x, c = torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 5.0]])
    new_x, new_c = Layer(nothing, nothing, nothing, nothing)(x, c)
    assert torch.equal(new_x, x)
    assert torch.equal(new_c, c)
    new_x, new_c = Layer(copy, copy, copy, copy)(x, c)
    assert torch.equal(new_x, x + x + c)
    assert torch.equal(new_c, c + c + new_x)


def test_weights_are_frozen_but_can_be_trained():
    x = numbers(20, 2)
    built = layer(Algorithm(TABLE["soft"], gamma=0.5), x, x[:3])
    assert not any(p.requires_grad for p in built.parameters())
    built.requires_grad_(True)
    stream = Stream(TABLE["soft"], 2, 3)
    _, tokens = built(stream.embed_points(x), stream.embed_centers(x[:3]))
    tokens.square().sum().backward()
    assert torch.isfinite(built.encoder_cross.query.grad).all()
    assert built.encoder_cross.query.grad.abs().sum() > 0
