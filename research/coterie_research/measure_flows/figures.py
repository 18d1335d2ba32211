"""Figures 1, 2, 4 and 6 to 11 of Zimin et al. (2025)."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from coterie import checkpoints
from coterie.mixtures.atoms import flow_tokens
from coterie_research.measure_flows import pictures, published, scoring, tables
from coterie_research.measure_flows.columns import RUNS, training_log
from coterie_research.measure_flows.dynamics import integrate, nearest_neighbour_entropy
from coterie_research.training.flow.prior import Mixtures

NARROW = {"high": "flow-d2-high", "low": "flow-d2-low"}  # trained at one level
FEWER_INSTANCES = 40  # per point of a slow curve


def _centers(data: Mixtures) -> list[list[float]]:
    """Of the first data set."""
    return data.centers_BKD[0, : int(data.n_clusters_B[0])].tolist()


@scoring.experiment("flow/figure1", pictures.figure1)
def figure1(quick: bool) -> dict[str, Any]:
    """Tokens and their entropy in every layer, and the idealised flow on the sphere with its lower bound."""
    network, count, n_points = checkpoints.load(tables.MAIN), 5 if quick else 100, 200 if quick else 1000
    layers: list[list[torch.Tensor]] = []
    batches = list(scoring.instances(10.0, n_points, count))
    for batch in batches:
        seen: list[torch.Tensor] = []
        with torch.no_grad():
            network(batch.points_BND, batch.snr_db_B, on_layer=seen.append)
        layers.append(seen)
    entropy = [torch.cat([nearest_neighbour_entropy(one) for one in layer]).mean().item() for layer in zip(*layers)]
    generator = torch.Generator().manual_seed(scoring.SEED)
    start = torch.randn(100 if quick else 400, 3, generator=generator, dtype=torch.float64)
    sphere = integrate(start, beta=4.0, time=0.5, n_steps=50 if quick else 400)
    return {
        "instances": count,
        "n_points": n_points,
        "snr_db": 10.0,
        "tokens": {
            str(layer): _rounded(layers[0][layer][0])
            for layer in np.linspace(0, len(entropy) - 1, 4).round().astype(int).tolist()
        },
        "centers": _centers(batches[0]),
        "entropy_by_layer": entropy,
        "sphere": {
            "beta": 4.0,
            "dimensions": 3,
            "times": sphere.times,
            "energy": sphere.energy,
            "negative_entropy_rise": sphere.negentropy,
            "rate": sphere.rate,
            "bound": sphere.bound,
        },
    }


def _rounded(points: torch.Tensor) -> list[list[float]]:
    return points.numpy().round(4).tolist()


@scoring.experiment("flow/figure2", pictures.figure2)
def figure2(quick: bool) -> dict[str, Any]:
    """Networks trained at high and at low SNR, on data of both."""
    panels = []
    for trained, name in NARROW.items():
        for level in NARROW:
            data = next(scoring.instances(published.LEVELS[level], 200 if quick else 1000, 1))
            tokens = flow_tokens(checkpoints.load(name), data.points_BND, data.snr_db_B)
            panels.append(
                {
                    "network": f"trained on {trained} SNR",
                    "data_db": published.LEVELS[level],
                    "points": _rounded(data.points_BND[0]),
                    "tokens": _rounded(tokens[0]),
                    "centers": _centers(data),
                }
            )
    return {"n_points": 200 if quick else 1000, "panels": panels}


@scoring.experiment("flow/figure6", pictures.figure6)
def figure6(quick: bool) -> dict[str, Any]:
    """One data set per level."""
    sets = {}
    for level, snr_db in published.LEVELS.items():
        data = next(scoring.instances(snr_db, 200 if quick else 1000, 1))
        labels = data.labels_BN[0].tolist()
        points = _rounded(data.points_BND[0])
        sets[level] = {"snr_db": snr_db, "points": points, "labels": labels, "centers": _centers(data)}
    return {"sets": sets}


@scoring.experiment("flow/figure8", pictures.figure8)
def figure8(quick: bool, runs: Path = RUNS) -> dict[str, Any]:
    """The flow time that networks of three depths have learned at equal steps (``flow/columns``), over the SNR."""
    snr_db = torch.linspace(3, 15, 25 if quick else 121)
    networks = {layers: checkpoints.load(runs / f"{layers}-layers.safetensors") for layers in (16, 32, 64)}
    with torch.no_grad():
        total = {str(layers): network.flow_time(snr_db).tolist() for layers, network in networks.items()}
    per_layer = {layers: [time / int(layers) for time in times] for layers, times in total.items()}
    return {"snr_db": snr_db.tolist(), "total": total, "per_layer": per_layer, "max_flow": networks[16].config.max_flow}


@scoring.experiment("flow/training_curve", pictures.training)
def training_curve(quick: bool, log: Path = Path("runs/flow-d2/log.csv")) -> dict[str, Any]:
    """Training loss of the main network against CPU seconds."""
    return {**training_log(log, "step", "cpu_seconds", "loss", "log_error", "rate")}


def _over_snr(number: int, of: Callable[[], tables.Columns], slow: Sequence[str] = ()) -> None:
    """Register a figure of columns as functions of the SNR; ``slow`` ones have fewer instances."""

    @scoring.experiment(f"flow/figure{number}", pictures.over_snr)
    def figure(output: Path, quick: bool) -> dict[str, Any]:
        count, n_points = (5, 200) if quick else (100, 1000)
        levels = (3.0, 9.0, 15.0) if quick else tuple(np.arange(3.0, 15.1, 1.5).tolist())
        columns = {name: replace(one, most=FEWER_INSTANCES) if name in slow else one for name, one in of().items()}
        curves: dict[str, list[dict[str, float]]] = {name: [] for name in columns}
        kept = tables.kept_scores(output, quick)
        for snr_db in levels:
            for name, w2 in scoring.score_all(columns, snr_db, n_points, count, kept).items():
                curves[name].append(scoring.summary(w2))
        return {"n_points": n_points, "instances": count, "snr_db": list(levels), "curves": curves}


DEEPER = ("layers_32", "layers_64")
DEPTHS = ("kmeans", "layers_16", *DEEPER, "no_flow")
_over_snr(4, lambda: {"kmeans": scoring.KMEANS, "flow": scoring.tokens(tables.MAIN)})
_over_snr(7, lambda: {name: tables.depths()[name] for name in DEPTHS}, DEEPER)
_over_snr(9, tables.regimes, ("uniform_unit", "unit_unit"))
_over_snr(10, tables.sharing, ("unit",))
_over_snr(11, tables.rounded, DEEPER)
