import csv

import pytest
import torch
from torch import nn

from coterie.files import OutputError, only_writer
from coterie_research.training.loop import TrainingConfig, load_average, train


class Line:
    """Fit y = 2x."""

    def __init__(self):
        torch.manual_seed(0)
        self.model = nn.Linear(1, 1)
        self.matrices = [self.model.weight]

    def loss(self, model, step, generator):
        x = torch.randn(16, 1, generator=generator)
        loss = (model(x) - 2 * x).square().mean()
        return loss, {"slope": self.model.weight.item()}


def rows(directory):
    with open(directory / "log.csv", newline="") as file:
        return list(csv.DictReader(file))


def test_training_reaches_the_answer_and_logs_it(tmp_path):
    seen = []
    config = TrainingConfig(steps=400, learning_rate=0.05, decay_steps=100, average_decay=0.9, log_every=50)
    average = train(Line(), config, tmp_path, on_progress=seen.append)
    assert average.weight.item() == pytest.approx(2, abs=0.02)
    assert [int(row["step"]) for row in rows(tmp_path)] == list(range(50, 401, 50))
    assert seen[-1].cpu_seconds_left == 0
    other = nn.Linear(1, 1)
    assert load_average(tmp_path / "state.pt", other).step == 400
    assert torch.equal(other.weight, average.weight)


@pytest.mark.parametrize("matrix_rate", [0.0, 0.01])
def test_a_run_that_was_stopped_and_resumed_is_the_same_run(tmp_path, matrix_rate):
    config = TrainingConfig(steps=60, log_every=10, checkpoint_every=7, matrix_learning_rate=matrix_rate)
    whole = train(Line(), config, tmp_path / "whole")
    train(Line(), config, tmp_path / "parts", on_progress=lambda progress: progress.step == 20)
    assert len(rows(tmp_path / "parts")) == 2
    parts = train(Line(), config, tmp_path / "parts", resume=True)
    assert torch.equal(whole.weight, parts.weight)
    assert torch.equal(whole.bias, parts.bias)
    losses = [[row["loss"] for row in rows(tmp_path / name)] for name in ("whole", "parts")]
    assert losses[0] == losses[1]


def test_the_log_of_a_resumed_run_is_right_between_its_lines(tmp_path):
    train(Line(), TrainingConfig(steps=35, log_every=50, checkpoint_every=100), tmp_path / "parts")
    train(Line(), TrainingConfig(steps=60, log_every=20, checkpoint_every=100), tmp_path / "whole")
    parts = train(Line(), TrainingConfig(steps=60, log_every=20, checkpoint_every=100), tmp_path / "parts", resume=True)
    assert parts.weight.isfinite().all()
    assert rows(tmp_path / "parts")[-1]["loss"] == rows(tmp_path / "whole")[-1]["loss"]


def test_a_stable_run_can_be_extended_and_branched_into_a_decay(tmp_path):
    train(Line(), TrainingConfig(steps=30, log_every=10), tmp_path / "stable")
    train(Line(), TrainingConfig(steps=50, log_every=10), tmp_path / "stable", resume=True)
    assert rows(tmp_path / "stable")[-1]["step"] == "50"
    branch = TrainingConfig(steps=80, decay_steps=30, log_every=10, warmup_steps=1)
    train(Line(), branch, tmp_path / "branch", start_from=tmp_path / "stable" / "state.pt")
    assert [row["step"] for row in rows(tmp_path / "branch")] == ["60", "70", "80"]
    assert float(rows(tmp_path / "branch")[-1]["rate"]) == pytest.approx(1 / 30, rel=1e-4)


def test_rates_warm_up_hold_and_fall():
    stable = TrainingConfig(steps=100, warmup_steps=10, decay_steps=20)
    assert stable.rate(0) == pytest.approx(0.1)
    assert stable.rate(50) == 1
    assert stable.rate(90) == pytest.approx(0.5)
    cosine = TrainingConfig(steps=100, warmup_steps=1, schedule="cosine")
    assert cosine.rate(50) == pytest.approx(0.5)


def test_directories_are_not_overwritten_or_invented(tmp_path):
    config = TrainingConfig(steps=2)
    with pytest.raises(FileNotFoundError, match="nothing to resume"):
        train(Line(), config, tmp_path, resume=True)
    train(Line(), config, tmp_path)
    with pytest.raises(FileExistsError, match="--resume to continue"):
        train(Line(), config, tmp_path)


def test_a_folder_in_which_another_run_writes_is_named_and_stays_as_it_was(tmp_path):
    config = TrainingConfig(steps=2)
    with only_writer(tmp_path), pytest.raises(OutputError, match="Another process is writing to"):
        train(Line(), config, tmp_path)
    assert list(tmp_path.iterdir()) == []
    train(Line(), config, tmp_path)


def test_a_damaged_state_ends_a_resumed_run_in_a_sentence(tmp_path):
    train(Line(), TrainingConfig(steps=2), tmp_path)
    state = tmp_path / "state.pt"
    state.write_bytes(state.read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"state\.pt is damaged .*: remove it and start again"):
        train(Line(), TrainingConfig(steps=4), tmp_path, resume=True)
