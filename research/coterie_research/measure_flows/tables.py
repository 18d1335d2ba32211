"""Tables 1 to 11 of Zimin et al. (2025). Each function writes ``tableN.json`` and a picture of it."""

from pathlib import Path
from typing import Any

import numpy as np

from coterie.mixtures.posterior import LONG, Sweeps
from coterie_research.measure_flows import pictures, published, scoring
from coterie_research.measure_flows.record import write

MAIN = "flow-d2"
# Trained with equal budgets, to compare them; 32 and 64 layers are networks of their own.
UNIFORM, NO_FLOW, UNIT, DISTINCT = "flow-d2-uniform", "flow-d2-no-flow", "flow-d2-unit", "flow-d2-distinct"
DEEPER = {32: "flow-d2-32", 64: "flow-d2-64"}
INSTANCES = 1000
# Numbers of instances for slow columns: other networks of the same size or n = 2,000; estimated SNR; deeper networks.
FEWER, FEW, FEWEST = 300, 200, 100
SIZES = (100, 500, 1000, 2000)
SCORES = "scores.npz"
Columns = dict[str, scoring.Column | None]


def table1(output: Path, quick: bool = False) -> dict[str, Any]:
    """Flow-speed regimes in training and in evaluation."""
    return _table(1, "mean", regimes(), output, quick)


def table2(output: Path, quick: bool = False) -> dict[str, Any]:
    """Different depths, no flow and k-means; then the flow refined by EM or by the posterior."""
    return _table(2, "mean", depths(quick), output, quick, beat="layers_64")


def table3(output: Path, quick: bool = False) -> dict[str, Any]:
    """Table 2 with mean logarithms."""
    return _table(3, "log", depths(quick), output, quick, beat="layers_64")


def table4(output: Path, quick: bool = False) -> dict[str, Any]:
    """The same as Table 1, which the paper prints twice."""
    return _table(4, "mean", regimes(), output, quick)


def table5(output: Path, quick: bool = False) -> dict[str, Any]:
    """Table 4 with mean logarithms."""
    return _table(5, "log", regimes(), output, quick)


def table6(output: Path, quick: bool = False) -> dict[str, Any]:
    """Shared and distinct layers."""
    return _table(6, "mean", sharing(), output, quick)


def table7(output: Path, quick: bool = False) -> dict[str, Any]:
    """Table 6 with mean logarithms."""
    return _table(7, "log", sharing(), output, quick)


def table8(output: Path, quick: bool = False) -> dict[str, Any]:
    """k-means of the tokens."""
    return _table(8, "mean", rounded(), output, quick)


def table9(output: Path, quick: bool = False) -> dict[str, Any]:
    """Table 8 with mean logarithms."""
    return _table(9, "log", rounded(), output, quick)


def table10(output: Path, quick: bool = False) -> dict[str, Any]:
    """The flow and k-means for different numbers of points."""
    return _sizes(10, "mean", output, quick)


def table11(output: Path, quick: bool = False) -> dict[str, Any]:
    """Table 10 with mean logarithms."""
    return _sizes(11, "log", output, quick)


def regimes() -> Columns:
    return {
        "kmeans": scoring.KMEANS,
        "uniform_uniform": scoring.tokens(MAIN),
        "uniform_unit": scoring.tokens(MAIN, regime="unit", most=FEWER),
        "unit_uniform": scoring.tokens(UNIT, regime="uniform", most=FEWER),
        "unit_unit": scoring.tokens(UNIT, most=FEWER),
    }


def depths(quick: bool = False) -> Columns:
    sweeps = Sweeps(burn_in=20, apart=4, n_draws=10) if quick else LONG
    return {
        "kmeans": scoring.KMEANS,
        "layers_16": scoring.tokens(MAIN),
        "layers_32": scoring.tokens(DEEPER[32], most=FEWEST),
        "layers_64": scoring.tokens(DEEPER[64], most=FEWEST),
        "no_flow": scoring.tokens(NO_FLOW, most=FEWER),
        "refined": scoring.refined(MAIN),
        "averaged": scoring.averaged(MAIN, sweeps=sweeps),
        "refined_snr_estimated": scoring.refined(MAIN, snr_known=False, most=FEW),
        "averaged_snr_estimated": scoring.averaged(MAIN, snr_known=False, sweeps=sweeps, most=FEW),
    }


def sharing() -> Columns:
    return {
        "kmeans": scoring.KMEANS,
        "identical": scoring.tokens(MAIN),
        "unit": scoring.tokens(UNIT, most=FEWER),
        "distinct": scoring.tokens(DISTINCT, most=FEWER),
    }


def rounded() -> Columns:
    return {
        "kmeans": scoring.KMEANS,
        "layers_16": scoring.kmeans_of_tokens(MAIN),
        "layers_32": scoring.kmeans_of_tokens(DEEPER[32], most=FEWEST),
        "layers_64": scoring.kmeans_of_tokens(DEEPER[64], most=FEWEST),
        "no_flow": scoring.kmeans_of_tokens(NO_FLOW, most=FEWER),
    }


def orderings(output: Path, quick: bool = False) -> dict[str, Any]:
    """The regimes uniform, none and unit after equal training budgets, compared on the same instances."""
    count, n_points = (4, 150) if quick else (FEWER, 1000)
    columns = {name: scoring.tokens(name) for name in (UNIFORM, NO_FLOW, UNIT)}
    kept = kept_scores(output, quick)
    record: dict[str, Any] = {"n_points": n_points, "instances": count, "measure": "log", "levels": {}}
    for level, snr_db in published.LEVELS.items():
        w2 = scoring.score_all(columns, snr_db, n_points, count, kept)
        row: dict[str, Any] = {name: {"document": None} for name in columns}
        for name, values in w2.items():
            row[name] |= scoring.summary(values)
            row[name]["against"] = {other: scoring.paired(values, w2[other]) for other in w2 if other != name}
        record["levels"][level] = row
    write(record, "orderings", output, quick)
    pictures.draw_table(record, "Equal budgets", output / "orderings.png")
    return record


def kept_scores(output: Path, quick: bool) -> scoring.Kept:
    return scoring.Kept(None if quick else output / SCORES)


def _table(
    number: int, measure: str, columns: Columns, output: Path, quick: bool, beat: str | None = None
) -> dict[str, Any]:
    count, n_points = (4, 150) if quick else (INSTANCES, 1000)
    kept = kept_scores(output, quick)
    record: dict[str, Any] = {"n_points": n_points, "instances": count, "measure": measure, "levels": {}}
    for level, snr_db in published.LEVELS.items():
        w2 = scoring.score_all(columns, snr_db, n_points, count, kept)
        record["levels"][level] = _row(w2, {n: v[level] for n, v in published.TABLES[number].items()}, columns)
        for name in ("refined", "averaged"):
            if beat is not None and name in w2:
                record["levels"][level][name]["target"] = published.TABLES[number][beat][level]
    return _finish(number, record, output, quick)


def _sizes(number: int, measure: str, output: Path, quick: bool) -> dict[str, Any]:
    count, sizes = (4, (100, 200)) if quick else (INSTANCES, SIZES)
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
            same = w2[against][: len(w2[name])]
            entry |= {**scoring.summary(w2[name]), "against_kmeans": scoring.paired(w2[name], same)}
        row[name] = entry
    return row


def _finish(number: int, record: dict[str, Any], output: Path, quick: bool) -> dict[str, Any]:
    write(record, f"table{number}", output, quick)
    pictures.draw_table(record, f"Table {number}", output / f"table{number}.png")
    return record
