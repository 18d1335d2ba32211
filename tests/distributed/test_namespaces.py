"""A cluster whose machines have addresses of their own: network namespaces behind a bridge, and a cable that is cut."""

import os
import shutil
import subprocess

import numpy as np
import pytest

import distributed
from tests.distributed.processes import SLOW_START, Cluster
from tests.distributed.test_faults import at_iteration, run, same, undisturbed  # noqa: F401

BRIDGE, NETWORK = f"cot{os.getpid() % 10_000}", "10.77.0"
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


@pytest.fixture
def machines():
    """Two namespaces with the addresses .2 and .3; the bridge itself is .1."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and the ip command: this test did NOT run")
    names = [f"{BRIDGE}{letter}" for letter in "ab"]
    try:
        ip("link", "add", BRIDGE, "type", "bridge")
        ip("addr", "add", f"{NETWORK}.1/24", "dev", BRIDGE)
        ip("link", "set", BRIDGE, "up")
        for number, name in enumerate(names, start=2):
            ip("netns", "add", name)
            ip("link", "add", f"{name}o", "type", "veth", "peer", "name", f"{name}i")
            ip("link", "set", f"{name}o", "master", BRIDGE, "up")
            ip("link", "set", f"{name}i", "netns", name)
            ip("-n", name, "addr", "add", f"{NETWORK}.{number}/24", "dev", f"{name}i")
            ip("-n", name, "link", "set", f"{name}i", "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield names
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no network namespaces here ({error.stderr.strip()}): this test did NOT run")
    finally:
        for command in ([["netns", "del", name] for name in names], [["link", "del", BRIDGE]]):
            for words in command:
                subprocess.run(["ip", *words], capture_output=True, check=False)


def test_a_machine_whose_cable_is_cut(machines, tmp_path, undisturbed):  # noqa: F811
    cluster = Cluster(tmp_path, host=f"{NETWORK}.1")
    try:
        for number, name in enumerate(machines, start=2):
            cluster.start_worker(name, f"{NETWORK}.{number}", ("ip", "netns", "exec", name))
        with distributed.Client(cluster.address, timeout=20) as client:
            client.wait_for_workers(2, timeout=SLOW_START)
            hosts = {worker["host"] for worker in client.scheduler_info(n_workers=-1)["workers"].values()}
            assert hosts == {f"{NETWORK}.2", f"{NETWORK}.3"}
            same(run(at_iteration(2, lambda: ip("link", "set", f"{machines[1]}o", "down"))), undisturbed)
            assert np.isfinite(undisturbed.inertia)
    finally:
        cluster.close()
