"""Tables 1 to 11 of Zimin et al. (2025). Each experiment writes ``tableN.json`` and a picture of it."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from coterie import checkpoints
from coterie.mixtures.spherical_posterior import Sweeps
from coterie_research.measure_flows import pictures, published, scoring
from coterie_research.measure_flows.inference import LONG
from coterie_research.measure_flows.record import write

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
Columns = dict[str, scoring.Column | None]


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


def orderings(output: Path, quick: bool = False) -> dict[str, Any]:
    """The regimes uniform, none and unit after equal training budgets, compared on the same instances."""
    count, n_points = (2, 150) if quick else (FEWER, 1000)
    columns = {name: scoring.tokens(name) for name in (UNIFORM, NO_FLOW)}
    columns |= {UNIT: scoring.tokens(UNIT, most=AS_TRAINED), "unit_floor": scoring.tokens(UNIT, regime="floor")}
    kept = kept_scores(output, quick)
    record: dict[str, Any] = {"n_points": n_points, "instances": count, "measure": "log", "levels": {}}
    for level, snr_db in published.LEVELS.items():
        w2 = scoring.score_all(columns, snr_db, n_points, count, kept)
        row: dict[str, Any] = {name: {"document": None} for name in columns}
        for name, values in w2.items():
            row[name] |= scoring.summary(values)
            row[name]["against"] = {
                other: scoring.paired(*_same_instances(values, theirs)) for other, theirs in w2.items() if other != name
            }
        record["levels"][level] = row
    write(record, "orderings", output, quick)
    pictures.draw_table(record, "Equal budgets", output / "orderings.png")
    return record


def kept_scores(output: Path, quick: bool) -> scoring.Kept:
    return scoring.Kept(None if quick else output / SCORES)


def _table(
    number: int, measure: str, of: Callable[[bool], Columns], output: Path, quick: bool = False
) -> dict[str, Any]:
    columns = of(quick)
    count, n_points = (2, 150) if quick else (INSTANCES, 1000)
    kept = kept_scores(output, quick)
    record: dict[str, Any] = {"n_points": n_points, "instances": count, "measure": measure}
    record |= {"budgets": _budgets(columns), "levels": {}}
    for level, snr_db in published.LEVELS.items():
        w2 = scoring.score_all(columns, snr_db, n_points, count, kept)
        record["levels"][level] = _row(w2, {n: v[level] for n, v in published.TABLES[number].items()}, columns)
        for name, column in columns.items():
            if column is not None and column.regime == "floor":
                record["levels"][level][name]["whole_steps"] = whole_steps(column, snr_db)
        for name in ("refined", "averaged"):
            if name in w2:
                record["levels"][level][name]["target"] = published.TABLES[number]["layers_64"][level]
    return _finish(number, record, output, quick)


def _sizes(number: int, measure: str, output: Path, quick: bool = False) -> dict[str, Any]:
    count, sizes = (2, (100, 200)) if quick else (INSTANCES, SIZES)
    record: dict[str, Any] = {"sizes": list(sizes), "instances": count, "measure": measure, "levels": {}}
    kept = kept_scores(output, quick)
    for level, snr_db in published.LEVELS.items():
        row: dict[str, Any] = {}
        for n_points in sizes:
            flow = scoring.tokens(MAIN, most=FEWER if n_points > 1000 else None)
            names = {f"flow_{n_points}": flow, f"kmeans_{n_points}": scoring.KMEANS}
            w2 = scoring.score_all(names, snr_db, n_points, count, kept)
            theirs = {n: v[level] for n, v in published.TABLES[number].items() if n in names}
            row |= _row(w2, theirs, names, against=f"kmeans_{n_points}")
        record["levels"][level] = row
    return _finish(number, record, output, quick)


def _row(
    w2: dict[str, np.ndarray], document_row: dict[str, float], columns: Columns, against: str = "kmeans"
) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for name in columns:
        entry: dict[str, Any] = {"document": document_row.get(name)}
        if name in w2:
            pair = _same_instances(w2[name], w2[against])
            entry |= {**scoring.summary(w2[name]), "against_kmeans": scoring.paired(*pair)}
        row[name] = entry
    return row


def _same_instances(ours: np.ndarray, theirs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Those that both have scored: every column begins with the same ones."""
    count = min(len(ours), len(theirs))
    return ours[:count], theirs[:count]


def _budgets(columns: Columns) -> dict[str, dict[str, int]]:
    """Training steps and CPU minutes of the network behind each column."""
    cards = {name: checkpoints.card(one.network) for name, one in columns.items() if one is not None and one.network}
    return {
        name: {"steps": card["training"]["steps"], "cpu_minutes": round(card["training"]["cpu_seconds"] / 60)}
        for name, card in cards.items()
    }


def whole_steps(column: scoring.Column, snr_db: float) -> int | None:
    """How many layers the flow time leaves where it is rounded down; 0 is the identity."""
    network = None if column.network is None or column.regime != "floor" else scoring.network(column.network)
    return None if network is None else int(network.flow_time(torch.tensor([snr_db])).item())


def _finish(number: int, record: dict[str, Any], output: Path, quick: bool) -> dict[str, Any]:
    write(record, f"table{number}", output, quick)
    pictures.draw_table(record, f"Table {number}", output / f"table{number}.png")
    return record


table1 = partial(_table, 1, "mean", regimes)
table2 = partial(_table, 2, "mean", depths)
table3 = partial(_table, 3, "log", depths)
table4 = partial(_table, 4, "mean", regimes)  # Table 1 again: the paper prints it twice
table5 = partial(_table, 5, "log", regimes)
table6 = partial(_table, 6, "mean", sharing)
table7 = partial(_table, 7, "log", sharing)
table8 = partial(_table, 8, "mean", rounded)
table9 = partial(_table, 9, "log", rounded)
table10 = partial(_sizes, 10, "mean")
table11 = partial(_sizes, 11, "log")
