"""Pictures of clusterings as PNG and SVG files, without windows and without the global state of pyplot."""

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from coterie.files import check_writable, replacing
from coterie.palette import OUTLIER, PALETTE, color, marker
from coterie.plot.columns import groups_of, labels_of, matrix_of
from coterie.plot.view import View
from coterie.wording import short

DPI = 150
_LEGEND_WIDTH = 2.2  # inches of a second and third column of the legend
_LEGEND_ROWS = 16


@dataclass(frozen=True)
class Panel:
    """One of several clusterings of the same points."""

    title: str
    labels: np.ndarray
    centers: np.ndarray | None = None


def save_clusters(
    path: str | os.PathLike,
    X: Any,
    labels: np.ndarray,
    centers: np.ndarray | None = None,
    names: Sequence[str] | None = None,
    title: str = "",
    kind: str | Sequence[Any] = "auto",
    called: Mapping[int, str] | None = None,
) -> Path:
    """Write a picture of clustered points and their centres: a PNG file, or an SVG file if the name ends in .svg.

    Of more than 20,000 points a sample is shown, which the title says.

    Parameters
    ----------
    path : path
        The file to write. Its name ends in .png or .svg.
    X : array, CSR matrix or DataFrame of shape (n, d)
    labels : array of shape (n,)
        Outliers have the label -1 and are shown as grey crosses.
    centers : array of shape (k, d), optional
    names : sequence of str, optional
        Names of the columns.
    title : str
    kind : "auto", "columns", "pca", "umap" or a pair of columns
        The axes. "auto" shows one column as stacked histograms, two columns as they are, and more columns by two
        principal axes; "columns" shows the first two columns.
    called : mapping of int to str, optional
        Names of clusters.
    """
    X, names = matrix_of(X, names)
    labels, view = labels_of(labels, len(X)), View(X, names, kind)
    figure = Figure(figsize=(8.0, 5.6), dpi=DPI, layout="constrained")
    axes = figure.add_subplot()
    if view.dims == 1:
        _draw_histogram(axes, view, labels, centers)
    else:
        _draw_points(axes, view, labels, centers)
        _frame(axes, view, centers)
    _legend(axes, labels, called)
    if view.note:
        title = f"{title}\n{view.note}" if title else view.note
    _text(axes.set_title(title, fontsize=12, loc="left"))
    return _save(figure, path)


def save_comparison(
    path: str | os.PathLike,
    X: np.ndarray,
    runs: Sequence[Panel],
    names: Sequence[str] | None = None,
    true_centers: np.ndarray | None = None,
    window: tuple[float, float] | None = None,
) -> Path:
    """Write several clusterings of the same points side by side, with the same axes.

    Parameters
    ----------
    path : path
        The file to write. Its name ends in .png or .svg.
    X : array of shape (n, d) with d at least 2
    runs : sequence of :class:`Panel`
        A title, labels and optionally centres for every clustering.
    names : sequence of str, optional
        Names of the columns.
    true_centers : array of shape (k, d), optional
        Marked by crosses in every panel.
    window : pair of float, optional
        Limits both axes to this interval; the number of points outside is shown in the corner.
    """
    view = View(X, names)
    figure = Figure(figsize=(4.6 * len(runs), 5.4), dpi=DPI, layout="constrained")
    panels = figure.subplots(1, len(runs), sharex=True, sharey=True, squeeze=False)[0]
    for axes, run in zip(panels, runs):
        _draw_points(axes, view, labels_of(run.labels, len(X)), None)
        if run.centers is not None:
            places, colors = view.place(run.centers), [color(j) for j in range(len(run.centers))]
            axes.scatter(*places.T, s=90, c=colors, edgecolors="black", linewidths=1.4, zorder=5, label="centre found")
        if true_centers is not None:
            places = view.place(true_centers)
            axes.plot(*places.T, "+", color="black", markersize=20, markeredgewidth=1.4, label="true centre", zorder=6)
        axes.set_box_aspect(1)
        _text(axes.set_title(run.title, fontsize=12))
        _frame(axes, view, None, window)
    for axes in panels[1:]:
        axes.set_ylabel("")
    entries = [zip(*axes.get_legend_handles_labels()) for axes in panels]
    handles_of = {name: handle for panel in reversed(entries) for handle, name in panel}
    if handles_of:
        legend_names, handles = list(handles_of), list(handles_of.values())
        legend = figure.legend(handles, legend_names, loc="outside lower center", ncols=len(handles), frameon=False)
        for name, handle in zip(legend_names, legend.legend_handles):
            if handle is not None and name != "outlier":
                handle.set(**({"markersize": 11} if name == "true centre" else {"facecolor": "white"}))
    return _save(figure, path)


