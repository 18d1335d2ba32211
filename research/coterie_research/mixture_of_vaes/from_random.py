"""MNIST and Fashion-MNIST from random responsibilities, as the paper starts: accuracy and bound against iterations.

The first stage runs EM from soft random responsibilities on images averaged over 2 x 2 pixels, which takes a quarter of
the time. Its Gaussian likelihood has precision 8, which is precision 2 (the sum of squared errors) on whole images.
Split and merge continues from its responsibilities with new networks and tries a move in every other iteration. The
second stage continues on whole images with the estimator's defaults. Labels are used for the curves only.
"""

import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning

from coterie import VAEMixture
from coterie.generative.fitting import Fit, RestartPlan, Stage, fit_in_stages
from coterie.generative.mixture import EMSettings
from coterie.generative.vaes import VAEConfig, VAEs
from coterie_research import images
from coterie_research.mixture_of_vaes import pictures
from coterie_research.mixture_of_vaes.defaults import DOCUMENT
from coterie_research.mixture_of_vaes.record import earlier, experiment, keep, random_responsibilities, scores, watch

K = 10
N_SEEDS = 5
MAX_ITER = 150  # of the first stage; after that it gains a point of accuracy in 100 iterations, the moves several in 30
MOVE_ITER = 30  # of split and merge
CONFIG = VAEConfig(n_features=196, hidden_size=64, latent_size=8, likelihood="gaussian", precision=8.0, dropout=0.2)


def _random_start(name: str, rows: str, output: Path, quick: bool) -> dict[str, Any]:
    """Five seeds. An interrupted run is continued, bit for bit, by the same command with the same output folder."""
    X, truth = (part[: 1000 if quick else None] for part in images.load(rows))
    X, path = X / np.float32(255), output / f"{name}.json"
    max_iter, runs = 3 if quick else MAX_ITER, earlier(path)
    for seed in range(1 if quick else N_SEEDS):
        if len(runs) == seed:
            runs.append({"seed": seed, "max_iter": max_iter, "curve": [], "move_curve": []})
        run, folder = runs[seed], output / f"{name}-seed-{seed}"
        if "first_stage" not in run:
            _first_stage(X, truth, run, folder, lambda _: keep(runs, path))
            keep(runs, path)
        if "split_and_merge" not in run:
            _split_and_merge(X, truth, run, folder, lambda _: keep(runs, path), min(MOVE_ITER, max_iter))
            keep(runs, path)
        if "end" not in run:
            _second_stage(X, truth, run, folder, max_iter)
            keep(runs, path)
    ends = [run["end"]["accuracy"] for run in runs]
    summary = {"mean": round(float(np.mean(ends)), 4), "std": round(float(np.std(ends)), 4)}
    return {"n_samples": len(X), "document": DOCUMENT[rows], "runs": runs, **summary}


for _name, _rows in (("random_start", "mnist"), ("random_start_fashion", "fashion")):
    experiment(_name, pictures.random_start)(partial(_random_start, _name, _rows))


def _first_stage(X, truth, run: dict[str, Any], folder: Path, after) -> None:
    """EM on pooled images; the responsibilities at its end are kept beside the state."""
    settings = EMSettings.from_random(K, seed=run["seed"], revive_until=run["max_iter"] // 2)
    start = random_responsibilities(len(X), K, run["seed"])
    found = _em(X, start, settings, run["max_iter"], folder, watch(run["curve"], truth, after))
    _keep(found, folder / "responsibilities.npy")
    run["first_stage"] = {**scores(found.expectation.labels, truth), "bound": round(found.expectation.objective, 4)}


def _split_and_merge(X, truth, run: dict[str, Any], folder: Path, after, max_iter: int) -> None:
    """Moves on pooled images, from the responsibilities that the first stage ended with."""
    settings = EMSettings.from_random(K, seed=run["seed"]).with_moves(max_iter)
    start = torch.as_tensor(_kept(folder / "responsibilities.npy"))
    found = _em(X, start, settings, max_iter, folder / "moves", watch(run["move_curve"], truth, after))
    _keep(found, folder / "moved.npy")
    run["split_and_merge"] = {
        **scores(found.expectation.labels, truth),
        "bound": round(found.expectation.objective, 4),
        "n_moves": sum("move" in row for row in run["move_curve"]),
    }


def _em(X, start: torch.Tensor, settings: EMSettings, max_iter: int, folder: Path, run) -> Fit:
    pooled = torch.as_tensor(X.reshape(-1, 14, 2, 14, 2).mean((2, 4)).reshape(len(X), -1))
    models, stages = lambda g: VAEs(K, CONFIG, g), [Stage(settings, RestartPlan(max_iter))]
    return fit_in_stages(pooled, lambda _: start, models, stages, checkpoint=folder, run=run)[-1]


def _keep(found: Fit, path: Path) -> None:
    np.save(path, found.expectation.responsibilities_NK.numpy().astype(np.float16))


def _kept(path: Path) -> np.ndarray:
    return np.load(path).astype(np.float32)


def _second_stage(X, truth, run: dict[str, Any], folder: Path, max_iter: int) -> None:
    """The estimator's defaults on whole images, from the responsibilities that split and merge ended with."""
    start = _kept(folder / "moved.npy")
    cpu = time.process_time()
    mixture = VAEMixture(
        K, init=start, max_iter=min(6, max_iter), random_state=run["seed"], checkpoint=folder / "after_moves"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the number of iterations is part of the experiment
        mixture.fit(X)
    run["end"] = {**scores(mixture.labels_, truth), "bound": round(mixture.bound_, 3)}
    run["second_stage_cpu_seconds"] = round(time.process_time() - cpu, 1)
