"""Ablations: small runs on MNIST, each of which differs from the defaults in one setting."""

import time
from typing import Any

import numpy as np
import torch
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA

from coterie import starts
from coterie.generative.fitting import RestartPlan, Stage, fit_in_stages
from coterie.generative.mixture import EMSettings
from coterie.generative.vaes import VAEConfig, VAEs
from coterie.geometry import neighbours
from coterie_research import images
from coterie_research.mixture_of_vaes import pictures
from coterie_research.mixture_of_vaes.normalizing_flows import FlowConfig, Flows
from coterie_research.mixture_of_vaes.record import experiment, scores

K = 10
SETTINGS = {"n_epochs": 6, "first_epochs": 60, "batch_size": 32}  # few images: more passes, smaller batches
BASE = {"start": "neighbour graph", "max_iter": 5, "settings": {}, "model": "vae"}
# question: (answer, what differs from BASE)
QUESTIONS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "samples": [(str(n), {"settings": {"n_samples": n, "screen_gap": 1e9}}) for n in (1, 5, 10)]
    + [("10, screened", {})],
    "start": [(name, {"start": name}) for name in ("neighbour graph", "k-means", "random", "uniform")],
    "temperature, from k-means": [
        (f"{t:g}", {"start": "k-means", "settings": {"temperature": t, "anneal_iter": 4}}) for t in (1.0, 8.0, 64.0)
    ],
    "epochs per M-step": [(str(n), {"settings": {"n_epochs": n}}) for n in (2, 6, 20)],
    "judges, from k-means": [
        ("other half", {"start": "k-means"}),
        ("own (as in the paper)", {"start": "k-means", "settings": {"folds": 1}}),
    ],
    "start as evidence": [("no", {}), ("yes", {"settings": {"start_evidence": True}})],
    "model": [
        ("VAE", {}),
        ("VAE, 256 / 20", {"sizes": (256, 20)}),
        ("VAE, continuous", {"likelihood": "continuous_bernoulli"}),
        ("flow, PCA-20", {"model": "flow"}),
    ],
}


@experiment("ablations", pictures.ablations)
def ablations(quick: bool) -> dict[str, Any]:
    """Samples, starts, temperature, epochs, cross-fitting; and the exact likelihood of normalising flows."""
    n, seeds = (600, range(1)) if quick else (2000, range(1))
    X, truth = (part[:n] for part in images.load("mnist"))
    X, groups = X / np.float32(255), {}
    for question, answers in QUESTIONS.items():
        rows = []
        for value, changes in answers:
            runs = [_run(X, truth, {**BASE, **changes}, seed, quick) for seed in seeds]
            rows.append({"value": value, **{key: [run[key] for run in runs] for key in runs[0]}})
        groups[question] = rows
    return {"n_samples": n, "seeds": len(seeds), "groups": groups}


def _run(X, truth, options: dict[str, Any], seed: int, quick: bool) -> dict[str, Any]:
    start = torch.as_tensor(_start(X, options["start"], np.random.RandomState(seed)))
    if options["model"] == "flow":
        X = PCA(20, whiten=True, random_state=seed).fit_transform(X)
    settings = EMSettings(K, **{**SETTINGS, "seed": seed, **options["settings"]})
    cpu = time.process_time()
    (found,) = fit_in_stages(
        torch.as_tensor(X, dtype=torch.float32),
        lambda number: start,
        lambda generator: _networks(options, X.shape[1], settings.folds * K, generator),
        [Stage(settings, RestartPlan(2 if quick else options["max_iter"], tol=0.0))],
    )
    return {
        "start_accuracy": scores(found.start_labels.numpy(), truth)["accuracy"],
        "accuracy": scores(found.expectation.labels, truth)["accuracy"],
        "bound": round(found.expectation.objective, 3),
        "entropy": round(found.expectation.entropy, 4),
        "cpu_seconds": round(time.process_time() - cpu, 1),
    }


def _networks(options: dict[str, Any], n_features: int, n_networks: int, generator: torch.Generator):
    if options["model"] == "flow":
        return Flows(n_networks, FlowConfig(n_features, 64), generator)
    hidden, latent = options.get("sizes", (128, 8))
    config = VAEConfig(n_features, hidden, latent, options.get("likelihood", "bernoulli"))
    return VAEs(n_networks, config, generator)


def _start(X, name: str, random_state) -> np.ndarray:
    if name == "uniform":
        return np.full((len(X), K), 1 / K, dtype=np.float32)
    if name == "random":
        labels = random_state.permutation(len(X)) % K
    elif name == "k-means":
        labels = KMeans(K, n_init=3, random_state=random_state).fit_predict(X)
    else:
        graph, node_of_row = starts.neighbour_graph(X)
        labels = neighbours.partition(graph, K, random_state)[node_of_row]
    return np.eye(K, dtype=np.float32)[labels]
