"""Tables 1 to 11 of Zimin et al. (2025). Each experiment writes ``tableN.json`` and a picture of it."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from coterie import checkpoints
from coterie.mixtures.spherical_sampler import Sweeps
from coterie_research.measure_flows import pictures, published, scoring
from coterie_research.measure_flows.inference import LONG

MAIN = "flow-d2"
# Trained with equal budgets, to compare them; 32 and 64 layers are networks of their own.
UNIFORM, NO_FLOW, UNIT, DISTINCT = "flow-d2-uniform", "flow-d2-no-flow", "flow-d2-unit", "flow-d2-distinct"
DEEPER = {32: "flow-d2-32", 64: "flow-d2-64"}
INSTANCES = 1000
# Numbers of instances for slow columns: other networks of the same size or n = 2,000; estimated SNR; deeper networks.
FEWER, FEW, FEWEST = 300, 200, 100
AS_TRAINED = 60  # of the unit regime with its fractional last step
SIZES = (100, 500, 1000, 2000)
SCORES = "scores.npz"
Columns = dict[str, scoring.Column]


def regimes(quick: bool = False) -> Columns:
    """Flow-speed regimes in training and in evaluation; "floor" rounds the flow time down, as the paper prints it."""
    return {
        "kmeans": scoring.KMEANS,
        "uniform_uniform": scoring.tokens(MAIN),
        "uniform_unit": scoring.tokens(MAIN, regime="unit", most=AS_TRAINED),
        "uniform_floor": scoring.tokens(MAIN, regime="floor", most=FEWER),
        "unit_uniform": scoring.tokens(UNIT, regime="uniform", most=FEWER),
        "unit_unit": scoring.tokens(UNIT, most=AS_TRAINED),
        "unit_floor": scoring.tokens(UNIT, regime="floor", most=FEWER),
    }


def depths(quick: bool = False) -> Columns:
    """Different depths, no flow and k-means; then the flow refined by EM or by the posterior."""
    sweeps = Sweeps(burn_in=20, apart=4, n_draws=5) if quick else LONG
    return {
        "kmeans": scoring.KMEANS,
        "kmeans_plus_plus": scoring.KMEANS_PLUS_PLUS,
        "layers_16": scoring.tokens(MAIN),
        "layers_32": scoring.tokens(DEEPER[32], most=FEWEST),
        "layers_64": scoring.tokens(DEEPER[64], most=FEWEST),
        "no_flow": scoring.tokens(NO_FLOW, most=FEWER),
        "refined": scoring.refined(MAIN),
        "averaged": scoring.averaged(MAIN, sweeps=sweeps),
        "refined_snr_estimated": scoring.refined(MAIN, snr_known=False, most=FEW),
        "averaged_snr_estimated": scoring.averaged(MAIN, snr_known=False, sweeps=sweeps, most=FEW),
    }


def sharing(quick: bool = False) -> Columns:
    """Shared and distinct layers."""
    return {
        "kmeans": scoring.KMEANS,
        "identical": scoring.tokens(MAIN),
        "unit": scoring.tokens(UNIT, most=AS_TRAINED),
        "distinct": scoring.tokens(DISTINCT, most=FEWER),
    }


def rounded(quick: bool = False) -> Columns:
    """k-means of the tokens."""
    return {
        "kmeans": scoring.KMEANS,
        "layers_16": scoring.kmeans_of_tokens(MAIN),
        "layers_32": scoring.kmeans_of_tokens(DEEPER[32], most=FEWEST),
        "layers_64": scoring.kmeans_of_tokens(DEEPER[64], most=FEWEST),
        "no_flow": scoring.kmeans_of_tokens(NO_FLOW, most=FEWER),
    }


@scoring.experiment("flow/orderings", lambda record: pictures.table(record, "Equal budgets"))
def orderings(output: Path, quick: bool) -> dict[str, Any]:
    """The regimes uniform, none and unit after equal training budgets, compared on the same instances."""
    count, n_points = (2, 150) if quick else (FEWER, 1000)
    columns = {name: scoring.tokens(name) for name in (UNIFORM, NO_FLOW)}
    columns |= {UNIT: scoring.tokens(UNIT, most=AS_TRAINED), "unit_floor": scoring.tokens(UNIT, regime="floor")}
    kept = kept_scores(output, quick)
    record: dict[str, Any] = {"n_points": n_points, "instances": count, "measure": "log", "levels": {}}
    for level, snr_db in published.LEVELS.items():
        w2 = scoring.score_all(columns, snr_db, n_points, count, kept)
        record["levels"][level] = {
            name: {
                "document": None,
                **scoring.summary(values),
                "against": {one: scoring.paired(*_same(values, w2[one])) for one in columns if one != name},
            }
            for name, values in w2.items()
        }
    return record


def kept_scores(output: Path, quick: bool) -> scoring.Kept:
    return scoring.Kept(None if quick else output / SCORES)


def _experiment(number: int, of: Any) -> None:
    """Register Table ``number``: columns made by ``of``, or the numbers of points."""
    measure = "mean" if number in MEANS else "log"

    @scoring.experiment(f"flow/table{number}", lambda record: pictures.table(record, f"Table {number}"))
    def table(output: Path, quick: bool) -> dict[str, Any]:
        kept, record = kept_scores(output, quick), {"measure": measure, "levels": {}}
        return (_sizes if of is None else _columns)(number, of, quick, record, kept)


def _columns(number: int, of: Any, quick: bool, record: dict[str, Any], kept: scoring.Kept) -> dict[str, Any]:
    columns = of(quick)
    count, n_points = (2, 150) if quick else (INSTANCES, 1000)
    for level, snr_db in published.LEVELS.items():
        w2 = scoring.score_all(columns, snr_db, n_points, count, kept)
        row = record["levels"][level] = _row(number, level, w2)
        for name, column in columns.items():
            if column.regime == "floor":
                row[name]["whole_steps"] = whole_steps(column, snr_db)
        for name in row.keys() & {"refined", "averaged"}:
            row[name]["target"] = published.TABLES[number]["layers_64"][level]
    return {"n_points": n_points, "instances": count, "budgets": _budgets(columns), **record}


def _sizes(number: int, of: None, quick: bool, record: dict[str, Any], kept: scoring.Kept) -> dict[str, Any]:
    count, sizes = (2, (100, 200)) if quick else (INSTANCES, SIZES)
    for level, snr_db in published.LEVELS.items():
        row: dict[str, Any] = {}
        record["levels"][level] = row
        for n_points in sizes:
            flow = scoring.tokens(MAIN, most=FEWER if n_points > 1000 else None)
            names = {f"flow_{n_points}": flow, f"kmeans_{n_points}": scoring.KMEANS}
            row |= _row(number, level, scoring.score_all(names, snr_db, n_points, count, kept), f"kmeans_{n_points}")
    return {"sizes": list(sizes), "instances": count, **record}


def _row(number: int, level: str, w2: dict[str, np.ndarray], against: str = "kmeans") -> dict[str, Any]:
    return {
        name: {
            "document": published.TABLES[number].get(name, {}).get(level),
            **scoring.summary(values),
            "against_kmeans": scoring.paired(*_same(values, w2[against])),
        }
        for name, values in w2.items()
    }


def _same(ours: np.ndarray, theirs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Those that both have scored: every column begins with the same ones."""
    count = min(len(ours), len(theirs))
    return ours[:count], theirs[:count]


def _budgets(columns: Columns) -> dict[str, dict[str, int]]:
    """Training steps and CPU minutes of the network behind each column."""
    cards = {name: checkpoints.card(one.network)["training"] for name, one in columns.items() if one.network}
    return {
        name: {"steps": card["steps"], "cpu_minutes": round(card["cpu_seconds"] / 60)} for name, card in cards.items()
    }


def whole_steps(column: scoring.Column, snr_db: float) -> int:
    """How many layers the flow time leaves where it is rounded down; 0 is the identity."""
    return int(checkpoints.load(str(column.network)).flow_time(torch.tensor([snr_db])).item())


MEANS = (1, 2, 4, 6, 8, 10)  # the other tables are their logarithms; Table 4 is Table 1, which the paper prints twice
OF = {1: regimes, 2: depths, 3: depths, 4: regimes, 5: regimes, 6: sharing, 7: sharing, 8: rounded, 9: rounded}
for number, of in {**OF, 10: None, 11: None}.items():
    _experiment(number, of)
