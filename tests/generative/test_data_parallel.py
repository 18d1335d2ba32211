"""Two processes, with what torch's own launcher tells them, fit as one does."""

import os
import signal
import socket
import time
import traceback
import warnings

import pytest
import torch
import torch.distributed as dist

from coterie.generative.fitting import RestartPlan, Stage, fit_in_stages
from coterie.generative.mixture import EMSettings
from tests.generative.test_mixture import blobs, make, one_hot


def result():
    x_ND, truth = blobs(120)
    networks = make(6)
    (found,) = fit_in_stages(
        x_ND,
        lambda number: one_hot(truth),
        lambda generator: networks,
        [Stage(EMSettings(3, least_steps=3, batch_size=15, seed=1), RestartPlan(2, tol=0.0))],
    )
    gradients = [weight.grad.clone() for weight in networks.parameters() if weight.grad is not None]
    return {
        "gradients": gradients,  # of the last step: summed over the processes
        "weights": [weight.detach().clone() for weight in networks.parameters()],
        "responsibilities": found.expectation.responsibilities_NK,
    }


def forked(rank, port, file):
    """Begin a process like one that torch's launcher would have started with this rank."""
    told = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python's, about threads
        process = os.fork()
    if process == 0:
        code = 1
        try:
            os.environ.update(told, RANK=str(rank), LOCAL_RANK=str(rank))
            dist.init_process_group("gloo")
            found = result()
            if rank == 0:
                torch.save(found, file)
            dist.destroy_process_group()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return process


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_two_processes_fit_with_the_gradients_of_one(tmp_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    running = {forked(rank, port, tmp_path / "fit.pt") for rank in (0, 1)}
    end = time.monotonic() + 120
    try:
        while running and time.monotonic() < end:
            for process in list(running):
                ended, code = os.waitpid(process, os.WNOHANG)
                if ended:
                    running.remove(process)
                    assert code == 0, "see the traceback above"
            time.sleep(0.02)
        assert not running, "after two minutes"
    finally:
        for process in running:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
    one, two = result(), torch.load(tmp_path / "fit.pt", weights_only=True)
    for name in ("gradients", "weights"):
        for mine, theirs in zip(one[name], two[name]):
            torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(one["responsibilities"], two["responsibilities"], rtol=1e-3, atol=1e-4)
