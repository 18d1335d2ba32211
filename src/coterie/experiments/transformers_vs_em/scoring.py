"""Scores of one setting: the document's network over seeds, and what stands beside it on the same test data."""

import json
import platform
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.cluster import KMeans

import coterie
from coterie import checkpoints, starts
from coterie.data.separated import Separated
from coterie.experiments.transformers_vs_em.settings import Budget, Row, Setting
from coterie.incontext.pair_transformer import PairConfig, PairTransformer
from coterie.incontext.point_transformer import PointConfig, PointTransformer
from coterie.incontext.train import ExponentialDecay, starting_labels, train_points
from coterie.metrics import clustering_scores, permutation_free_cross_entropy
from coterie.starts.batched import best_start

SEED = 20_250
SHIPPED = "incontext"


def test_data(setting: Setting, instances: int) -> Separated:
    """The same data sets for every method and every run."""
    return setting.source()(instances, torch.Generator().manual_seed(SEED))


def summary(found_BN: np.ndarray, data: Separated, log_p_BNK: torch.Tensor | None = None) -> dict[str, Any]:
    """Mean and standard error over the test data sets; the loss where there are probabilities."""
    scores = clustering_scores(found_BN, data.labels_BN.numpy())
    if log_p_BNK is not None:
        scores["loss"] = permutation_free_cross_entropy(log_p_BNK, data.labels_BN)[0].numpy()
    root = len(data) ** 0.5
    means = {name: round(float(values.mean()), 5) for name, values in scores.items()}
    return means | {f"{name}_se": round(float(values.std() / root), 5) for name, values in scores.items()}


def kmeans_labels(data: Separated) -> np.ndarray:
    """scikit-learn's k-means++ with 10 starts."""
    return np.stack(
        [KMeans(data.n_clusters, n_init=10, random_state=0).fit(x).labels_ for x in data.points_BND.numpy()]
    )


def spectral_labels(data: Separated, max_iter: int = 300) -> np.ndarray:
    """Lloyd's algorithm from Algorithm 2's start."""
    found = []
    for x in data.points_BND.numpy():
        start = starts.choose(x, data.n_clusters, "spectral", np.random.RandomState(0))
        found.append(lloyd_labels(x, start, max_iter))
    return np.stack(found)


def lloyd_labels(x: np.ndarray, start: np.ndarray, max_iter: int) -> np.ndarray:
    """scikit-learn's Lloyd from given centres."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return KMeans(len(start), init=start, n_init=1, max_iter=max_iter, tol=1e-4).fit(x).labels_


def refined_log_p(network: PairTransformer, data: Separated) -> torch.Tensor:
    """A pair transformer from the best of ten starts, as InContextClusterer begins."""
    generator = torch.Generator().manual_seed(SEED)
    parts = []
    with torch.no_grad():
        for x_BND in data.points_BND.split(32):
            start_BKD = best_start(x_BND, data.n_clusters, generator, spectral=5)
            parts.append(network(x_BND, start_BKD)[-1])
    return torch.cat(parts)


@cache
def shipped() -> PairTransformer:
    return checkpoints.load(SHIPPED)


@cache
def plain_em(n_iter: int = 30) -> PairTransformer:
    """EM with one variance and equal weights: what the shipped network was before its training, run for longer."""
    return PairTransformer(PairConfig(width=2, n_heads=1, mlp_ratio=1, n_layers=n_iter)).eval()


def has_shipped() -> bool:
    return any(card["name"] == SHIPPED for card in checkpoints.available())


def beside(setting: Setting, budget: Budget, cached: dict[tuple, dict]) -> dict[str, Any]:
    """What every picture shows beside the document's network: k-means, Lloyd, EM, Bayes, the shipped network.

    ``gain`` is the shipped network's ARI minus another's on the same data sets, with the paired standard error.
    """
    key = setting.data_key()
    if key in cached:
        return cached[key]
    data = test_data(setting, budget.instances)
    bayes = data.bayes_log_p_BNK()
    labels = {"kmeans": kmeans_labels(data), "lloyd_spectral": spectral_labels(data)}
    record: dict[str, Any] = {name: summary(found, data) for name, found in labels.items()}
    record["bayes"] = summary(bayes.argmax(-1).numpy(), data, bayes)
    em = refined_log_p(plain_em(), data)
    labels["em"] = em.argmax(-1).numpy()
    record["em"] = summary(labels["em"], data, em)
    variance = data.var_BK.mean(1)
    record["minimax_rate"] = round(float((-(setting.distance**2) / (8 * variance)).exp().mean()), 5)
    if has_shipped():
        log_p = refined_log_p(shipped(), data)
        found = log_p.argmax(-1).numpy()
        record["shipped"] = summary(found, data, log_p)
        truth = data.labels_BN.numpy()
        own = clustering_scores(found, truth)["ari"]
        gains = {name: own - clustering_scores(other, truth)["ari"] for name, other in labels.items()}
        record["gain"] = {
            name: {"mean": round(float(gain.mean()), 5), "se": round(float(gain.std() / len(gain) ** 0.5), 5)}
            for name, gain in gains.items()
        }
    cached[key] = record
    return record


def train_setting(setting: Setting, budget: Budget, seed: int) -> PointTransformer:
    """The document's network for one setting."""
    config = PointConfig(dims=setting.dims, n_clusters=setting.n_clusters, **setting.network)
    training = ExponentialDecay(steps=budget.steps, seed=seed, log_every=budget.steps, checkpoint_every=budget.steps)
    instances = setting.training_instances
    batch = budget.batch if instances is None else min(budget.batch, instances)
    return train_points(config, setting.source(), training, batch=batch, instances=instances)