def save_granularity(path: str | os.PathLike, found: Any, title: str = "") -> Path:
    """Write a picture of a :class:`coterie.living.granularity.Granularity`: PNG, or SVG if the name ends in .svg.

    Above are quality and stability, with the plateaus shaded and the number of the model marked. Below, every column
    is a number of clusters with the shares of its clusters, and bands are rows that stay together.
    """
    ks = np.arange(1, len(found.stability) + 1)
    figure = Figure(figsize=(8.0, 6.4), dpi=DPI, layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[2, 3])
    for first, last in found.plateaus:
        above.axvspan(first - 0.5, last + 0.5, color=PALETTE[2], alpha=0.13, linewidth=0)
    above.plot(ks, found.quality, "o-", color=PALETTE[0], label=found.measure)
    above.plot(ks, found.stability, "s--", color=PALETTE[5], label="stability", markersize=4, linewidth=1.2)
    above.axvline(found.k, color="#444444", linewidth=1.0, linestyle=":")
    above.set(ylim=(min(0.0, float(np.nanmin(found.quality))) - 0.03, 1.04), xlim=(0.4, len(ks) + 0.6))
    above.legend(fontsize=9, frameon=False, ncols=2, loc="lower right", bbox_to_anchor=(1, 1))
    place = np.zeros(found.labels.shape[1])  # of the cluster of every row, in the column before
    tops: dict[int, float] = {}
    for k, labels in zip(ks.tolist(), found.labels):
        before, tops, height = tops, {}, 0.0
        ids, sizes = np.unique(labels[labels >= 0], return_counts=True)
        for label, size in sorted(zip(ids.tolist(), sizes.tolist()), key=lambda one: place[labels == one[0]].mean()):
            tops[label], share = height, size / len(labels)
            below.bar(k, share, 0.36, height, color=color(label), edgecolor="white", linewidth=0.7)
            height += share
        if before:
            _draw_bands(below, k, before, tops, found.labels[k - 2], labels)
        place = np.array([tops.get(label, 1.0) for label in labels.tolist()])
    below.set(ylim=(1.0, 0.0), yticks=[], xticks=ks, xlabel="number of clusters", ylabel="rows")
    for axes in (above, below):
        _tidy(axes)
    _text(above.set_title(f"{title}\n{found.verdict}" if title else found.verdict, fontsize=12, loc="left"))
    return _save(figure, path)


def _draw_bands(
    axes: Any, k: int, before: dict[int, float], after: dict[int, float], old: np.ndarray, new: np.ndarray
) -> None:
    """The rows that go from each cluster of one number to each of the next, as bands between two columns."""
    left, right = dict(before), dict(after)
    for label in after:
        for source in before:
            share = np.count_nonzero((old == source) & (new == label)) / len(old)
            if share:
                edges = np.array([left[source], right[label]])
                axes.fill_between(
                    [k - 0.82, k - 0.18], edges, edges + share, color=color(label), alpha=0.3, linewidth=0
                )
                left[source] += share
                right[label] += share


def _draw_points(axes: Any, view: View, labels: np.ndarray, centers: np.ndarray | None) -> None:
    shown = np.asarray(labels)[view.rows]
    size = float(np.clip(12_000 / max(len(shown), 1), 4.0, 36.0))
    alpha = 0.85 if len(shown) <= 2_000 else 0.5
    for label in np.unique(shown[shown >= 0]):
        where = view.points[shown == label]
        axes.scatter(*where.T, s=size, c=color(label), marker=marker(label), alpha=alpha, linewidths=0)
    outliers = view.points[shown < 0]
    if len(outliers):
        axes.scatter(*outliers.T, s=max(size, 16), c=OUTLIER, marker="x", linewidths=1.0, zorder=3, label="outlier")
    if centers is not None:
        look: dict[str, Any] = {"fontsize": 9, "fontweight": "bold", "ha": "center", "va": "center", "zorder": 7}
        for j, place in enumerate(view.place(centers)):
            if not np.isfinite(place).all():
                continue
            ring = {"boxstyle": "circle,pad=0.25", "facecolor": "white", "edgecolor": color(j), "linewidth": 2.0}
            axes.text(*place, str(j), clip_on=True, bbox=ring, **look)


