"""Pictures of the figures of He et al. (2025), each from its JSON record alone."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

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


def _save(figure: Figure, path: Path) -> None:
    FigureCanvasAgg(figure)
    figure.savefig(path, dpi=100)


def _lines(axis: Axes, points: list[dict[str, Any]], score: str) -> None:
    values = [point["value"] for point in points]
    for key, (name, colour) in OWN.items():
        if all(point.get(key) for point in points):
            mean = np.array([point[key][score] for point in points])
            std = np.array([point[key][f"{score}_std"] for point in points])
            axis.plot(values, mean, "o-", color=colour, label=name, ms=4)
            axis.fill_between(values, mean - std, mean + std, color=colour, alpha=0.2, lw=0)
    for key, (name, colour, style) in LINES.items():
        if all(score in point.get(key, {}) for point in points):
            axis.plot(values, [point[key][score] for point in points], style, color=colour, label=name, lw=1.6)
    if score == "error":
        axis.plot(values, [point["minimax_rate"] for point in points], ":", color="#8c6d31", label="exp(−Δ²/8σ²)")
    axis.set_title(PANELS[score], fontsize=10)
    axis.grid(alpha=0.3)


def draw_rows(record: dict[str, Any], name: str, path: Path) -> None:
    """A row of four panels for every axis of the figure."""
    rows = record["rows"]
    figure = Figure(figsize=(13, 2.7 * len(rows) + 1.1), layout="constrained")
    axes = np.atleast_2d(figure.subplots(len(rows), len(PANELS)))
    for line, row in zip(axes, rows.values()):
        for axis, score in zip(line, PANELS):
            _lines(axis, row["points"], score)
            axis.set_xlabel(row["axis"], fontsize=9)
            if row["points"][-1]["value"] > 8 * row["points"][0]["value"]:
                values = [point["value"] for point in row["points"]]
                axis.set_xscale("log")
                axis.set_xticks(values, [f"{value:g}" for value in values])
                axis.minorticks_off()
    handles, labels = axes[0, 3].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, fontsize=8)
    budget = record["budget"]
    seeds = "1 seed" if budget["seeds"] == 1 else f"{budget['seeds']} seeds"
    trained = f"{budget['steps']} steps, {seeds}, " if budget["seeds"] else ""
    figure.suptitle(
        f"{name.replace('figure', 'Figure ')}: {trained}{budget['instances']} test data sets per point", fontsize=11
    )
    _save(figure, path)


def draw_readings(record: dict[str, Any], path: Path) -> None:
    """ARI by batch size, one panel per distance; lines are the two ways to draw centres, with what is attainable."""
    rows = list(record["rows"].values())
    values = [point["value"] for point in rows[0]["points"]]
    figure = Figure(figsize=(1.5 + 5 * len(values), 4.3), layout="constrained")
    for number, (axis, value) in enumerate(zip(np.atleast_1d(figure.subplots(1, len(values), sharey=True)), values)):
        for at_least, colour in ((False, "#0072b2"), (True, "#d55e00")):
            chosen = [row for row in rows if row["at_least"] == at_least]
            scores = [row["points"][number] for row in chosen]
            name = "at least" if at_least else "exactly"
            batches = [row["batch"] for row in chosen]
            mean, std = ([score["transformer"][key] for score in scores] for key in ("ari", "ari_std"))
            axis.errorbar(batches, mean, std, fmt="o-", color=colour, label=f"network, centres {name} so far apart")
            for key, style in (("posterior", "-"), ("kmeans", "--"), ("copied", ":")):
                axis.axhline(scores[0][key]["ari"], color=colour, ls=style, lw=1, label=f"{LINES[key][0]} ({name})")
        axis.set_xscale("log")
        axis.set_xticks(batches, [str(batch) for batch in batches])
        axis.minorticks_off()
        axis.set_xlabel("batch", fontsize=9)
        axis.set_title(f"ARI, minimum distance {value:g}", fontsize=10)
        axis.grid(alpha=0.3)
    figure.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=2 * len(values), fontsize=8)
    _save(figure, path)


def draw_layers(record: dict[str, Any], path: Path) -> None:
    """Left the transformer by layers, right Lloyd by iterations; a row for every distance."""
    rows = record["rows"]
    figure = Figure(figsize=(11, 3 * len(rows) + 0.7), layout="constrained")
    axes = np.atleast_2d(figure.subplots(len(rows), 4))
    for line, (name, row) in zip(axes, rows.items()):
        for axis, score in zip(line[:2], ("ari", "nmi")):
            _lines(axis, row["points"], score)
            axis.set_xlabel("layers", fontsize=9)
            axis.set_ylabel(name, fontsize=9)
        for axis, score in zip(line[2:], ("ari", "nmi")):
            values = [point["value"] for point in row["lloyd"]]
            axis.plot(values, [point["lloyd"][score] for point in row["lloyd"]], "o-", color="#e69f00", ms=4)
            axis.set_title(f"{PANELS[score]}, Lloyd, one start", fontsize=10)
            axis.set_xlabel("iterations", fontsize=9)
            axis.grid(alpha=0.3)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6, fontsize=8)
    _save(figure, path)


def draw_generalisation(record: dict[str, Any], path: Path) -> None:
    """Test loss against the training instances, log-log."""
    finite = [point for point in record["points"] if point["n"] is not None]
    fresh = next(point for point in record["points"] if point["n"] is None)
    n = np.array([point["n"] for point in finite], dtype=float)
    figure = Figure(figsize=(11, 4), layout="constrained")
    total, excess = figure.subplots(1, 2)
    for name, label, colour in (("l1", "L1 loss of section 2.2", "#0072b2"), ("loss", "cross-entropy", "#d55e00")):
        mean = np.array([point[name] for point in finite])
        total.errorbar(n, mean, [point[f"{name}_std"] for point in finite], fmt="o-", color=colour, label=label, ms=4)
        total.axhline(fresh[name], color=colour, ls="--", lw=1, label=f"{label}, fresh data every step")
        over = mean - fresh[name]
        if (over > 0).any():  # a log axis takes nothing else
            excess.plot(n[over > 0], over[over > 0], "o-", color=colour, label=label, ms=4)
        if over[0] > 0:
            excess.plot(n, over[0] * (n / n[0]) ** -0.5, ":", color=colour, label="slope −1/2")
    total.axhline(record["minimax_rate"], color="#222222", ls=":", label="exp(−Δ²/8σ²)")
    for axis, title in ((total, "test loss"), (excess, "excess over fresh data")):
        axis.set_xlabel("pretraining instances n")
        axis.set_title(title, fontsize=10)
        if axis.lines:
            axis.set_xscale("log")
            axis.set_yscale("log")
            axis.legend(fontsize=8)
        axis.grid(alpha=0.3, which="both")
    _save(figure, path)


def draw_variants(record: dict[str, Any], path: Path) -> None:
    """Each variant of the network against the number of points at test time."""
    figure = Figure(figsize=(10, 3.8), layout="constrained")
    for axis, score in zip(figure.subplots(1, 2), ("ari", "loss")):
        for number, (name, points) in enumerate(record["variants"].items()):
            if score not in points[0]:  # labels alone have no loss
                continue
            axis.errorbar(
                [point["value"] for point in points],
                [point[score] for point in points],
                [point[f"{score}_std"] for point in points],
                fmt="o-",
                ms=4,
                label=name,
                color=f"C{number}",
            )
        axis.axvline(record["trained_at"], color="0.6", lw=1)
        axis.set_xlabel("points N at test time (trained at the grey line)", fontsize=9)
        axis.set_title(PANELS[score], fontsize=10)
        axis.grid(alpha=0.3)
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8)
    _save(figure, path)
