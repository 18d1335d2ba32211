"""Figures 1, 2, 4 and 6 to 11 of Zimin et al. (2025). Each function writes ``figureN.json`` and a picture of it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from coterie.mixtures.atoms import flow_tokens
from coterie.mixtures.flow import MeasureFlow
from coterie_research.measure_flows import pictures, published, scoring, tables
from coterie_research.measure_flows.columns import training_log
from coterie_research.measure_flows.dynamics import integrate, nearest_neighbour_entropy
from coterie_research.measure_flows.record import write
from coterie_research.training.flow.prior import Mixtures

HIGH, LOW = "flow-d2-high", "flow-d2-low"
FEWER_INSTANCES = 40  # per point of a slow curve


def _main() -> MeasureFlow:
    network = scoring.network(tables.MAIN)
    if network is None:
        raise FileNotFoundError(f"There is no network {tables.MAIN!r}: train it with `coterie train flow` and ship it.")
    return network


def _centers(data: Mixtures) -> list[list[float]]:
    """Of the first data set."""
    return data.centers_BKD[0, : int(data.n_clusters_B[0])].tolist()


def figure1(output: Path, quick: bool = False) -> dict[str, Any]:
    """Tokens and their entropy in every layer, and the idealised flow on the sphere with its lower bound."""
    network, count, n_points = _main(), 5 if quick else 100, 200 if quick else 1000
    layers: list[list[torch.Tensor]] = []
    batches = list(scoring.instances(10.0, n_points, count))
    for batch in batches:
        seen: list[torch.Tensor] = []
        with torch.no_grad():
            network(batch.points_BND, batch.snr_db_B, on_layer=seen.append)
        layers.append(seen)
    entropy = [
        torch.cat([nearest_neighbour_entropy(seen[layer]) for seen in layers]).mean().item()
        for layer in range(len(layers[0]))
    ]
    generator = torch.Generator().manual_seed(scoring.SEED)
    start = torch.randn(100 if quick else 400, 3, generator=generator, dtype=torch.float64)
    sphere = integrate(start, beta=4.0, time=0.5, n_steps=50 if quick else 400)
    first = batches[0]
    record = {
        "instances": count,
        "n_points": n_points,
        "snr_db": 10.0,
        "tokens": {
            str(layer): layers[0][layer][0].numpy().round(4).tolist()
            for layer in np.linspace(0, len(layers[0]) - 1, 4).round().astype(int).tolist()
        },
        "centers": _centers(first),
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
    write(record, "figure1", output, quick)
    pictures.draw_figure1(record, output / "figure1.png")
    return record


def figure2(output: Path, quick: bool = False) -> dict[str, Any]:
    """Networks trained at high and at low SNR, on data of both; without them, the main network with a wrong SNR."""
    n_points = 200 if quick else 1000
    high, low = scoring.network(HIGH), scoring.network(LOW)
    panels = []
    for trained, told in (("high", 15.0), ("low", 5.0)):
        own = high if trained == "high" else low
        for level in ("high", "low"):
            data = next(scoring.instances(published.LEVELS[level], n_points, 1))
            snr_db = data.snr_db_B if own is not None else torch.full_like(data.snr_db_B, told)
            tokens = flow_tokens(own or _main(), data.points_BND, snr_db)
            panels.append(
                {
                    "network": f"trained on {trained} SNR" if own is not None else f"told {told:g} dB",
                    "data_db": published.LEVELS[level],
                    "points": data.points_BND[0].numpy().round(4).tolist(),
                    "tokens": tokens[0].numpy().round(4).tolist(),
                    "centers": _centers(data),
                }
            )
    record: dict[str, Any] = {"n_points": n_points, "panels": panels}
    write(record, "figure2", output, quick)
    pictures.draw_figure2(record, output / "figure2.png")
    return record


def figure4(output: Path, quick: bool = False) -> dict[str, Any]:
    """The flow and k-means as functions of the SNR."""
    return _curves(4, {"kmeans": scoring.KMEANS, "flow": scoring.tokens(tables.MAIN)}, output, quick)


def figure6(output: Path, quick: bool = False) -> dict[str, Any]:
    """One data set per level."""
    sets = {}
    for level, snr_db in published.LEVELS.items():
        data = next(scoring.instances(snr_db, 200 if quick else 1000, 1))
        sets[level] = {
            "snr_db": snr_db,
            "points": data.points_BND[0].numpy().round(4).tolist(),
            "labels": data.labels_BN[0].tolist(),
            "centers": _centers(data),
        }
    record: dict[str, Any] = {"sets": sets}
    write(record, "figure6", output, quick)
    pictures.draw_figure6(record, output / "figure6.png")
    return record


def figure7(output: Path, quick: bool = False) -> dict[str, Any]:
    """Different depths, and no flow, as functions of the SNR."""
    names = ("kmeans", "layers_16", "layers_32", "layers_64", "no_flow")
    return _curves(7, _fewer({name: tables.depths()[name] for name in names}), output, quick)


def figure8(output: Path, quick: bool = False) -> dict[str, Any]:
    """The flow time that each network has learned as a function of the SNR, in total and per layer."""
    main = _main()
    deeper = {str(layers): scoring.network(name) for layers, name in tables.DEEPER.items()}
    snr_db = torch.linspace(3, 15, 25 if quick else 121)
    with torch.no_grad():
        time = {n: one.flow_time(snr_db) for n, one in {"16": main, **deeper}.items() if one is not None}
    record: dict[str, Any] = {
        "snr_db": snr_db.tolist(),
        "total": time["16"].tolist(),
        "total_deeper": {layers: time[layers].tolist() for layers in deeper if layers in time},
        "per_layer": {layers: (total / int(layers)).tolist() for layers, total in time.items()},
        "max_flow": main.config.max_flow,
    }
    write(record, "figure8", output, quick)
    pictures.draw_figure8(record, output / "figure8.png")
    return record


def figure9(output: Path, quick: bool = False) -> dict[str, Any]:
    """Flow-speed regimes as functions of the SNR."""
    return _curves(9, _fewer(tables.regimes(), ("uniform_unit", "unit_unit")), output, quick)


def figure10(output: Path, quick: bool = False) -> dict[str, Any]:
    """Shared and distinct layers as functions of the SNR."""
    return _curves(10, _fewer(tables.sharing(), ("unit",)), output, quick)


def figure11(output: Path, quick: bool = False) -> dict[str, Any]:
    """k-means of the points and of the tokens as functions of the SNR."""
    return _curves(11, _fewer(tables.rounded()), output, quick)


def training_curve(output: Path, quick: bool = False, log: Path = Path("runs/flow-d2/log.csv")) -> dict[str, Any]:
    """Training loss of the main network against CPU seconds."""
    record: dict[str, Any] = {**training_log(log, "step", "cpu_seconds", "loss", "log_error", "rate")}
    write(record, "training_curve", output, quick)
    pictures.draw_training(record, output / "training_curve.png")
    return record


def _fewer(columns: tables.Columns, slow: tuple[str, ...] = ("layers_32", "layers_64")) -> tables.Columns:
    return {
        name: column if column is None or name not in slow else replace(column, most=FEWER_INSTANCES)
        for name, column in columns.items()
    }


def _curves(number: int, columns: tables.Columns, output: Path, quick: bool) -> dict[str, Any]:
    count, n_points = (5, 200) if quick else (100, 1000)
    levels = (3.0, 9.0, 15.0) if quick else tuple(np.arange(3.0, 15.1, 1.5).tolist())
    curves: dict[str, list[dict[str, float]]] = {name: [] for name, column in columns.items() if column is not None}
    kept = tables.kept_scores(output, quick)
    for snr_db in levels:
        for name, w2 in scoring.score_all(columns, snr_db, n_points, count, kept).items():
            curves[name].append(scoring.summary(w2))
    record: dict[str, Any] = {
        "n_points": n_points,
        "instances": count,
        "snr_db": list(levels),
        "curves": curves,
        "not_trained": [name for name, column in columns.items() if column is None],
    }
    write(record, f"figure{number}", output, quick)
    pictures.draw_curves(record, f"Figure {number}", output / f"figure{number}.png")
    return record
