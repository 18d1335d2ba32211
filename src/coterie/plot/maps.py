"""A map of clustered points as a plotly figure."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from coterie.palette import OUTLIER, color, see_through, symbol
from coterie.plot.columns import groups_of, labels_of, matrix_of
from coterie.plot.themes import digits, figure, words
from coterie.plot.view import MAX_POINTS, View
from coterie.wording import cluster_name, short

FEW = 12  # clusters, for which large labels fit
SVG_POINTS = 3_000  # up to here points are vector graphics; beyond, they are drawn with WebGL
BINS = (150, 110)
LEGEND_LIMIT = 30


def clusters(
    X: Any,
    labels: np.ndarray,
    centers: np.ndarray | None = None,
    names: Sequence[Any] | None = None,
    *,
    view: "str | Sequence[Any] | View" = "auto",
    row_names: Sequence[Any] | None = None,
    max_points: int = MAX_POINTS,
    title: str = "",
    called: Mapping[int, str] | None = None,
) -> go.Figure:
    """A map of the points, coloured by cluster, and the centres.

    Parameters
    ----------
    X : array, CSR matrix or DataFrame of shape (n, d)
        Columns of a DataFrame may hold dates and categories; all columns are then brought to a common scale.
    labels : array of shape (n,)
        Outliers have the label -1 and are shown as grey crosses.
    centers : array of shape (k, d), optional
    names : sequence of str, optional
        Names of the columns.
    view : "auto", "columns", "pca", "umap", a pair of columns, or a :class:`coterie.plot.view.View`
        "auto" shows one or two columns as they are, and more columns by their principal axes.
    row_names : sequence, optional
        Names of the points in tooltips; by default their numbers.
    max_points : int
        Up to 3,000 points are vector graphics, and up to ``max_points`` points are drawn with WebGL. Beyond that, the
        points are counted in small squares. (A UMAP map shows a sample instead.)
    title : str
    called : mapping of int to str, optional
        Names of clusters.
    """
    X, names = matrix_of(X, names)
    labels = labels_of(labels, len(X))
    if not isinstance(view, View):
        view = View(X, names, view, max_points)
    if view.dims == 1:
        traces = _columns(view, X, labels, called)
        layout: dict[str, Any] = {
            "xaxis": {"title": {"text": words(view.titles[0])}, "type": "log" if view.logs[0] else "linear"},
            "yaxis": {"title": {"text": "points"}},
        }
        layout |= {"barmode": "stack", "bargap": 0.02}
        if centers is not None:
            layout |= _center_lines(view.place(centers)[:, 0])
    else:
        binned = len(view.rows) < len(X) and view.linear
        places = view.place(X) if binned else view.points
        traces = (
            _bins(view, places, labels, called) if binned else _points(places, labels, view.rows, row_names, called)
        )
        middle = places[:0] if centers is None else view.place(centers)
        layout = _frame(places, middle, view)
        if len(middle):
            traces.append(numbered_centers(middle, called))
    return figure(traces, title={"text": words(title)}, **_legend(len(np.unique(labels))), **layout)


def _points(places: np.ndarray, labels: np.ndarray, rows: np.ndarray, row_names: Any, called: Any) -> list:
    shown = labels[rows]
    kind = go.Scatter if len(rows) <= SVG_POINTS else go.Scattergl
    size = float(np.clip(9 - 1.6 * np.log10(max(len(rows), 10) / 100), 3.5, 9))
    opacity = 0.85 if len(rows) <= 2_000 else 0.6
    traces: list[Any] = []
    for label, name in _named(labels, called):
        own = shown == label
        if not own.any():
            continue
        who = rows[own] if row_names is None else [words(short(row_names[i])) for i in rows[own]]
        look: dict[str, Any] = {"symbol": symbol(label), "size": size, "color": color(label), "opacity": opacity}
        if label < 0:
            look |= {"size": size + 2, "opacity": 1.0, "line": {"width": 1.3, "color": OUTLIER}}
        hint = f"row %{{text}}<br>{words(cluster_name(label, called))}<extra></extra>"
        x, y = digits(places[own]).T
        traces.append(kind(x=x, y=y, mode="markers", marker=look, name=name, text=who, hovertemplate=hint))
    return traces


def _bins(view: View, places: np.ndarray, labels: np.ndarray, called: Mapping[int, str] | None) -> list:
    """One heat map per cluster in the colour of the cluster, with an opacity that grows with the number of points."""
    least, most = view.limits(places)
    places = view.warped(places)
    edges = [np.linspace(least[i], most[i], BINS[i] + 1) for i in range(2)]
    inside = ((places >= least) & (places < most)).all(axis=1)
    cells = ((places - least) / (most - least) * BINS).clip(0, np.array(BINS) - 1).astype(int).T
    mids = [(edge[1:] + edge[:-1]) / 2 for edge in edges]
    mids = [10**mid if log else mid for mid, log in zip(mids, view.logs)]
    traces = []
    for label, name in _named(labels, called):
        own = inside & (labels == label)
        if not own.any():
            continue
        x, y = cells[0][own], cells[1][own]
        x0, x1, y0, y1 = x.min(), x.max() + 1, y.min(), y.max() + 1
        counts = np.zeros((y1 - y0, x1 - x0))
        np.add.at(counts, (y - y0, x - x0), 1)
        z = np.where(counts > 0, np.sqrt(counts), np.nan)
        shade = color(label)
        scale = [[0, see_through(shade, 0.25)], [0.3, see_through(shade, 0.7)], [1, see_through(shade, 1)]]
        together = {"name": name, "legendgroup": str(label)}
        heat = go.Heatmap(x=digits(mids[0][x0:x1]), y=digits(mids[1][y0:y1]), z=digits(z), zmin=0, colorscale=scale)
        hint = f"{words(cluster_name(label, called))}<extra></extra>"
        traces.append(heat.update(showscale=False, hoverongaps=False, hovertemplate=hint, **together))
        # A heat map has no symbol in the legend: an empty trace provides it.
        look = {"symbol": "square" if label >= 0 else "x", "size": 10, "color": shade}
        traces.append(go.Scatter(x=[None], y=[None], mode="markers", marker=look, hoverinfo="skip", **together))
    return traces


def _columns(view: View, X: np.ndarray, labels: np.ndarray, called: Mapping[int, str] | None) -> list:
    values = view.warped(view.place(X))[:, 0]
    edges = view.edges(values)
    drawn = 10**edges if view.logs[0] else edges
    mids = (drawn[1:] + drawn[:-1]) / 2
    traces = []
    for label, name in _named(labels, called):
        counts, _ = np.histogram(values[labels == label], edges)
        look = {"color": color(label), "line": {"width": 0}}
        bar = go.Bar(x=digits(mids), y=counts, name=name, marker=look, width=digits(np.diff(drawn)))
        traces.append(bar.update(hovertemplate="%{x}: %{y} points<extra></extra>"))
    return traces


def _center_lines(places: np.ndarray) -> dict[str, Any]:
    lines = [
        {"type": "line", "x0": x, "x1": x, "yref": "paper", "y0": 0, "y1": 1,
         "line": {"color": OUTLIER, "width": 1.5, "dash": "dot"}}
        for x in places[np.isfinite(places)].tolist()
    ]  # fmt: skip
    at_top = {"y": 1, "yref": "paper", "showarrow": False, "yanchor": "top", "xanchor": "left"}
    notes = [{"x": x, "text": f"<b>{j}</b>", **at_top} for j, x in enumerate(places.tolist()) if np.isfinite(x)]
    return {"shapes": lines, "annotations": notes}


def numbered_centers(places: np.ndarray, called: Mapping[int, str] | None = None) -> go.Scatter:
    """Numbered circles, white on any background."""
    numbers = np.flatnonzero(np.isfinite(places).all(axis=1)).tolist()  # ids that are not used have no place
    places, few = places[numbers], len(numbers) <= FEW
    ring = {"width": 3 if few else 2, "color": [color(j) for j in numbers]}
    return go.Scatter(
        x=digits(places[:, 0]), y=digits(places[:, 1]), mode="markers+text", name="centres", cliponaxis=False,
        marker={"size": 21 if few else 15, "color": "#ffffff", "line": ring}, showlegend=False,
        text=[f"<b>{j}</b>" for j in numbers], textfont={"color": "#1d2430", "size": 12 if few else 9},
        customdata=[words(cluster_name(j, called)) for j in numbers],
        hovertemplate="centre of %{customdata}<extra></extra>",
    )  # fmt: skip


def _frame(points: np.ndarray, centers: np.ndarray, view: View) -> dict[str, Any]:
    """Axis titles, limits that do not depend on a few distant outliers, and how many points are beyond them."""
    least, most = view.limits(points, centers)
    layout: dict[str, Any] = {
        f"{axis}axis": {
            "title": {"text": words(view.titles[i])},
            "range": [float(f"{least[i]:.7g}"), float(f"{most[i]:.7g}")],
            "type": "log" if view.logs[i] else "linear",
        }
        for i, axis in enumerate("xy")
    }
    outside = view.outside(points, least, most)
    if outside:
        layout["annotations"] = [
            {"text": outside, "x": 1, "y": 0, "xref": "paper", "yref": "paper", "xanchor": "right",
             "yanchor": "bottom", "showarrow": False, "font": {"size": 12, "color": OUTLIER}}
        ]  # fmt: skip
    return layout


def _named(labels: np.ndarray, called: Mapping[int, str] | None = None) -> list[tuple[int, str]]:
    """Labels in order, outliers last, with a name that contains the size."""
    return [
        (label, f"{words(short(cluster_name(label, called), 24))} ({count:,})") for label, count in groups_of(labels)
    ]


def _legend(count: int) -> dict[str, Any]:
    look = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "xanchor": "left"}
    return {
        "showlegend": 1 < count <= LEGEND_LIMIT,
        "legend": {**look, "itemsizing": "constant", "traceorder": "normal"},
    }
