"""VAEMixture beside the deep clusterers VaDE and DEC of the package ``clustpy``: same images, one run, equal CPU time.

Command: ``coterie bench vae``. Each method runs in a process of its own, so that its memory can be measured. The other
methods get as many epochs as fit into the CPU seconds that VAEMixture took with its defaults, in clustpy's ratio of 100
for the autoencoder to 150 for the clustering. The time of an epoch is measured first.
"""

import json
import multiprocessing
import resource
import time
from pathlib import Path

import numpy as np

from coterie.files import replacing
from coterie.metrics import clustering_scores
from coterie_research import images

K = 10
PEERS = ("VaDE", "DEC")


def run(quick: bool = False, output: Path = Path("results/vae")) -> dict:
    """All methods on the first 10,000 images (1,000 when quick) of MNIST, one seed."""
    try:
        import clustpy.deep  # noqa: F401
    except ImportError as error:
        raise ImportError("This benchmark needs the package clustpy: pip install 'coterie[bench]'.") from error

    n, seeds = (1000, range(1)) if quick else (10_000, range(1))
    record: dict = {"command": "coterie bench vae" + (" --quick" if quick else ""), "n_samples": n, "rows": []}
    for seed in seeds:
        ours = _alone(_ours, n, seed)
        _add(record, ours, output)
        for name in PEERS:
            _add(record, _alone(_peer, n, seed, name, ours["cpu_seconds"]), output)
    return record


def _add(record: dict, row: dict, output: Path) -> None:
    record["rows"].append(row)
    output.mkdir(parents=True, exist_ok=True)
    with replacing(output / "peers.json") as temporary:
        temporary.write_text(json.dumps(record, indent=1) + "\n")


def markdown(record: dict) -> str:
    lines = ["| method | seed | accuracy | ARI | CPU seconds | peak GB | epochs |", "|---|---|---|---|---|---|---|"]
    for row in record["rows"]:
        values = (row["method"], row["seed"], row["accuracy"], row["ari"], row["cpu_seconds"], row["peak_gigabytes"])
        lines.append("| " + " | ".join(map(str, values)) + f" | {row.get('epochs', '-')} |")
    return "\n".join(lines)


def _alone(function, *arguments) -> dict:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def _images(n: int) -> tuple[np.ndarray, np.ndarray]:
    X, truth = images.load("mnist")
    return X[:n] / np.float32(255), truth[:n]


def _row(method: str, seed: int, labels: np.ndarray, truth: np.ndarray, began: float) -> dict:
    scores = clustering_scores(labels[None], truth[None])
    return {
        "method": method,
        "seed": seed,
        "accuracy": round(1 - float(scores["error"][0]), 4),
        "ari": round(float(scores["ari"][0]), 4),
        "cpu_seconds": round(time.process_time() - began, 1),
        "peak_gigabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
    }


def _ours(n: int, seed: int) -> dict:
    from coterie import VAEMixture

    X, truth = _images(n)
    began = time.process_time()
    return _row("VAEMixture", seed, VAEMixture(K, random_state=seed).fit(X).labels_, truth, began)


def _peer(n: int, seed: int, name: str, budget: float) -> dict:
    import clustpy.deep

    X, truth = _images(n)
    kind = getattr(clustpy.deep, name)
    began = time.process_time()
    kind(K, pretrain_epochs=1, clustering_epochs=1, random_state=seed).fit(X)
    pace = (time.process_time() - began) / 2  # seconds per epoch, including the small cost of the start
    pretraining = max(1, round(0.4 * budget / pace))
    clustering = max(1, round(0.6 * budget / pace))
    began = time.process_time()
    peer = kind(K, pretrain_epochs=pretraining, clustering_epochs=clustering, random_state=seed).fit(X)
    return {**_row(name, seed, np.asarray(peer.labels_), truth, began), "epochs": f"{pretraining} + {clustering}"}
