"""Document 001's theory for people: the measured errors as pictures, each from its JSON record alone."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullFormatter

COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"]
MARKERS = "os^vDPX"


def _figure(columns: int, height: float = 5.6) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(5.4 * columns, height), layout="constrained")
    return figure, list(np.atleast_1d(figure.subplots(1, columns)))


def _save(figure: Figure, path: Path) -> None:
    FigureCanvasAgg(figure)
    figure.savefig(path, dpi=110)


def _lines(axes: Axes, curves: Sequence[dict[str, Any]], key: str = "y") -> None:
    """Log-log lines, their fitted slopes in the legend. Zeros are left out. Earlier lines have larger marks."""
    for number, one in enumerate(curves):
        x, y = np.array(one["x"], float), np.array(one[key], float)
        steep = "" if one["slope"] is None or key != "y" else f"  (slope {one['slope']:+.2f})"
        style = _style(number, len(curves))
        axes.plot(x[y > 0], y[y > 0], label=one["label"] + steep, **style)
    axes.set(xscale="log", yscale="log")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(alpha=0.25, which="major")


def _style(number: int, count: int) -> dict[str, Any]:
    dashed = "-" if number < len(COLOURS) else ":"
    size = 3.5 + 1.2 * (count - 1 - number)
    return {"marker": MARKERS[number % 7], "color": COLOURS[number % 7], "ms": min(size, 8), "lw": 1.3, "ls": dashed}


def _reference(
    axes: Axes, x: Sequence[float] | np.ndarray, y: np.ndarray, label: str, start: float, slope: bool = False
) -> None:
    """A bound's shape, put through ``start`` at the first x."""
    if slope:
        label += f"  (slope {np.polyfit(np.log(x), np.log(y), 1)[0]:+.2f})"
    axes.plot(x, y * (start / y[0]), "--", color="0.35", lw=1.4, label=label or None, zorder=1)


def _root(x: Sequence[float] | np.ndarray) -> np.ndarray:
    m = np.array(x, float)
    return np.sqrt(np.log(m) / m)


def _finish(axes: Axes, title: str, xlabel: str, ylabel: str) -> None:
    """Titles, and the legend below the panel, where it hides nothing."""
    axes.set_title(title, loc="left", fontsize=10.5)
    axes.set(xlabel=xlabel, ylabel=ylabel)
    axes.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.13), frameon=False)


def draw_expectation_error(record: dict[str, Any], path: Path) -> None:
    figure, (left, right) = _figure(2)
    _lines(left, record["against_n"])
    x = np.array(record["against_n"][0]["x"], float)
    _reference(left, x, 1 / x, "Theorem 3.1: $N^{-1}$", 3.0)
    _finish(left, "A  against the number of points", "N", r"largest $\|$centre - mean$\|$")
    _lines(right, record["against_m"])
    x = record["against_m"][0]["x"]
    _reference(right, x, _root(x), r"Theorem 3.2: $\sqrt{\log M/M}$", 8 * record["against_m"][0]["y"][0], True)
    _finish(right, "B  against the units for 1/count", "units M", r"largest $\|$centre - mean$\|$")
    figure.suptitle(f"Expectation step, d = 2, k = 3, geometric mean of {record['seeds']} instances", fontsize=11)
    _save(figure, path)


def draw_maximisation_error(record: dict[str, Any], path: Path) -> None:
    figure, panels = _figure(3)
    x = record["distance"][0]["x"]
    titles = {
        "distance": ("A  distances", "largest error / reach"),
        "off": ("B  assignments", r"$\|$labels - one-hot$\|_2$"),
        "differ": ("C  points with another label", "share of points"),
    }
    for axes, (name, (title, ylabel)) in zip(panels, titles.items()):
        _lines(axes, record[name])
        _reference(
            axes, x, _root(x), r"the bound: $\sqrt{\log M/M}$", 2 * max(one["y"][0] for one in record[name]), True
        )
        _finish(axes, title, "units M for each centre", ylabel)
    figure.suptitle(
        f"Maximisation step, N = {record['n']}, k = {record['k']}, mean of {record['instances']} instances "
        "(zeros are not drawn)",
        fontsize=11,
    )
    _save(figure, path)


def draw_hardmax_error(record: dict[str, Any], path: Path) -> None:
    figure, (left, right) = _figure(2)
    _lines(left, record["entries"])
    for one in record["bounds"]:
        left.plot(one["x"], one["y"], "--", color="0.35", lw=1.2)
    left.plot([], [], "--", color="0.35", lw=1.2, label="Lemma B.1's bound: $N^{1-C}$")
    _finish(left, "A  one best of N entries, gap 1", "N", r"$\|$softmax - hardmax$\|_2$")
    _lines(right, record["layer"])
    x = np.array(record["layer"][0]["x"], float)
    for c in (1, 2, 3):
        _reference(right, x, x**-c, "$N^{-C}$" if c == 1 else "", 2.5 * record["layer"][c - 1]["y"][0])
    _finish(right, "B  in the layer: two centres, gap 1", "N", r"largest $\|$label - one-hot$\|_2$")
    figure.suptitle(r"Softmax with temperature $C\,\log N$ against hardmax", fontsize=11)
    _save(figure, path)


