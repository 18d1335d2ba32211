"""Pictures of the theory of He et al. (2025), each from its JSON record alone: ``draw_NAME``."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullFormatter

from coterie_research.drawing import COLOURS, panels, save

MARKERS = "os^vDPX"
GREY: dict[str, Any] = {"color": "0.35", "lw": 1.3}
Curves = Sequence[dict[str, Any]]
Values = Sequence[float] | np.ndarray


def _root(x: Values) -> np.ndarray:
    """The bound's shape in M."""
    m = np.array(x, float)
    return np.sqrt(np.log(m) / m)


def _style(number: int, count: int) -> dict[str, Any]:
    """Earlier lines have larger marks, so that equal ones are seen."""
    size = min(3.5 + 1.2 * (count - 1 - number), 8)
    return {"marker": MARKERS[number % 7], "color": COLOURS[number % 7], "ms": size, "lw": 1.3}


def _panel(axes: Axes, title: str, xlabel: str, ylabel: str, curves: Curves = (), key: str = "y") -> None:
    """Log-log lines, if there are any, with their slopes in the legend; zeros are left out."""
    for number, one in enumerate(curves):
        x, y = np.array(one["x"], float), np.array(one[key], float)
        steep = "" if one["slope"] is None or key != "y" else f"  (slope {one['slope']:+.2f})"
        axes.plot(x[y > 0], y[y > 0], label=one["label"] + steep, **_style(number, len(curves)))
    if curves:
        axes.set(xscale="log", yscale="log")
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(alpha=0.25, which="major")
    axes.set_title(title, loc="left", fontsize=10.5)
    axes.set(xlabel=xlabel, ylabel=ylabel)


def _bound(axes: Axes, x: Values, y: np.ndarray, label: str, start: float, slope: bool = False) -> None:
    """A bound's shape, put through ``start`` at the first x."""
    if slope:
        label += f"  (slope {np.polyfit(np.log(x), np.log(y), 1)[0]:+.2f})"
    axes.plot(x, y * (start / y[0]), "--", label=label or None, zorder=1, **GREY)


def _finish(figure: Figure, title: str, path: Path) -> None:
    """The legends below the panels, where they hide nothing."""
    for axes in figure.axes:
        axes.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.13), frameon=False)
    figure.suptitle(title, fontsize=11)
    save(figure, path, dpi=110)


def _figure(columns: int) -> tuple[Figure, list[Axes]]:
    figure, axes = panels(1, columns, (5.4 * columns, 5.6))
    return figure, list(axes[0])


def draw_expectation_error(record: dict[str, Any], path: Path) -> None:
    figure, (left, right) = _figure(2)
    ylabel = r"largest $\|$centre - mean$\|$"
    _panel(left, "A  against the number of points", "N", ylabel, record["against_n"])
    n, m = record["against_n"][0]["x"], record["against_m"][0]["x"]
    _bound(left, n, 1 / np.array(n), "Theorem 3.1: $N^{-1}$", 3.0)
    _panel(right, "B  against the units for 1/count", "units M", ylabel, record["against_m"])
    _bound(right, m, _root(m), r"Theorem 3.2: $\sqrt{\log M/M}$", 8 * record["against_m"][0]["y"][0], True)
    _finish(figure, f"Expectation step, d = 2, k = 3, geometric mean of {record['seeds']} instances", path)


def draw_maximisation_error(record: dict[str, Any], path: Path) -> None:
    figure, axes = _figure(3)
    titles = {
        "distance": ("A  distances", "largest error / reach"),
        "off": ("B  assignments", r"$\|$labels - one-hot$\|_2$"),
        "differ": ("C  points with another label", "share of points"),
    }
    x = record["distance"][0]["x"]
    for panel, (name, (title, ylabel)) in zip(axes, titles.items()):
        _panel(panel, title, "units M for each centre", ylabel, record[name])
        start = 2 * max(one["y"][0] for one in record[name])
        _bound(panel, x, _root(x), r"the bound: $\sqrt{\log M/M}$", start, True)
    title = f"N = {record['n']}, k = {record['k']}, mean of {record['instances']} instances (zeros are not drawn)"
    _finish(figure, f"Maximisation step, {title}", path)


def draw_hardmax_error(record: dict[str, Any], path: Path) -> None:
    figure, (left, right) = _figure(2)
    _panel(left, "A  one best of N entries, gap 1", "N", r"$\|$softmax - hardmax$\|_2$", record["entries"])
    for number, one in enumerate(record["bounds"]):
        left.plot(one["x"], one["y"], "--", label=None if number else "Lemma B.1's bound: $N^{1-C}$", **GREY)
    title = "B  in the layer: two centres, gap 1"
    _panel(right, title, "N", r"largest $\|$label - one-hot$\|_2$", record["layer"])
    for c, one in enumerate(record["layer"], 1):
        x = np.array(one["x"], float)
        _bound(right, x, x**-c, "$N^{-C}$" if c == 1 else "", 2.5 * one["y"][0])
    _finish(figure, r"Softmax with temperature $C\,\log N$ against hardmax", path)


