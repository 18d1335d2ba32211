"""Pictures of the records, and sheets of samples of a fitted mixture."""

from functools import partial
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes

from coterie_research.drawing import Curve, Panel, Picture, colour


def sheet(mixture: Any, columns: int = 12) -> Picture:
    """One row per cluster, largest first: the decoder's means for samples of the latent variables."""
    side = int(np.sqrt(mixture.n_features_in_))
    order = np.argsort(-mixture.weights_)
    rows = [mixture.sample(columns, cluster=int(k), noise=False)[0].reshape(columns, side, side) for k in order]
    rows = [np.pad(row, ((0, 0), (1, 1), (1, 1))) for row in rows]
    image = np.concatenate([np.concatenate(list(row), axis=1) for row in rows])

    def paint(axes: Axes) -> None:
        axes.imshow(image, cmap="gray_r", vmin=0, vmax=1)
        axes.set_xticks([])
        middle = [(side + 2) * (i + 0.5) for i in range(len(rows))]
        axes.set_yticks(middle, [f"{mixture.weights_[k]:.0%}" for k in order])
        axes.tick_params(length=0)
        axes.grid(False)

    panel = Panel("Samples of every cluster", "", "share of the images", draw=paint)
    return Picture([panel], size=(columns * 0.55, len(rows) * 0.58))


def _paper(record: dict[str, Any]) -> list[Curve]:
    """A level at the paper's mean, if it has one."""
    mean = record.get("document", {}).get("mean")
    return [] if mean is None else [{"y": mean, "color": "0.5", "ls": "--", "label": f"the paper's mean {mean:.3f}"}]


def seeds(name: str, record: dict[str, Any]) -> Picture:
    """Accuracy of every seed, from its start to its end."""
    curves: list[Curve] = []
    for x, run in enumerate(record["runs"]):
        ends = [run["start"]["accuracy"], run["end"]["accuracy"]]
        curves += [
            {"x": [x, x], "y": ends, "color": colour(0), "lw": 1},
            {"x": [x], "y": ends[:1], "color": "white", "markeredgecolor": colour(0), "marker": "o"},
            {"x": [x], "y": ends[1:], "color": colour(0), "marker": "o"},
        ]
    ticks = {"xticks": range(len(record["runs"])), "xticklabels": [f"seed {run['seed']}" for run in record["runs"]]}
    title = f"{name}, {record['n_samples']:,} images: start (hollow) and end (full)"
    return Picture([Panel(title, "", "accuracy", [*curves, *_paper(record)], settings=ticks)], size=(6.4, 3.6))


def moons(X: np.ndarray, labels: np.ndarray, samples: np.ndarray, sample_labels: np.ndarray) -> Picture:
    """The rows by cluster beside as many samples."""
    panels = []
    for rows, own, title in ((X, labels, "rows"), (samples, sample_labels, "samples")):
        points = [dict(zip("xy", rows[own == k].T), ls="", marker=".", ms=2) for k in range(5)]
        panels.append(Panel(title, curves=points, settings={"aspect": "equal"}))
    return Picture(panels, "Five half-moons and the five VAEs that explain them", share=True)


def ablations(record: dict[str, Any]) -> Picture:
    """One panel for each question: accuracy of every answer, a point for each seed."""
    panels: list[Panel] = []
    for name, rows in record["groups"].items():
        curves: list[Curve] = []
        for x, row in enumerate(rows):
            found, start = row["accuracy"], float(np.mean(row["start_accuracy"]))
            curves.append({"x": [x] * len(found), "y": found, "ls": "", "marker": "o", "color": colour(0)})
            curves.append({"x": [x], "y": [start], "marker": "_", "color": "0.4", "ms": 16})
        answers = partial(_answers, [row["value"] for row in rows])
        panels.append(Panel(name, "", "accuracy (bar: start)" if not panels else "", curves, draw=answers))
    return Picture(panels, f"MNIST, {record['n_samples']:,} images", size=(2.6, 3.4), share=True)


def _answers(names: list[str], axes: Axes) -> None:
    axes.set_xticks(range(len(names)), names, rotation=35, ha="right", fontsize=8)
    axes.set_xlim(-0.6, len(names) - 0.4)


def random_start(record: dict[str, Any]) -> Picture:
    """Accuracy and bound of every seed against iterations and CPU hours (accuracy only).

    Small dots are accepted moves, large ones the accuracy at the end. The dashed line is the mean of the paper.
    """
    by_step, by_hour, bounds = _paper(record), _paper(record), []
    for number, run in enumerate(record["runs"]):
        curve, moves = _joined(run["curve"], run.get("move_curve", []))
        shade = {"color": colour(number)}
        accuracy, hours = [row["accuracy"] for row in curve], [row["cpu_seconds"] / 3600 for row in curve]
        by_step.append(_over(curve, "accuracy", label=f"seed {run['seed']}", **shade))
        by_step.append(_over(moves, "accuracy", ls="", marker=".", **shade))
        by_hour.append({"x": hours, "y": accuracy, **shade})
        bounds.append(_over([row for row in curve if row["bound"] is not None], "bound", **shade))
        if "end" in run:
            end = hours[-1] + run["second_stage_cpu_seconds"] / 3600
            by_hour.append({"x": [end], "y": [run["end"]["accuracy"]], "marker": "o", **shade})
    panels = (
        Panel("", "iteration", "accuracy", by_step, settings={"ylim": (None, 1)}),
        Panel("", "CPU hours (one thread)", "accuracy", by_hour, settings={"ylim": (None, 1)}),
        Panel("", "iteration", "bound", bounds),
    )
    return Picture(panels, f"From random responsibilities, {record['n_samples']:,} images", size=(3.7, 3.2))


def as_described(record: dict[str, Any]) -> Picture:
    """Accuracy, classes that some cluster stands for, and bound against iterations; dashed: no row is left out."""
    panels = []
    for key, label in (("accuracy", "accuracy"), ("classes", "majority classes"), ("bound", "bound")):
        curves = _paper(record) if key == "accuracy" else []
        for number, run in enumerate(record["runs"]):
            line = "-" if run["threshold"] else "--"
            reading = run.get("reading") or ("all rows" if line == "--" else "")
            name = f"{run['n_samples']:,} rows, seed {run['seed']}" + f", {reading}" * bool(reading)
            style = {"color": matplotlib.colormaps["tab20"](number % 20), "ls": line}
            rows = [row for row in run["curve"] if row[key] is not None]
            curves.append(_over(rows, key, label=name if key == "accuracy" else None, **style))
        panels.append(Panel("", "iteration", label, curves, settings={"ylim": (0, 1)} if key == "accuracy" else {}))
    return Picture(
        panels, f"{record['rows']}: EM as described, from random soft assignments", size=(3.7, 3.4), legend="figure"
    )


def _over(rows: list[dict[str, Any]], key: str, **style: Any) -> Curve:
    """A number of every iteration."""
    return {"x": [row["iteration"] for row in rows], "y": [row[key] for row in rows], **style}


def _joined(first: list[dict[str, Any]], second: list[dict[str, Any]]) -> tuple[list[dict], list[dict]]:
    """The points of both stages with iterations and CPU seconds counted on, and those with a move."""
    last = first[-1]
    later = [{**row, **{key: last[key] + row[key] for key in ("iteration", "cpu_seconds")}} for row in second]
    return [*first, *later], [row for row in later if "move" in row]
