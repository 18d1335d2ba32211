import time

import dask.array as da
import numpy as np
import pytest

import distributed
from coterie import KMeans
from coterie.distributed import passes
from coterie.distributed.blocks import blocks_of
from coterie.distributed.passes import Passes

READ: list[int] = []


def _read(values, number):
    READ.append(number)
    return values


def _table(n_blocks: int = 4):
    """A Dask array that notes which of its blocks are computed."""
    rng = np.random.default_rng(0)
    parts = [rng.normal(size=(100, 3)).astype("float32") for _ in range(n_blocks)]
    graph = {("rows", b, 0): (_read, part, b) for b, part in enumerate(parts)}
    return da.Array(graph, "rows", ((100,) * n_blocks, (3,)), dtype="float32"), np.concatenate(parts)


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            processes=False,
            dashboard_address=None,
            scheduler_kwargs={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
            memory_limit="16GB",  # the worker is this process: above four fifths of the limit it would pause for ever
        ) as own,
        distributed.Client(own) as client,
    ):
        yield client


@pytest.fixture(autouse=True)
def forget():
    READ.clear()


def test_a_fit_on_a_cluster_reads_every_block_once_and_gives_the_same_result(client):
    X, rows = _table()
    start = rows[:5].copy()
    model = KMeans(5, init=start, max_iter=4, tol=0).fit(X)
    assert sorted(READ) == [0, 1, 2, 3]
    other = KMeans(5, init=start, max_iter=4, tol=0).fit(rows)
    np.testing.assert_allclose(model.cluster_centers_, other.cluster_centers_, rtol=1e-5)


def test_blocks_are_released_after_the_fit(client):
    X, rows = _table()
    KMeans(5, init=rows[:5].copy(), max_iter=4, tol=0).fit(X)
    until = time.monotonic() + 20
    while time.monotonic() < until and _held_blocks(client):  # the scheduler learns it a little later
        time.sleep(0.05)
    assert not _held_blocks(client)


def test_blocks_that_exceed_a_quarter_of_the_memory_are_read_in_every_pass(client, monkeypatch):
    monkeypatch.setattr(passes, "SHARE", 0.0)
    X, rows = _table()
    KMeans(5, init=rows[:5].copy(), max_iter=2, tol=0).fit(X)
    assert len(READ) == 4 * 4  # the survey, two iterations and the pass with the final centres


def test_blocks_of_unknown_sizes_stay_as_they_are(client):
    X, _ = _table()
    unknown = blocks_of(X[X[:, 0] > 0])
    with passes.held(unknown) as blocks:
        assert blocks is unknown


def test_a_pass_whose_held_blocks_are_lost_computes_them_again(client):
    X, rows = _table()
    with passes.held(blocks_of(X)) as blocks:
        again = Passes(blocks)
        for future in distributed.futures_of(list(blocks.rows)):
            future.cancel()
        assert again.total(_sum, None) == pytest.approx(rows.sum(), rel=1e-4)


def _held_blocks(client):
    return [key for keys in client.has_what().values() for key in keys if key[0] == "rows"]


def _sum(block, state):
    return float(block.X.sum(dtype="float64"))