def draw_fits(record: dict[str, Any], path: Path) -> None:
    figure, axes = _figure(4)
    for letter, panel, (title, curves) in zip("ABC", axes, record["panels"].items()):
        _panel(panel, f"{letter}  {title}", "units M", "largest error", curves)
        x, start = curves[0]["x"], 2 * max(one["y"][0] for one in curves)
        _bound(panel, x, _root(x), r"the lemmas: $\sqrt{\log M/M}$", start, True)
    chosen = record["panels"]["1/x on [0.05, 1]"][:3] + record["panels"]["‖v‖ on the unit ball"]
    _panel(axes[3], "D  what the sums cost", "units M", r"$\Sigma\,|c_m|$", chosen, key="mass")
    _finish(figure, "Sums of M sigmoid units", path)


def draw_iterations(record: dict[str, Any], path: Path) -> None:
    figure, axes = _figure(2)
    titles = {
        "off": ("A  error of the assignments", r"$\|$network - one-hot$\|_2$"),
        "differ": ("B  points with another label", "points of 200"),
    }
    for panel, (name, (title, ylabel)) in zip(axes, titles.items()):
        curves = record[name]
        _panel(panel, title, r"iterations $\tau$", ylabel)
        for number, one in enumerate(curves):
            panel.plot(one["x"], one["y"], label=one["label"], **_style(number, len(curves)))
        top, x = max(max(one["y"]) for one in curves), np.array(curves[0]["x"], float)
        for number, first in enumerate(sorted({one["y"][0] for one in curves if one["y"][0] > 0})):
            _bound(panel, x, x, "" if number else r"the bounds: $\tau$ times the first iteration", first)
        panel.set_ylim(-0.03 * top, 1.3 * top)
    size = f"N = {record['n']}, d = {record['d']}, k = {record['k']}"
    _finish(figure, f"The whole networks, {size}, mean of {record['instances']} instances", path)


def draw_assignments(record: dict[str, Any], path: Path) -> None:
    figure, (left, right) = _figure(2)
    networks, count = record["networks"], record["instances"]
    agree = np.array([one["all_iterations_agree"] for one in networks.values()])
    explained = np.array([one["instances_explained"] for one in networks.values()])
    parts = (
        (agree, 0 * agree, COLOURS[0], "every assignment of every iteration agrees"),
        (explained - agree, agree, COLOURS[5], "parts where two distances differ by less than twice their error"),
        (count - explained, explained, COLOURS[1], "parts elsewhere: a point between two centres gets a soft label"),
    )
    height = np.arange(len(networks))
    for width, start, colour, label in parts:
        left.barh(height, width, left=start, color=colour, label=label)
    left.set_yticks(height, list(networks), fontsize=8)
    left.invert_yaxis()
    _panel(left, "A  instances", f"of {count}", "")
    for number, (name, one) in enumerate(networks.items()):
        if any(one["errors"]):
            pairs = np.array([(error, gap) for error, gaps in zip(one["errors"], one["gaps"]) for gap in gaps])
            marks = {"color": COLOURS[number], "marker": MARKERS[number], "label": name}
            right.scatter(pairs[:, 0], pairs[:, 1], 40 - 14 * min(number, 2), **marks)
    low, high = right.get_xlim()
    right.plot([low, high], [low, high], "-", label="gap = error", **GREY)
    right.plot([low, high], [2 * low, 2 * high], "--", label="gap = 2 errors: the guarantee", **GREY)
    right.set_xlim(max(low, 0), high)
    right.xaxis.set_major_locator(MaxNLocator(6))
    title = "B  points that part first"
    _panel(right, title, "largest measured error of a distance", "gap of the two distances")
    size = f"N = {record['n']}, d = {record['d']}, k = {record['k']}"
    _finish(figure, f"{record['tau']} Lloyd iterations by constructed networks, {size}", path)


def draw_parameter_norms(record: dict[str, Any], path: Path) -> None:
    figure, axes = _figure(2)
    cases: tuple[tuple[str, str, str, Callable, str], ...] = (
        ("against_n", "A  against the number of points", "N", np.log, r"Theorem 3.1: $\log N + M$, M fixed"),
        ("against_m", "B  against the number of units", "units M", np.array, "Theorem 3.1: $\\log N + M$, large M"),
    )
    for panel, (name, title, xlabel, shape, label) in zip(axes, cases):
        curves = record[name]
        _panel(panel, title, xlabel, r"$\|\theta\|$", curves)
        x = np.array(curves[0]["x"], float)
        _bound(panel, x, shape(x), label, 0.5 * min(one["y"][0] for one in curves))
    _finish(figure, "Parameter norm, every temperature 100 log N, points within radius 1", path)


DRAW: dict[str, Callable[[dict[str, Any], Path], None]] = {
    name.removeprefix("draw_"): draw for name, draw in list(globals().items()) if name.startswith("draw_")
}
