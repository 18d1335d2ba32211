"""VAEMixture beside the deep clusterers VaDE and DEC of the package ``clustpy``: same images, one run, equal CPU time.

Each method runs in a process of its own, so that its memory can be measured. The other methods get as many epochs as
fit into the CPU seconds that VAEMixture took with its defaults, in clustpy's ratio of 100 for the autoencoder to 150
for the clustering. The time of an epoch is measured first.
"""

import resource
import time
from functools import partial

import numpy as np

from coterie_research import images
from coterie_research.benchmarks.harness import Benchmark, Cell, Row, alone, installed
from coterie_research.metrics import clustering_scores

K = 10
PEERS = ("VaDE", "DEC")


def measure(n: int, seed: int) -> list[Row]:
    """All methods on the first ``n`` images of MNIST."""
    with alone() as call:
        rows = [call(ours, n, seed)]
    for name in PEERS if installed("clustpy") else ():
        with alone() as call:
            rows.append(call(peer, n, seed, name, rows[0]["cpu_seconds"]))
    return rows


def ours(n: int, seed: int) -> Row:
    from coterie import VAEMixture

    X, truth = _images(n)
    began = time.process_time()
    found = VAEMixture(K, random_state=seed).fit(X).labels_
    return _row("VAEMixture", seed, found, truth, began)


def peer(n: int, seed: int, name: str, budget: float) -> Row:
    import clustpy.deep

    X, truth = _images(n)
    kind = getattr(clustpy.deep, name)
    began = time.process_time()
    kind(K, pretrain_epochs=1, clustering_epochs=1, random_state=seed).fit(X)
    pace = (time.process_time() - began) / 2  # seconds per epoch, including the small cost of the start
    pretraining, clustering = (max(1, round(share * budget / pace)) for share in (0.4, 0.6))
    began = time.process_time()
    fitted = kind(K, pretrain_epochs=pretraining, clustering_epochs=clustering, random_state=seed).fit(X)
    return {**_row(name, seed, np.asarray(fitted.labels_), truth, began), "epochs": f"{pretraining} + {clustering}"}


def _images(n: int) -> tuple[np.ndarray, np.ndarray]:
    X, truth = images.load("mnist")
    return X[:n] / np.float32(255), truth[:n]


def _row(method: str, seed: int, labels: np.ndarray, truth: np.ndarray, began: float) -> Row:
    scores = clustering_scores(labels[None], truth[None])
    return {
        "method": method,
        "seed": seed,
        "accuracy": round(1 - float(scores["error"][0]), 4),
        "ari": round(float(scores["ari"][0]), 4),
        "cpu_seconds": round(time.process_time() - began, 1),
        "peak_gigabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
    }


def _count(quick: bool) -> int:
    return 1_000 if quick else 10_000


BENCHMARK = Benchmark(
    name="vae",
    title="VAEMixture compared with deep clusterers",
    file="peers",
    readme=False,
    peers=("clustpy",),
    settings=lambda quick: {"n_samples": _count(quick)},
    cells=lambda quick: [Cell("mnist", partial(measure, _count(quick), 0))],
    columns={
        "method": "{method}",
        "seed": "{seed}",
        "accuracy": "{accuracy}",
        "ARI": "{ari}",
        "CPU seconds": "{cpu_seconds}",
        "peak GB": "{peak_gigabytes}",
        "epochs": "{epochs}",
    },
)
