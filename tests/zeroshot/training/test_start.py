import numpy as np
import pytest
import torch

from coterie.zeroshot.network.generation_one import ZeroShotConfig
from coterie.zeroshot.network.torch_modules import TwoPassNetwork, ZeroShotNetwork
from coterie.zeroshot.network.two_passes import TwoPassConfig
from coterie.zeroshot.training.start import average, begin_as, grow

SMALL = {"width": 16, "n_heads": 2, "pair_channels": 4}


@pytest.fixture(scope="module")
def old():
    torch.manual_seed(0)
    network = ZeroShotNetwork(ZeroShotConfig(**SMALL, n_stretches=2, stretch=1)).eval()
    with torch.no_grad():
        for weight in network.parameters():  # layers are the identity before training
            weight.add_(0.1 * torch.randn_like(weight))
    return network


@torch.no_grad()
def test_a_new_network_begins_with_the_affinities_and_the_noise_of_the_old_one(old):
    network = TwoPassNetwork(TwoPassConfig(**SMALL, first=(1, 1), second=(1,))).eval()
    grow(network, old)
    x = np.random.default_rng(0).normal(size=(20, 3))
    answers = network([network.describe(x)], np.random.default_rng(1))
    expected = old([old.describe(x)], np.random.default_rng(1))[0]
    torch.testing.assert_close(answers[0].same_BNN, expected.same_BNN, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(answers[0].noise_BN, expected.noise_BN, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(answers[1].same_BNN, expected.same_BNN.clamp(-12, 12), atol=1e-4, rtol=1e-4)
    several = expected.clusters_BK[:, 1:]
    torch.testing.assert_close(
        answers[0].clusters_BK[:, :15].log_softmax(-1), several.log_softmax(-1), atol=1e-4, rtol=1e-4
    )


def test_another_width_is_refused(old):
    with pytest.raises(ValueError, match="the same width"):
        grow(TwoPassNetwork(TwoPassConfig(width=32, n_heads=2, pair_channels=4, first=(1, 1))), old)


@torch.no_grad()
def test_a_network_begins_as_one_of_its_own_generation():
    config = TwoPassConfig(**SMALL, first=(1,), second=(1,))
    torch.manual_seed(3)
    trained, network = TwoPassNetwork(config), TwoPassNetwork(config)
    begin_as(network, trained)
    for mine, its in zip(network.parameters(), trained.parameters()):
        assert torch.equal(mine, its)


@torch.no_grad()
def test_a_network_with_more_layers_and_hidden_units_begins_with_the_answers_of_the_smaller_one():
    torch.manual_seed(4)
    small = TwoPassNetwork(TwoPassConfig(**SMALL, first=(1,), second=(1,))).eval()
    for weight in small.parameters():
        weight.add_(0.1 * torch.randn_like(weight))
    large = TwoPassNetwork(TwoPassConfig(**SMALL, first=(2,), second=(2, 1), mlp_ratio=4)).eval()
    begin_as(large, small)
    x = np.random.default_rng(0).normal(size=(20, 3))
    for got, expected in zip(*(net([net.describe(x)], np.random.default_rng(1)) for net in (large, small))):
        for mine, its in zip(got, expected):
            torch.testing.assert_close(mine, its, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("more", [{"width": 32}, {"mlp_ratio": 3}, {"first": (1, 1)}, {"second": (3,)}])
def test_a_smaller_network_does_not_begin_as_a_larger_one(more):
    config = {**SMALL, "first": (1,), "second": (2,)}
    small, large = (TwoPassNetwork(TwoPassConfig(**each)) for each in (config, config | more))
    with pytest.raises(ValueError, match="at least its ratio"):
        begin_as(small, large)


@pytest.mark.parametrize("width", [0, 4, 8])
def test_a_head_for_partitions_is_not_copied(width):
    trained = TwoPassNetwork(TwoPassConfig(**SMALL, first=(1,), second=(1,), partition_width=4))
    network = TwoPassNetwork(TwoPassConfig(**SMALL, first=(1,), second=(1,), partition_width=width))
    before = {name: weight.clone() for name, weight in network.state_dict().items()}
    begin_as(network, trained)
    for name, weight in network.state_dict().items():
        assert torch.equal(weight, before[name] if name.startswith("partitions.") else trained.state_dict()[name])


def test_an_average_lies_between_two_networks():
    config = TwoPassConfig(**SMALL, first=(1,), second=(1,), partition_width=4)
    old, network = TwoPassNetwork(config), TwoPassNetwork(config)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    average(network, old, 0.25)
    for name, value in network.state_dict().items():
        share = 0.0 if name.startswith("partitions.") else 0.25
        torch.testing.assert_close(value, (1 - share) * before[name] + share * old.state_dict()[name])
