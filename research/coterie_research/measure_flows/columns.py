"""Networks trained from the beginning at equal steps on equal data: depths, regimes, sharing, and single changes.

All networks see the same mixtures in the same order, unless the mixtures are what is changed, and read points of one
cell of a grid as one weighted token (:mod:`coterie_research.training.flow.cells`). They are scored in the same way. A
run that was interrupted is resumed; a network that is trained is only scored, and scores are kept.
"""

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from coterie import checkpoints
from coterie.mixtures.flow import FlowConfig, MeasureFlow, Regime
from coterie_research.measure_flows import pictures, published, scoring
from coterie_research.measure_flows.inference import cell_tokens
from coterie_research.metrics import squared_w2
from coterie_research.training.flow.prior import MixturePrior, Mixtures
from coterie_research.training.flow.run import FlowRun, Stage
from coterie_research.training.loop import LOG_FILE, STATE_FILE, TrainingConfig

BASE = "16 layers"
RUNS = Path("runs/flow-columns")
STEPS, INSTANCES = 2000, 200
EARLY = 300
N_POINTS = (256, 1024)
DOCUMENT: dict[str, Any] = {
    "clusters_law": "uniform",
    "muon": False,
    "curriculum": False,
    "n_points": (1000, 1000),
    "loss": "w2",
}
# what differs from the base: columns of the tables, then one choice of the document at a time, all of them, and data
NETWORKS: dict[str, dict[str, Any]] = {
    BASE: {},
    "no flow": {"regime": "none"},
    "unit": {"regime": "unit"},
    "floor": {"regime": "floor"},
    "distinct": {"blocks": 16},
    "32 layers": {"layers": 32},
    "64 layers": {"layers": 64},
    "loss to the truth": {"loss": "w2"},
    "K uniform": {"clusters_law": "uniform"},
    "AdamW": {"muon": False},
    "no curriculum": {"curriculum": False},
    "n = 1000": {"n_points": (1000, 1000)},
    "as the document": DOCUMENT,
    "9 to 15 dB": {"snr_db": (9.0, 15.0)},
    "points": {"cells": False},
}
PUBLISHED = {  # network -> table and column
    BASE: (3, "layers_16"),
    "no flow": (3, "no_flow"),
    "unit": (5, "unit_unit"),
    "floor": (5, "unit_unit"),
    "distinct": (7, "distinct"),
    "32 layers": (3, "layers_32"),
    "64 layers": (3, "layers_64"),
}
REGIMES: dict[str, Regime] = {BASE: "uniform", "unit": "unit", "floor": "floor"}
EASY, LONGER = "9 to 15 dB", (1.0, 1.5, 2.0, 3.0)


