"""Pictures of the figures of He et al. (2025), each from its JSON record alone."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from coterie_research.drawing import label, legend_below, log_ticks, panels, save

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


def _lines(axis: Axes, points: list[dict[str, Any]], score: str) -> None:
    values = [point["value"] for point in points]
    for key, (name, colour) in OWN.items():
        if all(point.get(key) for point in points):
            mean, std = _over([point[key] for point in points], score)
            axis.plot(values, mean, "o-", color=colour, label=name, ms=4)
            axis.fill_between(values, mean - std, mean + std, color=colour, alpha=0.2, lw=0)
    for key, (name, colour, style) in LINES.items():
        if all(score in point.get(key, {}) for point in points):
            axis.plot(values, [point[key][score] for point in points], style, color=colour, label=name, lw=1.6)
    if score == "error":
        axis.plot(values, [point["minimax_rate"] for point in points], ":", color="#8c6d31", label="exp(−Δ²/8σ²)")


def _over(scores: list[dict[str, float]], score: str) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard deviations over seeds."""
    return np.array([one[score] for one in scores]), np.array([one[f"{score}_std"] for one in scores])


def draw_rows(record: dict[str, Any], path: Path) -> None:
    """A row of four panels for every axis of the figure."""
    rows = record["rows"]
    figure, axes = panels(len(rows), len(PANELS), (13, 2.7 * len(rows) + 1.1))
    for line, row in zip(axes, rows.values()):
        values = [point["value"] for point in row["points"]]
        for axis, (score, title) in zip(line, PANELS.items()):
            _lines(axis, row["points"], score)
            label(axis, title, row["axis"])
            if values[-1] > 8 * values[0]:
                log_ticks(axis, values)
    legend_below(figure, axes[0, 3], 5)
    budget = record["budget"]
    seeds = "1 seed" if budget["seeds"] == 1 else f"{budget['seeds']} seeds"
    trained = f"{budget['steps']} steps, {seeds}, " if budget["seeds"] else ""
    name = path.stem.replace("figure", "Figure ")
    figure.suptitle(f"{name}: {trained}{budget['instances']} test data sets per point", fontsize=11)
    save(figure, path)


def draw_readings(record: dict[str, Any], path: Path) -> None:
    """ARI by batch size, one panel per distance; lines are the two ways to draw centres, with what is attainable."""
    rows = list(record["rows"].values())
    values = [point["value"] for point in rows[0]["points"]]
    figure, axes = panels(1, len(values), (1.5 + 5 * len(values), 4.3))
    for number, (axis, value) in enumerate(zip(axes[0], values)):
        for at_least, colour, name in ((False, "#0072b2", "exactly"), (True, "#d55e00", "at least")):
            chosen = [row for row in rows if row["at_least"] == at_least]
            scores = [row["points"][number] for row in chosen]
            batches = [row["batch"] for row in chosen]
            mean, std = _over([score["transformer"] for score in scores], "ari")
            axis.errorbar(batches, mean, std, fmt="o-", color=colour, label=f"network, centres {name} so far apart")
            for key, style in (("posterior", "-"), ("kmeans", "--"), ("copied", ":")):
                axis.axhline(scores[0][key]["ari"], color=colour, ls=style, lw=1, label=f"{LINES[key][0]} ({name})")
        log_ticks(axis, batches)
        label(axis, f"ARI, minimum distance {value:g}", "batch")
    legend_below(figure, axis, 2 * len(values))
    save(figure, path)


def draw_layers(record: dict[str, Any], path: Path) -> None:
    """Left the transformer by layers, right Lloyd by iterations; a row for every distance."""
    rows = record["rows"]
    figure, axes = panels(len(rows), 4, (11, 3 * len(rows) + 0.7))
    for line, (name, row) in zip(axes, rows.items()):
        for axis, score in zip(line[:2], ("ari", "nmi")):
            _lines(axis, row["points"], score)
            label(axis, PANELS[score], "layers", name)
        values = [point["value"] for point in row["lloyd"]]
        for axis, score in zip(line[2:], ("ari", "nmi")):
            axis.plot(values, [point["lloyd"][score] for point in row["lloyd"]], "o-", color="#e69f00", ms=4)
            label(axis, f"{PANELS[score]}, Lloyd, one start", "iterations")
    legend_below(figure, axes[0, 0], 6)
    save(figure, path)


