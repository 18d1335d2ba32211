"""The figures of He et al. (2025), and what belongs beside them, by name.

1 to 5 are the paper's own, 6 the curve of Proposition 3.1 and Theorem 3.3, 7 the open checks, 8 the shipped network
against the variance, 9 the readings that the text allows where it is silent; ``discussion`` are small checks.
At its full budget a figure takes hours on one core; ``--set budget=short`` takes minutes.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from coterie import checkpoints
from coterie_research import drawing, records
from coterie_research.drawing import Picture
from coterie_research.incontext_em import pictures
from coterie_research.incontext_em.discussion import discussed
from coterie_research.incontext_em.point_transformer import PointTransformer
from coterie_research.incontext_em.scoring import (
    SEED,
    Kept,
    Run,
    copied_labels,
    lloyd_labels,
    network_row,
    network_scores,
    over_seeds,
    paper_loss,
    run_row,
    started,
    summary,
    test_data,
    trained,
)
from coterie_research.incontext_em.settings import (
    CLASSES,
    DIMENSION,
    DISTANCE,
    IMBALANCE,
    INSTANCES,
    LAYERS,
    POINTS,
    READINGS,
    VARIANCE,
    VARIANCE_WIDE,
    Row,
    Setting,
    averaged,
    budget_of,
)


def _sweep(rows: tuple[Row, ...], run: Run, check: bool = False) -> dict[str, Any]:
    """Rows of settings, a network trained for each."""
    return {
        "rows": {
            row.name: {"axis": row.axis, "points": run_row(row, run.budget, run.kept, check=check)}
            for row in run.planned(rows)
        }
    }


def _heads(rows: tuple[Row, ...], earlier: str, run: Run) -> dict[str, Any]:
    """Concatenated beside averaged heads; the former from the figure ``earlier``, where it is already there."""
    path = run.output / f"{earlier}{run.name[len(earlier) :]}.json"
    record = json.loads(path.read_text()) if path.exists() else {}
    if record.get("budget") != vars(run.budget):
        record = _sweep(rows, run)
    panels = {row.name: record["rows"][row.name] for row in run.planned(rows)}
    for row in run.planned(rows):
        for point, other in zip(panels[row.name]["points"], network_row(averaged(row), run.budget, run.kept)):
            point["averaged"] = other
    return {"rows": panels}


def _layers(run: Run) -> dict[str, Any]:
    """Layers of the transformer beside iterations of Lloyd's algorithm."""
    record = _sweep(LAYERS, run)
    for row in run.planned(LAYERS):
        data = test_data(row.settings[0], run.budget.instances)
        begin = started(data, "k-means++", int)
        record["rows"][row.name]["lloyd"] = [
            {"value": n, "lloyd": summary(lloyd_labels(data, begin, n), None, data)} for n in range(1, 7)
        ]
    return record


def _generalisation(run: Run) -> dict[str, Any]:
    """Test loss against the number n of pretraining instances, beside n^(-1/2) and exp(-Δ²/8σ²).

    Proposition 3.1 speaks of the excess over the best network of the class; the stand-in for that is the same network
    trained as long on data sets that never repeat.
    """
    budget, variance = run.budget, 2.0
    sizes: tuple[int | None, ...] = (8, 128, None) if budget.settings else (4, 16, 64, 256, 1024, None)
    base = Setting(0, counts=(20, 20, 20), dims=4, var=(variance, variance), network={"context": True}, at_least=False)
    data = test_data(base, budget.instances)

    def score(network: PointTransformer) -> dict[str, float]:
        return network_scores(network, data) | {"l1": round(paper_loss(network, base, budget.instances), 5)}

    points = [
        {"n": n, **over_seeds(trained(replace(base, training_instances=n), str(n), budget, run.kept, score))}
        for n in sizes
    ]
    fits, fresh = {}, points[-1]
    for name in ("l1", "loss"):
        over = [(p["n"], p[name] - fresh[name]) for p in points[:-1]]
        n, excess = np.array([one for one in over if one[1] > 2 * fresh[f"{name}_std"] + 1e-9]).reshape(-1, 2).T
        if len(n) >= 2:
            fits[name] = {"slope": round(float(np.polyfit(np.log(n), np.log(excess), 1)[0]), 3), "points_used": len(n)}
    return {
        "copied": summary(copied_labels(data), None, data),
        "delta": base.distance,
        "variance": variance,
        "minimax_rate": round(float(np.exp(-(base.distance**2) / (8 * variance))), 5),
        "points": points,
        "slope_of_the_excess_against_n": fits,
    }


