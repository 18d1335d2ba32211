"""The paper's algorithm as it is described: EM from random soft assignments, with none of what `VAEMixture` adds.

One VAE per cluster, 20 latent dimensions, equal shares, 10 samples per bound in the E-step, 20 epochs per M-step, whole
images, up to 300 iterations. A run ends early once its labels stand still. The text does not give the sizes of the
networks, the batches, the learning rate, the likelihood, or the latent size for points in the plane: those are ours.

A row whose responsibility for a cluster is below ``threshold`` is not shown to its network, because its gradient would
be smaller by that factor. Each network then trains on about a Kth of the rows, and each iteration is about K times as
fast. ``as_described_moons`` measures what that changes. Labels are used for the curves only.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from coterie.em import Iteration
from coterie.generative.fitting import RestartPlan, fit
from coterie.generative.mixture import EMSettings
from coterie.generative.vaes import VAEConfig, VAEs
from coterie_research import images
from coterie_research.mixture_of_vaes import pictures
from coterie_research.mixture_of_vaes.defaults import DOCUMENT
from coterie_research.mixture_of_vaes.half_moons import five_moons
from coterie_research.mixture_of_vaes.record import head, random_responsibilities, scores, watch, write

MAX_ITER = {"mnist": 300, "half-moons": 100}
STILL = 10  # iterations in which fewer than one label in a thousand moves, on average, after which a run ends
THRESHOLD = 1e-3
SIZES = (2_000,)  # images; 10,000 take about two CPU hours for 300 iterations
MOONS = ((0, THRESHOLD), (0, 0.0), (1, THRESHOLD))  # seeds and thresholds of the half-moons; 0 shows every row
SETTINGS = {"folds": 1, "n_epochs": 20.0, "first_epochs": 20.0, "n_samples": 10, "learned_shares": False}
# Not in the paper's text:
OURS = {
    "mnist": {"batch_size": 64, "learning_rate": 1e-3},
    "half-moons": {"batch_size": 256, "learning_rate": 3e-3},
}
NETWORKS = {
    "mnist": VAEConfig(n_features=784, hidden_size=128, latent_size=20, likelihood="bernoulli"),
    "half-moons": VAEConfig(n_features=2, hidden_size=64, latent_size=2, likelihood="gaussian"),
}


def as_described(output: Path, quick: bool = False) -> dict[str, Any]:
    """MNIST, one seed. An interrupted run is continued, bit for bit, by the same command with the same folder."""
    X, truth = images.load("mnist")
    X = X / np.float32(255)
    path = output / "as_described.json"
    record = _begun("as_described", "mnist", quick, path, document=DOCUMENT["mnist"])
    for n_images in (200,) if quick else SIZES:
        _run(X[:n_images], truth[:n_images], 0, THRESHOLD, record, path)
    return record


def as_described_moons(output: Path, quick: bool = False) -> dict[str, Any]:
    """Five half-moons: two seeds, the first again with every row shown to every network."""
    path = output / "as_described_moons.json"
    record = _begun("as_described_moons", "half-moons", quick, path)
    for seed, threshold in MOONS[:1] if quick else MOONS:
        X, truth = five_moons(seed, **({"n_samples": 200} if quick else {}))
        X = ((X - X.mean(0)) / X.std(0)).astype(np.float32)
        _run(X, truth, seed, threshold, record, path)
    return record


def _begun(name: str, rows: str, quick: bool, path: Path, **about: Any) -> dict[str, Any]:
    """A record with the runs that an interrupted command has left."""
    plan = {"start": "random soft assignments", "max_iter": 2 if quick else MAX_ITER[rows], "still": STILL}
    runs = json.loads(path.read_text())["runs"] if path.exists() else []
    return {**head(name, quick), **plan, "settings": {**SETTINGS, **OURS[rows]}, "rows": rows, **about, "runs": runs}


def _run(X, truth, seed: int, threshold: float, record: dict[str, Any], path: Path) -> None:
    """One fit, whose curve is written after every iteration; nothing if the record has its end."""
    n_clusters = len(np.unique(truth))
    about = {"n_samples": len(X), "seed": seed, "threshold": threshold}
    known = [one for one in record["runs"] if all(one[name] == value for name, value in about.items())]
    run: dict[str, Any] = known[0] if known else {**about, "curve": []}
    if not known:
        record["runs"].append(run)
    if "end" in run:
        return

    def still() -> bool:
        moved = [row["moved"] for row in run["curve"][-STILL:]]
        return len(run["curve"]) > STILL and float(np.mean(moved)) < 1e-3

    def after(iteration: Iteration) -> bool:
        shown_NK = iteration.expectation.responsibilities_NK >= THRESHOLD
        run["curve"][-1]["shown"] = round(float(shown_NK.double().mean()), 4)
        write(record, path)
        if iteration.number % 20 == 0:
            pictures.draw_as_described(record, path.with_suffix(".png"))
        return still() or iteration.number >= record["max_iter"]

    found = fit(
        torch.as_tensor(X),
        lambda number: random_responsibilities(len(X), n_clusters, seed),
        lambda generator: VAEs(n_clusters, NETWORKS[record["rows"]], generator),
        EMSettings(n_clusters, **record["settings"], threshold=threshold, seed=seed),
        RestartPlan(max(MAX_ITER.values()), tol=0.0),
        checkpoint=path.with_suffix("") / f"{len(X)}-rows-seed-{seed}-threshold-{threshold:g}",
        run=watch(run["curve"], truth, after),
    )
    labels = found.expectation.labels
    run["end"] = {**scores(labels, truth), "bound": round(found.expectation.objective, 4), "n_iter": found.n_iter}
    run["still"] = still()
    write(record, path)
    pictures.draw_as_described(record, path.with_suffix(".png"))
