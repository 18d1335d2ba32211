"""The experiments of document 004, tiny: records, resuming, pictures."""

import json

import numpy as np
import pytest

from coterie import experiments
from coterie.data import images
from coterie.experiments.vae_em import images as tables
from coterie.experiments.vae_em import questions, record


@pytest.fixture
def tiny_images(monkeypatch):
    """Sixty random images with one of ten bright rows each."""
    rng = np.random.RandomState(0)
    labels = np.arange(60) % 10
    pictures = rng.randint(0, 60, (60, 28, 28))
    pictures[np.arange(60), 2 * labels + 4] = 255
    monkeypatch.setattr(images, "load", lambda name: (pictures.reshape(60, 784).astype(np.uint8), labels))


def test_they_are_reachable_by_name():
    assert set(experiments.find("vae")) >= {"vae/figure1", "vae/mnist", "vae/fashion", "vae/ablations"}


def test_accuracy_is_that_of_the_best_matching():
    found = record.scores(np.array([1, 1, 0, 0, 2]), np.array([0, 0, 1, 1, 1]))
    assert found["accuracy"] == 0.8


def test_a_table_lists_start_and_end_of_every_seed_and_goes_on_where_it_stopped(tmp_path, tiny_images, monkeypatch):
    monkeypatch.setattr(tables, "SEEDS", {"graph": range(1)})
    monkeypatch.setattr(tables, "MAX_ITER", {"graph": 1, "random": 1})
    first = tables.mnist(tmp_path)
    assert [run["seed"] for run in first["runs"]] == [0]
    monkeypatch.setattr(tables, "SEEDS", {"graph": range(1), "random": range(1)})
    second = tables.mnist(tmp_path)
    assert second["runs"][0] == first["runs"][0]
    assert [run["init"] for run in second["runs"]] == ["graph", "random"]
    assert json.loads((tmp_path / "mnist.json").read_text())["summary"]["random"]["n_seeds"] == 1
    assert {path.name for path in tmp_path.iterdir()} == {"mnist.json", "mnist.png", "mnist_samples.png"}


def test_an_ablation_differs_in_one_thing_and_is_drawn(tmp_path, tiny_images, monkeypatch):
    answers = {"start": [("random", {"start": "random"})], "model": [("flow", {"model": "flow"})]}
    monkeypatch.setattr(questions, "QUESTIONS", answers)
    monkeypatch.setattr(questions, "SETTINGS", {"n_epochs": 1, "first_epochs": 1})
    found = questions.ablations(tmp_path, quick=True)
    assert list(found["groups"]) == ["start", "model"]
    assert all(0 < row["accuracy"][0] <= 1 for rows in found["groups"].values() for row in rows)
    assert (tmp_path / "ablations.png").exists()
