"""The figures of He et al. (2025), and what belongs beside them.

1 to 5 are the paper's own, 6 the curve of Proposition 3.1 and Theorem 3.3, 7 the open checks, 8 the shipped network
against the variance, and 9 the readings that the text allows where it is silent. Figures 1 to 5 and 9 accept a
``budget``: ``FULL`` takes hours on one core, ``SHORT`` minutes.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from coterie import starts
from coterie.metrics import best_renaming
from coterie_research.incontext_em import pictures
from coterie_research.incontext_em.point_training import starting_labels
from coterie_research.incontext_em.point_transformer import PointTransformer
from coterie_research.incontext_em.scoring import (
    SEED,
    Kept,
    copied_labels,
    lloyd_labels,
    network_scores,
    over_seeds,
    run_row,
    summary,
    test_data,
    train_setting,
    write,
)
from coterie_research.incontext_em.settings import (
    CLASSES,
    DIMENSION,
    DISTANCE,
    FULL,
    IMBALANCE,
    INSTANCES,
    LAYERS,
    POINTS,
    QUICK,
    READINGS,
    VARIANCE,
    VARIANCE_WIDE,
    Budget,
    Row,
    Setting,
    averaged,
)


def _rows(rows: tuple[Row, ...], budget: Budget) -> tuple[Row, ...]:
    return tuple(row.thinned(budget.settings) for row in rows)


def _sweep(name: str, rows: tuple[Row, ...], output: Path, quick: bool, budget: Budget) -> dict[str, Any]:
    """Rows of settings, a network trained for each."""
    budget, cached = QUICK if quick else budget, {}  # type: ignore[var-annotated]
    kept = Kept(output / f"{name}.partial.json", budget)
    rows = _rows(rows, budget)
    panels = {row.name: {"axis": row.axis, "points": run_row(row, budget, kept, cached)} for row in rows}
    record = write({"rows": panels}, name, output, budget, quick)
    pictures.draw_rows(record, name, output / f"{name}.png")
    kept.done()
    return record


def figure1(output: Path, quick: bool = False, budget: Budget = FULL) -> dict[str, Any]:
    """Minimum distance, dimension, points N and training instances n."""
    return _sweep("figure1", (DISTANCE, DIMENSION, POINTS, INSTANCES), output, quick, budget)


def figure2(output: Path, quick: bool = False, budget: Budget = FULL) -> dict[str, Any]:
    """Number of classes and imbalance."""
    return _sweep("figure2", (CLASSES, IMBALANCE), output, quick, budget)


def figure3(output: Path, quick: bool = False, budget: Budget = FULL) -> dict[str, Any]:
    """Layers of the transformer against iterations of Lloyd's algorithm, 500 steps for every layer."""
    budget = replace(QUICK if quick else replace(budget, steps=500), per_layer=True)
    cached: dict[tuple, dict] = {}
    kept = Kept(output / "figure3.partial.json", budget)
    panels = {}
    for row in _rows(tuple(LAYERS.values()), budget):
        points = run_row(row, budget, kept, cached)
        data = test_data(row.settings[0], budget.instances)
        lloyd = []
        for n_iter in range(1, 7):
            found = []
            for number, x in enumerate(data.points_BND.numpy()):
                random = np.random.RandomState(number)
                start = starts.choose(x, data.n_clusters, "k-means++", random)
                found.append(lloyd_labels(x, start, n_iter))
            lloyd.append({"value": n_iter, "lloyd": summary(np.stack(found), None, data)})
        panels[row.name] = {"axis": row.axis, "points": points, "lloyd": lloyd}
    record = write({"rows": panels}, "figure3", output, budget, quick)
    pictures.draw_layers(record, output / "figure3.png")
    kept.done()
    return record


def _earlier(path: Path, row: Row, budget: Budget) -> list[dict[str, Any]] | None:
    """The points of the same row in another figure's record, if that was made by the same budget."""
    record = json.loads(path.read_text()) if path.exists() else {}
    points = record.get("rows", {}).get(row.name, {}).get("points", [])
    same = record.get("budget") == vars(budget) and [p["value"] for p in points] == [s.value for s in row.settings]
    return points if same else None


