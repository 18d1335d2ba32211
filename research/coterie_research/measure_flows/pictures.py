"""Pictures of the tables and figures, each drawn from its JSON record alone."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d31"]
NAMES = {
    "kmeans": "k-means",
    "kmeans_plus_plus": "k-means++",
    "flow": "measure flow",
    "layers_16": "16 layers",
    "layers_32": "32 layers",
    "layers_64": "64 layers",
    "no_flow": "no flow",
    "refined": "EM, SNR given",
    "averaged": "posterior, SNR given",
    "averaged_snr_estimated": "posterior, SNR estimated",
    "refined_snr_estimated": "EM, SNR estimated",
    "uniform_uniform": "uniform → uniform",
    "uniform_unit": "uniform → unit",
    "uniform_floor": "uniform → ⌊T⌋",
    "unit_uniform": "unit → uniform",
    "unit_unit": "unit → unit",
    "unit_floor": "unit → ⌊T⌋",
    "identical": "shared layers",
    "unit": "unit regime",
    "distinct": "distinct layers",
}


def _save(figure: Figure, path: Path) -> None:
    FigureCanvasAgg(figure)
    figure.savefig(path, dpi=110)


def _name(key: str) -> str:
    kind, _, size = key.rpartition("_")
    if key not in NAMES and size.isdigit():
        return f"{NAMES[kind]}, n = {size}"
    return NAMES.get(key, key)


def draw_table(record: dict[str, Any], title: str, path: Path) -> None:
    """Bars with standard errors for our results, black marks for the published ones."""
    measure, levels = record["measure"], record["levels"]
    names = list(next(iter(levels.values())))
    figure = Figure(figsize=(4.3 * len(levels), 0.42 * len(names) + 1.6), layout="constrained")
    axes = np.atleast_1d(figure.subplots(1, len(levels), sharey=True))
    for axis, (level, row) in zip(axes, levels.items()):
        for place, name in enumerate(names):
            entry = row[name]
            if measure in entry:
                axis.barh(
                    place,
                    entry[measure],
                    xerr=entry[f"{measure}_se"],
                    color=COLOURS[place % len(COLOURS)],
                    height=0.65,
                    error_kw={"lw": 1},
                )
            else:
                axis.text(0.35, place, "not trained yet", transform=axis.get_yaxis_transform(), va="center", fontsize=8)
            if entry.get("whole_steps") == 0:
                axis.text(0.05, place, "identity", transform=axis.get_yaxis_transform(), va="center", color="white")
            if entry["document"] is not None:
                axis.plot(entry["document"], place, "k|", ms=18, mew=2)
        axis.set_title(f"{level} SNR", fontsize=10)
        if measure == "mean":
            axis.set_xscale("log")
            axis.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
            axis.xaxis.set_major_formatter("{x:g}")
            axis.xaxis.set_minor_formatter(NullFormatter())
        axis.grid(axis="x", alpha=0.3)
    axes[0].set_yticks(range(len(names)), [_name(name) for name in names], fontsize=8)
    axes[0].set_ylim(len(names) - 0.4, -0.6)
    what = "squared W2" if measure == "mean" else "mean log squared W2"
    size = record.get("n_points", "several sizes of")
    known = any(entry.get("document") is not None for row in record["levels"].values() for entry in row.values())
    black = "; black: published" if known else ""
    figure.suptitle(f"{title}: {what}, up to {record['instances']} instances of {size} points{black}", fontsize=11)
    _save(figure, path)


def draw_curves(record: dict[str, Any], title: str, path: Path) -> None:
    figure = Figure(figsize=(7, 4.4), layout="constrained")
    axis = figure.subplots()
    for colour, (name, points) in zip(COLOURS, record["curves"].items()):
        mean = [point["mean"] for point in points]
        axis.errorbar(
            record["snr_db"], mean, [p["mean_se"] for p in points], color=colour, label=_name(name), marker="o", ms=3
        )
    axis.set(xlabel="SNR in dB", ylabel="squared W2", yscale="log")
    missing = ", ".join(_name(name) for name in record["not_trained"])
    axis.set_title(
        f"{title}: up to {record['instances']} instances of {record['n_points']} points"
        + (f"\nnot trained yet: {missing}" if missing else ""),
        fontsize=10,
    )
    axis.grid(alpha=0.3)
    axis.legend(fontsize=8)
    _save(figure, path)


def _scatter(axis: Axes, points: Any, **style: Any) -> None:
    x, y = np.array(points).T
    axis.scatter(x, y, linewidths=0, **style)
    axis.set_aspect("equal")


def _stars(axis: Axes, centers: Any) -> None:
    x, y = np.array(centers).T
    axis.scatter(x, y, marker="*", s=90, c="white", edgecolors="black", linewidths=0.9, zorder=3)


def draw_figure1(record: dict[str, Any], path: Path) -> None:
    figure = Figure(figsize=(15, 6.6), layout="constrained")
    axes = figure.subplots(2, 4)
    for axis, (layer, tokens) in zip(axes[0], record["tokens"].items()):
        _scatter(axis, tokens, s=4, c=COLOURS[0], alpha=0.5)
        _stars(axis, record["centers"])
        axis.set_title(f"tokens after layer {layer}" if layer != "0" else "data (★ true centres)", fontsize=10)
    first, second, third, last = axes[1]
    first.plot(record["entropy_by_layer"], color=COLOURS[1])
    first.set(xlabel="layer", title=f"entropy of the tokens, mean of {record['instances']}")
    sphere = record["sphere"]
    second.plot(sphere["times"], sphere["energy"], color=COLOURS[2])
    second.set(xlabel="time", title=f"sphere, beta = {sphere['beta']:g}: interaction energy")
    third.plot(sphere["times"], sphere["negative_entropy_rise"], color=COLOURS[3])
    third.set(xlabel="time", title="sphere: rise of the negative entropy")
    last.plot(sphere["times"], sphere["rate"], color=COLOURS[0], label="rate, -mean div v")
    last.plot(sphere["times"], sphere["bound"], color=COLOURS[1], ls="--", label="2 (d - 1) (E[mu] - E[uniform])")
    last.set(xlabel="time", title="sphere: rate and its lower bound")
    last.legend(fontsize=8)
    for axis in axes[1]:
        axis.grid(alpha=0.3)
        axis.title.set_fontsize(10)
    _save(figure, path)


def draw_figure2(record: dict[str, Any], path: Path) -> None:
    figure = Figure(figsize=(15, 4), layout="constrained")
    for axis, panel in zip(figure.subplots(1, 4), record["panels"]):
        _scatter(axis, panel["points"], s=4, c="#bbbbbb")
        _scatter(axis, panel["tokens"], s=10, c=COLOURS[0], alpha=0.6)
        _stars(axis, panel["centers"])
        axis.set_title(f"network {panel['network']}, data {panel['data_db']:g} dB", fontsize=10)
    _save(figure, path)


def draw_figure6(record: dict[str, Any], path: Path) -> None:
    figure = Figure(figsize=(12, 4), layout="constrained")
    for axis, (level, data) in zip(figure.subplots(1, 3), record["sets"].items()):
        colours = np.array(COLOURS)[np.array(data["labels"]) % len(COLOURS)]
        _scatter(axis, data["points"], s=5, c=colours)
        _stars(axis, data["centers"])
        axis.set_title(f"{level} SNR, {data['snr_db']:g} dB", fontsize=10)
    _save(figure, path)


def draw_figure8(record: dict[str, Any], path: Path) -> None:
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for colour, (layers, speed) in zip(COLOURS, record["per_layer"].items()):
        left.plot(record["snr_db"], speed, color=colour, label=f"{layers} layers")
    left.set(xlabel="SNR in dB", ylabel="flow speed t = T / L")
    left.legend(fontsize=8)
    for colour, total in zip(COLOURS, (record["total"], *record["total_deeper"].values())):
        right.plot(record["snr_db"], total, color=colour)
    right.set(xlabel="SNR in dB", ylabel="total flow T")
    for axis in (left, right):
        axis.grid(alpha=0.3)
    _save(figure, path)


def _smooth(along: list[float], loss: list[float]) -> tuple[Any, Any]:
    """The running mean over a twentieth of the values."""
    width = max(1, len(loss) // 20)
    return along[width - 1 :], np.convolve(loss, np.ones(width) / width, mode="valid")


def draw_training(record: dict[str, Any], path: Path) -> None:
    figure = Figure(figsize=(7, 4), layout="constrained")
    axis = figure.subplots()
    axis.plot(record["cpu_seconds"], record["loss"], color=COLOURS[0], lw=0.8, alpha=0.5)
    axis.plot(*_smooth(record["cpu_seconds"], record["loss"]), color=COLOURS[1])
    axis.set(xlabel="CPU seconds", ylabel="SNR · squared W2", yscale="log", title="loss of the main run")
    axis.grid(alpha=0.3)
    _save(figure, path)


def draw_columns(record: dict[str, Any], path: Path) -> None:
    """Losses against steps; and what the networks score beside the first, with the document's differences."""
    networks = record["networks"]
    first = next(iter(networks))
    figure = Figure(figsize=(12, 1.5 + 0.36 * len(networks)), layout="constrained")
    step_axis, score_axis = figure.subplots(1, 2)
    for place, (name, network) in enumerate(networks.items()):
        curve = network["curve"]
        style = {"color": COLOURS[place % len(COLOURS)], "ls": "-" if place < len(COLOURS) else "--"}
        step_axis.plot(*_smooth(curve["step"], curve["loss"]), label=name, lw=1, **style)
        for level, (title, row) in enumerate(network["levels"].items()):
            y, gap, document = place + 0.22 * (level - 1), row["against_base"], row["document"]
            label = f"{title} SNR" if place == 0 else None
            score_axis.errorbar(
                gap["log"], y, xerr=1.96 * gap["log_se"], fmt="o", ms=4, color=COLOURS[level], label=label
            )
            if document is not None and place:
                score_axis.plot(document["against_base"], y, "k|", ms=9, mew=2)
    step_axis.set(xlabel="step", ylabel="training loss, running mean", yscale="log")
    step_axis.legend(fontsize=7, ncols=2)
    score_axis.axvline(0, color="grey", lw=1)
    score_axis.set_yticks(range(len(networks)), list(networks), fontsize=8)
    score_axis.set_ylim(len(networks) - 0.5, -0.5)
    score_axis.set_xscale("symlog", linthresh=0.2)
    score_axis.set(
        xlabel=f"log squared W2, minus that of {first}; below 0 is better",
        title=f"{record['steps']:,} steps each, {record['instances']} instances; bars: 95%; black: published",
    )
    score_axis.title.set_fontsize(10)
    score_axis.legend(fontsize=8)
    for axis in (step_axis, score_axis):
        axis.grid(alpha=0.3)
    _save(figure, path)