def _draw_histogram(axes: Any, view: View, labels: np.ndarray, centers: np.ndarray | None) -> None:
    shown = np.asarray(labels)[view.rows]
    values = view.points[:, 0]
    groups = np.unique(shown)
    colors = [OUTLIER if label < 0 else color(label) for label in groups]
    edges = view.edges(view.warped(view.points)[:, 0])
    edges = 10**edges if view.logs[0] else edges
    axes.hist([values[shown == label] for label in groups], bins=edges, stacked=True, color=colors)
    if centers is not None:
        for j, place in enumerate(view.place(centers)[:, 0]):
            if not np.isfinite(place):
                continue
            axes.axvline(place, color="black", linewidth=1.0, linestyle=":")
            at_top = {"xycoords": ("data", "axes fraction"), "xytext": (3, -11), "textcoords": "offset points"}
            axes.annotate(str(j), (place, 1.0), fontsize=9, fontweight="bold", **at_top)
    _text(axes.set_xlabel(view.titles[0]))
    axes.set_xscale("log" if view.logs[0] else "linear")
    axes.set_ylabel("points")
    _tidy(axes)


def _frame(axes: Any, view: View, centers: np.ndarray | None, window: tuple[float, float] | None = None) -> None:
    """Axis titles, and limits that do not depend on a few distant outliers, which are counted in the corner."""
    _text(axes.set_xlabel(view.titles[0]))
    _text(axes.set_ylabel(view.titles[1]))
    _tidy(axes)
    if window is not None:
        least, most = np.full(2, window[0]), np.full(2, window[1])
    else:
        least, most = view.limits(view.points, *([] if centers is None else [view.place(centers)]))
    words = view.outside(view.points, least, most)
    axes.set(xscale="log" if view.logs[0] else "linear", yscale="log" if view.logs[1] else "linear")
    axes.set_xlim(*(10.0 ** side[0] if view.logs[0] else side[0] for side in (least, most)))
    axes.set_ylim(*(10.0 ** side[1] if view.logs[1] else side[1] for side in (least, most)))
    if words:
        box = {"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 1.0}
        axes.text(0.99, 0.015, words, transform=axes.transAxes, ha="right", fontsize=8, color="#444444", bbox=box)


def _legend(axes: Any, labels: np.ndarray, called: Mapping[int, str] | None = None) -> None:
    """A legend beside the picture with the colour, marker and size of every cluster."""
    found, limit = groups_of(labels), 3 * _LEGEND_ROWS
    handles = []
    for label, count in found[:limit]:
        shape, shade = ("x", OUTLIER) if label < 0 else (marker(label), color(label))
        own = "outliers" if label < 0 else short((called or {}).get(label, str(label)), 18)
        name = f"{own} ({count:,})"
        handles.append(axes.plot([], [], shape, color=shade, label=name, markersize=7)[0])
    if len(found) > limit:
        handles.append(axes.plot([], [], " ", label=f"{len(found) - limit} more")[0])
    n_columns = -(-len(handles) // _LEGEND_ROWS)
    axes.figure.set_figwidth(axes.figure.get_figwidth() + _LEGEND_WIDTH * (n_columns - 1))
    legend = axes.legend(
        handles=handles, title="cluster (points)", loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0,
        ncols=n_columns, frameon=False, fontsize=9, columnspacing=1.0, handletextpad=0.3,
    )  # fmt: skip
    for text in legend.get_texts():
        _text(text)


def _text(text: Any) -> None:
    """Show texts of the user as they are, not as formulas between dollar signs."""
    text.set_parse_math(False)


def _tidy(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)


def _save(figure: Figure, path: str | os.PathLike) -> Path:
    if Path(path).suffix.lower() not in (".png", ".svg"):
        raise ValueError(f"{path}: pictures are PNG or SVG files. Choose a name that ends in .png or .svg")
    with replacing(check_writable(path)) as temporary, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # a character that the font lacks is drawn as a box
        figure.savefig(temporary, format="svg" if Path(path).suffix.lower() == ".svg" else "png")
    return Path(path)
