import json
import math

import numpy as np
import pytest
import torch

from coterie import checkpoints
from coterie.zeroshot.network.interface import Answer
from coterie.zeroshot.network.two_passes import BINS
from coterie_research.training.zeroshot.prior.problems import NOISE
from coterie_research.training.zeroshot.run import ZeroShotRun, losses

CONFIG = {
    "model": {"width": 16, "n_heads": 2, "first": [1], "second": [1], "pair_channels": 4, "partition_width": 4},
    "prior": {"clusters": [1, 4], "dims": [1, 3]},
    "choice_problems": 8,
    "head_problems": 4,
    "training": {"steps": 12, "learning_rate": 5e-3, "matrix_learning_rate": 0.01, "warmup_steps": 2, "log_every": 4},
    "stages": [{"until": 6, "n_points": [24, 30], "pairs": 2000}, {"until": 12, "n_points": [40, 48], "pairs": 5000}],
}


def answer(same, natural=None, noise=None, clusters=None, single=0.0):
    same = torch.as_tensor(same, dtype=torch.float32)[None]
    natural = same if natural is None else torch.as_tensor(natural, dtype=torch.float32)[None]
    noise = torch.zeros(1, same.shape[1]) if noise is None else torch.as_tensor(noise)[None]
    clusters = torch.zeros(1, len(BINS)) if clusters is None else clusters
    return Answer(same, natural, noise, clusters, torch.tensor([single]))


def test_without_knowledge_a_pair_costs_log_two():
    found = losses(answer(np.zeros((4, 4))), torch.tensor([[0, 0, 1, 1]]))
    for name in ("pair", "natural", "single", "noise"):
        assert found[name].item() == pytest.approx(math.log(2))
    assert found["clusters"].item() == pytest.approx(math.log(len(BINS)))


def test_a_points_own_cluster_and_the_rest_count_alike_in_the_balanced_loss_alone():
    labels = torch.tensor([[0, 0, 0, 0, 0, 0, 1, 1]])
    same = np.where(labels[0][:, None] == labels[0], 50.0, -50.0)
    wrong = same.copy()
    wrong[0, 7] = wrong[7, 0] = 50.0  # one of two pairs of point 0 with the rest; one of six of point 7
    assert losses(answer(same), labels)["pair"].item() == pytest.approx(0, abs=1e-6)
    assert losses(answer(wrong), labels)["pair"].item() == pytest.approx(50 * (1 / 2 + 1 / 6) / 16)
    assert losses(answer(wrong), labels)["natural"].item() == pytest.approx(50 * 2 / 56)


def test_noise_has_no_pairs():
    labels = torch.tensor([[0, 1, NOISE]])
    same = torch.tensor([[9.0, -9.0, 5.0], [-9.0, 9.0, -5.0], [5.0, -5.0, 0.0]])
    other = same.clone()
    other[2, :2] = other[:2, 2] = 0.0
    assert losses(answer(same), labels)["pair"] == losses(answer(other), labels)["pair"]
    assert losses(answer(same, noise=[-9.0, -9.0, 9.0]), labels)["noise"].item() < 1e-3


def test_numbers_of_clusters_start_at_two_and_one_is_told_apart():
    clusters = torch.full((1, len(BINS)), -50.0)
    clusters[0, 0] = 50.0
    assert (
        losses(answer(np.zeros((3, 3)), clusters=clusters, single=-50.0), torch.tensor([[0, 1, 1]]))["clusters"] < 1e-6
    )
    found = losses(answer(np.zeros((3, 3)), clusters=clusters, single=50.0), torch.tensor([[0, 0, 0]]))
    assert found["clusters"] == 0
    assert found["single"] < 1e-6


def test_stages_set_how_many_points_a_step_has():
    task = ZeroShotRun.from_dict(CONFIG).task()
    seen = []

    def network(described, rng):
        seen.append((len(described), described[0].pairs.numbers_FNN.shape))
        return task.model(described, rng)

    for step in (0, 11):
        task.loss(network, step, torch.Generator().manual_seed(0))
    for (batch, (_, n, _)), (low, high), pairs in zip(seen, ((24, 30), (40, 48)), (2000, 5000)):
        assert low <= n <= high
        assert batch == pairs // n**2


def test_a_run_is_trained_and_shipped(tmp_path):
    path = tmp_path / "run.json"
    path.write_text(json.dumps(CONFIG))
    run = ZeroShotRun.from_json(path)
    trained = run.train(tmp_path / "run")
    run.ship(tmp_path / "run", "tiny", {"ari": 0.1}, shelf=tmp_path)
    loaded = checkpoints.load(tmp_path / "tiny.safetensors")
    assert loaded.config.width == run.model.width
    assert loaded.config.choice != run.model.choice  # fitted to the trained network
    for name, weight in trained.state_dict().items():  # the head is trained when the rest of the network is
        assert torch.equal(loaded.state_dict()[name], weight) != name.startswith("partitions.")
