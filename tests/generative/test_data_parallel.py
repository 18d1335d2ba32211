"""Two processes of torch's own launcher fit as one does."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from coterie.generative.fitting import RestartPlan, fit
from coterie.generative.mixture import EMSettings
from tests.generative.test_mixture import blobs, make, one_hot

SCRIPT = """
import sys
import torch
import torch.distributed as dist
from tests.generative.test_data_parallel import result

dist.init_process_group("gloo")
found = result()
if dist.get_rank() == 0:
    torch.save(found, sys.argv[1])
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


@pytest.mark.slow
def test_two_processes_fit_with_the_gradients_of_one(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)]
    paths = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*launcher, str(tmp_path / "fit.pt")], env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    one, two = result(), torch.load(tmp_path / "fit.pt", weights_only=True)
    for name in ("gradients", "weights"):
        for mine, theirs in zip(one[name], two[name]):
            torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(one["responsibilities"], two["responsibilities"], rtol=1e-3, atol=1e-4)
