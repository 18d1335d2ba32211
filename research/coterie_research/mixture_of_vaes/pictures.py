"""Pictures of the records, and sheets of samples of a fitted mixture."""

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00")


def save(figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150, bbox_inches="tight")
    plt.close(figure)


def draw_sheet(mixture, path: Path, columns: int = 12) -> None:
    """One row per cluster, largest first: the decoder's means for samples of the latent variables."""
    side = int(np.sqrt(mixture.n_features_in_))
    order = np.argsort(-mixture.weights_)
    rows = [mixture.sample(columns, cluster=int(k), noise=False)[0].reshape(columns, side, side) for k in order]
    rows = [np.pad(row, ((0, 0), (1, 1), (1, 1))) for row in rows]
    sheet = np.concatenate([np.concatenate(list(row), axis=1) for row in rows])
    figure, axes = plt.subplots(figsize=(columns * 0.55, len(rows) * 0.58))
    axes.imshow(sheet, cmap="gray_r", vmin=0, vmax=1)
    axes.set_xticks([])
    axes.set_yticks([(side + 2) * (i + 0.5) for i in range(len(rows))], [f"{mixture.weights_[k]:.0%}" for k in order])
    axes.tick_params(length=0)
    axes.set_ylabel("share of the images")
    axes.set_title("Samples of every cluster")
    save(figure, path)


def draw_seeds(record: dict[str, Any], name: str, path: Path) -> None:
    """Accuracy of every seed, from its start to its end."""
    figure, axes = plt.subplots(figsize=(6.4, 3.6))
    ticks = []
    colour = COLOURS[0]
    for x, run in enumerate(record["runs"]):
        start, end = run["start"]["accuracy"], run["end"]["accuracy"]
        axes.plot([x, x], [start, end], color=colour, linewidth=1)
        axes.plot(x, start, "o", color="white", markeredgecolor=colour)
        axes.plot(x, end, "o", color=colour)
        ticks.append(f"seed {run['seed']}")
    mean = record["document"]["mean"]
    axes.axhline(mean, color="0.5", linewidth=1, linestyle="--")
    axes.annotate(f"the paper's mean {mean:.3f}", (len(ticks) - 0.6, mean), ha="right", va="bottom", color="0.4")
    axes.set_xticks(range(len(ticks)), ticks, fontsize=8)
    axes.set_xlim(-0.5, len(ticks) - 0.5)
    axes.set_ylabel("accuracy")
    axes.set_title(f"{name}, {record['n_samples']:,} images: start (hollow) and end (full)")
    save(figure, path)


def draw_moons(X, labels, samples, sample_labels, path: Path) -> None:
    """The rows by cluster beside as many samples."""
    figure, panels = plt.subplots(1, 2, figsize=(8, 4), sharex=True, sharey=True)
    for axes, rows, own, title in ((panels[0], X, labels, "rows"), (panels[1], samples, sample_labels, "samples")):
        for k, colour in enumerate(COLOURS):
            axes.plot(*rows[own == k].T, ".", markersize=2, color=colour)
        axes.set_title(title)
        axes.set_aspect("equal")
    figure.suptitle("Five half-moons and the five VAEs that explain them")
    save(figure, path)


def draw_ablations(record: dict[str, Any], path: Path) -> None:
    """One panel for each question: accuracy of every answer, a point for each seed."""
    groups = record["groups"]
    figure, panels = plt.subplots(1, len(groups), figsize=(2.6 * len(groups), 3.4), sharey=True, layout="constrained")
    for axes, (name, rows) in zip(panels, groups.items()):
        for x, row in enumerate(rows):
            axes.plot([x] * len(row["accuracy"]), row["accuracy"], "o", color=COLOURS[0], alpha=0.7)
            axes.plot(x, np.mean(row["start_accuracy"]), "_", color="0.4", markersize=16)
        axes.set_xticks(range(len(rows)), [row["value"] for row in rows], rotation=35, ha="right", fontsize=8)
        axes.set_xlim(-0.6, len(rows) - 0.4)
        axes.set_title(name, fontsize=10)
    panels[0].set_ylabel("accuracy (bar: start)")
    figure.suptitle(f"MNIST, {record['n_samples']:,} images", fontsize=11)
    save(figure, path)