def _compare(
    name: str, earlier: str, rows: tuple[Row, ...], output: Path, quick: bool, budget: Budget
) -> dict[str, Any]:
    """Concatenated beside averaged heads; the former from the figure ``earlier``, where it is already there."""
    budget, cached = QUICK if quick else budget, {}  # type: ignore[var-annotated]
    kept = Kept(output / f"{name}.partial.json", budget)
    panels = {}
    for row in _rows(rows, budget):
        points = _earlier(output / f"{earlier}.json", row, budget) or run_row(row, budget, kept, cached)
        cached |= {setting.data_key(): point for setting, point in zip(row.settings, points)}
        for point, other in zip(points, run_row(averaged(row), budget, kept, cached)):
            point["averaged"] = other["transformer"]
        panels[row.name] = {"axis": row.axis, "points": points}
    record = write({"rows": panels}, name, output, budget, quick)
    pictures.draw_rows(record, name, output / f"{name}.png")
    kept.done()
    return record


def figure4(output: Path, quick: bool = False, budget: Budget = FULL) -> dict[str, Any]:
    """Heads concatenated or averaged: minimum distance and number of data."""
    return _compare("figure4", "figure1", (DISTANCE, POINTS), output, quick, budget)


def figure5(output: Path, quick: bool = False, budget: Budget = FULL) -> dict[str, Any]:
    """Heads concatenated or averaged: number of classes and imbalance."""
    return _compare("figure5", "figure2", (CLASSES, IMBALANCE), output, quick, budget)


def paper_loss(network: PointTransformer, setting: Setting, instances: int) -> float:
    """The loss of section 2.2: mean L1 distance of the output to the one-hot truth, least over all renamings."""
    data = test_data(setting, instances)
    start = starting_labels(data.points_BND, data.n_clusters, torch.Generator().manual_seed(SEED))
    with torch.no_grad():
        p_BNK = network(data.points_BND, start).exp()
    own_BNK = torch.nn.functional.one_hot(data.labels_BN, data.n_clusters).to(p_BNK)
    cost_BKK = 2 * own_BNK.mT @ (1 - p_BNK)  # ‖p - onehot‖₁ = 2 (1 - p of the own class)
    least = cost_BKK.gather(2, best_renaming(cost_BKK)[..., None])
    return float(least.sum((1, 2)).mean() / data.labels_BN.shape[1])


def figure6(output: Path, quick: bool = False) -> dict[str, Any]:
    """Test loss against the number n of pretraining instances, beside n^(-1/2) and exp(-Δ²/8σ²).

    Proposition 3.1 speaks of the excess over the best network of the class; the stand-in for that is the same network
    trained as long on data sets that never repeat.
    """
    budget = QUICK if quick else replace(FULL, steps=400, batch=16)
    kept = Kept(output / "figure6.partial.json", budget)
    sizes: list[int | None] = [8, 128, None] if quick else [4, 16, 64, 256, 1024, None]
    variance = 2.0
    base = Setting(0, counts=(20, 20, 20), dims=4, var=(variance, variance), network={"context": True}, at_least=False)
    points = []
    for n in sizes:
        setting = replace(base, value=n or 0, training_instances=n)
        runs = []
        for seed in range(budget.seeds):
            score = kept.get(f"{n}/{seed}")
            if score is None:
                network = train_setting(setting, budget, seed)
                score = network_scores(network, test_data(setting, budget.instances))
                score["l1"] = round(paper_loss(network, setting, budget.instances), 5)
                kept.put(f"{n}/{seed}", score)
            runs.append(score)
        points.append({"n": n, **over_seeds(runs)})
    fresh = points[-1]
    finite = [p for p in points if p["n"] is not None]
    fits = {}
    for name in ("l1", "loss"):
        excess = np.array([p[name] - fresh[name] for p in finite])
        good = excess > 2 * fresh[f"{name}_std"] + 1e-9
        if good.sum() >= 2:
            slope = np.polyfit(np.log([p["n"] for p in finite])[good], np.log(excess[good]), 1)[0]
            fits[name] = {"slope": round(float(slope), 3), "points_used": int(good.sum())}
    data = test_data(base, budget.instances)
    record = {
        "copied": summary(copied_labels(data), None, data),
        "delta": base.distance,
        "variance": variance,
        "minimax_rate": round(float(np.exp(-(base.distance**2) / (8 * variance))), 5),
        "points": points,
        "slope_of_the_excess_against_n": fits,
    }
    record = write(record, "figure6", output, budget, quick)
    pictures.draw_generalisation(record, output / "figure6.png")
    kept.done()
    return record