VARIANTS: dict[str, dict[str, Any]] = {
    "as in the paper": {},
    "with the context rows P": {"context": True},
    "with P as Algorithm 2 prints it": {"context": True, "start_iterations": 0},
    "without layer norm": {"norm": False},
    "context, no layer norm": {"context": True, "norm": False},
    "temperature × log N": {"temperature": "log"},
}
COPIED = {"the labels inside P, untouched": 10, "the labels of Algorithm 2, untouched": 0}


def _checks(run: Run) -> dict[str, Any]:
    """Context rows, layer norm, temperature; trained at N = 200, tested at other N too."""
    sizes = (25, 50) if run.budget.settings else (12, 25, 50, 100)
    base = Setting(0, distance=15.0, var=(10.0, 40.0), at_least=False)
    instances = max(16, run.budget.instances // 4)
    data = {4 * n: test_data(replace(base, counts=(n,) * 4), instances) for n in sizes}

    def score(network: PointTransformer) -> dict[str, Any]:
        return {str(n): network_scores(network, sets) for n, sets in data.items()}

    panels: dict[str, Any] = {}
    for name, network in VARIANTS.items():
        runs = trained(replace(base, network=network), name, run.budget, run.kept, score)
        panels[name] = [{"value": n, **over_seeds([scores[str(n)] for scores in runs])} for n in data]
    for name, n_iter in COPIED.items():
        copied = {n: summary(copied_labels(sets, n_iter), None, sets) for n, sets in data.items()}
        panels[name] = [{"value": n, **over_seeds([scores])} for n, scores in copied.items()]
    return {"variants": panels, "trained_at": 200}


def _readings(run: Run) -> dict[str, Any]:
    """Figure 1's first row under every reading: batches of 8, 32 and 128, centres exactly or at least so far apart."""
    panels = {}
    for reading in READINGS:
        row = reading.row().thinned(run.budget.settings)
        points = run_row(row, replace(run.budget, batch=reading.batch), run.kept)
        panels[row.name] = {"axis": row.axis, "batch": reading.batch, "at_least": reading.at_least, "points": points}
    return {"rows": panels}


FIGURES: dict[str, tuple[Callable[[Run], dict[str, Any]], Callable[[dict[str, Any]], Picture]]] = {
    "figure1": (partial(_sweep, (DISTANCE, DIMENSION, POINTS, INSTANCES)), pictures.rows),
    "figure2": (partial(_sweep, (CLASSES, IMBALANCE)), pictures.rows),
    "figure3": (_layers, pictures.layers),
    "figure4": (partial(_heads, (DISTANCE, POINTS), "figure1"), pictures.rows),
    "figure5": (partial(_heads, (CLASSES, IMBALANCE), "figure2"), pictures.rows),
    "figure6": (_generalisation, pictures.generalisation),
    "figure7": (_checks, pictures.variants),
    "figure8": (partial(_sweep, (VARIANCE, VARIANCE_WIDE), check=True), pictures.rows),
    "figure9": (_readings, pictures.readings),
    "discussion": (discussed, pictures.discussion),
}


def reproduce(
    figure: str,
    output: Path,
    quick: bool = False,
    budget: str = "full",
    seeds: int | None = None,
    rows: Sequence[str] = (),
) -> dict[str, Any]:
    """Measure a figure, write its record and draw it; go on where a run was stopped.

    ``budget`` names one of ``settings.BUDGETS``, ``seeds`` is another number of networks for each point, and ``rows``
    are the rows to be measured, for figures with rows. What has been trained is kept until the whole figure is done.
    """
    began = time.process_time()
    plan = budget_of(figure, "quick" if quick else budget)
    plan = plan if seeds is None else replace(plan, seeds=seeds)
    name = figure if budget == "full" else f"{figure}-{budget}"
    kept = Kept(output / f"{name}.partial.json", plan)
    measure, draw = FIGURES[figure]
    weights = {card["name"]: card["sha256"][:12] for card in checkpoints.available() if card["kind"] == "incontext"}
    head: dict[str, Any] = {"seed": SEED, "budget": vars(plan), "gradient_clipping": "norm 1", "weights": weights}
    record = measure(Run(name, plan, output, kept, tuple(rows)))
    saved = {"file": name, "cpu_seconds": records.spent(began), **head}
    record = records.save(record, f"incontext/{figure}", output, quick, **saved)
    drawing.draw(draw(record), output / f"{name}.png")
    if not rows:
        kept.done()
    return record


records.EXPERIMENTS.update({f"incontext/{name}": partial(reproduce, name) for name in FIGURES})
