"""Table 1 as text and Figures 3 and 4 as pictures, for Clarkson et al. (2025), each from its JSON record alone."""

from functools import partial
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes

from coterie.kmeans.family import TABLE, Row
from coterie_research.benchmarks.harness import table
from coterie_research.drawing import COLOURS, Panel, Picture

KINDS = ("literal", "fused", "rotated", "rotated_limiting")
SETTING = {"cross": "finite gamma in the two cross attentions", "all": "finite gamma in all four attentions"}
LABEL = {
    "dimension": "dimension d",
    "points": "number of points n",
    "clusters": "number of clusters k",
    "scale": "scale factor",
}
PAIRS = [("scale", "points"), ("dimension", "points"), ("dimension", "clusters"), ("scale", "clusters")]


# The paper's abbreviations.
ABBREVIATION: dict[str, str] = {
    "limiting": "LSMA",
    "softmax": "SMA",
    "linear": "LinA",
    "norm-max": "NMA",
    "sparsemax": "SSMA",
    "top-k": "SSMA",
    "gumbel": "GSMA",
    "l2": "ℓ2",
    "dot": "⟨·⟩",
}


def is_printed(row: Row) -> bool:
    """Whether a line of the paper's table covers this row; the others are its starred combinations."""
    return row.variant.name == "lloyd" or (row.form.name == "euclidean" and not row.variant.sized)


def sockets(row: Row) -> dict[str, str]:
    """The components of a row by the titles of their columns."""

    def cell(score: str, rule: str) -> str:
        return f"{ABBREVIATION[score]}-{ABBREVIATION[rule]}"

    return {
        "Enc-SA": cell(row.form.score, "limiting"),
        "Enc-CA": cell(row.form.score, row.variant.points),
        "Dec-SA": cell("dot", "limiting"),
        "Dec-CA": cell("dot" if row.variant.reads == "labels" else row.form.score, row.variant.centers),
        "Norm": {"layer": "LayerNorm", "rms": "RMSNorm", None: "-"}[row.form.norm],
        "NLT": "✓" if row.form.ffn else "-",
    }


def configurations() -> list[str]:
    """Table 1 in Markdown, without the rows with bounds on sizes, which the paper does not have."""
    lines = []
    for row in (row for row in TABLE.values() if not row.variant.sized):
        source = row.form.source if row.variant.name == "lloyd" else row.variant.source
        lines.append([f"{'' if is_printed(row) else '*'}`{row.name}`", *sockets(row).values(), source])
    return table(["row", *sockets(TABLE["lloyd"]), "source"], lines)


def table1_page(record: dict[str, Any]) -> list[str]:
    """The components of every row and the measured deviations as Markdown."""
    titles = ("row", "layers compared", "labels that differ", "literal", "fused", "rotated weights")
    lines = []
    for name, row in record["rows"].items():
        sizes = ["-" if row[kind] is None else f"{row[kind]:.1e}" for kind in KINDS]
        labels = "-" if row["labels_differ"] is None else row["labels_differ"]
        lines.append([f"`{name}`", row["layers"], labels, *sizes])
    return [
        *("# Table 1", "", f"`{record['command']}`", "", *configurations(), ""),
        f"Largest deviation from the plain algorithm: {record['instances']} instances, {record['layers']} layers.",
        "With rotated weights the decoder's limiting cross attention is a softmax with gamma 1000. The last column",
        "keeps the limit, which then chooses among scores that differ only by rounding.",
        "",
        *table([*titles, "rotated, limit kept"], lines),
    ]


def draw_figure3(record: dict[str, Any]) -> Picture:
    """Objective, paths of the centres and final assignment: Lloyd above, the network below."""
    points, sides = np.array(record["points"]), record["sides"]
    top = max(max(side["objective"]) for side in sides.values())
    least = min(min(side["objective"]) for side in sides.values())
    titles = {"lloyd": "Lloyd", "cross": f"network, gamma = {record['gamma']:g} in both cross attentions"}
    panels = []
    for name, title in titles.items():
        drawn = {"lloyd": (("lloyd", "Lloyd"),), "cross": (("cross", "cross attentions"), ("all", "all four"))}[name]
        curves = [
            {"x": range(len(sides[one]["objective"])), "y": sides[one]["objective"], "marker": "o", "label": label}
            for one, label in drawn
        ]
        limits = {"ylim": (least - 0.05 * (top - least), top + 0.05 * (top - least))}
        panels += [
            Panel(f"{title}: objective", "layer or iteration", "k-means objective", curves, settings=limits),
            Panel("paths of the centres (start: circles)", draw=partial(_paths, points, sides[name])),
            Panel("final assignment", draw=partial(_assignment, points, sides[name])),
        ]
    gap = record["differences"]["cross"]
    differ = f"{max(gap['centers_by_layer']):.1e}; final labels that differ: {gap['labels_that_differ']}"
    title = f"{record['n']:,} points, {record['k']} clusters. Largest difference of a centre in any layer {differ}"
    return Picture(panels, title, columns=3)


