"""Scores of one setting: the paper's network over seeds, and other methods on the same test data."""

import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from coterie import checkpoints, starts
from coterie.incontext import consensus
from coterie.incontext.inference import read
from coterie.incontext.pair_transformer import PairTransformer
from coterie.incontext.starting import em, lloyd
from coterie.mixtures import spherical_sampler
from coterie_research.incontext_em.point_training import (
    ExponentialDecay,
    Starts,
    start_of,
    starting_labels,
    train_points,
)
from coterie_research.incontext_em.point_transformer import PointConfig, PointTransformer
from coterie_research.incontext_em.settings import MOST_STEPS, Budget, Row, Setting
from coterie_research.metrics import best_renaming, clustering_scores, permutation_free_cross_entropy
from coterie_research.training.incontext.prior import Separated

SEED = 20_250
SHIPPED = "incontext"
Score = Callable[[PointTransformer], Any]


def test_data(setting: Setting, instances: int) -> Separated:
    """The same data sets for every method and every run."""
    return setting.source()(instances, torch.Generator().manual_seed(SEED))


def summary(found_BN: np.ndarray, log_p_BNK: torch.Tensor | None, data: Separated) -> dict[str, Any]:
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


def started(data: Separated, init: str, seed: Callable[[int], int] = lambda number: 0) -> list[np.ndarray]:
    """The start centres of every data set, by a seed for its number."""
    return [
        starts.choose(x, data.n_clusters, init, np.random.RandomState(seed(number)))
        for number, x in enumerate(data.points_BND.numpy())
    ]