VARIANTS: dict[str, dict[str, Any]] = {
    "as in the paper": {},
    "with the context rows P": {"context": True},
    "without layer norm": {"norm": False},
    "context, no layer norm": {"context": True, "norm": False},
    "temperature × log N": {"temperature": "log"},
}


def _copied(setting: Setting, n: int, budget: Budget) -> dict[str, Any]:
    data = test_data(replace(setting, counts=(n,) * 4), max(16, budget.instances // 4))
    return {"value": 4 * n, **over_seeds([summary(copied_labels(data), None, data)])}


def figure7(output: Path, quick: bool = False) -> dict[str, Any]:
    """Checks: context rows, layer norm, temperature; trained at N = 200, tested at other N too."""
    budget = QUICK if quick else FULL
    kept = Kept(output / "figure7.partial.json", budget)
    sizes = (25, 50) if quick else (12, 25, 50, 100)
    panels: dict[str, Any] = {}
    for name, network_config in VARIANTS.items():
        setting = Setting(0, distance=15.0, var=(10.0, 40.0), network=network_config, at_least=False)
        by_size: dict[int, list] = {n: [] for n in sizes}
        for seed in range(budget.seeds):
            scores = kept.get(f"{name}/{seed}")
            if scores is None:
                network = train_setting(setting, budget, seed)
                scores = {}
                for n in sizes:
                    other = replace(setting, counts=(n,) * 4)
                    scores[str(n)] = network_scores(network, test_data(other, max(16, budget.instances // 4)))
                kept.put(f"{name}/{seed}", scores)
            for n in sizes:
                by_size[n].append(scores[str(n)])
        panels[name] = [{"value": 4 * n, **over_seeds(runs)} for n, runs in by_size.items()]
    panels["the labels inside P, untouched"] = [_copied(setting, n, budget) for n in sizes]
    record = write({"variants": panels, "trained_at": 200}, "figure7", output, budget, quick)
    pictures.draw_variants(record, output / "figure7.png")
    kept.done()
    return record


def figure8(output: Path, quick: bool = False) -> dict[str, Any]:
    """The shipped network beside k-means, EM and the posterior at 4 x 50 points, distance 5, variance 0.5 to 40."""
    budget = replace(QUICK if quick else FULL, steps=0, batch=0, seeds=0)
    kept = Kept(output / "figure8.partial.json", budget)
    panels = {
        row.name: {"axis": row.axis, "points": run_row(row, budget, kept, {}, check=True)}
        for row in _rows((VARIANCE, VARIANCE_WIDE), budget)
    }
    record = write({"rows": panels}, "figure8", output, budget, quick)
    pictures.draw_rows(record, "figure8", output / "figure8.png")
    kept.done()
    return record


def figure9(output: Path, quick: bool = False, budget: Budget = FULL) -> dict[str, Any]:
    """Figure 1's first row under every reading: batches of 8, 32 and 128, centres exactly or at least so far apart."""
    budget, cached = QUICK if quick else budget, {}  # type: ignore[var-annotated]
    kept = Kept(output / "figure9.partial.json", budget)
    panels = {}
    for reading in READINGS:
        row = reading.row().thinned(budget.settings)
        points = run_row(row, replace(budget, batch=reading.batch), kept, cached)
        panels[row.name] = {"axis": row.axis, "batch": reading.batch, "at_least": reading.at_least, "points": points}
    record = write({"rows": panels}, "figure9", output, budget, quick)
    pictures.draw_readings(record, output / "figure9.png")
    kept.done()
    return record
