"""Two processes of torch's own launcher fit and train as one does."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from coterie.generative.fitting import RestartPlan, fit
from coterie.generative.mixture import EMSettings
from coterie.training.loop import TrainingConfig, load_average, train
from tests.generative.test_mixture import blobs, make, one_hot

SCRIPT = """
import sys
from pathlib import Path
import torch
import torch.distributed as dist
from coterie.training.loop import train
from tests.generative.test_data_parallel import Halves, config, result

output = Path(sys.argv[1])
train(Halves(), config(), output)
if not dist.is_initialized():
    dist.init_process_group("gloo")
found = result()
if dist.get_rank() == 0:
    torch.save(found, output / "fit.pt")
dist.destroy_process_group()
"""


def result():
    x_ND, truth = blobs(120)
    networks = make(6)
    found = fit(
        x_ND,
        lambda number: one_hot(truth),
        lambda generator: networks,
        EMSettings(3, least_steps=3, batch_size=15, seed=1),
        RestartPlan(2, tol=0.0),
    )
    gradients = [weight.grad.clone() for weight in networks.parameters() if weight.grad is not None]
    return {
        "gradients": gradients,  # of the last step: summed over the processes
        "weights": [weight.detach().clone() for weight in networks.parameters()],
        "responsibilities": found.expectation.responsibilities_NK,
    }


class Halves:
    """Fit y = 2x + 1 on a batch that the processes share among them."""

    def __init__(self):
        torch.manual_seed(0)
        self.model = nn.Linear(3, 1)

    def matrices(self):
        return []

    def loss(self, model, step, generator):
        rank, size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
        x = torch.randn(16, 3, generator=torch.Generator().manual_seed(step))[rank::size]
        return (model(x) - 2 * x.sum(1, keepdim=True) - 1).square().mean(), {}


def config():
    return TrainingConfig(steps=4, learning_rate=0.05, warmup_steps=1, log_every=1, average_decay=0.5, clip_norm=100.0)


def norms(directory):
    with open(directory / "log.csv", newline="") as file:
        return [float(row["gradient_norm"]) for row in csv.DictReader(file)]


@pytest.fixture(scope="module")
def of_two(tmp_path_factory):
    """The folder in which two processes have left what they trained and fitted."""
    folder = tmp_path_factory.mktemp("two")
    script = folder / "script.py"
    script.write_text(SCRIPT)
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)]
    paths = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*launcher, str(folder / "out")], env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return folder / "out"


@pytest.mark.slow
def test_two_processes_fit_and_train_with_the_gradients_of_one(of_two, tmp_path):
    one, two = result(), torch.load(of_two / "fit.pt", weights_only=True)
    for name in ("gradients", "weights"):
        for mine, theirs in zip(one[name], two[name]):
            torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(one["responsibilities"], two["responsibilities"], rtol=1e-3, atol=1e-4)
    trained, linear = train(Halves(), config(), tmp_path), nn.Linear(3, 1)
    assert load_average(of_two / "state.pt", linear).step == 4
    assert norms(of_two) == pytest.approx(norms(tmp_path), rel=1e-5)
    torch.testing.assert_close(linear.weight, trained.weight, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(linear.bias, trained.bias, rtol=1e-5, atol=1e-6)
