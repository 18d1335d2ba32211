"""Pictures of the figures of He et al. (2025), each from its record alone."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from coterie_research.drawing import Curve, Panel, Picture, colour

LINES = {
    "bayes": ("Bayes, centres known", "#999999", ":"),
    "posterior": ("posterior: attainable", "#222222", "-"),
    "shipped": ("shipped network", "#d55e00", "-"),
    "em": ("EM, equal weights", "#e69f00", "--"),
    "em_weights": ("EM, mixing weights", "#e69f00", ":"),
    "copied": ("the labels inside P, untouched", "#cc79a7", ":"),
    "kmeans": ("k-means++, 10 starts", "#009e73", "--"),
    "lloyd_spectral": ("Lloyd, spectral start", "#56b4e9", "-."),
}
OWN = {"transformer": ("the paper's network", "#0072b2"), "averaged": ("heads averaged", "#882255")}
PANELS = {"ari": "ARI", "nmi": "NMI", "loss": "loss", "error": "misclassified"}


Points = Sequence[dict[str, Any]]


def _curve(x: Any, points: Points, score: str, label: str, spread: str = "error", **style: Any) -> Curve:
    """Means over seeds with their standard deviations."""
    values = {key: np.array([one[f"{score}{end}"] for one in points]) for key, end in (("y", ""), (spread, "_std"))}
    return {"x": x, **values, "label": label, "marker": "o", "ms": 4, **style}


def _curves(points: Points, score: str) -> list[Curve]:
    """The paper's networks, if they were trained, and the other methods."""
    x, curves = [point["value"] for point in points], []
    for key, (name, shade) in OWN.items():
        if all(point.get(key) for point in points):
            curves.append(_curve(x, [point[key] for point in points], score, name, "band", color=shade))
    for key, (name, shade, style) in LINES.items():
        if all(score in point.get(key, {}) for point in points):
            line = {"x": x, "y": [point[key][score] for point in points], "label": name}
            curves.append({**line, "color": shade, "ls": style, "lw": 1.6})
    if score == "error":
        rate = [point["minimax_rate"] for point in points]
        curves.append({"x": x, "y": rate, "ls": ":", "color": "#8c6d31", "label": "exp(−Δ²/8σ²)"})
    return curves


def rows(record: dict[str, Any]) -> Picture:
    """A row of four panels for every axis of the figure."""
    panels = []
    for row in record["rows"].values():
        values = [point["value"] for point in row["points"]]
        log, ticks = ("x", values) if values[-1] > 8 * values[0] else ("", [])
        for score, title in PANELS.items():
            panels.append(Panel(title, row["axis"], "", _curves(row["points"], score), log, ticks))
    budget = record["budget"]
    seeds = "1 seed" if budget["seeds"] == 1 else f"{budget['seeds']} seeds"
    trained = f"{budget['steps']} steps, {seeds}, " if budget["seeds"] else ""
    name = record["command"].split()[2].rpartition("/")[2].replace("figure", "Figure ")
    title = f"{name}: {trained}{budget['instances']} test data sets per point"
    return Picture(panels, title, len(PANELS), (3.3, 2.8), "figure", 5)


def readings(record: dict[str, Any]) -> Picture:
    """ARI by batch size, one panel per distance; lines are the two ways to draw centres, with what is attainable."""
    rows, panels = list(record["rows"].values()), []
    for number, value in enumerate(point["value"] for point in rows[0]["points"]):
        curves: list[Curve] = []
        for at_least, shade, name in ((False, colour(0), "exactly"), (True, colour(1), "at least")):
            chosen = [row for row in rows if row["at_least"] == at_least]
            scores, batches = [row["points"][number] for row in chosen], [row["batch"] for row in chosen]
            network = f"network, centres {name} so far apart"
            curves.append(_curve(batches, [score["transformer"] for score in scores], "ari", network, color=shade))
            for key, style in (("posterior", "-"), ("kmeans", "--"), ("copied", ":")):
                level = {"y": scores[0][key]["ari"], "label": f"{LINES[key][0]} ({name})"}
                curves.append({**level, "color": shade, "ls": style})
        panels.append(Panel(f"ARI, minimum distance {value:g}", "batch", "", curves, "x", batches))
    return Picture(panels, legend="figure", legend_columns=2 * len(panels), size=(5.5, 4))