def draw_curves(record: dict[str, Any], path: Path) -> None:
    """Accuracy and bound of every seed against iterations and CPU hours (accuracy only).

    Small dots are accepted moves, large ones the accuracy at the end. The dashed line is the mean of the paper.
    """
    figure, panels = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
    for run, colour in zip(record["runs"], COLOURS):
        curve, moves = _joined(run["curve"], run.get("move_curve", []))
        iterations = [row["iteration"] for row in curve]
        hours = [row["cpu_seconds"] / 3600 for row in curve]
        accuracy = [row["accuracy"] for row in curve]
        panels[0].plot(iterations, accuracy, color=colour, label=f"seed {run['seed']}")
        panels[1].plot(hours, accuracy, color=colour)
        panels[0].plot([row["iteration"] for row in moves], [row["accuracy"] for row in moves], ".", color=colour)
        judged = [row for row in curve if row["bound"] is not None]
        panels[2].plot([row["iteration"] for row in judged], [row["bound"] for row in judged], color=colour)
        if "end" in run:
            end = hours[-1] + run["second_stage_cpu_seconds"] / 3600
            panels[1].plot(end, run["end"]["accuracy"], "o", color=colour)
    names = (("iteration", "accuracy"), ("CPU hours (one thread)", "accuracy"), ("iteration", "bound"))
    for axes, (x, y) in zip(panels, names):
        axes.set_xlabel(x)
        axes.set_ylabel(y)
    for axes in panels[:2]:
        axes.axhline(record["document"]["mean"], color="0.5", linewidth=1, linestyle="--")
        axes.set_ylim(top=1)
    panels[0].annotate("the paper's mean", (0, record["document"]["mean"]), va="bottom", color="0.4", fontsize=8)
    panels[0].legend(frameon=False, fontsize=8)
    figure.suptitle(f"MNIST from random responsibilities, {record['n_samples']:,} images", fontsize=11)
    save(figure, path)


def draw_as_described(record: dict[str, Any], path: Path) -> None:
    """Accuracy, classes that some cluster stands for, and bound against iterations; dashed: no row is left out."""
    figure, panels = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
    for number, run in enumerate(record["runs"]):
        line = "-" if run["threshold"] else "--"
        reading = run.get("reading") or ("all rows" if line == "--" else "")
        name = f"{run['n_samples']:,} rows, seed {run['seed']}" + f", {reading}" * bool(reading)
        for axes, key in zip(panels, ("accuracy", "classes", "bound")):
            rows = [row for row in run["curve"] if row[key] is not None]
            colour = plt.colormaps["tab20"](number % 20)
            axes.plot([row["iteration"] for row in rows], [row[key] for row in rows], line, color=colour, label=name)
    for axes, label in zip(panels, ("accuracy", "majority classes", "bound")):
        axes.set_xlabel("iteration")
        axes.set_ylabel(label)
    panels[1].yaxis.get_major_locator().set_params(integer=True)
    if "document" in record:
        panels[0].axhline(record["document"]["mean"], color="0.5", linewidth=1, linestyle=":")
        panels[0].annotate("the paper's mean", (1, record["document"]["mean"]), va="bottom", color="0.4", fontsize=8)
    panels[0].set_ylim(0, 1)
    panels[0].legend(frameon=False, fontsize=6)
    figure.suptitle(f"{record['rows']}: EM as described, from random soft assignments", fontsize=11)
    save(figure, path)


def _joined(first: list[dict[str, Any]], second: list[dict[str, Any]]) -> tuple[list[dict], list[dict]]:
    """The points of both stages with iterations and CPU seconds counted on, and those with a move."""
    last = first[-1]
    later = [{**row, **{key: last[key] + row[key] for key in ("iteration", "cpu_seconds")}} for row in second]
    return [*first, *later], [row for row in later if "move" in row]
