import torch
import torch.nn.functional as F

from coterie.zeroshot import layers
from coterie.zeroshot.layers import Layer, PairChannels, _Channels


def arguments(n_sets=2, n_points=9):
    torch.manual_seed(0)
    shapes = ((4, 5), (n_sets, 4, n_points), (n_sets, 4, n_points), (6, 4), (6, 5))
    pairs = torch.randn(n_sets, 5, n_points, n_points, dtype=torch.double)
    return [pairs, *(torch.randn(*shape, dtype=torch.double, requires_grad=True) for shape in shapes)]


def plain(pairs, weight, looker, other, mix, direct):
    hidden = torch.einsum("pf,bfij->bpij", weight, pairs) + looker[..., None] + other[:, :, None]
    return torch.einsum("qp,bpij->bqij", mix, F.relu(hidden)) + torch.einsum("qf,bfij->bqij", direct, pairs)


def test_channels_are_those_of_the_plain_formula(monkeypatch):
    monkeypatch.setattr(layers, "PAIRS_AT_ONCE", 18)  # several blocks of rows, the last of them smaller
    given = arguments(n_points=7)
    torch.testing.assert_close(torch.cat(_Channels.apply(*given, 3), dim=1), plain(*given))


def test_gradients_of_channels_hold(monkeypatch):
    monkeypatch.setattr(layers, "PAIRS_AT_ONCE", 18)
    assert torch.autograd.gradcheck(lambda *given: _Channels.apply(*given, 2), arguments(n_points=5))


def test_channels_come_in_parts_of_equal_size():
    channels = PairChannels(width=8, channels=4, features=5)
    parts = channels(torch.randn(2, 5, 6, 6), torch.randn(2, 6, 8), torch.randn(6, 4), parts=3)
    assert [part.shape for part in parts] == [(2, 2, 6, 6)] * 3


def test_attention_is_that_of_torch():
    layer = Layer(width=8, n_heads=2, mlp_ratio=2)
    torch.nn.init.eye_(layer.output.weight)
    z, bias = torch.randn(2, 256, 8), torch.randn(2, 2, 256, 256)
    q, k, v = layer.query_key_value(z).view(2, 256, 3, 2, 4).permute(2, 0, 3, 1, 4)
    expected = F.scaled_dot_product_attention(q, k, v, attn_mask=bias).transpose(1, 2).reshape(2, 256, 8)
    torch.testing.assert_close(layer.attention(z, bias), expected, atol=1e-5, rtol=1e-4)
