import json
import os
import resource
import shutil
from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from coterie import checkpoints
from coterie.checkpoints import store
from coterie.mixtures.flow import FlowConfig, MeasureFlow

ABOUT = {
    "name": "tiny",
    "kind": "flow",
    "about": "A tiny flow",
    "data": {},
    "training": {},
    "scores": {},
    "licence": "BSD-3-Clause",
}


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("COTERIE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def make(shelf: Path, seed: int = 0, **about):
    torch.manual_seed(seed)
    network = MeasureFlow(FlowConfig(width=16, n_heads=2, n_layers=3))
    checkpoints.save(network, {**ABOUT, "config": asdict(network.config), **about}, shelf)
    return network


def test_weights_come_back_as_they_were(tmp_path):
    network = make(tmp_path)
    loaded = checkpoints.load(tmp_path / "tiny.safetensors")
    assert loaded.config == network.config
    assert not loaded.training
    for name, weight in network.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], weight)
    assert [card["name"] for card in checkpoints.available(tmp_path)] == ["tiny"]


def test_the_shelf_of_the_user_follows_the_environment_and_the_platform(home, monkeypatch):
    assert checkpoints.user_shelf() == home / "networks"
    monkeypatch.delenv("COTERIE_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    monkeypatch.setenv("LOCALAPPDATA", "/local")
    for system, folder in (("Linux", "/data"), ("Windows", "/local"), ("Darwin", "~/Library/Application Support")):
        monkeypatch.setattr(store.platform, "system", lambda system=system: system)
        assert checkpoints.user_shelf() == Path(os.path.expanduser(folder)) / "coterie" / "networks"


def test_a_name_is_found_on_either_shelf_and_listed_after_the_packages():
    make(checkpoints.user_shelf())
    assert checkpoints.load("tiny", kind="flow").config.width == 16
    assert checkpoints.load("flow-d2", kind="flow").config.width == 64
    names = [card["name"] for card in checkpoints.available()]
    assert names[-1] == "tiny"
    assert set(names) > {card["name"] for card in checkpoints.available(checkpoints.SHELF)}


def test_paths_to_either_file_are_accepted(tmp_path, monkeypatch):
    make(tmp_path, name="net.v2")
    monkeypatch.chdir(tmp_path)
    assert checkpoints.load("net.v2.safetensors") is checkpoints.load(Path("net.v2.json"))
    with pytest.raises(ValueError, match=r"no file other\.safetensors"):
        checkpoints.load("other.safetensors")
    (tmp_path / "net.v2.json").unlink()
    with pytest.raises(ValueError, match=r"no file net\.v2\.json"):
        checkpoints.load("net.v2.safetensors")


def test_networks_are_cached_until_they_are_shipped_again(tmp_path):
    make(tmp_path)
    first = checkpoints.load(tmp_path / "tiny.json")
    assert checkpoints.load(tmp_path / "tiny.json", kind="flow", device="cpu") is first
    double = checkpoints.load(tmp_path / "tiny.json", dtype=torch.float64)
    assert double.offset_E.dtype == torch.float64
    assert first.offset_E.dtype == torch.float32
    make(tmp_path, seed=1)
    assert not torch.equal(checkpoints.load(tmp_path / "tiny.json").offset_E, first.offset_E)


def test_changed_weights_are_refused(tmp_path):
    make(tmp_path)
    file = tmp_path / "tiny.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(bytes(content))
    with pytest.raises(ValueError, match="differ from the hash"):
        checkpoints.load(file)


def test_unknown_names_list_what_there_is_of_that_kind(home):
    make(checkpoints.user_shelf())
    with pytest.raises(ValueError, match=r"no network 'huge'.*package: .*zeroshot.*networks: tiny\."):
        checkpoints.card("huge")
    with pytest.raises(ValueError, match=r"of kind 'zeroshot' with the package: zeroshot-3; in .*: none\."):
        checkpoints.load("huge", kind="zeroshot")
    with pytest.raises(ValueError, match=r"'tiny' is of kind 'flow', not 'zeroshot'.*package: zeroshot-3;"):
        checkpoints.load("tiny", kind="zeroshot")
    for outside in ("../tiny", "/tiny", ""):
        with pytest.raises(ValueError, match="no network"):
            checkpoints.load(outside)


def test_a_card_without_an_entry_or_with_a_bad_name_is_refused(tmp_path):
    with pytest.raises(ValueError, match="missing: config"):
        checkpoints.save(torch.nn.Linear(1, 1), ABOUT, tmp_path)
    for name in ("../tiny", "a b", "", ".hidden", "tiny.json"):
        with pytest.raises(ValueError, match="name of a network"):
            make(tmp_path, name=name)


def test_a_file_that_is_no_card_is_named(tmp_path):
    for text in (
        "{",
        "[]",
        json.dumps({"kind": "flow"}),
        json.dumps({**ABOUT, "kind": "os", "config": 1, "sha256": ""}),
    ):
        (tmp_path / "odd.json").write_text(text)
        with pytest.raises(ValueError, match=r"odd\.json is not the card of a network"):
            checkpoints.available(tmp_path)


def test_a_network_is_written_as_a_whole_or_not_at_all(tmp_path, monkeypatch):
    make(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def fail(self, content):
        raise OSError("disk full")

    monkeypatch.setattr(Path, "write_bytes", fail)
    with pytest.raises(OSError, match="disk full"):
        make(tmp_path, seed=1)
    with pytest.raises(OSError, match="disk full"):
        make(tmp_path, name="other")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before


@pytest.mark.parametrize("card", checkpoints.available(checkpoints.SHELF), ids=lambda card: card["name"])
def test_every_network_of_the_package_loads_and_is_small(card):
    assert (checkpoints.SHELF / f"{card['name']}.safetensors").stat().st_size < 3e6
    if card["kind"] == "zeroshot":  # a torch module in the research package only
        assert len(checkpoints.load_arrays(card["name"], kind="zeroshot").head) > 0
        return
    network = checkpoints.load(card["name"])
    assert all(torch.isfinite(weight).all() for weight in network.state_dict().values())


def test_without_the_research_package_a_torch_module_of_a_zero_shot_network_is_refused(monkeypatch):
    monkeypatch.setattr(store, "find_spec", lambda name: None)
    monkeypatch.delitem(store.BUILDERS, "zeroshot", raising=False)
    store._loaded.cache_clear()
    with pytest.raises(ValueError, match="only in the package coterie-research"):
        checkpoints.load("zeroshot-3")


@pytest.mark.parametrize("change", [{"config": {}}, {"config": {"width": "wide"}}, {"config": 3}, {"sha256": "abc"}])
def test_a_card_that_does_not_fit_its_weights_is_named(change, tmp_path):
    make(tmp_path)
    card = json.loads((tmp_path / "tiny.json").read_text())
    (tmp_path / "tiny.json").write_text(json.dumps({**card, **change}))
    with pytest.raises(ValueError, match=r"does not fit its card|is not the card"):
        checkpoints.load(tmp_path / "tiny.json")


def test_weights_that_are_not_finite_are_rejected(tmp_path):
    network = MeasureFlow(FlowConfig(width=16, n_heads=2, n_layers=3))
    with torch.no_grad():
        network.offset_E[0] = torch.nan
    checkpoints.save(network, {**ABOUT, "config": asdict(network.config)}, tmp_path)
    with pytest.raises(ValueError, match="not finite"):
        checkpoints.load(tmp_path / "tiny.json")


@pytest.mark.parametrize(
    "change, message",
    [
        ({"config": {"n_layers": 10**9}}, "sizes in config at most"),
        ({"config": {"first": [3, 10**9]}}, "sizes in config at most"),
        ({"bytes": None}, "card.bytes has a value of a wrong type"),
        ({"about": 3}, "card.about"),
        ({"scores": []}, "card.scores"),
        ({"kind": "other"}, "card.kind"),
        ({"sha256": "f" * 63}, "64 hexadecimal digits"),
    ],
)
def test_a_card_of_other_types_or_sizes_is_named(change, message, tmp_path):
    about = {**checkpoints.card("flow-d2"), **change}
    (tmp_path / "mine.json").write_text(json.dumps(about))
    with pytest.raises(ValueError, match=f"not the card of a network.*{message}"):
        checkpoints.available(tmp_path)


def test_a_card_without_the_size_of_its_weights_is_named(tmp_path):
    """`coterie models` ended in a traceback."""
    about = checkpoints.card("flow-d2")
    del about["bytes"]
    (tmp_path / "mine.json").write_text(json.dumps(about))
    with pytest.raises(ValueError, match=r"not the card of a network.*has no bytes"):
        checkpoints.available(tmp_path)


def test_a_network_larger_than_its_weights_takes_no_memory(tmp_path):
    for ending in (".json", ".safetensors"):
        shutil.copy(checkpoints.SHELF / f"incontext{ending}", tmp_path / f"mine{ending}")
    about = json.loads((tmp_path / "mine.json").read_text())
    (tmp_path / "mine.json").write_text(json.dumps({**about, "config": {**about["config"], "width": 4096}}))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ValueError, match=r"does not fit its card .the weights have other names or shapes"):
        checkpoints.load(tmp_path / "mine.safetensors")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**18  # KiB; the network would take 2 GB
