"""Networks trained from the beginning and compared: depths at equal time, and regimes at several learning rates.

Every network is trained on mixtures of the same kind; those of the last three tenths of its steps have more points.
For depth, 16, 32 and 64 shared layers and 16 distinct ones have as many steps as take about 21 CPU minutes on an idle
core. Runs are kept in a folder: a run that was interrupted is resumed, and one that has ended is only scored.
"""

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from coterie.mixtures.atoms import flow_tokens
from coterie.mixtures.flow import FlowConfig, MeasureFlow, Regime
from coterie_research.measure_flows import pictures, published, scoring
from coterie_research.measure_flows.record import write
from coterie_research.metrics import squared_w2
from coterie_research.training.flow.prior import MixturePrior, Mixtures
from coterie_research.training.flow.run import FlowRun, Stage
from coterie_research.training.loop import LOG_FILE, STATE_FILE, TrainingConfig

# name -> layers, blocks with weights of their own, steps
NETWORKS = {
    "16 shared": (16, 1, 7000),
    "32 shared": (32, 1, 3700),
    "64 shared": (64, 1, 1850),
    "16 distinct": (16, 16, 6600),
}
REGIMES: tuple[Regime, ...] = ("uniform", "unit")
RATES = (1.0, 0.5, 2.0)  # times the learning rates of the other runs; others are compared with the first
RATE_STEPS = 700
INSTANCES = 100


def training_run(layers: int, blocks: int, steps: int, regime: Regime = "uniform", rate: float = 1.0) -> FlowRun:
    """Few points for seven tenths of the steps; then up to 1,024, while the learning rate falls to zero."""
    early = int(0.7 * steps)
    few = Stage(100, (96, 160), layers, tokens=1024, loss="own")
    return FlowRun(
        model=FlowConfig(n_layers=layers, n_blocks=blocks, regime=regime),
        prior=MixturePrior(clusters_law="harmonic"),
        training=TrainingConfig(
            steps,
            learning_rate=rate * 1e-3,
            matrix_learning_rate=rate * 1e-2,
            decay_steps=steps - early,
            average_decay=0.995,
            checkpoint_every=100,
            seed=1,
        ),
        stages=(
            few,
            replace(few, until=early, n_points=(96, 256), loss="posterior"),
            replace(few, until=steps, n_points=(256, 1024), loss="posterior"),
        ),
    )


def depth(output: Path, quick: bool = False, runs: Path = Path("runs/flow-depth")) -> dict[str, Any]:
    """Networks of several depths after equal CPU time."""
    trained = {
        name: training_run(layers, blocks, 3 if quick else steps) for name, (layers, blocks, steps) in NETWORKS.items()
    }
    return _compared("depth", "layers", trained, output, quick, runs)


def rates(output: Path, quick: bool = False, runs: Path = Path("runs/flow-rates")) -> dict[str, Any]:
    """The uniform and the unit flow at several learning rates, after equally many steps."""
    trained = {
        f"{regime}, rate {rate:g}": training_run(16, 1, 3 if quick else RATE_STEPS, regime, rate)
        for rate in RATES
        for regime in REGIMES
    }
    return _compared("rates", "regime and learning rate", trained, output, quick, runs)


def _compared(
    name: str, what: str, trained: dict[str, FlowRun], output: Path, quick: bool, runs: Path
) -> dict[str, Any]:
    """Train or resume, score, and compare with the first of the runs."""
    if quick:
        runs, trained = output / f"{name}-runs", dict(list(trained.items())[:2])
    n_points, count = (60, 4) if quick else (1000, INSTANCES)
    base = next(iter(trained))
    record: dict[str, Any] = {
        "n_points": n_points,
        "instances": count,
        "what": what,
        "base": base,
        "networks": {},
    }
    w2: dict[str, dict[str, np.ndarray]] = {}
    for title, run in trained.items():
        folder = runs / title.replace(",", "").replace(" ", "-")
        network = run.train(folder, resume=(folder / STATE_FILE).exists())
        w2[title] = _scores(network, n_points, count)
        curve = training_log(folder / LOG_FILE, "step", "cpu_seconds", "loss")
        record["networks"][title] = {
            "layers": run.model.n_layers,
            "weights": sum(weight.numel() for weight in network.parameters()),
            "steps": int(curve["step"][-1]),
            "cpu_seconds": curve["cpu_seconds"][-1],
            "curve": curve,
            "levels": {
                level: {**scoring.summary(values), "against_base": scoring.paired(values, w2[base][level])}
                for level, values in w2[title].items()
            },
        }
    write(record, name, output, quick)
    pictures.draw_runs(record, output / f"{name}.png")
    return record


def _scores(network: MeasureFlow, n_points: int, count: int) -> dict[str, np.ndarray]:
    def score(data: Mixtures) -> torch.Tensor:
        return squared_w2(
            flow_tokens(network, data.points_BND, data.snr_db_B), data.centers_BKD, data.empirical_weights_BK
        )

    columns = {"network": scoring.Column("network", score)}
    return {
        level: scoring.score_all(columns, snr_db, n_points, count)["network"]
        for level, snr_db in published.LEVELS.items()
    }


def training_log(log: Path, *names: str) -> dict[str, list[float]]:
    """Columns of the log of a training run."""
    with open(log, newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: [float(row[name]) for row in rows] for name in names}
