"""What goes wrong with machines changes nothing: real processes, really killed."""

import os
import signal
import threading
import time

import dask
import dask.array as da
import numpy as np
import pytest
from distributed.comm import CommClosedError

import distributed
from coterie.distributed import cluster as dask_cluster
from coterie.distributed import fitting, passes
from coterie.distributed.blocks import blocks_of
from coterie.distributed.cluster import ClusterError
from coterie.kmeans.algorithm import Algorithm
from tests.distributed.processes import SLOW_START, Cluster, slow_array, slow_block

K, BLOCKS = 8, 12
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # of connections that were cut, as they should be
]


def run(on_iteration=None):
    return fit(slow_array(BLOCKS), slow_block(0)[:K], on_iteration)


def fit(X, start, on_iteration=None):
    blocks = passes.Passes(blocks_of(X))
    known, loop = fitting.look(blocks, len(start)), {"max_iter": 6, "tol": 0.0, "on_iteration": on_iteration}
    return fitting.run(blocks, iter([start]), Algorithm(), known, parameters={}, **loop)


def at_iteration(number, action, delay=0.03):
    """An ``on_iteration`` that acts once, a moment after iteration ``number``: in the middle of the next."""

    def watch(done):
        if done.number == number:
            threading.Timer(delay, action).start()

    return watch


@pytest.fixture(scope="module")
def undisturbed():
    """Of this process alone. Code that it compiles is on the disk when workers, which have little time, need it."""
    with dask.config.set(scheduler="synchronous"):
        return run()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    running = Cluster(tmp_path_factory.mktemp("cluster"))
    yield running
    running.close()


@pytest.fixture(scope="module")
def connection(cluster, undisturbed):
    workers = [cluster.start_worker("first"), cluster.start_worker("second")]
    with distributed.Client(cluster.address, timeout=20, set_as_default=True) as client:
        client.wait_for_workers(2, timeout=SLOW_START)
        yield client, workers


def same(result, other):
    np.testing.assert_array_equal(result.centers, other.centers)
    assert result.inertia == other.inertia
    assert result.n_iter == other.n_iter


def test_a_worker_that_is_killed_one_that_joins_and_one_that_stalls(cluster, connection, undisturbed):
    client, (first, second) = connection
    same(run(at_iteration(2, first.kill)), undisturbed)
    first.wait()

    joined = []
    same(run(at_iteration(1, lambda: joined.append(cluster.start_worker("third")))), undisturbed)
    client.wait_for_workers(2, timeout=SLOW_START)

    same(run(at_iteration(2, lambda: os.kill(second.pid, signal.SIGSTOP))), undisturbed)
    second.kill()
    assert len(joined) == 1


def test_a_scheduler_that_is_restarted(cluster, connection, undisturbed):
    client, _ = connection
    client.wait_for_workers(1, timeout=SLOW_START)

    def restart():
        cluster.scheduler.kill()
        cluster.scheduler.wait()
        cluster.start_scheduler()
        cluster.start_worker("fourth")

    same(run(at_iteration(2, restart)), undisturbed)


def test_a_connection_that_breaks_while_the_workers_are_counted(monkeypatch):
    """A scheduler that died at this moment was an error of the connection instead of another attempt."""
    broken = []

    def workers(client, patience):
        if len(broken) < 2:
            broken.append(client)
            raise CommClosedError("Connection reset by peer")
        return {"worker": {"last_seen": time.monotonic()}}

    monkeypatch.setattr(dask_cluster, "LOOK", 0.01)
    monkeypatch.setattr(dask_cluster, "_wait", lambda future, seconds: time.sleep(0.01))
    monkeypatch.setattr(dask_cluster, "workers", workers)
    X = da.from_array(np.arange(40.0).reshape(20, 2), chunks=(10, 2)).map_blocks(slowly, meta=np.zeros((0, 2)))
    start = np.array([[0.0, 1.0], [30.0, 31.0]])
    local = distributed.LocalCluster(1, threads_per_worker=1, processes=False, dashboard_address=None)
    with local, distributed.Client(local):
        known = fit(X, start)
    assert len(broken) == 2
    np.testing.assert_array_equal(known.centers, [[9.0, 10.0], [29.0, 30.0]])


def test_a_paused_worker_is_named_and_a_fit_that_no_worker_can_do_ends(monkeypatch):
    """Dask pauses workers above four fifths of their memory, and a fit waited without a word."""
    monkeypatch.setattr(dask_cluster, "LOOK", 0.1)
    monkeypatch.setattr(dask_cluster, "NOTICE", 0.3)
    monkeypatch.setattr(dask_cluster, "_wait", lambda future, seconds: time.sleep(0.05))
    X = da.from_array(np.arange(40.0).reshape(20, 2), chunks=(10, 2)).map_blocks(slowly, meta=np.zeros((0, 2)))
    limits = {"distributed.worker.memory.pause": 1e-6, "distributed.worker.memory.terminate": False}
    with (
        dask.config.set(limits),
        distributed.LocalCluster(1, threads_per_worker=1, processes=False, dashboard_address=None) as local,
        distributed.Client(local),
        pytest.warns(UserWarning, match=r"worker \S+ is paused, because it uses more than four fifths"),
        pytest.raises(ClusterError, match=r"No worker .* has worked for 1 s: .* is paused"),
    ):
        passes.Passes(blocks_of(X), patience=1.0).total(fitting.survey, 2)


def slowly(block):
    time.sleep(0.1)
    return block


def test_a_scheduler_that_is_gone_is_an_error_and_not_a_hang(cluster, connection):
    client, _ = connection
    client.wait_for_workers(1, timeout=SLOW_START)
    client._timeout = 1  # of connecting again
    began = time.monotonic()
    with pytest.raises(ClusterError, match="does not answer"):
        run(at_iteration(1, cluster.scheduler.kill))
    assert time.monotonic() - began < 15
