"""The experiments on mixtures of VAEs, tiny: records, resuming, pictures."""

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from coterie import VAEMixture
from coterie_research import experiments, images
from coterie_research.mixture_of_vaes import defaults, described, from_random, questions, record


@pytest.fixture(scope="module", autouse=True)
def tiny_images():
    """Sixty random images with one of ten bright rows each."""
    rng = np.random.RandomState(0)
    labels = np.arange(60) % 10
    pictures = rng.randint(0, 60, (60, 28, 28))
    pictures[np.arange(60), 2 * labels + 4] = 255
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(images, "load", lambda name: (pictures.reshape(60, 784).astype(np.uint8), labels))
        small = partial(VAEMixture, hidden_size=8, latent_size=2)
        patch.setattr(defaults, "VAEMixture", small)
        patch.setattr(from_random, "VAEMixture", small)
        patch.setattr(from_random, "CONFIG", replace(from_random.CONFIG, hidden_size=8, latent_size=2))
        for network in ("IMAGE_NETWORK", "MOON_NETWORK"):
            patch.setattr(described, network, replace(getattr(described, network), hidden_size=8))
        patch.setattr(from_random, "N_SEEDS", 1)
        patch.setattr(from_random, "MAX_ITER", 3)
        yield


def run(name, *arguments, **settings):
    return experiments.find(f"vae/{name}")[f"vae/{name}"](*arguments, **settings)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of a run from random responsibilities."""
    folder = tmp_path_factory.mktemp("whole")
    run("random_start", folder)
    return folder


def test_accuracy_is_that_of_the_best_matching():
    found = record.scores(np.array([1, 1, 0, 0, 2]), np.array([0, 0, 1, 1, 1]))
    assert found["accuracy"] == 0.8


def test_a_table_lists_start_and_end_of_every_seed_and_goes_on_where_it_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(defaults, "N_SEEDS", 1)
    monkeypatch.setattr(defaults, "MAX_ITER", 1)
    first = run("mnist", tmp_path)
    assert [one["seed"] for one in first["runs"]] == [0]
    monkeypatch.setattr(defaults, "N_SEEDS", 2)
    second = run("mnist", tmp_path)
    assert second["runs"][0] == first["runs"][0]
    assert [one["seed"] for one in second["runs"]] == [0, 1]
    assert json.loads((tmp_path / "mnist.json").read_text())["summary"]["graph"]["n_seeds"] == 2
    assert {path.name for path in tmp_path.iterdir()} == {"mnist.json", "mnist.png", "mnist_samples.png"}


def test_an_ablation_differs_in_one_thing_and_is_drawn(tmp_path, monkeypatch):
    answers = {"start": [("random", {"start": "random"})], "model": [("flow", {"model": "flow"})]}
    monkeypatch.setattr(questions, "QUESTIONS", answers)
    monkeypatch.setattr(questions, "SETTINGS", {"n_epochs": 1, "first_epochs": 1})
    found = run("ablations", tmp_path, quick=True)
    assert list(found["groups"]) == ["start", "model"]
    assert all(0 < row["accuracy"][0] <= 1 for rows in found["groups"].values() for row in rows)
    assert (tmp_path / "ablations.png").exists()


def without_seconds(found):
    curves = {name: [{**row, "cpu_seconds": 0} for row in found[name]] for name in ("curve", "move_curve")}
    return {**found, **curves, "second_stage_cpu_seconds": 0}


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
                run("random_start", tmp_path / "parts")
    parts = run("random_start", tmp_path / "parts")
    assert without_seconds(parts["runs"][0]) == without_seconds(record["runs"][0])


def test_clusters_with_the_same_majority_count_once():
    assert record.n_majorities(np.array([0, 0, 1, 1, 2]), np.array([5, 5, 5, 3, 5])) == 2
    assert record.n_majorities(np.array([0, 1, 2]), np.array([1, 2, 3])) == 3


def test_em_as_described_goes_on_where_it_was_stopped(tmp_path, monkeypatch):
    whole = run("as_described", tmp_path / "whole", quick=True)
    assert (tmp_path / "whole" / "as_described.png").exists()
    first = whole["runs"][0]
    assert [row["iteration"] for row in first["curve"]] == [1, 2]
    assert first["curve"][0]["bound"] is None  # the start: nothing has been trained
    assert first["curve"][0]["shown"] > 0.9  # random responsibilities: every network sees nearly every row
    assert set(range(10)) == {*first["merged"], *first["curve"][-1]["majority"]} - {-1}
    assert 1 <= first["decided"] <= 2

    keep = described.keep

    def dies(runs, path):
        keep(runs, path)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(described, "keep", dies)
        with pytest.raises(KeyboardInterrupt):
            run("as_described", tmp_path / "parts", quick=True)
    again = run("as_described", tmp_path / "parts", quick=True)["runs"][0]
    assert again["end"] == first["end"]
    assert [row["accuracy"] for row in again["curve"]] == [row["accuracy"] for row in first["curve"]]


def test_em_as_described_ends_when_no_label_has_moved_for_some_iterations(tmp_path, monkeypatch):
    monkeypatch.setattr(described, "STILL", 1)
    monkeypatch.setattr(described, "SETTINGS", {**described.SETTINGS, "n_epochs": 1.0, "first_epochs": 1.0})
    monkeypatch.setattr(described, "five_moons", lambda seed, **size: (np.eye(5)[:, :2], np.zeros(5, int)))
    found = run("as_described_moons", tmp_path, quick=True)["runs"][0]  # one class is one cluster
    assert found["still"]
    assert found["end"]["accuracy"] == 1


def test_another_reading_of_the_text_is_a_run_of_its_own(tmp_path):
    run("as_described", tmp_path, quick=True)
    both = run("as_described", tmp_path, quick=True, reading="bounds per pixel")["runs"]
    assert [one["reading"] for one in both] == ["", "bounds per pixel"]
    assert both[0]["end"]["bound"] != both[1]["end"]["bound"]
    assert both[1]["curve"][-1]["entropy"] > both[0]["curve"][-1]["entropy"]
