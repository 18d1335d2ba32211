from dataclasses import asdict

import pytest
import torch

from coterie import checkpoints
from coterie.checkpoints.store import SHELF
from coterie.flow.model import FlowConfig, MeasureFlow

ABOUT = {"name": "tiny", "kind": "flow", "data": {}, "training": {}, "scores": {}, "licence": "BSD-3-Clause"}


@pytest.fixture
def shelf(tmp_path):
    torch.manual_seed(0)
    network = MeasureFlow(FlowConfig(width=16, n_heads=2, n_layers=3))
    checkpoints.save(network, {**ABOUT, "config": asdict(network.config)}, tmp_path)
    return tmp_path, network


def test_weights_come_back_as_they_were(shelf):
    path, network = shelf
    loaded = checkpoints.load("tiny", path)
    assert loaded.config == network.config
    assert not loaded.training
    for name, weight in network.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], weight)
    assert [card["name"] for card in checkpoints.available(path)] == ["tiny"]


def test_changed_weights_are_refused(shelf):
    path, _ = shelf
    file = path / "tiny.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(bytes(content))
    with pytest.raises(ValueError, match="differ from the hash"):
        checkpoints.load("tiny", path)


def test_unknown_names_list_what_there_is(shelf):
    with pytest.raises(ValueError, match="there are: tiny"):
        checkpoints.card("huge", shelf[0])


def test_a_card_without_an_entry_is_refused(tmp_path):
    with pytest.raises(ValueError, match="missing: config"):
        checkpoints.save(torch.nn.Linear(1, 1), ABOUT, tmp_path)


@pytest.mark.parametrize("card", checkpoints.available(), ids=lambda card: card["name"])
def test_every_shipped_network_loads_and_is_small(card):
    network = checkpoints.load(card["name"])
    assert (SHELF / f"{card['name']}.safetensors").stat().st_size < 3e6
    assert all(torch.isfinite(weight).all() for weight in network.state_dict().values())
