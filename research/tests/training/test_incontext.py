import json

import pytest
import torch

from coterie import checkpoints
from coterie_research.incontext_em.best_start import fitted_starts
from coterie_research.training.incontext.prior import sample_separated
from coterie_research.training.incontext.run import PairRun

CONFIG = {
    "model": {"width": 8, "n_layers": 2, "n_heads": 2},
    "training": {"steps": 20, "checkpoint_every": 5, "log_every": 5, "warmup_steps": 2, "average_decay": 0.8},
    "prior": {"dims": [1, 4], "clusters": [2, 4], "points": [50, 60]},
    "pairs": 400,
    "n_draws": 8,
}


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG))
    return path


def test_a_run_stopped_and_resumed_ends_in_the_same_weights(tmp_path, config):
    PairRun.from_json(config).train(tmp_path / "stopped", on_progress=lambda progress: progress.step >= 10)
    PairRun.from_json(config).train(tmp_path / "stopped", resume=True)
    PairRun.from_json(config).train(tmp_path / "whole")
    ours, theirs = (torch.load(tmp_path / d / "state.pt", weights_only=True) for d in ("stopped", "whole"))
    assert ours["step"] == theirs["step"] == 20
    for name, weight in theirs["average"].items():
        assert torch.equal(ours["average"][name], weight), name


def test_a_shipped_run_comes_back_from_the_shelf(tmp_path, config):
    average = PairRun.from_json(config).train(tmp_path / "run")
    path = PairRun.from_json(config).ship(tmp_path / "run", "small", {"ari": 0.5}, shelf=tmp_path)
    card = json.loads(path.read_text())
    assert card["training"]["steps"] == 20
    assert card["kind"] == "incontext"
    network = checkpoints.load(tmp_path / "small.safetensors")
    for name, weight in average.state_dict().items():
        assert torch.equal(network.state_dict()[name], weight), name


def test_the_pair_task_measures_what_is_gained_over_em():
    task = PairRun.from_dict(CONFIG).task()
    loss, metrics = task.loss(task.model, 0, torch.Generator().manual_seed(0))
    assert loss.item() >= metrics["slots"] + metrics["pairs"] > 0
    assert metrics["slots_above_target"] > 0
    assert all(min(p.shape) > 1 for p in task.matrices)


def test_a_few_steps_bring_the_network_nearer_to_the_posterior(tmp_path):
    run = PairRun.from_dict({**CONFIG, "training": {**CONFIG["training"], "steps": 40}})

    def above(model):
        parts = [run.loss(model, 0, torch.Generator().manual_seed(seed))[1] for seed in range(900, 912)]
        return sum(part["slots_above_target"] for part in parts)

    trained = run.train(tmp_path / "run")
    with torch.no_grad():
        assert above(trained) < 0.6 * above(run.task().model)


def test_unequal_sizes_come_in_by_and_by():
    run = PairRun.from_dict({**CONFIG, "curriculum": 100})
    assert [run.prior_at(step).unequal for step in (0, 49, 99, 500)] == pytest.approx([0.005, 0.25, 0.5, 0.5])


def test_evidence_prefers_equal_shares_where_sizes_are_equal():
    for counts, equal in (([60, 60, 60], True), ([120, 40, 20], False)):
        generator = torch.Generator().manual_seed(6)
        drawn = sample_separated(counts, 4, torch.full((8,), 4.0), torch.ones(8), generator)
        found = fitted_starts(drawn.points_BND, 3, generator, n_starts=1)
        first = found.evidence_B.view(2, 8).argmax(0) == 0
        assert first.sum() >= 7 if equal else first.sum() <= 1
        assert torch.equal(found.shares_BK[:8], torch.full((8, 3), 1 / 3))
