"""Kill processes of a cluster at random moments of fits, and check that no bit of the result changes.

This program kills twenty workers; ``coterie bench interruptions`` kills schedulers, too.
"""

import contextlib
import random
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from typing import Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from coterie import KMeans
from coterie.distributed.cluster import ClusterError
from coterie_research.benchmarks.harness import Benchmark, Cell, Row
from coterie_research.stress.processes import Cluster, kill

D, K, BLOCKS, BLOCK_ROWS = 8, 32, 24, 20_000


def measure(wanted: int) -> Row:
    """Kill workers over as many fits as necessary."""
    found = fits_with_kills("worker", lambda kills: kills >= wanted)
    return {**found, "all_same": all(one["same"] for one in found["fits"])}


def fits_with_kills(
    victim: Literal["worker", "scheduler"],
    enough: Callable[[int], bool],
    after_fit: Callable[[], object] = lambda: None,
) -> Row:
    """Fit on a cluster of processes that are killed until ``enough(number of kills)``, and compare every result.

    A process is killed whenever the cluster is complete, after up to as many seconds as a whole fit takes: a pass that
    is disturbed five times in a row gives up.
    """
    import dask

    import distributed

    with dask.config.set(scheduler="synchronous"):
        undisturbed = _fit()
    fits: list[Row] = []
    draw, kills = random.Random(0), 0

    def same() -> bool:
        with contextlib.suppress(ClusterError):  # which counts as a result that is not the same
            found = _fit()
            return found.inertia_ == undisturbed.inertia_ and np.array_equal(
                found.cluster_centers_, undisturbed.cluster_centers_
            )
        return False

    with (
        contextlib.closing(Cluster()) as cluster,
        distributed.Client(cluster.address, timeout=60) as client,
        ThreadPoolExecutor(1) as other,
    ):
        for _ in range(2):  # the first one waits for the workers and for compiled code
            began = time.perf_counter()
            fits.append({"kills": 0, "same": same()})
            after_fit()
        longest = max(1.0, time.perf_counter() - began)
        while not enough(kills):
            before, fit = kills, other.submit(same)
            while not wait([fit], 0.2).done:
                if not enough(kills) and cluster.is_complete(client):
                    time.sleep(draw.uniform(0.0, longest))
                    if victim == "worker":
                        kill(draw.choice(cluster.workers))
                    else:
                        cluster.close()
                    kills += 1
                cluster.start_missing()
            fits.append({"kills": kills - before, "same": fit.result()})
            after_fit()
    return {"kills": kills, "fits": fits}


def _make_block(number: int) -> np.ndarray:
    rng = np.random.default_rng([2, number])
    middles = 3 * np.random.default_rng(0).normal(size=(K, D))
    return (middles[rng.integers(0, K, BLOCK_ROWS)] + rng.standard_normal((BLOCK_ROWS, D))).astype("float32")


def _fit() -> KMeans:
    import dask
    import dask.array as da

    parts = [da.from_delayed(dask.delayed(_make_block)(b), (BLOCK_ROWS, D), "float32") for b in range(BLOCKS)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return KMeans(K, init=_make_block(0)[:K], max_iter=20, tol=0.0).fit(da.concatenate(parts))


BENCHMARK = Benchmark(
    name="kills",
    title="Fits on a cluster whose workers are killed",
    folder="scale",
    readme=False,
    rows=None,
    needs=("dask", "distributed"),
    cells=lambda quick: [Cell("workers", partial(measure, 2 if quick else 20))],
    summary=lambda rows: rows[0],
    outro="{kills} workers were killed. All results are those of an undisturbed fit: {all_same}.",
)
