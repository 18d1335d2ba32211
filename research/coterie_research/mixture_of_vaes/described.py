"""The paper's algorithm as it is described: EM from random soft assignments, with none of what `VAEMixture` adds.

One VAE per cluster, 20 latent dimensions, equal shares, 10 samples per bound in the E-step, 20 epochs per M-step, whole
images, up to 300 iterations. A run ends early once its labels stand still. The text does not give the sizes of the
networks, the batches, the learning rate, the likelihood, or the latent size for points in the plane: those are ours.
Where the text can be read in several ways, further runs have the other reading.

A row whose responsibility for a cluster is below ``threshold`` is not shown to its network, because its gradient would
be smaller by that factor. Each network then trains on about a Kth of the rows, and each iteration is about K times as
fast. ``as_described_moons`` measures what that changes. Labels are used for the curves only.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from coterie.em import Iteration
from coterie.generative.fitting import RestartPlan, Stage, fit_in_stages
from coterie.generative.mixture import EMSettings
from coterie.generative.vaes import VAEConfig, VAEs
from coterie_research import images
from coterie_research.mixture_of_vaes import pictures
from coterie_research.mixture_of_vaes.defaults import DOCUMENT
from coterie_research.mixture_of_vaes.half_moons import five_moons
from coterie_research.mixture_of_vaes.record import earlier, experiment, keep, random_responsibilities, scores, watch

STILL = 10  # iterations in which fewer than one label in a thousand moves, on average, after which a run ends
THRESHOLD = 1e-3
MOONS = "half-moons"
SETTINGS = {"folds": 1, "n_epochs": 20.0, "first_epochs": 20.0, "n_samples": 10, "learned_shares": False}
# Not in the paper's text:
IMAGE_SETTINGS = {"batch_size": 64, "learning_rate": 1e-3}
MOON_SETTINGS = {"batch_size": 256, "learning_rate": 3e-3}
IMAGE_NETWORK = VAEConfig(n_features=784, hidden_size=128, latent_size=20, likelihood="bernoulli")
MOON_NETWORK = VAEConfig(n_features=2, hidden_size=64, latent_size=2, likelihood="gaussian")
# reading: changes of the network, and of the settings. A temperature stays what it is for all iterations.
READINGS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "": ({}, {}),
    "bounds per pixel": ({}, {"temperature": 784.0, "anneal_iter": 10**9}),
    "squared errors": ({"likelihood": "gaussian", "precision": 2.0}, {}),
}
# rows -> seeds, number of rows (0: all), iterations
PLANS: dict[str, tuple[Sequence[int], int, int]] = {
    "mnist": (range(5), 10_000, 300),
    "fashion": (range(5), 10_000, 300),
    MOONS: (range(10), 0, 100),
}


def _as_described(
    name: str,
    rows: str,
    output: Path,
    quick: bool = False,
    seeds: Sequence[int] | None = None,
    n_rows: int | None = None,
    max_iter: int | None = None,
    threshold: float = THRESHOLD,
    reading: str = "",
) -> dict[str, Any]:
    """Runs that the record already has are kept, so that an interrupted one is continued by the same command."""
    planned_seeds, planned_rows, planned_iter = PLANS[rows]
    seeds = planned_seeds if seeds is None else seeds
    n_rows, max_iter = n_rows or planned_rows, max_iter or planned_iter
    if quick:
        seeds, n_rows, max_iter = seeds[:1], 200, 2
    path = output / f"{name}.json"
    settings = {**SETTINGS, **(MOON_SETTINGS if rows == MOONS else IMAGE_SETTINGS)}
    record: dict[str, Any] = {
        "start": "random soft assignments",
        "max_iter": max_iter,
        "still": STILL,
        "settings": settings,
    }
    record |= {"rows": rows, "runs": earlier(path), **({"document": DOCUMENT[rows]} if rows in DOCUMENT else {})}
    for seed in seeds:
        X, truth = _data(rows, seed, n_rows)
        about = {"n_samples": len(X), "seed": seed, "threshold": threshold, "reading": reading}
        known = [run for run in record["runs"] if all(run.get(key, "") == value for key, value in about.items())]
        run = known[0] if known else {**about, "max_iter": max_iter, "curve": []}
        if not known:
            record["runs"].append(run)
        if "end" not in run:
            _run(X, truth, run, record, path)
    return record


for _name, _rows in (("as_described", "mnist"), ("as_described_fashion", "fashion"), ("as_described_moons", MOONS)):
    experiment(_name, pictures.as_described)(partial(_as_described, _name, _rows))


def _data(rows: str, seed: int, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    if rows == MOONS:
        X, truth = five_moons(seed, **({"n_samples": n_rows} if n_rows else {}))
        return ((X - X.mean(0)) / X.std(0)).astype(np.float32), truth
    X, truth = images.load(rows)
    X, truth = (X[:n_rows], truth[:n_rows]) if n_rows else (X, truth)
    return X / np.float32(255), truth


def _run(X, truth, run: dict[str, Any], record: dict[str, Any], path: Path) -> None:
    """One fit, whose curve is written after every iteration."""
    n_clusters, seed = len(np.unique(truth)), run["seed"]
    network, changes = READINGS[run["reading"]]
    config = VAEConfig(**{**vars(MOON_NETWORK if record["rows"] == MOONS else IMAGE_NETWORK), **network})

    def still() -> bool:
        moved = [row["moved"] for row in run["curve"][-STILL:]]
        return len(run["curve"]) > STILL and float(np.mean(moved)) < 1e-3

    def after(iteration: Iteration) -> bool:
        expectation = iteration.expectation
        shown_NK = expectation.responsibilities_NK >= run["threshold"]
        run["curve"][-1]["shown"] = round(float(shown_NK.double().mean()), 4)
        run["curve"][-1]["majority"] = majorities(expectation.labels, truth)
        keep(record["runs"], path)
        return still() or iteration.number >= run["max_iter"]

    settings = EMSettings(n_clusters, **{**record["settings"], **changes}, threshold=run["threshold"], seed=seed)
    (found,) = fit_in_stages(
        torch.as_tensor(X),
        lambda number: random_responsibilities(len(X), n_clusters, seed),
        lambda generator: VAEs(n_clusters, config, generator),
        [Stage(settings, RestartPlan(run["max_iter"] + 1, tol=0.0))],
        checkpoint=path.with_suffix("")
        / "-".join(str(run[key]) for key in ("n_samples", "seed", "threshold", "reading")),
        run=watch(run["curve"], truth, after),
    )
    labels = found.expectation.labels
    run["end"] = {**scores(labels, truth), "bound": round(found.expectation.objective, 4), "n_iter": found.n_iter}
    run |= {"still": still(), **_decided(run["curve"])}
    keep(record["runs"], path)


def majorities(labels: np.ndarray, truth: np.ndarray) -> list[int]:
    """The most frequent class of each cluster; -1 for an empty one. A class without a cluster is merged into others."""
    clusters = range(int(truth.max()) + 1)
    return [int(np.bincount(truth[labels == k]).argmax()) if (labels == k).any() else -1 for k in clusters]


def _decided(curve: list[dict[str, Any]]) -> dict[str, Any]:
    """Classes without a cluster of their own, classes with several, and the iteration from which neither changes."""
    last = curve[-1]["majority"]
    different = [row["iteration"] for row in curve if sorted(row["majority"]) != sorted(last)]
    return {
        "merged": [k for k in range(len(last)) if k not in last],
        "split": sorted({k for k in last if k >= 0 and last.count(k) > 1}),
        "decided": 1 + max(different, default=0),
    }
