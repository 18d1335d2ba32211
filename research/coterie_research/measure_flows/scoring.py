"""The evaluation of Zimin et al. (2025), appendix E.1: data sets, and the squared W2 of each method on each of them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.cluster import KMeans
from torch import Tensor

from coterie import checkpoints
from coterie.files import replacing
from coterie.mixtures.atoms import flow_tokens
from coterie.mixtures.flow import Regime
from coterie.mixtures.spherical_sampler import Sweeps
from coterie_research import records
from coterie_research.measure_flows.inference import LONG, estimate_snr, posterior_tokens, token_atoms
from coterie_research.metrics import squared_w2
from coterie_research.training.flow.prior import MixturePrior, Mixtures, sample_mixtures
from coterie_research.training.flow.targets import Atoms

SEED = 20_250
BATCH = 20


@dataclass(frozen=True)
class Column:
    """A column of a table: a method, and its squared W2 on each data set of a batch, for at most ``most`` data sets."""

    what: str
    score: Callable[[Mixtures], Tensor]
    network: str | None = None
    most: int | None = None
    regime: Regime | None = None  # other than that of the network's training

    def key(self, snr_db: float, n_points: int) -> str:
        """Identifies what is scored; the key changes with the weights."""
        weights = "" if self.network is None else f"{self.network}:{checkpoints.card(self.network)['sha256'][:12]}"
        return f"{self.what}|{weights}|{snr_db:g} dB|{n_points}"


Columns = Mapping[str, Column]


def _hashes() -> dict[str, str]:
    return {card["name"]: card["sha256"][:12] for card in checkpoints.available() if card["kind"] == "flow"}


experiment = partial(records.experiment, seed=SEED, weights=_hashes)


class Kept:
    """Scores kept in a file: tables and figures share them, and an interrupted run continues from them."""

    def __init__(self, path: Path | None = None):
        self.path = path
        self.values: dict[str, np.ndarray] = {}
        if path is not None and path.exists():
            with np.load(path) as stored:
                self.values = dict(stored)

    def get(self, key: str) -> np.ndarray:
        return self.values.get(key, np.empty(0))

    def add(self, key: str, w2: np.ndarray) -> None:
        self.values[key] = np.concatenate([self.get(key), w2])
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(self.path) as temporary, open(temporary, "wb") as file:
                arrays: dict[str, Any] = {name: value.astype(np.float32) for name, value in self.values.items()}
                np.savez_compressed(file, **arrays)


def instances(snr_db: float, n_points: int, count: int, seed: int = SEED) -> Iterator[Mixtures]:
    """At least ``count`` data sets with 3 to 7 clusters at one SNR, in batches, the same for every column."""
    prior = MixturePrior(clusters=(3, 7), clusters_law="poisson", clusters_mean=5.0, snr_db=(snr_db, snr_db))
    generator = torch.Generator().manual_seed(seed)
    for _ in range(0, count, BATCH):
        yield sample_mixtures(prior, min(BATCH, count), n_points, generator)


def score_all(
    columns: Columns, snr_db: float, n_points: int, count: int, kept: Kept | None = None
) -> dict[str, np.ndarray]:
    """Scores of all columns, batch by batch, so that columns share the tokens of a network."""
    kept = Kept() if kept is None else kept
    wanted = {name: min(count, column.most or count) for name, column in columns.items()}
    keys = {name: column.key(snr_db, n_points) for name, column in columns.items()}
    for number, batch in enumerate(instances(snr_db, n_points, count)):
        for name, column in columns.items():
            if len(kept.get(keys[name])) <= number * BATCH < wanted[name]:
                kept.add(keys[name], column.score(batch).double().numpy())
    return {name: kept.get(key)[: wanted[name]] for name, key in keys.items()}


def kmeans(data: Mixtures, init: str = "random") -> Tensor:
    """k-means of the points with the true number of clusters, from one start."""
    return _atoms_error(kmeans_atoms(data.points_BND, data, init), data)


KMEANS = Column("kmeans", kmeans)  # as in the paper, from one random start
KMEANS_PLUS_PLUS = Column("kmeans++", lambda data: kmeans(data, "k-means++"))


def kmeans_atoms(tokens_BND: Tensor, data: Mixtures, init: str = "random") -> Atoms:
    """Centres and weights of k-means with the true number of clusters, from one start."""
    batch, n_points, dim = tokens_BND.shape
    centers_BKD = torch.zeros(batch, data.centers_BKD.shape[1], dim)
    weights_BK = torch.zeros(batch, data.centers_BKD.shape[1])
    for b, (tokens, k) in enumerate(zip(tokens_BND.numpy(), data.n_clusters_B.tolist())):
        k = min(k, len(np.unique(tokens, axis=0)))
        fitted = KMeans(k, init=init, n_init=1, random_state=b).fit(tokens)
        centers_BKD[b, :k] = torch.as_tensor(fitted.cluster_centers_)
        weights_BK[b, :k] = torch.as_tensor(np.bincount(fitted.labels_, minlength=k) / n_points)
    return Atoms(centers_BKD, weights_BK)


@lru_cache(maxsize=4)
def _flow(name: str, data: Mixtures, regime: Regime | None = None) -> Tensor:
    return flow_tokens(checkpoints.load(name), data.points_BND, data.snr_db_B, regime=regime)


@lru_cache(maxsize=4)
def _estimated(name: str, data: Mixtures) -> tuple[Tensor, Tensor]:
    """The SNR estimated from each data set, and the tokens for it."""
    model = checkpoints.load(name)
    snr_db_B = torch.tensor([estimate_snr(model, points) for points in data.points_BND])
    return snr_db_B, flow_tokens(model, data.points_BND, snr_db_B)


def tokens(name: str, regime: Regime | None = None, most: int | None = None) -> Column:
    """The empirical measure of the tokens."""

    def score(data: Mixtures) -> Tensor:
        return squared_w2(_flow(name, data, regime), data.centers_BKD, data.empirical_weights_BK)

    return Column(f"tokens  {regime or ''}", score, name, most, regime)


def kmeans_of_tokens(name: str, most: int | None = None) -> Column:
    """k-means of the tokens instead of the points (appendix E.5)."""

    def score(data: Mixtures) -> Tensor:
        return _atoms_error(kmeans_atoms(_flow(name, data), data), data)

    return Column("k-means of tokens ", score, name, most)


def refined(name: str, *, snr_known: bool = True, most: int | None = None) -> Column:
    """Tokens merged to atoms and refined by EM, without the number of clusters; the SNR is given or estimated."""

    def score(data: Mixtures) -> Tensor:
        snr_db_B, estimate = _told(name, data, snr_known)
        return _atoms_error(token_atoms(data.points_BND, estimate, snr_db_B), data)

    return Column("EM" if snr_known else "EM, SNR estimated", score, name, most)


def averaged(name: str, *, snr_known: bool = True, sweeps: Sweeps = LONG, most: int | None = None) -> Column:
    """The average over the posterior, without the number of clusters; the SNR is given or estimated."""

    def score(data: Mixtures) -> Tensor:
        snr_db_B, estimate = _told(name, data, snr_known)
        generator = torch.Generator().manual_seed(SEED)
        estimate = posterior_tokens(data.points_BND, estimate, snr_db_B, generator, sweeps, snr_known=snr_known)
        return squared_w2(estimate, data.centers_BKD, data.empirical_weights_BK)

    return Column("posterior" if snr_known else "posterior, variance drawn", score, name, most)


def _told(name: str, data: Mixtures, snr_known: bool) -> tuple[Tensor, Tensor]:
    return (data.snr_db_B, _flow(name, data)) if snr_known else _estimated(name, data)


def _atoms_error(atoms: Atoms, data: Mixtures) -> Tensor:
    return squared_w2(atoms.centers_BKD, data.centers_BKD, data.empirical_weights_BK, atoms.weights_BK)


def summary(w2: np.ndarray) -> dict[str, float]:
    """Mean and mean logarithm, with their standard errors."""
    log_w2 = np.log(np.maximum(w2, 1e-12))
    root = np.sqrt(len(w2))
    return {
        "instances": len(w2),
        "mean": float(w2.mean()),
        "mean_se": float(w2.std(ddof=1) / root),
        "log": float(log_w2.mean()),
        "log_se": float(log_w2.std(ddof=1) / root),
    }


def paired(a: np.ndarray, b: np.ndarray) -> dict[str, float]:
    """Mean of a - b over the same instances, and of the difference of their logarithms; negative if a is better."""
    log_ratio = np.log(np.maximum(a, 1e-12)) - np.log(np.maximum(b, 1e-12))
    root = np.sqrt(len(a))
    return {
        "mean": float((a - b).mean()),
        "mean_se": float((a - b).std(ddof=1) / root),
        "log": float(log_ratio.mean()),
        "log_se": float(log_ratio.std(ddof=1) / root),
        "share_better": float((a < b).mean()),
    }
