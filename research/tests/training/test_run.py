import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from coterie import checkpoints
from coterie.checkpoints import store
from coterie_research.training.flow.run import FlowRun
from coterie_research.training.incontext.run import PairRun
from coterie_research.training.learned_lloyd import Instances, LearnedLloydRun
from coterie_research.training.loop import load_average
from coterie_research.training.run import KINDS, read_run, run_class

CONFIGS = [
    (FlowRun, {"model": {"width": 16}, "stages": [{"until": 9, "n_points": [8, 9], "n_layers": 2, "tokens": 32}]}),
    (PairRun, {"model": {"width": 8}, "prior": {"dims": [1, 4]}, "pairs": 400}),
    (LearnedLloydRun, {"model": {"n_layers": 3}, "instances": {"kinds": ["blobs"]}, "batch": 4}),
]


@pytest.mark.parametrize(("kind", "parts"), CONFIGS)
def test_a_run_survives_its_way_through_json(kind, parts):
    run = kind.from_dict({**parts, "training": {"steps": 7, "betas": [0.8, 0.9]}})
    assert run.training.betas == (0.8, 0.9)
    assert kind.from_dict(json.loads(json.dumps(run.to_dict()))) == run


@pytest.mark.parametrize(("kind", "parts"), CONFIGS)
def test_unknown_parts_and_settings_are_named(kind, parts):
    with pytest.raises(ValueError, match="optimiser"):
        kind.from_dict({**parts, "training": {"steps": 7}, "optimiser": {}})
    with pytest.raises(ValueError, match=r"'training' has the entries steps, .*unknown: step\.$"):
        kind.from_dict({**parts, "training": {"step": 7}})


def test_entries_of_a_list_of_parts_are_checked_too():
    with pytest.raises(ValueError, match=r"'stages' has the entries until.*unknown: points"):
        FlowRun.from_dict({"model": {}, "training": {"steps": 1}, "stages": [{"until": 9, "points": 3}]})


LLOYD = {
    "model": {"n_layers": 2},
    "instances": {"clusters": [3, 4], "dims": [2, 2], "kinds": ["blobs"]},
    "batch": 2,
    "training": {"steps": 2, "seed": 3},
}


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("COTERIE_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "networks"


@pytest.fixture
def trained(tmp_path):
    LearnedLloydRun.from_dict(LLOYD).train(tmp_path / "run")
    return tmp_path / "run"


def test_the_folder_of_a_run_says_what_the_run_was(trained):
    assert read_run(trained) == LearnedLloydRun.from_dict(LLOYD)
    with pytest.raises(FileNotFoundError, match=r"there is no run\.json in it"):
        read_run(trained.parent)


def test_the_runs_of_the_repository_can_be_read():
    folders = [path.parent for path in (Path(__file__).parents[3] / "runs").rglob("run.json")]
    assert folders
    assert all(read_run(folder).kind in KINDS for folder in folders)


def test_a_run_that_may_not_start_leaves_the_folder_as_it_was(trained):
    other = LearnedLloydRun.from_dict({**LLOYD, "batch": 5})
    with pytest.raises(FileExistsError, match="--resume"):
        other.train(trained)
    assert read_run(trained).batch == 2


def test_runs_are_shipped_to_the_shelf_of_the_user(trained, home):
    run = read_run(trained)
    assert run.ship(trained, "mine", {"ari": 0.5}, about="My layers", licence="MIT") == home / "mine.json"
    card = checkpoints.card("mine")
    assert (card["about"], card["licence"], card["scores"]) == ("My layers", "MIT", {"ari": 0.5})
    assert (card["training"]["steps"], card["data"]["clusters"]) == (2, [3, 4])
    expected = run.task().model
    load_average(trained / "state.pt", expected)
    for name, weight in expected.state_dict().items():
        assert torch.equal(checkpoints.load("mine", kind="learned-lloyd").state_dict()[name], weight)


def test_names_are_not_taken_twice(trained, home, tmp_path):
    run = read_run(trained)
    run.ship(trained, "mine")
    with pytest.raises(FileExistsError, match="already a network 'mine'"):
        run.ship(trained, "mine")
    run.ship(trained, "mine", {"ari": 0.7}, force=True)
    assert checkpoints.card("mine")["scores"] == {"ari": 0.7}
    for shelf in (None, tmp_path / "shelf"):
        with pytest.raises(ValueError, match="comes with the package"):
            run.ship(trained, "flow-d2", shelf=shelf, force=True)
    with pytest.raises(ValueError, match="cannot be the name"):
        run.ship(trained, "../mine", force=True)


def test_a_run_without_a_checkpoint_cannot_be_shipped(tmp_path, home):
    with pytest.raises(FileNotFoundError, match="train the network first"):
        LearnedLloydRun.from_dict(LLOYD).ship(tmp_path, "mine")
    assert not home.exists()


def test_a_run_with_a_part_of_the_users_own_is_not_recorded_as_another(tmp_path):
    class Doubled(Instances):
        def draw(self, batch, generator, kind=None):
            x_BND, start_BKD = super().draw(batch, generator, kind)
            return 2 * x_BND, 2 * start_BKD

    run = replace(LearnedLloydRun.from_dict(LLOYD), instances=Doubled())
    run.train(tmp_path / "run")
    with pytest.raises(FileNotFoundError, match=r"run\.json"):
        read_run(tmp_path / "run")


def test_every_kind_of_run_makes_networks_of_its_kind():
    assert set(KINDS) <= set(store.BUILDERS)  # another package may add builders of earlier networks
    for kind in KINDS:
        assert run_class(kind).kind == kind
