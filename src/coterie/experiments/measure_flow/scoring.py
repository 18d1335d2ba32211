"""Data sets of the document's evaluation (E.1) and the columns of its tables: squared W2 of every instance."""

from collections.abc import Callable, Mapping
from functools import lru_cache

import numpy as np
import torch
from sklearn.cluster import KMeans
from torch import Tensor

from coterie import checkpoints
from coterie.data.mixtures import MixturePrior, Mixtures, sample_mixtures
from coterie.flow.atoms import Atoms
from coterie.flow.inference import estimated_snr, flow_tokens, path_atoms, posterior_tokens, token_atoms
from coterie.flow.model import MeasureFlow, Regime
from coterie.metrics import squared_w2

Column = Callable[[Mixtures], Tensor]
SEED = 20_250
BATCH = 20


def shipped(name: str) -> bool:
    """Whether that variant has been trained."""
    return name in {card["name"] for card in checkpoints.available()}


def network(name: str) -> MeasureFlow | None:
    return checkpoints.load(name) if shipped(name) else None


def instances(snr_db: float, n_points: int, count: int, seed: int = SEED) -> list[Mixtures]:
    """``count`` data sets with 3 to 7 clusters at one SNR, in batches; the same for every column."""
    prior = MixturePrior(clusters=(3, 7), clusters_law="poisson", clusters_mean=5.0, snr_db=(snr_db, snr_db))
    generator = torch.Generator().manual_seed(seed)
    sizes = [min(BATCH, count - first) for first in range(0, count, BATCH)]
    return [sample_mixtures(prior, size, n_points, generator) for size in sizes]


def score(column: Column, batches: list[Mixtures]) -> np.ndarray:
    """Squared W2 of every instance."""
    return torch.cat([column(batch) for batch in batches]).double().numpy()


def score_all(
    columns: Mapping[str, Column | None], batches: list[Mixtures], slow: int | None = None
) -> dict[str, np.ndarray]:
    """Scores of all columns that there are, batch by batch, so that columns share a network's tokens.

    Columns with an estimated SNR stop after ``slow`` instances.
    """
    w2: dict[str, list[Tensor]] = {name: [] for name, column in columns.items() if column is not None}
    for number, batch in enumerate(batches):
        late = slow is not None and number * BATCH >= slow
        for name in w2:
            column = columns[name]
            if column is not None and not (late and name.endswith("snr_estimated")):
                w2[name].append(column(batch))
    return {name: torch.cat(parts).double().numpy() for name, parts in w2.items()}


def kmeans(data: Mixtures) -> Tensor:
    """k-means of the points, told the number of clusters, from one random start."""
    return _atoms_error(kmeans_atoms(data.points_BND, data), data)


def kmeans_atoms(tokens_BND: Tensor, data: Mixtures) -> Atoms:
    """Centres and shares of k-means from one random start, with the true number of clusters."""
    batch, n_points, dim = tokens_BND.shape
    centers_BKD = torch.zeros(batch, data.centers_BKD.shape[1], dim)
    weights_BK = torch.zeros(batch, data.centers_BKD.shape[1])
    for b, (tokens, k) in enumerate(zip(tokens_BND.numpy(), data.n_clusters_B.tolist())):
        k = min(k, len(np.unique(tokens, axis=0)))
        fitted = KMeans(k, init="random", n_init=1, random_state=b).fit(tokens)
        centers_BKD[b, :k] = torch.as_tensor(fitted.cluster_centers_)
        weights_BK[b, :k] = torch.as_tensor(np.bincount(fitted.labels_, minlength=k) / n_points)
    return Atoms(centers_BKD, weights_BK)


@lru_cache(maxsize=4)
def _flow(name: str, data: Mixtures, n_layers: int | None = None, regime: Regime | None = None) -> Tensor:
    return flow_tokens(checkpoints.load(name), data.points_BND, data.snr_db_B, n_layers=n_layers, regime=regime)


@lru_cache(maxsize=4)
def _estimated(name: str, data: Mixtures) -> tuple[Tensor, Tensor]:
    """SNR estimated from each data set along the path, and the tokens that it gives."""
    model = checkpoints.load(name)
    snr_db_B = torch.tensor([estimated_snr(path_atoms(model, points), points) for points in data.points_BND])
    return snr_db_B, flow_tokens(model, data.points_BND, snr_db_B)


def tokens(name: str, n_layers: int | None = None, regime: Regime | None = None) -> Column | None:
    """The measure of the network's tokens; None if that network is not shipped."""
    if not shipped(name):
        return None
    return lambda data: squared_w2(_flow(name, data, n_layers, regime), data.centers_BKD, data.empirical_weights_BK)


def kmeans_of_tokens(name: str, n_layers: int | None = None) -> Column | None:
    """k-means of the tokens instead of the points (E.5)."""
    if not shipped(name):
        return None
    return lambda data: _atoms_error(kmeans_atoms(_flow(name, data, n_layers), data), data)


def refined(name: str, *, snr_known: bool = True) -> Column | None:
    """Tokens merged to atoms and refined by EM; no number of clusters is given. The SNR is, or is estimated."""
    if not shipped(name):
        return None

    def column(data: Mixtures) -> Tensor:
        snr_db_B, estimate = (data.snr_db_B, _flow(name, data)) if snr_known else _estimated(name, data)
        return _atoms_error(token_atoms(data.points_BND, estimate, snr_db_B), data)

    return column


def averaged(name: str, *, snr_known: bool = True) -> Column | None:
    """The posterior's average from the flow's atoms; no number of clusters is given. The SNR is, or is estimated."""
    if not shipped(name):
        return None

    def column(data: Mixtures) -> Tensor:
        snr_db_B, estimate = (data.snr_db_B, _flow(name, data)) if snr_known else _estimated(name, data)
        generator = torch.Generator().manual_seed(SEED)
        estimate = posterior_tokens(data.points_BND, estimate, snr_db_B, generator)
        return squared_w2(estimate, data.centers_BKD, data.empirical_weights_BK)

    return column


def _atoms_error(atoms: Atoms, data: Mixtures) -> Tensor:
    return squared_w2(atoms.centers_BKD, data.centers_BKD, data.empirical_weights_BK, atoms.weights_BK)


def summary(w2: np.ndarray) -> dict[str, float]:
    """Mean and mean logarithm with their standard errors."""
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
    """a - b over the same instances, of the values and of their logarithms: negative where a is better."""
    log_ratio = np.log(np.maximum(a, 1e-12)) - np.log(np.maximum(b, 1e-12))
    root = np.sqrt(len(a))
    return {
        "mean": float((a - b).mean()),
        "mean_se": float((a - b).std(ddof=1) / root),
        "log": float(log_ratio.mean()),
        "log_se": float(log_ratio.std(ddof=1) / root),
        "share_better": float((a < b).mean()),
    }
