"""Depth at equal time: 16, 32 and 64 shared layers and 16 distinct ones, each network trained from the beginning.

Every network is trained on mixtures of the same kind, in as many steps as take about 21 CPU minutes; those of the last
three tenths of its steps have more points. Runs are kept in a folder: a run that was interrupted is resumed, and one
that has ended is only scored.
"""

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from coterie.data.mixtures import MixturePrior
from coterie.experiments.measure_flow import pictures, published, scoring
from coterie.experiments.measure_flow.record import write
from coterie.flow.inference import flow_tokens
from coterie.flow.model import FlowConfig, MeasureFlow
from coterie.flow.train import FlowRun, Stage
from coterie.metrics import squared_w2
from coterie.training import LOG_FILE, STATE_FILE, TrainingConfig

# name -> layers, blocks with weights of their own, steps
NETWORKS = {
    "16 shared": (16, 1, 7000),
    "32 shared": (32, 1, 3700),
    "64 shared": (64, 1, 1850),
    "16 distinct": (16, 16, 6600),
}
BASE = "16 shared"
INSTANCES = 100


def training_run(layers: int, blocks: int, steps: int) -> FlowRun:
    """Few points for seven tenths of the steps; then up to 1,024, while the learning rate falls to zero."""
    early = int(0.7 * steps)
    few = Stage(100, (96, 160), layers, tokens=1024, loss="own")
    return FlowRun(
        model=FlowConfig(n_layers=layers, n_blocks=blocks),
        prior=MixturePrior(clusters_law="harmonic"),
        training=TrainingConfig(
            steps,
            learning_rate=1e-3,
            matrix_learning_rate=1e-2,
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
    runs = output / "depth-runs" if quick else runs
    n_points, count = (60, 4) if quick else (1000, INSTANCES)
    record: dict[str, Any] = {"n_points": n_points, "instances": count, "base": BASE, "networks": {}}
    w2: dict[str, dict[str, np.ndarray]] = {}
    for name, (layers, blocks, steps) in NETWORKS.items():
        folder = runs / name.replace(" ", "-")
        run = training_run(layers, blocks, 3 if quick else steps)
        network = run.train(folder, resume=(folder / STATE_FILE).exists())
        w2[name] = {level: _errors(network, snr_db, n_points, count) for level, snr_db in published.LEVELS.items()}
        record["networks"][name] = {
            "layers": layers,
            "weights": sum(weight.numel() for weight in network.parameters()),
            **_curve(folder / LOG_FILE),
            "levels": {
                level: {**scoring.summary(values), "against_base": scoring.paired(values, w2[BASE][level])}
                for level, values in w2[name].items()
            },
        }
    write(record, "depth", output, quick)
    pictures.draw_depth(record, output / "depth.png")
    return record


def _errors(network: MeasureFlow, snr_db: float, n_points: int, count: int) -> np.ndarray:
    batches = scoring.instances(snr_db, n_points, count)
    errors = [
        squared_w2(
            flow_tokens(network, data.points_BND, data.snr_db_B, exact=True),
            data.centers_BKD,
            data.empirical_weights_BK,
        )
        for data in batches
    ]
    return torch.cat(errors).double().numpy()[:count]


def _curve(log: Path) -> dict[str, Any]:
    with open(log, newline="") as file:
        rows = list(csv.DictReader(file))
    curve = {name: [float(row[name]) for row in rows] for name in ("step", "cpu_seconds", "loss")}
    return {"steps": int(curve["step"][-1]), "cpu_seconds": curve["cpu_seconds"][-1], "curve": curve}
