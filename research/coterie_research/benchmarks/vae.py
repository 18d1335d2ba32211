"""VAEMixture beside the deep clusterers VaDE and DEC of the package ``clustpy``: same images, one run.

Each method runs in a process of its own, so that its memory can be measured. In the cell "equal time" the other methods
get as many epochs as fit into the CPU seconds that VAEMixture took with its defaults, in clustpy's ratio of 100 for the
autoencoder to 150 for the clustering; the time of an epoch is measured first. In the cells "default epochs" they get
clustpy's own 100 and 150: about 15 CPU minutes for VaDE and 10 for DEC.
"""

import time
from functools import partial

import numpy as np

from coterie_research import images
from coterie_research.benchmarks.harness import Benchmark, Cell, Row, alone, installed
from coterie_research.mixture_of_vaes.record import peak_gigabytes, scores

K = 10
PEERS = ("VaDE", "DEC")


def measure(n: int, seed: int) -> list[Row]:
    """All methods on the first ``n`` images of MNIST, in equal time."""
    with alone() as call:
        rows = [call(ours, n, seed)]
    for name in PEERS if installed("clustpy") else ():
        with alone() as call:
            rows.append(call(peer, n, seed, name, rows[0]["cpu_seconds"]))
    return rows


def measure_defaults(n: int, seed: int, name: str) -> list[Row]:
    """A peer with the epochs that its package takes."""
    if not installed("clustpy"):
        return []
    with alone() as call:
        return [call(peer, n, seed, name, None)]


def ours(n: int, seed: int) -> Row:
    from coterie import VAEMixture

    X, truth = _images(n)
    began = time.process_time()
    found = VAEMixture(K, random_state=seed).fit(X).labels_
    return _row("VAEMixture", seed, found, truth, began)


def peer(n: int, seed: int, name: str, budget: float | None) -> Row:
    import clustpy.deep

    X, truth = _images(n)
    kind, epochs = getattr(clustpy.deep, name), {}
    if budget is not None:
        began = time.process_time()
        kind(K, pretrain_epochs=1, clustering_epochs=1, random_state=seed).fit(X)
        pace = (time.process_time() - began) / 2  # seconds per epoch, including the small cost of the start
        shares = {"pretrain_epochs": 0.4, "clustering_epochs": 0.6}
        epochs = {key: max(1, round(share * budget / pace)) for key, share in shares.items()}
    began = time.process_time()
    fitted = kind(K, **epochs, random_state=seed).fit(X)
    row = _row(name, seed, np.asarray(fitted.labels_), truth, began)
    return {**row, "epochs": f"{fitted.pretrain_epochs} + {fitted.clustering_epochs}"}


def _images(n: int) -> tuple[np.ndarray, np.ndarray]:
    X, truth = images.load("mnist")
    return X[:n] / np.float32(255), truth[:n]


def _row(method: str, seed: int, labels: np.ndarray, truth: np.ndarray, began: float) -> Row:
    seconds = round(time.process_time() - began, 1)
    return {
        "method": method,
        "seed": seed,
        **scores(labels, truth),
        "cpu_seconds": seconds,
        "peak_gigabytes": peak_gigabytes(),
    }


def _count(quick: bool) -> int:
    return 1_000 if quick else 10_000


def _cells(quick: bool) -> list[Cell]:
    n = _count(quick)
    own = [] if quick else [Cell(f"{name}, default epochs", partial(measure_defaults, n, 0, name)) for name in PEERS]
    return [Cell("equal time", partial(measure, n, 0)), *own]


BENCHMARK = Benchmark(
    name="vae",
    title="VAEMixture compared with deep clusterers",
    file="peers",
    readme=False,
    peers=("clustpy",),
    settings=lambda quick: {"n_samples": _count(quick)},
    cells=_cells,
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
