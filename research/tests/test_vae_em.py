"""The experiments on mixtures of VAEs, tiny: records, resuming, pictures."""

import json
import shutil

import numpy as np
import pytest

from coterie_research import experiments, images
from coterie_research.mixture_of_vaes import from_random, questions, record
from coterie_research.mixture_of_vaes import images as tables


@pytest.fixture(scope="module", autouse=True)
def tiny_images():
    """Sixty random images with one of ten bright rows each."""
    rng = np.random.RandomState(0)
    labels = np.arange(60) % 10
    pictures = rng.randint(0, 60, (60, 28, 28))
    pictures[np.arange(60), 2 * labels + 4] = 255
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(images, "load", lambda name: (pictures.reshape(60, 784).astype(np.uint8), labels))
        patch.setattr(from_random, "N_SEEDS", 1)
        patch.setattr(from_random, "MAX_ITER", 3)
        yield


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of a run from random responsibilities."""
    folder = tmp_path_factory.mktemp("whole")
    from_random.random_start(folder)
    return folder


def test_they_are_reachable_by_name():
    assert set(experiments.find("vae")) >= {
        "vae/figure1",
        "vae/mnist",
        "vae/fashion",
        "vae/ablations",
        "vae/random_start",
    }


def test_accuracy_is_that_of_the_best_matching():
    found = record.scores(np.array([1, 1, 0, 0, 2]), np.array([0, 0, 1, 1, 1]))
    assert found["accuracy"] == 0.8


def test_a_table_lists_start_and_end_of_every_seed_and_goes_on_where_it_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "N_SEEDS", 1)
    monkeypatch.setattr(tables, "MAX_ITER", 1)
    first = tables.mnist(tmp_path)
    assert [run["seed"] for run in first["runs"]] == [0]
    monkeypatch.setattr(tables, "N_SEEDS", 2)
    second = tables.mnist(tmp_path)
    assert second["runs"][0] == first["runs"][0]
    assert [run["seed"] for run in second["runs"]] == [0, 1]
    assert json.loads((tmp_path / "mnist.json").read_text())["summary"]["graph"]["n_seeds"] == 2
    assert {path.name for path in tmp_path.iterdir()} == {"mnist.json", "mnist.png", "mnist_samples.png"}


def test_an_ablation_differs_in_one_thing_and_is_drawn(tmp_path, monkeypatch):
    answers = {"start": [("random", {"start": "random"})], "model": [("flow", {"model": "flow"})]}
    monkeypatch.setattr(questions, "QUESTIONS", answers)
    monkeypatch.setattr(questions, "SETTINGS", {"n_epochs": 1, "first_epochs": 1})
    found = questions.ablations(tmp_path, quick=True)
    assert list(found["groups"]) == ["start", "model"]
    assert all(0 < row["accuracy"][0] <= 1 for rows in found["groups"].values() for row in rows)
    assert (tmp_path / "ablations.png").exists()


def without_seconds(run):
    for curve in ("curve", "move_curve"):
        run[curve] = [{**row, "cpu_seconds": 0} for row in run[curve]]
    return {**run, "second_stage_cpu_seconds": 0}


def test_runs_from_random_responsibilities_are_continued_and_drawn(tmp_path, whole, monkeypatch):
    record = json.loads((whole / "random_start.json").read_text())
    assert [row["iteration"] for row in record["runs"][0]["curve"]] == [1, 2, 3]
    assert [row["iteration"] for row in record["runs"][0]["move_curve"]] == [1, 2, 3]
    assert record["mean"] == record["runs"][0]["end"]["accuracy"]
    assert (whole / "random_start.png").exists()

    def dies(*arguments):
        raise KeyboardInterrupt

    for stage in ("_split_and_merge", "_second_stage"):
        with monkeypatch.context() as patch:
            patch.setattr(from_random, stage, dies)
            with pytest.raises(KeyboardInterrupt):
                from_random.random_start(tmp_path / "parts")
    parts = from_random.random_start(tmp_path / "parts")
    assert without_seconds(parts["runs"][0]) == without_seconds(record["runs"][0])


def test_a_run_from_before_there_were_moves_gets_them_and_a_new_end(tmp_path, whole):
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    found = json.loads((whole / "random_start.json").read_text())
    run = found["runs"][0]
    moved, end = run.pop("split_and_merge"), {"accuracy": 0.5}
    found["runs"] = [{**run, "move_curve": [], "end": end}]
    (tmp_path / "random_start.json").write_text(json.dumps(found))
    again = from_random.random_start(tmp_path)["runs"][0]
    assert again["end_without_moves"] == end
    assert again["split_and_merge"] == moved
    assert again["end"] == run["end"]
