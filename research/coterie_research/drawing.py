"""What the pictures of the experiments share: figures of panels, colours, and how they are saved."""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"]


def panels(rows: int, columns: int, size: tuple[float, float]) -> tuple[Figure, np.ndarray]:
    """A figure and its axes (rows, columns)."""
    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def label(axes: Axes, title: str, xlabel: str = "", ylabel: str = "", size: float = 10) -> None:
    axes.set_title(title, fontsize=size)
    axes.set_xlabel(xlabel, fontsize=9)
    axes.set_ylabel(ylabel, fontsize=9)
    axes.grid(alpha=0.3)


def log_ticks(axes: Axes, values: list[float]) -> None:
    """A logarithmic x axis with a tick at each value and nowhere else."""
    axes.set_xscale("log")
    axes.set_xticks(values, [f"{value:g}" for value in values])
    axes.minorticks_off()


def legend_below(figure: Figure, axes: Axes, columns: int) -> None:
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=columns, fontsize=8)


def save(figure: Figure, path: Path, dpi: int = 100) -> None:
    FigureCanvasAgg(figure)
    figure.savefig(path, dpi=dpi)
