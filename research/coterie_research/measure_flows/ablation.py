"""What the network adds: the same estimators with and without it, with their CPU seconds.

All methods know the SNR and none of them K. "k-means" starts come from the best of ten runs of k-means with
``KMEANS_CLUSTERS`` clusters, and are refined and sampled exactly as the atoms of the flow are. "EM + BIC" tries every
number of clusters from one k-means start. CPU seconds are medians of one thread. Points in one
cell of a grid are one point for the network.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from sklearn.cluster import KMeans
from torch import Tensor

from coterie import checkpoints
from coterie.mixtures.atoms import noise_variance
from coterie.mixtures.spherical_sampler import Sweeps
from coterie_research.measure_flows import published, scoring, tables
from coterie_research.measure_flows.atoms import refine_and_prune, run_em
from coterie_research.measure_flows.inference import barycentre, bayesian_information, cell_tokens, token_atoms
from coterie_research.metrics import squared_w2
from coterie_research.training.flow.prior import MixturePrior, Mixtures, sample_mixtures
from coterie_research.training.flow.targets import Atoms, posterior_samples

KMEANS_CLUSTERS = 10
KMEANS_CLUSTERS_HARD = 24
SWEEPS = Sweeps(burn_in=300, apart=20, n_draws=60)
INSTANCES, HARD_INSTANCES = 60, 60
HARD_SIZES = (100, 200, 300)
Method = Callable[[Mixtures, int], tuple[Tensor, Tensor | None]]  # data, largest K -> places and weights


def _tokens(data: Mixtures) -> Tensor:
    return cell_tokens(checkpoints.load(tables.MAIN), data.points_BND, data.snr_db_B)


def _kmeans(points_ND: np.ndarray, k: int, n_init: int = 10) -> Atoms:
    found = KMeans(k, n_init=n_init, random_state=0).fit(points_ND)
    weights_K = np.bincount(found.labels_, minlength=k) / len(points_ND)
    return Atoms(
        torch.as_tensor(found.cluster_centers_, dtype=torch.float32)[None],
        torch.as_tensor(weights_K, dtype=torch.float32)[None],
    )


def _averaged(data: Mixtures, atoms: Atoms, tokens_1ND: Tensor) -> Tensor:
    var_1 = noise_variance(data.points_BND, data.snr_db_B)
    signal_1, generator = var_1 * 10 ** (data.snr_db_B / 10), torch.Generator().manual_seed(scoring.SEED)
    return barycentre(tokens_1ND, posterior_samples(data.points_BND, atoms, var_1, signal_1, generator, SWEEPS))


def network(data: Mixtures, most: int) -> tuple[Tensor, Tensor | None]:
    return _tokens(data), None


def network_em(data: Mixtures, most: int) -> tuple[Tensor, Tensor | None]:
    return token_atoms(data.points_BND, _tokens(data), data.snr_db_B)


def network_posterior(data: Mixtures, most: int) -> tuple[Tensor, Tensor | None]:
    tokens_1ND = _tokens(data)
    return _averaged(data, token_atoms(data.points_BND, tokens_1ND, data.snr_db_B), tokens_1ND), None


def kmeans_em(data: Mixtures, most: int) -> tuple[Tensor, Tensor | None]:
    atoms = _kmeans(data.points_BND[0].numpy(), most)
    return refine_and_prune(data.points_BND, atoms, noise_variance(data.points_BND, data.snr_db_B))


def kmeans_posterior(data: Mixtures, most: int) -> tuple[Tensor, Tensor | None]:
    places, weights = kmeans_em(data, most)
    assert weights is not None
    return _averaged(data, Atoms(places, weights), data.points_BND), None


def em_bic(data: Mixtures, most: int) -> tuple[Tensor, Tensor | None]:
    points_1ND, var_1 = data.points_BND, noise_variance(data.points_BND, data.snr_db_B)
    found = []
    for k in range(1, most + 1):
        atoms = run_em(points_1ND, _kmeans(points_1ND[0].numpy(), k, n_init=1), var_1, max_iter=100, tol=1e-4).state[0]
        found.append((bayesian_information(points_1ND[0], atoms, float(var_1)), atoms))
    return min(found, key=lambda one: one[0])[1]


METHODS: dict[str, Method] = {
    "network": network,
    "network + EM": network_em,
    "network + posterior": network_posterior,
    "k-means x 10 + EM": kmeans_em,
    "k-means x 10 + posterior": kmeans_posterior,
    "k-means for every K + EM + BIC": em_bic,
}


def _single(batch: Mixtures, b: int) -> Mixtures:
    values = {name: value[b : b + 1] for name, value in vars(batch).items()}
    return Mixtures(**values)


def _scores(batches: list[Mixtures], most: int) -> dict[str, Any]:
    """Mean squared W2 and CPU seconds of every method, and the paired difference to the network with the posterior."""
    w2: dict[str, list[float]] = {name: [] for name in METHODS}
    seconds: dict[str, list[float]] = {name: [] for name in METHODS}
    for data in (_single(batch, b) for batch in batches for b in range(len(batch))):
        for name, method in METHODS.items():
            began = time.process_time()
            places, weights = method(data, most)
            seconds[name].append(time.process_time() - began)
            w2[name].append(float(squared_w2(places, data.centers_BKD, data.empirical_weights_BK, weights)))
    return {
        name: {
            **scoring.summary(np.array(values)),
            "cpu_seconds": float(np.median(seconds[name])),
            "against_network_posterior": scoring.paired(np.array(values), np.array(w2["network + posterior"])),
        }
        for name, values in w2.items()
    }


@scoring.experiment("flow/ablation")
def ablation(quick: bool) -> dict[str, Any]:
    """Network, EM and posterior, against the same EM and posterior without the network."""
    network_posterior(next(scoring.instances(10.0, 50, 1)), 5)  # compiles
    count, n_points = (2, 150) if quick else (INSTANCES, 1000)
    record: dict[str, Any] = {"n_points": n_points, "instances": count, "levels": {}, "hard": {}}
    for level, snr_db in published.LEVELS.items():
        batches = [_single(batch, b) for batch in scoring.instances(snr_db, n_points, count) for b in range(len(batch))]
        record["levels"][level] = _scores(batches[:count], KMEANS_CLUSTERS)
    prior = MixturePrior(clusters=(2, 20), snr_db=(5.0, 5.0))
    for size in HARD_SIZES[:1] if quick else HARD_SIZES:
        generator = torch.Generator().manual_seed(scoring.SEED + size)
        data = sample_mixtures(prior, 2 if quick else HARD_INSTANCES, size, generator)
        record["hard"][str(size)] = _scores([data], KMEANS_CLUSTERS_HARD)
    return record