def lloyd_labels(data: Separated, centers: list[np.ndarray], max_iter: int = 300) -> np.ndarray:
    """scikit-learn's Lloyd from given centres."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return np.stack(
            [
                KMeans(len(start), init=start, n_init=1, max_iter=max_iter, tol=1e-4).fit(x).labels_
                for x, start in zip(data.points_BND.numpy(), centers)
            ]
        )


def start_centers(x: np.ndarray, n_clusters: int, n_starts: int = 10) -> np.ndarray:
    """Centres (S, K, D) as InContextClusterer begins: greedy k-means++ and spectral starts in turn."""
    kinds = ("k-means++", "spectral")
    return np.stack(
        [starts.choose(x, n_clusters, kinds[seed % 2], np.random.RandomState(seed)) for seed in range(n_starts)]
    )


def shipped_answers(network: PairTransformer, data: Separated) -> tuple[np.ndarray, torch.Tensor]:
    """Labels (B, N) and log probabilities (B, N, K) of the shipped network, as InContextClusterer finds them."""
    labels, probabilities = [], []
    for x_ND in data.points_BND:
        centers = torch.from_numpy(start_centers(x_ND.numpy(), data.n_clusters))
        reading, log_p_SNK = read(network, x_ND, centers, n_modes=4)
        labels.append(reading.labels(log_p_SNK))
        probabilities.append(reading.probabilities(log_p_SNK))
    return np.stack(labels), floored_log(np.stack(probabilities))


def em_log_p(data: Separated, *, mixing_weights: bool, n_iter: int = 30) -> torch.Tensor:
    """EM with one variance: of the same ten starts the one that ends with the largest likelihood."""
    found = []
    for x_ND in data.points_BND.double():
        centers_SKD = torch.from_numpy(start_centers(x_ND.numpy(), data.n_clusters))
        x_SND = x_ND.expand(len(centers_SKD), -1, -1)
        fitted = em(x_SND, lloyd(x_SND, centers_SKD, 5), n_iter, mixing_weights=mixing_weights, prior=0.0)
        best = fitted.pick(fitted.log_likelihood_B.argmax()[None])
        sq_1NK = torch.cdist(x_ND[None], best.centers_BKD).square()
        found.append((best.shares_BK.clamp_min(1e-300).log()[:, None] - sq_1NK / (2 * best.var_B)).log_softmax(-1))
    return torch.cat(found)


def posterior_answers(data: Separated, *, from_truth: bool = False) -> tuple[np.ndarray, torch.Tensor]:
    """Labels and log probabilities of the Bayesian posterior that is not told the centres: what can be attained.

    The number of clusters and that all have one variance is known, nothing else. Labels maximise the expected adjusted
    Rand index. Chains start at k-means' centres, with replicas, or as a check at the true ones, without.
    """
    labels, probabilities = [], []
    for number, (x, truth) in enumerate(zip(data.points_BND.double().numpy(), data.centers_BKD.double().numpy())):
        start = truth if from_truth else KMeans(data.n_clusters, n_init=10, random_state=0).fit(x).cluster_centers_
        rng = np.random.default_rng([SEED, number])
        replicas = spherical_sampler.temperatures(1 if from_truth else spherical_sampler.REPLICAS)
        members = spherical_sampler.sample(
            x, start, rng, spherical_sampler.SWEEPS, inverse_temperatures=replicas
        ).members(x)
        labels.append(consensus.best_partition(members))
        probabilities.append(consensus.aligned_mean(members))
    return np.stack(labels), floored_log(np.stack(probabilities))


def copied_labels(data: Separated, n_iter: int = 10) -> np.ndarray:
    """The labels that the context rows P carry, untouched; after ``n_iter`` Lloyd iterations from Algorithm 2."""
    return starting_labels(data.points_BND, data.n_clusters, torch.Generator().manual_seed(SEED), n_iter)[1].numpy()


def floored_log(p_BNK: np.ndarray, floor: float = 1e-6) -> torch.Tensor:
    """The logarithm of probabilities, a share ``floor`` of which is spread over all labels: a mean can be 0."""
    return torch.as_tensor((1 - floor) * p_BNK + floor / p_BNK.shape[-1]).log()


@cache
def shipped() -> PairTransformer:
    return checkpoints.load(SHIPPED)


def references(setting: Setting, budget: Budget, *, check: bool = False) -> dict[str, Any]:
    """The scores of every method without a network on the setting's test data, and the ARI of each data set.

    ``check`` adds the posterior by chains that start at the truth, without replicas.
    """
    data = test_data(setting, budget.instances)
    bayes = data.bayes_log_p_BNK()
    answers: dict[str, tuple[np.ndarray, torch.Tensor | None]] = {
        "kmeans": (kmeans_labels(data), None),
        "lloyd_spectral": (lloyd_labels(data, started(data, "spectral")), None),
        "copied": (copied_labels(data), None),
        "bayes": (bayes.argmax(-1).numpy(), bayes),
        "posterior": posterior_answers(data),
    }
    for name, mixing_weights in (("em", False), ("em_weights", True)):
        log_p = em_log_p(data, mixing_weights=mixing_weights)
        answers[name] = (log_p.argmax(-1).numpy(), log_p)
    if check:
        answers["posterior_from_truth"] = posterior_answers(data, from_truth=True)
    scores: dict[str, Any] = {name: summary(*answer, data) for name, answer in answers.items()}
    variance = data.var_BK.mean(1)
    scores["minimax_rate"] = round(float((-(setting.distance**2) / (8 * variance)).exp().mean()), 5)
    truth = data.labels_BN.numpy()
    ari = {name: clustering_scores(found, truth)["ari"].round(5).tolist() for name, (found, _) in answers.items()}
    return {"scores": scores, "ari": ari}


def shipped_scores(setting: Setting, budget: Budget, others: dict[str, list[float]]) -> dict[str, Any]:
    """The shipped network's scores, and its gain in ARI over each of ``others``, with the paired standard error."""
    data = test_data(setting, budget.instances)
    labels, log_p = shipped_answers(shipped(), data)
    own = clustering_scores(labels, data.labels_BN.numpy())["ari"]
    gain = {}
    for name, other in others.items():
        difference = own - np.array(other)
        se = float(difference.std() / len(own) ** 0.5)
        gain[name] = {"mean": round(float(difference.mean()), 5), "se": round(se, 5)}
    return {"shipped": summary(labels, log_p, data), "gain": gain}


def train_setting(setting: Setting, budget: Budget, seed: int, start: Starts = start_of) -> PointTransformer:
    """The paper's network for one setting. Gradients are clipped at norm 1, of which the paper says nothing."""
    config = PointConfig(dims=setting.dims, n_clusters=setting.n_clusters, **setting.network)
    steps = min(budget.steps * config.n_layers, MOST_STEPS) if budget.per_layer else budget.steps
    training = ExponentialDecay(steps=steps, seed=seed, log_every=steps, checkpoint_every=steps)
    instances = setting.training_instances
    batch = budget.batch if instances is None else min(budget.batch, instances)
    return train_points(config, setting.source(), training, batch=batch, instances=instances, start=start)