def draw_generalisation(record: dict[str, Any], path: Path) -> None:
    """Test loss against the training instances, log-log."""
    finite = [point for point in record["points"] if point["n"] is not None]
    fresh = next(point for point in record["points"] if point["n"] is None)
    n = np.array([point["n"] for point in finite], dtype=float)
    figure, ((total, excess),) = panels(1, 2, (11, 4))
    for name, meaning, colour in (("l1", "L1 loss of section 2.2", "#0072b2"), ("loss", "cross-entropy", "#d55e00")):
        mean, std = _over(finite, name)
        total.errorbar(n, mean, std, fmt="o-", color=colour, label=meaning, ms=4)
        total.axhline(fresh[name], color=colour, ls="--", lw=1, label=f"{meaning}, fresh data every step")
        over = mean - fresh[name]
        if (over > 0).any():  # a log axis takes nothing else
            excess.plot(n[over > 0], over[over > 0], "o-", color=colour, label=meaning, ms=4)
        if over[0] > 0:
            excess.plot(n, over[0] * (n / n[0]) ** -0.5, ":", color=colour, label="slope −1/2")
    total.axhline(record["minimax_rate"], color="#222222", ls=":", label="exp(−Δ²/8σ²)")
    for axis, title in ((total, "test loss"), (excess, "excess over fresh data")):
        label(axis, title, "pretraining instances n")
        if axis.lines:
            axis.set(xscale="log", yscale="log")
            axis.legend(fontsize=8)
    save(figure, path)


def draw_variants(record: dict[str, Any], path: Path) -> None:
    """Each variant of the network against the number of points at test time."""
    figure, axes = panels(1, 2, (10, 3.8))
    for axis, score in zip(axes[0], ("ari", "loss")):
        for number, (name, points) in enumerate(record["variants"].items()):
            if score in points[0]:  # labels alone have no loss
                values = [point["value"] for point in points]
                axis.errorbar(values, *_over(points, score), fmt="o-", ms=4, label=name, color=f"C{number}")
        axis.axvline(record["trained_at"], color="0.6", lw=1)
        label(axis, PANELS[score], "points N at test time (trained at the grey line)")
    legend_below(figure, axes[0, 0], 3)
    save(figure, path)


def draw_discussion(record: dict[str, Any], path: Path) -> None:
    """One panel for each check."""
    figure, ((first, second, third, last),) = panels(1, 4, (17, 4.2))
    for number, row in enumerate(record.get("instances", [])):
        finite = [point for point in row["points"] if point["n"] is not None]
        style = "o-" if row["context"] else "s--"
        name = f"Δ²/2σ² = {row['exponent']:g}, {'with' if row['context'] else 'without'} P"
        values = [point["n"] for point in finite]
        first.errorbar(values, *_over(finite, "error"), fmt=style, ms=4, color=f"C{number // 2}", label=name)
    for number, row in enumerate(record.get("temperature", [])):
        sizes = [int(key[4:]) for key in row if key.startswith("ari_") and not key.endswith("_std")]
        name = f"Δ = {row['distance']:g}, {'log N' if row['temperature'] == 'log' else 'constant'}"
        style = "s--" if row["temperature"] == "log" else "o-"
        second.plot(sizes, [row[f"ari_{n}"] for n in sizes], style, color=f"C{number // 2}", ms=4, label=name)
    rows = record.get("dimensions", [])
    third.plot([row["dims"] for row in rows], [row["ari"] for row in rows], "o-", ms=4, label="network")
    third.plot([row["dims"] for row in rows], [row["kmeans"]["ari"] for row in rows], "s--", ms=4, label="k-means")
    for name in dict.fromkeys(row["trained_with"] for row in record.get("context", [])):
        own = [row for row in record["context"] if row["trained_with"] == name]
        for test, style in (("P", "o-"), ("a P that says nothing", "s--")):
            ari = [row["tested_with"][test] for row in own]
            colour = "C0" if name == "P" else "C1"
            last.plot([row["steps"] for row in own], ari, style, ms=4, color=colour, label=f"{name} → {test}")
    titles = (
        (first, "misclassified", "pretraining instances n"),
        (second, "ARI", "points N at test time (trained at 60)"),
        (third, "ARI", "dimensions"),
        (last, "ARI: trained with → tested with", "training steps"),
    )
    for axis, title, along in titles:
        label(axis, title, along)
        if axis.lines:
            axis.legend(fontsize=7)
            axis.set_xscale("log")
    save(figure, path)