def layers(record: dict[str, Any]) -> Picture:
    """Left the transformer by layers, right Lloyd by iterations; a row for every distance."""
    panels = []
    for name, row in record["rows"].items():
        values = [point["value"] for point in row["lloyd"]]
        panels += [Panel(PANELS[score], "layers", name, _curves(row["points"], score)) for score in ("ari", "nmi")]
        for score in ("ari", "nmi"):
            curve = {"x": values, "y": [point["lloyd"][score] for point in row["lloyd"]], "marker": "o", "ms": 4}
            panels.append(
                Panel(f"{PANELS[score]}, Lloyd, one start", "iterations", "", [{**curve, "color": "#e69f00"}])
            )
    return Picture(panels, "", 4, (2.8, 3), "figure", 6)


def generalisation(record: dict[str, Any]) -> Picture:
    """Test loss against the training instances, log-log."""
    finite = [point for point in record["points"] if point["n"] is not None]
    fresh = next(point for point in record["points"] if point["n"] is None)
    n = np.array([point["n"] for point in finite], dtype=float)
    total, excess = [], []
    for name, meaning, shade in (("l1", "L1 loss of section 2.2", colour(0)), ("loss", "cross-entropy", colour(1))):
        total.append(_curve(n, finite, name, meaning, color=shade))
        total.append({"y": fresh[name], "color": shade, "ls": "--", "label": f"{meaning}, fresh data every step"})
        over = np.array([point[name] for point in finite]) - fresh[name]
        above = {"x": n[over > 0], "y": over[over > 0], "marker": "o", "ms": 4}
        excess.append({**above, "color": shade, "label": meaning})
        if over[0] > 0:
            excess.append({"x": n, "y": over[0] * (n / n[0]) ** -0.5, "ls": ":", "color": shade, "label": "slope −1/2"})
    total.append({"y": record["minimax_rate"], "color": "#222222", "ls": ":", "label": "exp(−Δ²/8σ²)"})
    titles = ("test loss", total), ("excess over fresh data", excess)
    return Picture(
        [Panel(title, "pretraining instances n", "", curves, "xy") for title, curves in titles], size=(5.5, 4)
    )


def variants(record: dict[str, Any]) -> Picture:
    """Each variant of the network against the number of points at test time."""
    panels = []
    for score in ("ari", "loss"):
        curves = [
            _curve([point["value"] for point in points], points, score, name, color=colour(number))
            for number, (name, points) in enumerate(record["variants"].items())
            if score in points[0]  # labels alone have no loss
        ]
        at = record["trained_at"]
        panels.append(Panel(PANELS[score], f"points N at test time (trained at {at})", "", curves))
    return Picture(panels, legend="figure", legend_columns=3, size=(5, 3.6))


def discussion(record: dict[str, Any]) -> Picture:
    """One panel for each check."""
    instances, temperature, context = [], [], []
    for number, row in enumerate(record.get("instances", [])):
        finite = [point for point in row["points"] if point["n"] is not None]
        name = f"Δ²/2σ² = {row['exponent']:g}, {'with' if row['context'] else 'without'} P"
        style = {"color": colour(number // 2), "ls": "-" if row["context"] else "--"}
        instances.append(_curve([point["n"] for point in finite], finite, "error", name, **style))
    for number, row in enumerate(record.get("temperature", [])):
        sizes = [int(key[4:]) for key in row if key.startswith("ari_") and not key.endswith("_std")]
        name = f"Δ = {row['distance']:g}, {'log N' if row['temperature'] == 'log' else 'constant'}"
        style = {"color": colour(number // 2), "ls": "--" if row["temperature"] == "log" else "-", "marker": "o"}
        temperature.append({"x": sizes, "y": [row[f"ari_{n}"] for n in sizes], "label": name, **style})
    found = record.get("dimensions", [])
    dims = [row["dims"] for row in found]
    dimensions = [
        {"x": dims, "y": [row["ari"] for row in found], "marker": "o", "label": "network"},
        {"x": dims, "y": [row["kmeans"]["ari"] for row in found], "marker": "s", "ls": "--", "label": "k-means"},
    ]
    for name in dict.fromkeys(row["trained_with"] for row in record.get("context", [])):
        own = [row for row in record["context"] if row["trained_with"] == name]
        for test, line in (("P", "-"), ("a P that says nothing", "--")):
            style = {"color": colour(int(name != "P")), "ls": line, "marker": "o", "label": f"{name} → {test}"}
            context.append(
                {"x": [row["steps"] for row in own], "y": [row["tested_with"][test] for row in own], **style}
            )
    titles = (
        ("misclassified points", "pretraining instances n", instances),
        ("ARI", "points N at test time (trained at 60)", temperature),
        ("ARI", "dimensions", dimensions),
        ("ARI: trained with → tested with", "training steps", context),
    )
    return Picture([Panel(title, x, "", curves, "x") for title, x, curves in titles], size=(4.5, 5.0), legend="below")