def network_scores(network: PointTransformer, data: Separated, start: Starts = start_of) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(SEED)
    parts = []
    with torch.no_grad():
        for x_BND in data.points_BND.split(64):
            parts.append(network(x_BND, start(network.config, x_BND, generator)))
    log_p = torch.cat(parts)
    return summary(log_p.argmax(-1).numpy(), log_p, data)


class Kept:
    """Scores of a figure so far, in a file: a run that was stopped goes on where it was. Deleted when done."""

    def __init__(self, path: Path, budget: Budget):
        # a run may add seeds and settings to those of an earlier one
        self.path, self.budget = path, str(replace(budget, seeds=0, settings=None))
        stored = json.loads(path.read_text()) if path.exists() else {}
        self.values: dict[str, Any] = stored["values"] if stored.get("budget") == self.budget else {}

    def once(self, name: str, make: Callable[[], Any]) -> Any:
        """What was kept under the name, or what ``make`` gives, which is then kept."""
        if name not in self.values:
            self.values[name] = make()
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(json.dumps({"budget": self.budget, "values": self.values}))
        return self.values[name]

    def done(self) -> None:
        self.path.unlink(missing_ok=True)


def trained(
    setting: Setting, name: str, budget: Budget, kept: Kept, score: Score, start: Starts = start_of
) -> list[Any]:
    """``score`` of the network of each seed, trained for the setting and kept under the name."""
    return [
        kept.once(f"{name}/{seed}", lambda seed=seed: score(train_setting(setting, budget, seed, start)))  # type: ignore[misc]
        for seed in range(budget.seeds)
    ]


def network_row(row: Row, budget: Budget, kept: Kept) -> list[dict[str, Any]]:
    """The paper's network on every setting of a row, over seeds; nothing where no network is trained."""
    found = []
    for setting in row.settings:
        name = f"{row.name}/{setting.value:g}/{json.dumps(setting.network, sort_keys=True)}"

        def score(network: PointTransformer, setting: Setting = setting) -> dict[str, Any]:
            return network_scores(network, test_data(setting, budget.instances))

        found.append(over_seeds(trained(setting, name, budget, kept, score)))
    return found


def run_row(row: Row, budget: Budget, kept: Kept, *, check: bool = False) -> list[dict[str, Any]]:
    """Every setting of a row: the network's scores, and the others' on the same test data."""
    points = []
    for setting, network in zip(row.settings, network_row(row, budget, kept)):
        name = str((*setting.data_key(), check))
        others = kept.once(f"references/{name}", partial(references, setting, budget, check=check))
        own = kept.once(f"shipped/{name}", partial(shipped_scores, setting, budget, others["ari"]))
        points.append({**others["scores"], **own, "value": setting.value, "transformer": network})
    return points


def over_seeds(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Mean and standard deviation over the seeds of the mean scores; nothing where no network was trained."""
    names = [name for name in runs[0] if not name.endswith("_se")] if runs else []
    values = {name: np.array([run[name] for run in runs]) for name in names}
    means = {name: round(float(value.mean()), 5) for name, value in values.items()}
    return means | {f"{name}_std": round(float(value.std()), 5) for name, value in values.items()}


def paper_loss(network: PointTransformer, setting: Setting, instances: int) -> float:
    """The loss of section 2.2: mean L1 distance of the output to the one-hot truth, least over all renamings."""
    data = test_data(setting, instances)
    start = start_of(network.config, data.points_BND, torch.Generator().manual_seed(SEED))
    with torch.no_grad():
        p_BNK = network(data.points_BND, start).exp()
    own_BNK = torch.nn.functional.one_hot(data.labels_BN, data.n_clusters).to(p_BNK)
    cost_BKK = 2 * own_BNK.mT @ (1 - p_BNK)  # ‖p - onehot‖₁ = 2 (1 - p of the own class)
    least = cost_BKK.gather(2, best_renaming(cost_BKK)[..., None])
    return float(least.sum((1, 2)).mean() / data.labels_BN.shape[1])


@dataclass(frozen=True)
class Run:
    """What a figure is measured with."""

    name: str
    budget: Budget
    output: Path
    kept: Kept
    rows: tuple[str, ...] = ()  # those to be measured; all if there are none

    def planned(self, rows: tuple[Row, ...]) -> list[Row]:
        """The rows to be measured, with the settings of the budget."""
        return [self.budget.of(row) for row in rows if not self.rows or row.name in self.rows]