def network_scores(network: PointTransformer, data: Separated) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(SEED)
    parts = []
    with torch.no_grad():
        for x_BND in data.points_BND.split(64):
            start = starting_labels(x_BND, data.n_clusters, generator) if network.config.context else None
            parts.append(network(x_BND, start))
    log_p = torch.cat(parts)
    return summary(log_p.argmax(-1).numpy(), data, log_p)


def run_row(row: Row, budget: Budget, kept: "Kept", cached: dict[tuple, dict]) -> list[dict[str, Any]]:
    """Every setting of a row: the network's scores by seed, and the others'."""
    points = []
    for setting in row.settings:
        name = f"{row.name}/{setting.value:g}/{json.dumps(setting.network, sort_keys=True)}"
        data = None
        runs = []
        for seed in range(budget.seeds):
            score = kept.get(f"{name}/{seed}")
            if score is None:
                data = data or test_data(setting, budget.instances)
                score = kept.put(f"{name}/{seed}", network_scores(train_setting(setting, budget, seed), data))
            runs.append(score)
        others = kept.get(f"{name}/beside")
        if others is None:
            others = kept.put(f"{name}/beside", beside(setting, budget, cached))
        points.append({**others, "value": setting.value, "transformer": over_seeds(runs)})
    return points


def over_seeds(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Mean and standard deviation over the seeds of the mean scores; nothing where no network was trained."""
    if not runs:
        return {}
    names = [name for name in runs[0] if not name.endswith("_se")]
    values = {name: np.array([run[name] for run in runs]) for name in names}
    means = {name: round(float(value.mean()), 5) for name, value in values.items()}
    return means | {f"{name}_std": round(float(value.std()), 5) for name, value in values.items()}


class Kept:
    """Scores of a figure so far, in a file: a run that was stopped goes on where it was. Deleted when done."""

    def __init__(self, path: Path, budget: Budget):
        self.path = path
        self.values: dict[str, Any] = {}
        self.budget = str(budget)
        if path.exists():
            stored = json.loads(path.read_text())
            self.values = stored["values"] if stored["budget"] == self.budget else {}

    def get(self, name: str) -> Any:
        return self.values.get(name)

    def put(self, name: str, value: Any) -> Any:
        self.values[name] = value
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps({"budget": self.budget, "values": self.values}))
        return value

    def done(self) -> None:
        self.path.unlink(missing_ok=True)


def write(record: dict[str, Any], name: str, output: Path, budget: Budget, quick: bool) -> dict[str, Any]:
    """The record with the command, the budget, versions and the weights' hash before it, as JSON."""
    weights = {card["name"]: card["sha256"][:12] for card in checkpoints.available() if card["kind"] == "incontext"}
    head = {
        "command": f"coterie reproduce incontext/{name}" + (" --quick" if quick else ""),
        "seed": SEED,
        "budget": vars(budget),
        "centres": "N(0, I) points with mean zero, scaled so that the two nearest are the minimum distance apart",
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "coterie": coterie.__version__,
        },
        "weights": weights,
    }
    record = head | record
    output.mkdir(parents=True, exist_ok=True)
    (output / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
    return record
