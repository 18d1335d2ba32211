import numpy as np
import pytest
import torch
import torch.nn.functional as F
from numba.core.errors import TypingError

from coterie.zeroshot.features import pair_kernels
from coterie.zeroshot.features import pairs as pairs_module
from coterie.zeroshot.features.pairs import Pairs
from coterie.zeroshot.network import numpy_operations as arrays
from coterie.zeroshot.network.blocks import attention, layer
from coterie.zeroshot.network.numpy_operations import Arrays, Weights
from coterie.zeroshot.network.torch_operations import Tensors

CPU = Tensors(torch.device("cpu"))


FEATURES = 32  # a number, five hierarchies and another number


def random_pairs(n_sets, n_points, n_features=FEATURES, dtype=np.float64):
    rng = np.random.default_rng(0)
    numbers, merges = (len(each) for each in pairs_module.columns(n_features))
    merge = rng.integers(n_points - 1, size=(n_sets, merges, n_points, n_points))
    return Pairs(
        rng.normal(size=(n_sets, numbers, n_points, n_points)).astype(dtype),
        merge.astype(np.uint16),
        rng.normal(size=(n_sets, merges, 6, n_points - 1)).astype(dtype),
    )


def arguments(n_sets=2, n_points=9, n_channels=4):
    torch.manual_seed(0)
    points = (n_sets, n_points, n_channels)
    shapes = ((n_channels, FEATURES), points, points, (6, n_channels), (6, FEATURES))
    weights = [torch.randn(*shape, dtype=torch.double, requires_grad=True) for shape in shapes]
    return [random_pairs(n_sets, n_points), *weights]


def plain(pairs, weight, looker, other, mix, direct):
    expanded = torch.from_numpy(np.stack([Pairs(*each).expanded() for each in zip(*pairs)]))
    hidden = torch.einsum("pf,bfij->bpij", weight, expanded) + looker.mT[..., None] + other.mT[:, :, None]
    return torch.einsum("qp,bpij->bqij", mix, F.relu(hidden)) + torch.einsum("qf,bfij->bqij", direct, expanded)


def in_numpy(pairs, *weights):
    single = Pairs(pairs.numbers_FNN.astype(np.float32), pairs.merge_TNN, pairs.merges_TGM.astype(np.float32))
    return [single, *(each.detach().numpy().astype(np.float32) for each in weights)]


@pytest.fixture
def small_blocks(monkeypatch):
    """Several blocks of rows, the last of them smaller."""
    monkeypatch.setattr(arrays, "PAIRS_AT_ONCE", 18)


@pytest.mark.parametrize("n_channels", [4, 16, 35])  # vectors of 16 channels, and what is left over
def test_channels_are_those_of_the_plain_formula(n_channels, small_blocks):
    given = arguments(n_points=7, n_channels=n_channels)
    pairs, *others = given
    torch.testing.assert_close(torch.cat(CPU.channels(CPU.pairs(pairs), *others, 3), dim=1), plain(*given))
    found = np.concatenate(Arrays.channels(*in_numpy(*given), 3), axis=1)
    np.testing.assert_allclose(found, plain(*given).detach(), atol=1e-4)


def test_compiled_and_interpreted_channels_are_equal_to_the_last_bit():
    pairs, weight, looker, other, *_ = in_numpy(*arguments(n_sets=1, n_points=8, n_channels=18))
    table = pairs_module.tables(pairs.merges_TGM, weight)[0]
    hidden = np.random.default_rng(0).normal(size=(2, 3, 8, 18)).astype(np.float32)
    hidden[1] = hidden[0]
    interpreted = pairs_module.gather_channels.__wrapped__
    for out, how in zip(hidden, (interpreted, pair_kernels.gather_channels)):
        how(pairs.merge_TNN[0], 4, table, looker[0, 4:7], other[0], out)
    np.testing.assert_array_equal(*hidden)
    singles = hidden[:, :, :, 0].copy()
    for out, how in zip(singles, (pairs_module.gather.__wrapped__, pair_kernels.gather)):
        how(pairs.merge_TNN[0], 4, np.ascontiguousarray(table[..., 0]), out)
    np.testing.assert_array_equal(*singles)


