import pytest
import torch

from coterie.zeroshot.network.two_passes import TwoPassConfig
from coterie_research.training.zeroshot.modules import TwoPassNetwork
from coterie_research.training.zeroshot.run import average

SMALL = {"width": 16, "n_heads": 2, "pair_channels": 4}


@torch.no_grad()
def test_a_network_begins_as_another():
    config = TwoPassConfig(**SMALL, first=(1,), second=(1,))
    torch.manual_seed(3)
    trained, network = TwoPassNetwork(config), TwoPassNetwork(config)
    trained.copy_into(network)
    for mine, its in zip(network.parameters(), trained.parameters()):
        assert torch.equal(mine, its)


@pytest.mark.parametrize("more", [{"width": 32}, {"mlp_ratio": 3}, {"first": (1, 1)}, {"second": (3,)}])
def test_a_network_does_not_begin_as_one_of_another_size(more):
    config = {**SMALL, "first": (1,), "second": (2,)}
    one, other = (TwoPassNetwork(TwoPassConfig(**each)) for each in (config, config | more))
    with pytest.raises(ValueError, match="the sizes of the one"):
        one.copy_into(other)


@pytest.mark.parametrize("width", [0, 4, 8])
def test_a_head_for_partitions_is_not_copied(width):
    trained = TwoPassNetwork(TwoPassConfig(**SMALL, first=(1,), second=(1,), partition_width=4))
    network = TwoPassNetwork(TwoPassConfig(**SMALL, first=(1,), second=(1,), partition_width=width))
    before = {name: weight.clone() for name, weight in network.state_dict().items()}
    trained.copy_into(network)
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