def draw_fits(record: dict[str, Any], path: Path) -> None:
    figure, panels = _figure(4)
    for number, (axes, (title, curves)) in enumerate(zip(panels, record["panels"].items())):
        _lines(axes, curves)
        x = curves[0]["x"]
        _reference(axes, x, _root(x), r"the lemmas: $\sqrt{\log M/M}$", 2 * max(one["y"][0] for one in curves), True)
        _finish(axes, f"{'ABC'[number]}  {title}", "units M", "largest error")
    chosen = record["panels"]["1/x on [0.05, 1]"][:3] + record["panels"]["‖v‖ on the unit ball"]
    _lines(panels[3], chosen, key="mass")
    _finish(panels[3], "D  what the sums cost", "units M", r"$\Sigma\,|c_m|$")
    figure.suptitle("Sums of M sigmoid units", fontsize=11)
    _save(figure, path)


def draw_iterations(record: dict[str, Any], path: Path) -> None:
    figure, panels = _figure(2)
    titles = {
        "off": ("A  error of the assignments", r"$\|$network - one-hot$\|_2$"),
        "differ": ("B  points with another label", "points of 200"),
    }
    for axes, (name, (title, ylabel)) in zip(panels, titles.items()):
        curves = record[name]
        for number, one in enumerate(curves):
            axes.plot(one["x"], one["y"], label=one["label"], **_style(number, len(curves)))
        top = max(max(one["y"]) for one in curves)
        x = np.array(curves[0]["x"], float)
        for number, first in enumerate(sorted({one["y"][0] for one in curves if one["y"][0] > 0})):
            label = None if number else r"the bounds: $\tau$ times the first iteration"
            axes.plot(x, first * x, "--", color="0.35", lw=1.2, label=label, zorder=1)
        axes.set_ylim(-0.03 * top, 1.3 * top)
        axes.grid(alpha=0.25)
        _finish(axes, title, r"iterations $\tau$", ylabel)
    figure.suptitle(
        f"The whole networks, N = {record['n']}, d = {record['d']}, k = {record['k']}, "
        f"mean of {record['instances']} instances",
        fontsize=11,
    )
    _save(figure, path)


def draw_assignments(record: dict[str, Any], path: Path) -> None:
    figure, (left, right) = _figure(2)
    count = record["instances"]
    names = list(record["networks"])
    height = np.arange(len(names))
    agree = [record["networks"][name]["all_iterations_agree"] for name in names]
    explained = [record["networks"][name]["instances_explained"] for name in names]
    left.barh(height, agree, color=COLOURS[0], label="every assignment of every iteration agrees")
    apart = [b - a for a, b in zip(agree, explained)]
    left.barh(
        height,
        apart,
        left=agree,
        color=COLOURS[5],
        label="parts where two distances differ by less than twice their error",
    )
    left.barh(
        height,
        [count - b for b in explained],
        left=explained,
        color=COLOURS[1],
        label="parts elsewhere: a point between two centres gets a soft label",
    )
    left.set_yticks(height, names, fontsize=8)
    left.invert_yaxis()
    _finish(left, "A  instances", f"of {count}", "")
    for number, name in enumerate(names):
        one = record["networks"][name]
        if not any(one["errors"]):
            continue
        pairs = np.array([(error, gap) for error, gaps in zip(one["errors"], one["gaps"]) for gap in gaps])
        size = 40 - 14 * min(number, 2)
        right.scatter(pairs[:, 0], pairs[:, 1], size, color=COLOURS[number], marker=MARKERS[number], label=name)
    low, high = right.get_xlim()
    right.plot([low, high], [low, high], "-", color="0.35", lw=1.2, label="gap = error")
    right.plot([low, high], [2 * low, 2 * high], "--", color="0.35", lw=1.2, label="gap = 2 errors: the guarantee")
    right.set_xlim(max(low, 0), high)
    right.xaxis.set_major_locator(MaxNLocator(6))
    right.grid(alpha=0.25)
    _finish(right, "B  points that part first", "largest measured error of a distance", "gap of the two distances")
    figure.suptitle(
        f"{record['tau']} Lloyd iterations by constructed networks, "
        f"N = {record['n']}, d = {record['d']}, k = {record['k']}",
        fontsize=11,
    )
    _save(figure, path)


def draw_parameter_norms(record: dict[str, Any], path: Path) -> None:
    figure, (left, right) = _figure(2)
    _lines(left, record["against_n"])
    _lines(right, record["against_m"])
    n, m = np.array(record["against_n"][0]["x"], float), np.array(record["against_m"][0]["x"], float)
    _reference(
        left, n, np.log(n), r"Theorem 3.1: $\log N + M$, M fixed", 0.5 * min(one["y"][0] for one in record["against_n"])
    )
    _reference(
        right, m, m, "Theorem 3.1: $\\log N + M$, large M", 0.5 * min(one["y"][0] for one in record["against_m"])
    )
    _finish(left, "A  against the number of points", "N", r"$\|\theta\|$")
    _finish(right, "B  against the number of units", "units M", r"$\|\theta\|$")
    figure.suptitle("Parameter norm, every temperature 100 log N, points within radius 1", fontsize=11)
    _save(figure, path)


DRAW: dict[str, Callable[[dict[str, Any], Path], None]] = {
    "assignments": draw_assignments,
    "expectation_error": draw_expectation_error,
    "maximisation_error": draw_maximisation_error,
    "hardmax_error": draw_hardmax_error,
    "fits": draw_fits,
    "iterations": draw_iterations,
    "parameter_norms": draw_parameter_norms,
}
