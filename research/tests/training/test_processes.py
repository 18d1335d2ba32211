"""Two processes of torch's own launcher train as one does."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from coterie_research.training.loop import TrainingConfig, load_average, train

SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_processes import Halves, config
from coterie_research.training.loop import train
train(Halves(), config(), Path(sys.argv[1]))
"""


class Halves:
    """Fit y = 2x + 1 on a batch that the processes share among them."""

    def __init__(self):
        torch.manual_seed(0)
        self.model, self.matrices = nn.Linear(3, 1), ()

    def loss(self, model, step, generator):
        rank, size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
        x = torch.randn(16, 3, generator=torch.Generator().manual_seed(step))[rank::size]
        return (model(x) - 2 * x.sum(1, keepdim=True) - 1).square().mean(), {}


def config():
    return TrainingConfig(steps=4, learning_rate=0.05, warmup_steps=1, log_every=1, average_decay=0.5, clip_norm=100.0)


def norms(directory):
    with open(directory / "log.csv", newline="") as file:
        return [float(row["gradient_norm"]) for row in csv.DictReader(file)]


@pytest.mark.slow
def test_two_processes_train_with_the_gradients_of_one(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)]
    done = subprocess.run(
        [*launcher, str(tmp_path / "two"), str(Path(__file__).parent)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    trained, linear = train(Halves(), config(), tmp_path / "one"), nn.Linear(3, 1)
    assert load_average(tmp_path / "two" / "state.pt", linear).step == 4
    assert norms(tmp_path / "two") == pytest.approx(norms(tmp_path / "one"), rel=1e-5)
    torch.testing.assert_close(linear.weight, trained.weight, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(linear.bias, trained.bias, rtol=1e-5, atol=1e-6)