def _paths(points: np.ndarray, side: dict[str, Any], axes: Axes) -> None:
    """Starting positions are circles, later positions are triangles."""
    centers = np.array(side["centers"])
    axes.scatter(points[:, 0], points[:, 1], s=2, c="#d0d0d0", linewidths=0)
    for j, colour in enumerate(COLOURS[: centers.shape[1]]):
        x, y = centers[:, j].T
        axes.plot(x, y, color=colour, linewidth=1.3)
        axes.scatter(x[0], y[0], marker="o", s=75, color=colour, edgecolors="black", zorder=3)
        axes.scatter(x[1:], y[1:], marker="^", s=38, color=colour, edgecolors="black", linewidths=0.6, zorder=4)
    axes.set_aspect("equal", adjustable="datalim")


def _assignment(points: np.ndarray, side: dict[str, Any], axes: Axes) -> None:
    final = np.array(side["centers"][-1])
    axes.scatter(points[:, 0], points[:, 1], s=3, c=np.array(COLOURS)[np.array(side["labels"])], linewidths=0)
    axes.scatter(final[:, 0], final[:, 1], marker="^", s=110, c="white", edgecolors="black", linewidths=1.5)
    axes.set_aspect("equal", adjustable="datalim")


def draw_figure4(record: dict[str, Any]) -> Picture:
    """A to D are lines over gamma, E to H means over pairs of parameters and gamma, for each setting.

    Error bars are one standard deviation over all other parameters. An inset shows the tail.
    """
    panels = []
    for name, values in record["values"].items():
        values = np.array(values)
        heights = [_pair_means(values, record["axes"], pair) for pair in PAIRS]
        lines = [_over_gamma(values, record["axes"], parameter) for parameter in LABEL]
        high = max(float((line["y"] + line["error"]).max()) for each in lines for line in each)
        for letter, parameter, curves in zip("ABCD", LABEL, lines):
            tail, limits = partial(_tail, values, record["axes"], parameter), {"ylim": (-0.35 * high, 1.05 * high)}
            title, what = f"{letter}  gamma × {LABEL[parameter]}", SETTING[name]
            panels.append(Panel(title, "gamma", what, curves, "x", draw=tail, settings=limits))
        top = max(float(height.max()) for height in heights)
        for letter, pair, height in zip("EFGH", PAIRS, heights):
            heat = partial(_heat, height, record["axes"], pair, top)
            panels.append(
                Panel(f"{letter}  {LABEL[pair[0]]} × {LABEL[pair[1]]}", LABEL[pair[0]], LABEL[pair[1]], draw=heat)
            )
    return Picture(panels, "log objective of the network − log objective of Lloyd", columns=4)


def _over_gamma(values: np.ndarray, ranges: dict[str, list], parameter: str) -> list[dict[str, Any]]:
    """Means and deviations over all other parameters, for every value of one."""
    gammas, blocks = np.array(ranges["gamma"]), np.moveaxis(values, list(ranges).index(parameter), 0)
    curves = []
    for i, (block, shade) in enumerate(zip(blocks, _shades(blocks))):
        flat = block.reshape(-1, len(gammas))
        aside = 10 ** (0.07 * (i - (len(blocks) - 1) / 2))
        style = {"color": shade, "marker": "o", "markersize": 4, "capsize": 2, "linewidth": 1.3, "elinewidth": 0.7}
        points = {"x": gammas * aside, "y": flat.mean(0), "error": flat.std(0)}
        curves.append({**points, "label": f"{ranges[parameter][i]:g}", **style})
    return curves


def _shades(blocks: np.ndarray) -> np.ndarray:
    return matplotlib.colormaps["viridis"](np.linspace(0.0, 0.85, len(blocks)))


def _tail(values: np.ndarray, ranges: dict[str, list], parameter: str, axes: Axes) -> None:
    axes.legend(fontsize=7.5, loc="lower center", ncols=len(ranges[parameter]), columnspacing=0.9, handlelength=1.2)
    tail, gammas = axes.inset_axes((0.56, 0.5, 0.42, 0.42)), np.array(ranges["gamma"])
    blocks = np.moveaxis(abs(values), list(ranges).index(parameter), 0)
    for block, shade in zip(blocks, _shades(blocks)):
        mean = block.reshape(-1, len(gammas)).mean(0)
        tail.plot(gammas[gammas >= 1], mean[gammas >= 1], color=shade, marker="o", markersize=3)
    tail.set(xscale="log", yscale="log", ylim=(3e-6, 4))
    tail.set_title("mean |difference|", fontsize=8)
    tail.tick_params(labelsize=7)
    tail.minorticks_off()


def _pair_means(values: np.ndarray, ranges: dict[str, list], pair: tuple[str, str]) -> np.ndarray:
    """(values of pair[1], values of pair[0])"""
    column, line = (list(ranges).index(parameter) for parameter in pair)
    mean = values.mean(axis=tuple(i for i in range(values.ndim) if i not in (column, line)))
    return mean if line < column else mean.T


def _heat(mean: np.ndarray, ranges: dict[str, list], pair: tuple[str, str], top: float, axes: Axes) -> None:
    axes.imshow(mean, origin="lower", cmap="viridis", vmin=min(0.0, float(mean.min())), vmax=top, aspect="auto")
    for (line, column), value in np.ndenumerate(mean):
        colour = "black" if value > 0.62 * top else "white"
        axes.text(column, line, f"{value:.2f}", ha="center", va="center", color=colour, fontsize=8)
    for axis, name, count in ((axes.xaxis, pair[0], mean.shape[1]), (axes.yaxis, pair[1], mean.shape[0])):
        axis.set_ticks(range(count), [f"{value:g}" for value in ranges[name]])
    axes.grid(False)
