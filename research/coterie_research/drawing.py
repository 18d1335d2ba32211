"""Pictures of experiments, drawn from descriptions: panels with curves, in the same way for all papers.

A curve is a dict: ``y`` and ``x``, or ``y`` alone for a level; ``error`` for error bars or ``band`` for a shaded band;
``label``; every other entry is a property of the line (:meth:`matplotlib.axes.Axes.plot`).
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d31", "#000000"]
Curve = dict[str, Any]


class Panel(NamedTuple):
    """``draw`` adds what curves cannot say; ``settings`` are those of :meth:`matplotlib.axes.Axes.set`."""

    title: str = ""
    x: str = ""
    y: str = ""
    curves: Sequence[Curve] = ()
    log: str = ""  # "x", "y" or "xy": logarithmic axes
    ticks: Sequence[float] = ()  # of the x axis, and no others
    draw: Callable[[Axes], object] = lambda axes: None
    settings: Mapping[str, Any] = MappingProxyType({})


class Picture(NamedTuple):
    panels: Sequence[Panel]
    title: str = ""
    columns: int = 0  # all panels in one row by default
    size: tuple[float, float] = (4.5, 4.0)  # of a panel, in inches
    legend: str = "inside"  # of every panel, or "below" it; or one of the "figure"
    legend_columns: int = 4
    share: bool = False  # one y axis for all


def colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def draw(picture: Picture, path: Path) -> None:
    """Write a picture to a file."""
    columns = picture.columns or len(picture.panels)
    rows = -(-len(picture.panels) // columns)
    width, height = picture.size
    figure = Figure(figsize=(width * columns, height * rows + 0.4), layout="constrained")
    grid = list(figure.subplots(rows, columns, squeeze=False, sharey=picture.share).flat)
    for axes, panel in zip(grid, picture.panels):
        fill(axes, panel)
        if picture.legend == "inside" and axes.get_legend_handles_labels()[0] and axes.get_legend() is None:
            axes.legend(fontsize=7.5)
        elif picture.legend == "below":
            axes.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.13), frameon=False)
    if picture.legend == "figure":
        known = {name: line for axes in grid for line, name in zip(*axes.get_legend_handles_labels())}
        figure.legend(
            list(known.values()), list(known), loc="outside lower center", ncols=picture.legend_columns, fontsize=8
        )
    figure.suptitle(picture.title, fontsize=11)
    FigureCanvasAgg(figure)
    figure.savefig(path, dpi=110)


def fill(axes: Axes, panel: Panel) -> None:
    """Draw one panel."""
    axes.set_prop_cycle(color=COLOURS)
    for one in panel.curves:
        style = {key: value for key, value in one.items() if key not in ("x", "y", "error", "band", "slope")}
        if "x" not in one:
            axes.axhline(one["y"], **{"lw": 1, **style})
        elif "error" in one:
            axes.errorbar(one["x"], one["y"], one["error"], **style)
        else:
            (line,) = axes.plot(one["x"], one["y"], **style)
            if "band" in one:
                y, band = np.array(one["y"]), np.array(one["band"])
                axes.fill_between(one["x"], y - band, y + band, color=line.get_color(), alpha=0.2, lw=0)
    axes.set(**{f"{axis}scale": "log" for axis in panel.log})
    axes.xaxis.set_minor_formatter(NullFormatter())
    if panel.ticks:
        axes.set_xticks(panel.ticks, [f"{value:g}" for value in panel.ticks])
        axes.minorticks_off()
    axes.set_title(panel.title, loc="left", fontsize=10)
    axes.set_xlabel(panel.x, fontsize=9)
    axes.set_ylabel(panel.y, fontsize=9)
    axes.grid(alpha=0.3)
    axes.set_axisbelow(True)
    panel.draw(axes)
    axes.set(**panel.settings)