def training_run(
    steps: int,
    layers: int = 16,
    blocks: int = 1,
    regime: Regime = "uniform",
    clusters_law: Any = "harmonic",
    snr_db: tuple[float, float] = (3.0, 15.0),
    muon: bool = True,
    curriculum: bool = True,
    n_points: tuple[int, int] = N_POINTS,
    loss: Any = "posterior",
    cells: bool = True,
) -> FlowRun:
    """Few points in the first steps, unless all stages have as many; the learning rate falls in the last 30%."""
    last = Stage(steps, n_points, layers, tokens=1024, loss=loss, cells=cells)
    few = (96, 256) if n_points == N_POINTS else n_points
    early = replace(last, until=min(EARLY, steps // 3), n_points=few)
    own = replace(early, until=min(100, steps // 6), loss="own", cells=False)
    alone = replace(last, n_points=(96, 1024) if n_points == N_POINTS else n_points)
    return FlowRun(
        model=FlowConfig(n_layers=layers, n_blocks=blocks, regime=regime),
        prior=MixturePrior(clusters_law=clusters_law, snr_db=snr_db),
        training=TrainingConfig(
            steps,
            learning_rate=1e-3,
            matrix_learning_rate=1e-2 if muon else 0.0,
            decay_steps=3 * steps // 10,
            average_decay=0.995,
            checkpoint_every=100,
            seed=1,
        ),
        stages=(own, early, last) if curriculum else (alone,),
    )


@scoring.experiment("flow/columns", pictures.columns)
def columns(output: Path, quick: bool, steps: int = STEPS, runs: Path = RUNS, train: bool = True) -> dict[str, Any]:
    """Every column of the tables, and what differs from the document's training, at equal steps and equal data.

    With ``train=False`` the record has the networks that are trained already. Another number of steps needs another
    folder ``runs``.
    """
    if quick:
        runs, steps = output / "runs", 5
    titles = [title for title in NETWORKS if train or _weights(title, runs).exists()][: 4 if quick else None]
    count, n_points = (4, 60) if quick else (INSTANCES, 1000)
    snr_db = [float(one) for one in range(3, 16)]
    record: dict[str, Any] = {
        "steps": steps,
        "n_points": n_points,
        "instances": count,
        "snr_db": snr_db,
        "networks": {},
        "crossed": {},
        "longer_flow": {},
    }
    w2: dict[str, dict[str, np.ndarray]] = {}
    for title in titles:
        network, folder = _trained(title, training_run(steps, **NETWORKS[title]), runs)
        scores = _Scores(network, f"{title}|{steps}", scoring.Kept(runs / "scores.npz"), n_points, count)
        w2[title] = {level: scores(snr) for level, snr in published.LEVELS.items()}
        curve = training_log(folder / LOG_FILE, "step", "cpu_seconds", "loss")
        with torch.no_grad():
            flow_time = network.flow_time(torch.tensor(snr_db)).tolist()
        record["networks"][title] = {
            "changed": NETWORKS[title],
            "weights": sum(weight.numel() for weight in network.parameters()),
            "cpu_seconds": curve["cpu_seconds"][-1],
            "flow_time": flow_time,
            "curve": curve,
            "levels": {
                level: {
                    **scoring.summary(values),
                    "against_base": scoring.paired(values, w2.get(BASE, w2[title])[level]),
                    "document": _published(title, level),
                }
                for level, values in w2[title].items()
            },
        }
        if title in REGIMES:
            record["crossed"][REGIMES[title]] = {
                regime: {level: scoring.summary(scores(snr, regime)) for level, snr in published.LEVELS.items()}
                for regime in REGIMES.values()
            }
        if title == EASY:
            record["longer_flow"] = {
                str(factor): {
                    level: scoring.summary(scores(snr, longer=factor)) for level, snr in published.LEVELS.items()
                }
                for factor in LONGER
            }
    return {**record, "cpu_seconds": sum(one["cpu_seconds"] for one in record["networks"].values())}


def _weights(title: str, runs: Path) -> Path:
    return runs / f"{title.replace(' = ', '-').replace(' ', '-').lower()}.safetensors"


def _trained(title: str, run: FlowRun, runs: Path) -> tuple[MeasureFlow, Path]:
    """The trained network, and the folder with its log; its weights are kept on a shelf beside these folders."""
    weights = _weights(title, runs)
    folder = weights.with_suffix("")
    if not weights.exists():
        run.train(folder, resume=(folder / STATE_FILE).exists())
        run.ship(folder, folder.name, shelf=runs)
    return checkpoints.load(weights), folder


class _Scores:
    """Squared W2 of a network at an SNR, and with another regime or a longer flow than it learned."""

    def __init__(self, network: MeasureFlow, name: str, kept: scoring.Kept, n_points: int, count: int):
        self.network, self.name, self.kept, self.n_points, self.count = network, name, kept, n_points, count

    def __call__(self, snr_db: float, regime: Regime | None = None, longer: float = 1.0) -> np.ndarray:
        def score(data: Mixtures) -> torch.Tensor:
            time = None if longer == 1 else longer * self.network.flow_time(data.snr_db_B[:1]).detach()
            found = cell_tokens(self.network, data.points_BND, data.snr_db_B, regime=regime, flow_time_B=time)
            return squared_w2(found, data.centers_BKD, data.empirical_weights_BK)

        regime = regime or self.network.config.regime
        column = {"": scoring.Column(f"{self.name}|{regime}|{longer:g}", score)}
        return scoring.score_all(column, snr_db, self.n_points, self.count, self.kept)[""]


def _published(title: str, level: str) -> dict[str, float] | None:
    """The logarithm in the document, and its difference to that of 16 layers."""
    if title not in PUBLISHED:
        return None
    number, column = PUBLISHED[title]
    log = published.TABLES[number][column][level]
    return {"log": log, "against_base": log - published.TABLES[3]["layers_16"][level]}


def training_log(log: Path, *names: str) -> dict[str, list[float]]:
    """Columns of the log of a training run."""
    with open(log, newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: [float(row[name]) for row in rows] for name in names}
