"""Pictures of the theory of He et al. (2025), each from its record alone."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from coterie_research.drawing import Curve, Panel, Picture, colour

MARKERS = "os^vDPX*"
GREY: dict[str, Any] = {"color": "0.35", "lw": 1.3}
Values = Sequence[float] | np.ndarray
picture = partial(Picture, size=(5.4, 5.2), legend="below")


def _root(x: Values) -> np.ndarray:
    """The bound's shape in M."""
    m = np.array(x, float)
    return np.sqrt(np.log(m) / m)


def _curves(given: Sequence[Curve], key: str = "y") -> list[Curve]:
    """With slopes in the legend and without zeros; earlier marks are larger, so that equal ones are seen."""
    found = []
    for number, one in enumerate(given):
        x, y = np.array(one["x"], float), np.array(one[key], float)
        steep = "" if one["slope"] is None or key != "y" else f"  (slope {one['slope']:+.2f})"
        style = {
            "marker": MARKERS[number % 8],
            "color": colour(number),
            "ms": min(3.5 + 1.2 * (len(given) - 1 - number), 8),
        }
        found.append({"x": x[y > 0], "y": y[y > 0], "label": one["label"] + steep, "lw": 1.3, **style})
    return found


def _bound(x: Values, y: np.ndarray, label: str, start: float, slope: bool = False) -> Curve:
    """A bound's shape, put through ``start`` at the first x."""
    if slope:
        label += f"  (slope {np.polyfit(np.log(x), np.log(y), 1)[0]:+.2f})"
    return {"x": x, "y": y * (start / y[0]), "ls": "--", "label": label or None, "zorder": 1, **GREY}


def _panel(title: str, x: str, y: str, curves: Sequence[Curve], *bounds: Curve, key: str = "y") -> Panel:
    return Panel(title, x, y, [*_curves(curves, key), *bounds], log="xy")


def expectation_error(record: dict[str, Any]) -> Picture:
    y, of_n, of_m = r"largest $\|$centre - mean$\|$", record["against_n"], record["against_m"]
    n, m = np.array(of_n[0]["x"]), of_m[0]["x"]
    root = _bound(m, _root(m), r"Theorem 3.2: $\sqrt{\log M/M}$", 8 * of_m[0]["y"][0], True)
    panels = (
        _panel("A  against the number of points", "N", y, of_n, _bound(n, 1 / n, "Theorem 3.1: $N^{-1}$", 3.0)),
        _panel("B  against the units for 1/count", "units M", y, of_m, root),
    )
    return picture(panels, f"Expectation step, d = 2, k = 3, geometric mean of {record['seeds']} instances")


def maximisation_error(record: dict[str, Any]) -> Picture:
    titles = {
        "distance": ("A  distances", "largest error / reach"),
        "off": ("B  assignments", r"$\|$labels - one-hot$\|_2$"),
        "differ": ("C  points with another label", "share of points"),
    }
    x = record["distance"][0]["x"]
    panels = []
    for name, (title, y) in titles.items():
        start = 2 * max(one["y"][0] for one in record[name])
        bound = _bound(x, _root(x), r"the bound: $\sqrt{\log M/M}$", start, True)
        panels.append(_panel(title, "units M for each centre", y, record[name], bound))
    title = f"N = {record['n']}, k = {record['k']}, mean of {record['instances']} instances (zeros are not drawn)"
    return picture(panels, f"Maximisation step, {title}")


def hardmax_error(record: dict[str, Any]) -> Picture:
    lemma = [{**one, "label": None, "ls": "--", **GREY} for one in record["bounds"]]
    lemma[0]["label"] = "Lemma B.1's bound: $N^{1-C}$"
    powers = []
    for c, one in enumerate(record["layer"], 1):
        x = np.array(one["x"], float)
        powers.append(_bound(x, x**-c, "$N^{-C}$" if c == 1 else "", 2.5 * one["y"][0]))
    y = r"$\|$softmax - hardmax$\|_2$", r"largest $\|$label - one-hot$\|_2$"
    panels = (
        _panel("A  one best of N entries, gap 1", "N", y[0], record["entries"], *lemma),
        _panel("B  in the layer: two centres, gap 1", "N", y[1], record["layer"], *powers),
    )
    return picture(panels, r"Softmax with temperature $C\,\log N$ against hardmax")