def test_kernels_refuse_what_they_would_read_wrongly():
    pairs, weight, looker, other, *_ = in_numpy(*arguments(n_sets=1, n_points=8, n_channels=16))
    table = pairs_module.tables(pairs.merges_TGM, weight)[0]
    hidden = np.zeros((8, 8, 16), dtype=np.float32)
    for merge, rows in ((np.asfortranarray(pairs.merge_TNN[0]), table), (pairs.merge_TNN[0], table.astype(float))):
        with pytest.raises(TypingError, match="have to be"):
            pair_kernels.gather_channels(merge, 0, rows, looker[0], other[0], hidden)


def test_distances_alone_need_no_hierarchy():
    given = arguments(n_points=6, n_channels=16)
    pairs = given[0].reduced(1)
    weights = [given[1][:, :1], *given[2:5], given[5][:, :1]]
    torch.testing.assert_close(torch.cat(CPU.channels(CPU.pairs(pairs), *weights, 2), dim=1), plain(pairs, *weights))


def test_features_are_not_cut_within_those_of_a_merge():
    with pytest.raises(ValueError, match="end within"):
        pairs_module.columns(5)


def weights(module):
    return Weights({name: value.numpy() for name, value in module.state_dict().items()})


def random_layer(width=8):
    rng, square = np.random.default_rng(1), (width, width)
    shapes = {
        "query_key_value": (3 * width, width),
        "output": square,
        "up": (2 * width, width),
        "down": (width, 2 * width),
    }
    norms = {
        f"{name}.{part}": np.ones(width, np.float32)
        for name in ("norm_attention", "norm_mlp")
        for part in ("weight", "bias")
    }
    linear = {f"{name}.weight": rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    return Weights({**norms, **linear})


def test_attention_is_that_of_torch():
    one = random_layer()
    z, bias = torch.randn(2, 256, 8), torch.randn(2, 2, 256, 256)
    q, k, v = (z @ torch.from_numpy(one.query_key_value.weight.T)).view(2, 256, 3, 2, 4).permute(2, 0, 3, 1, 4)
    mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=bias).transpose(1, 2).reshape(2, 256, 8)
    expected = mixed @ torch.from_numpy(one.output.weight.T)
    np.testing.assert_allclose(attention(Arrays(), one, z.numpy(), bias.numpy()), expected, atol=1e-4, rtol=1e-3)


@torch.no_grad()
@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_functions_of_single_numbers_are_torchs_also_far_out(approximate):
    x = torch.tensor([-1e4, -90.0, -3.0, -0.1, 0.0, 0.1, 3.0, 90.0, 1e4])
    np.testing.assert_allclose(Arrays.gelu(x.numpy(), approximate), CPU.gelu(x, approximate), atol=1e-6)
    np.testing.assert_allclose(Arrays.sigmoid(x.numpy()), CPU.sigmoid(x), atol=1e-7)


@torch.no_grad()
def test_threads_do_not_change_the_result(monkeypatch):
    one = random_layer()
    z, bias = np.random.default_rng(0).normal(size=(2, 90, 8)).astype(np.float32), np.zeros((2, 2, 90, 90), np.float32)
    found = []
    for n_threads in (1, 3):
        monkeypatch.setattr(arrays.threads, "count", lambda n_threads=n_threads: n_threads)
        found.append(layer(Arrays(), one, z, bias.copy()))
    np.testing.assert_array_equal(*found)


def test_weights_are_read_like_those_of_a_module():
    module = torch.nn.ModuleDict(
        {
            "steps": torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.GELU(), torch.nn.Linear(3, 2)),
            "layers": torch.nn.ModuleList(torch.nn.Linear(1, 1) for _ in range(12)),
        }
    )
    read = weights(module)
    np.testing.assert_array_equal(read.steps[2].weight, module["steps"][2].weight.detach())
    for one, other in zip(read.layers, module["layers"], strict=True):
        np.testing.assert_array_equal(one.bias, other.bias.detach())
