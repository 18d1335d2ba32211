"""Channels of pairs with gradients, and the modules of torch whose parameters they are."""

import numpy as np
import pytest
import torch

from coterie.zeroshot.features import pairs as pairs_module
from coterie.zeroshot.features.pairs import Pairs
from coterie.zeroshot.network import numpy_operations as arrays
from coterie.zeroshot.network.blocks import pair_channels, stretch
from coterie.zeroshot.network.numpy_operations import Arrays, Weights
from coterie_research.training.zeroshot.gradients import Channels, TrainedTensors
from coterie_research.training.zeroshot.modules import PairChannels, Stretch

CPU = TrainedTensors(torch.device("cpu"))


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


@pytest.fixture
def small_blocks(monkeypatch):
    """Several blocks of rows, the last of them smaller."""
    monkeypatch.setattr(arrays, "PAIRS_AT_ONCE", 18)


@pytest.mark.parametrize("n_channels", [4, 17])
def test_gradients_of_channels_hold(n_channels, small_blocks):
    pairs, *weights = arguments(n_points=5, n_channels=n_channels)
    assert torch.autograd.gradcheck(lambda *given: Channels.apply(pairs, *given, 2), weights)


def test_channels_come_in_parts_of_equal_size():
    channels = PairChannels(width=8, channels=4, features=FEATURES)
    pairs, tokens, weight = random_pairs(2, 6, dtype=np.float32), torch.randn(2, 6, 8), torch.randn(6, 4)
    assert [part.shape for part in pair_channels(CPU, channels, pairs, tokens, weight, parts=3)] == [(2, 2, 6, 6)] * 3


def weights(module):
    return Weights({name: value.numpy() for name, value in module.state_dict().items()})


@torch.no_grad()
@pytest.mark.parametrize("n_points", [3, 70, 150])  # rows of scores in one block and in several
def test_numpy_computes_what_torch_computes(n_points):
    torch.manual_seed(0)
    module = Stretch(width=8, n_heads=2, n_layers=2, mlp_ratio=2, channels=4, features=FEATURES)
    for parameter in module.parameters():
        parameter += 0.3 * torch.randn_like(parameter)
    z, pairs = torch.randn(2, n_points, 8), random_pairs(2, n_points, dtype=np.float32)
    found = stretch(Arrays(), weights(module), z.numpy(), pairs)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, stretch(CPU, module, z, pairs), atol=2e-5)
