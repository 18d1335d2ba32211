"""Table 1 as text and Figures 3 and 4 as pictures, for Clarkson et al. (2025), each from its JSON record alone."""

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from coterie_research.drawing import COLOURS, save
from coterie_research.kmeans_transformers.table import markdown

KINDS = ("literal", "fused", "rotated", "rotated_limiting")
SETTING = {"cross": "finite gamma in the two cross attentions", "all": "finite gamma in all four attentions"}
LABEL = {
    "dimension": "dimension d",
    "points": "number of points n",
    "clusters": "number of clusters k",
    "scale": "scale factor",
}
PAIRS = [("scale", "points"), ("dimension", "points"), ("dimension", "clusters"), ("scale", "clusters")]


def write_table1(record: dict[str, Any], path: Path) -> None:
    """Write the components of every row and the measured deviations as Markdown."""
    lines = ["# Table 1", "", f"`{record['command']}`", "", markdown(), ""]
    lines += [
        f"Largest deviation from the plain algorithm: {record['instances']} instances, {record['layers']} layers.",
        "With rotated weights the decoder's limiting cross attention is a softmax with gamma 1000. The last column",
        "keeps the limit, which then chooses among scores that differ only by rounding.",
        "",
        "| row | layers compared | labels that differ | literal | fused | rotated weights | rotated, limit kept |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, r in record["rows"].items():
        sizes = ["-" if r[kind] is None else f"{r[kind]:.1e}" for kind in KINDS]
        labels = "-" if r["labels_differ"] is None else str(r["labels_differ"])
        lines.append("| " + " | ".join([f"`{name}`", str(r["layers"]), labels, *sizes]) + " |")
    path.write_text("\n".join(lines) + "\n")


def draw_figure3(record: dict[str, Any], path: Path) -> None:
    """Draw 2 × 3 panels: objective, paths of the centres, final assignment; Lloyd above, the network below."""
    figure = Figure(figsize=(14.5, 9), layout="constrained")
    parts: Any = figure.subfigures(2, 1)
    axes = np.array([part.subplots(1, 3) for part in parts])
    points = np.array(record["points"])
    titles = {
        "lloyd": "Lloyd's algorithm",
        "cross": f"k-means transformer, softmax with gamma = {record['gamma']:g} in both cross attentions",
    }
    for line, (name, title) in enumerate(titles.items()):
        side = record["sides"][name]
        _objective(axes[line, 0], record, name)
        _paths(axes[line, 1], points, np.array(side["centers"]))
        colours = np.array(COLOURS)[np.array(side["labels"])]
        axes[line, 2].scatter(*points.T, s=3, c=colours, linewidths=0)
        final = np.array(side["centers"][-1])
        axes[line, 2].scatter(*final.T, marker="^", s=110, c="white", edgecolors="black", linewidths=1.5)
        parts[line].suptitle(title, fontsize=12, fontweight="bold")
        what = ["objective", "paths of the centres (start: circles)", "final assignment"]
        for column in range(3):
            axes[line, column].set_title(f"{'ABCDEF'[3 * line + column]}  {what[column]}", loc="left", fontsize=11)
            if column:
                axes[line, column].set(xlabel="$x_1$", ylabel="$x_2$")
                axes[line, column].set_aspect("equal", adjustable="datalim")
    limits = np.array([line[0].get_ylim() for line in axes])
    for line in axes:
        line[0].set_ylim(limits.min(), limits.max())
    gap = record["differences"]["cross"]
    figure.suptitle(
        f"{record['n']:,} points, {record['k']} clusters. Largest difference of a centre in any layer "
        f"{max(gap['centers_by_layer']):.1e}; final labels that differ: {gap['labels_that_differ']}",
        fontsize=11,
    )
    save(figure, path, dpi=110)


def _objective(axes: Axes, record: dict[str, Any], name: str) -> None:
    sides = record["sides"]
    steps = range(len(sides[name]["objective"]))
    label = "Lloyd" if name == "lloyd" else "cross attentions finite"
    axes.plot(steps, sides[name]["objective"], "o-", color="black", label=label)
    if name != "lloyd":
        axes.plot(steps, sides["all"]["objective"], "s--", color="#d55e00", label="all four attentions finite")
        axes.legend(frameon=False)
    axes.set(xlabel="layer" if name != "lloyd" else "iteration", ylabel="k-means objective")
    axes.grid(alpha=0.3)


def _paths(axes: Axes, points: np.ndarray, centers: np.ndarray) -> None:
    """Starting positions are circles, later positions are triangles."""
    axes.scatter(points[:, 0], points[:, 1], s=2, c="#d0d0d0", linewidths=0)
    for j, colour in enumerate(COLOURS[: centers.shape[1]]):
        x, y = centers[:, j].T
        axes.plot(x, y, color=colour, linewidth=1.3)
        axes.scatter(x[0], y[0], marker="o", s=75, color=colour, edgecolors="black", zorder=3)
        axes.scatter(x[1:], y[1:], marker="^", s=38, color=colour, edgecolors="black", linewidths=0.6, zorder=4)


def draw_figure4(record: dict[str, Any], path: Path) -> None:
    """Draw Figure 4: A to D are lines over gamma, E to H are means over pairs of parameters.

    Error bars are one standard deviation over all other parameters. An inset shows the tail.
    """
    figure = Figure(figsize=(19, 17))
    parts: Any = figure.subfigures(2, 1)
    edges = {"left": 0.045, "right": 0.94, "bottom": 0.07, "top": 0.91, "wspace": 0.2, "hspace": 0.28}
    for part, name in zip(parts, record["values"]):
        part.suptitle(f"{SETTING[name]}: log objective of the network − log objective of Lloyd", fontsize=14)
        axes = part.subplots(2, 4, gridspec_kw=edges)
        values = np.array(record["values"][name])
        for column, parameter in enumerate(LABEL):
            _lines(axes[0, column], values, record["axes"], parameter)
            axes[0, column].set_title(f"{'ABCD'[column]}  gamma × {LABEL[parameter]}", loc="left")
        heights = [_pair_means(values, record["axes"], pair) for pair in PAIRS]
        top = max(float(h.max()) for h in heights)
        for column, pair in enumerate(PAIRS):
            image = _heat(axes[1, column], heights[column], record["axes"], pair, top)
            axes[1, column].set_title(f"{'EFGH'[column]}  {LABEL[pair[0]]} × {LABEL[pair[1]]}", loc="left")
        bar = part.add_axes((0.955, 0.07, 0.01, 0.36))
        part.colorbar(image, cax=bar, label="mean over all other parameters, gamma included")
        lines = axes[0, :]
        high = max(a.get_ylim()[1] for a in lines)
        for a in lines:
            a.set_ylim(-0.35 * high, high)
    save(figure, path, dpi=110)


def _lines(axes: Axes, values: np.ndarray, ranges: dict[str, list], parameter: str) -> None:
    names, gammas = list(ranges), np.array(ranges["gamma"])
    first = np.moveaxis(values, names.index(parameter), 0)
    shades = matplotlib.colormaps["viridis"](np.linspace(0.0, 0.85, len(first)))
    for i, (block, shade) in enumerate(zip(first, shades)):
        flat = block.reshape(-1, len(gammas))
        aside = 10 ** (0.07 * (i - (len(first) - 1) / 2))
        style = {"color": shade, "marker": "o", "markersize": 4, "capsize": 2, "linewidth": 1.3, "elinewidth": 0.7}
        axes.errorbar(gammas * aside, flat.mean(0), flat.std(0), label=f"{ranges[parameter][i]:g}", **style)
    axes.axhline(0, color="black", linewidth=0.6)
    axes.set(xscale="log", xlabel="gamma", ylabel="difference of log objectives")
    narrow = {"columnspacing": 0.9, "handlelength": 1.4, "handletextpad": 0.4, "frameon": False}
    axes.legend(title=LABEL[parameter], fontsize=9, loc="lower center", ncols=len(first), **narrow)
    tail = axes.inset_axes((0.56, 0.5, 0.42, 0.42))
    shown = gammas >= 1
    for block, shade in zip(abs(first), shades):
        tail.plot(gammas[shown], block.reshape(-1, len(gammas)).mean(0)[shown], color=shade, marker="o", markersize=3)
    tail.set(xscale="log", yscale="log", ylim=(3e-6, 4))
    tail.set_title("mean |difference|", fontsize=9)
    tail.tick_params(labelsize=7)
    for each in (axes, tail):
        each.minorticks_off()


def _pair_means(values: np.ndarray, ranges: dict[str, list], pair: tuple[str, str]) -> np.ndarray:
    """(values of pair[1], values of pair[0])"""
    names = list(ranges)
    column, line = (names.index(p) for p in pair)
    mean = values.mean(axis=tuple(i for i in range(values.ndim) if i not in (column, line)))
    return mean if line < column else mean.T


def _heat(axes: Axes, mean: np.ndarray, ranges: dict[str, list], pair: tuple[str, str], top: float):
    image = axes.imshow(mean, origin="lower", cmap="viridis", vmin=min(0.0, float(mean.min())), vmax=top, aspect="auto")
    for (line, column), value in np.ndenumerate(mean):
        colour = "black" if value > 0.62 * top else "white"
        axes.text(column, line, f"{value:.2f}", ha="center", va="center", color=colour)
    for axis, name, place in ((axes.xaxis, pair[0], 0), (axes.yaxis, pair[1], 1)):
        axis.set_ticks(range(mean.shape[1 - place]), [f"{v:g}" for v in ranges[name]])
        axis.set_label_text(LABEL[name])
    return image
