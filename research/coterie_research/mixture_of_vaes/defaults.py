"""The estimator with its defaults on scikit-learn's 1,797 digits."""

import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits

from coterie import VAEMixture
from coterie_research.mixture_of_vaes.record import head, scores, write


def digits(output: Path, quick: bool = False) -> dict[str, Any]:
    """Three seeds with the defaults beside k-means."""
    X, truth = load_digits(return_X_y=True)
    X = X[:400] / 16 if quick else X / 16
    truth = truth[: len(X)]
    record: dict[str, Any] = {**head("digits", quick), "n_samples": len(X), "runs": []}
    for seed in range(1 if quick else 3):
        wall, cpu = time.perf_counter(), time.process_time()
        mixture = VAEMixture(10, random_state=seed).fit(X)
        record["runs"].append(
            {
                "seed": seed,
                "kmeans": scores(KMeans(10, n_init=10, random_state=seed).fit(X).labels_, truth),
                "start": scores(mixture.start_labels_, truth),
                "end": scores(mixture.labels_, truth),
                "bound": round(mixture.bound_, 3),
                "n_iter": mixture.n_iter_,
                "seconds": round(time.perf_counter() - wall, 1),
                "cpu_seconds": round(time.process_time() - cpu, 1),
            }
        )
    record["mean"] = round(float(np.mean([run["end"]["accuracy"] for run in record["runs"]])), 4)
    write(record, output / "digits.json")
    return record