def fits(record: dict[str, Any]) -> Picture:
    panels = []
    for letter, (title, curves) in zip("ABC", record["panels"].items()):
        x, start = curves[0]["x"], 2 * max(one["y"][0] for one in curves)
        bound = _bound(x, _root(x), r"the lemmas: $\sqrt{\log M/M}$", start, True)
        panels.append(_panel(f"{letter}  {title}", "units M", "largest error", curves, bound))
    chosen = record["panels"]["1/x on [0.05, 1]"][:3] + record["panels"]["‖v‖ on the unit ball"]
    panels.append(_panel("D  what the sums cost", "units M", r"$\Sigma\,|c_m|$", chosen, key="mass"))
    return picture(panels, "Sums of M sigmoid units")


def iterations(record: dict[str, Any]) -> Picture:
    titles = {
        "off": ("A  error of the assignments", r"$\|$network - one-hot$\|_2$"),
        "differ": ("B  points with another label", "points of 200"),
    }
    panels = []
    for name, (title, y) in titles.items():
        curves = [{**one, "slope": None} for one in record[name]]
        x, top = np.array(curves[0]["x"], float), max(max(one["y"]) for one in curves)
        firsts = sorted({one["y"][0] for one in curves if one["y"][0] > 0})
        names = [r"the bounds: $\tau$ times the first iteration", *[""] * len(firsts)]
        bounds = [_bound(x, x, label, first) for label, first in zip(names, firsts)]
        limits = {"ylim": (-0.03 * top, 1.3 * top)}
        styled = [{**style, "x": one["x"], "y": one["y"]} for style, one in zip(_curves(curves), curves)]
        panels.append(Panel(title, r"iterations $\tau$", y, [*styled, *bounds], settings=limits))
    size = f"N = {record['n']}, d = {record['d']}, k = {record['k']}"
    return picture(panels, f"The whole networks, {size}, mean of {record['instances']} instances")


def assignments(record: dict[str, Any]) -> Picture:
    networks, count = record["networks"], record["instances"]
    agree, explained = (
        np.array([one[key] for one in networks.values()]) for key in ("all_iterations_agree", "instances_explained")
    )
    parts = (
        (agree, 0 * agree, colour(0), "every assignment of every iteration agrees"),
        (explained - agree, agree, colour(5), "parts where two distances differ by less than twice their error"),
        (count - explained, explained, colour(1), "parts elsewhere: a point between two centres gets a soft label"),
    )

    def bars(axes: Axes) -> None:
        height = np.arange(len(networks))
        for width, start, shade, label in parts:
            axes.barh(height, width, left=start, color=shade, label=label)
        axes.set_yticks(height, list(networks), fontsize=8)
        axes.invert_yaxis()

    def gaps(axes: Axes) -> None:
        for number, (name, one) in enumerate(networks.items()):
            if any(one["errors"]):
                pairs = np.array([(error, gap) for error, gaps in zip(one["errors"], one["gaps"]) for gap in gaps])
                marks = {"color": colour(number), "marker": MARKERS[number % 8], "label": name}
                axes.scatter(pairs[:, 0], pairs[:, 1], 40 - 14 * min(number, 2), **marks)
        ends = axes.get_xlim()
        axes.plot(ends, ends, "-", label="gap = error", **GREY)
        axes.plot(ends, [2 * end for end in ends], "--", label="gap = 2 errors: the guarantee", **GREY)
        axes.set_xlim(max(ends[0], 0), ends[1])
        axes.xaxis.set_major_locator(MaxNLocator(6))

    y = "gap of the two distances"
    panels = (
        Panel("A  instances", f"of {count}", draw=bars),
        Panel("B  points that part first", "largest measured error of a distance", y, draw=gaps),
    )
    size = f"N = {record['n']}, d = {record['d']}, k = {record['k']}"
    return picture(panels, f"{record['tau']} Lloyd iterations by constructed networks, {size}")


def parameter_norms(record: dict[str, Any]) -> Picture:
    cases = (
        ("against_n", "A  against the number of points", "N", np.log, r"Theorem 3.1: $\log N + M$, M fixed"),
        ("against_m", "B  against the number of units", "units M", np.array, r"Theorem 3.1: $\log N + M$, large M"),
    )
    panels = []
    for name, title, x, shape, label in cases:
        along, start = np.array(record[name][0]["x"], float), 0.5 * min(one["y"][0] for one in record[name])
        panels.append(_panel(title, x, r"$\|\theta\|$", record[name], _bound(along, shape(along), label, start)))
    return picture(panels, "Parameter norm, every temperature 100 log N, points within radius 1")
