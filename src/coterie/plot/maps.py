"""A map of clustered points as a plotly figure."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from coterie.plot.marks import FEW, OUTLIER, color, see_through, short, symbol
from coterie.plot.themes import digits, figure, words
from coterie.plot.view import MAX_POINTS, View, bulk

SVG_POINTS = 3_000  # up to here points are vector graphics; beyond, they are drawn with WebGL
BINS = (150, 110)
LEGEND_LIMIT = 30


def clusters(
    X: np.ndarray,
    labels: np.ndarray,
    centers: np.ndarray | None = None,
    names: Sequence[Any] | None = None,
    *,
    view: "str | Sequence[Any] | View" = "auto",
    row_names: Sequence[Any] | None = None,
    max_points: int = MAX_POINTS,
    title: str = "",
    theme: str = "light",
) -> go.Figure:
    """A map of the points, coloured by cluster, and the centres.

    Parameters
    ----------
    X : array of shape (n, d)
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
    theme : {"light", "dark"}

    Returns
    -------
    plotly.graph_objects.Figure
    """
    X, labels = np.asarray(X), np.asarray(labels)
    if not isinstance(view, View):
        view = View(X, names, view, max_points)
    if view.dims == 1:
        traces = _columns(view, X, labels)
        layout: dict[str, Any] = {
            "xaxis": {"title": {"text": words(view.titles[0])}},
            "yaxis": {"title": {"text": "points"}},
        }
        layout |= {"barmode": "stack", "bargap": 0.02}
        if centers is not None:
            layout |= _center_lines(view.place(centers)[:, 0])
    else:
        binned = len(view.rows) < len(X) and view.linear
        places = view.place(X) if binned else view.points
        traces = _bins(places, labels) if binned else _points(places, labels, view.rows, row_names)
        middle = None if centers is None else view.place(centers)
        layout = _frame(places if middle is None else np.vstack([places, middle]), view)
        if middle is not None:
            traces.append(numbered_centers(middle))
    return figure(traces, theme, title={"text": words(title)}, **_legend(len(np.unique(labels))), **layout)


def _points(places: np.ndarray, labels: np.ndarray, rows: np.ndarray, row_names: Sequence[Any] | None) -> list:
    shown = labels[rows]
    kind = go.Scatter if len(rows) <= SVG_POINTS else go.Scattergl
    size = float(np.clip(9 - 1.6 * np.log10(max(len(rows), 10) / 100), 3.5, 9))
    opacity = 0.85 if len(rows) <= 2_000 else 0.6
    traces = []
    for label, name in _named(labels):
        own = shown == label
        if not own.any():
            continue
        who = rows[own] if row_names is None else [words(short(row_names[i])) for i in rows[own]]
        look: dict[str, Any] = {"symbol": symbol(label), "size": size, "color": color(label), "opacity": opacity}
        if label < 0:
            look |= {"size": size + 2, "opacity": 1.0, "line": {"width": 1.3, "color": OUTLIER}}
        traces.append(
            kind(
                x=digits(places[own, 0]),
                y=digits(places[own, 1]),
                mode="markers",
                marker=look,
                name=name,
                text=who,
                hovertemplate=f"row %{{text}}<br>{'outlier' if label < 0 else f'cluster {label}'}<extra></extra>",
            )
        )
    return traces


def _bins(places: np.ndarray, labels: np.ndarray) -> list:
    """One heat map per cluster in the colour of the cluster, with an opacity that grows with the number of points."""
    least, most = bulk(places)
    edges = [np.linspace(least[i], most[i], BINS[i] + 1) for i in range(2)]
    cells = [np.clip(((places[:, i] - least[i]) / (most[i] - least[i]) * BINS[i]).astype(int), -1, BINS[i])
             for i in range(2)]  # fmt: skip
    inside = np.logical_and.reduce([(cell >= 0) & (cell < size) for cell, size in zip(cells, BINS)])
    inside &= ((places >= least) & (places <= most)).all(axis=1)
    mids = [(edge[1:] + edge[:-1]) / 2 for edge in edges]
    traces = []
    for label, name in _named(labels):
        own = inside & (labels == label)
        if not own.any():
            continue
        x, y = cells[0][own], cells[1][own]
        x0, x1, y0, y1 = x.min(), x.max() + 1, y.min(), y.max() + 1
        counts = np.zeros((y1 - y0, x1 - x0))
        np.add.at(counts, (y - y0, x - x0), 1)
        z = np.where(counts > 0, np.sqrt(counts), np.nan)
        shade = color(label)
        traces.append(
            go.Heatmap(
                x=digits(mids[0][x0:x1], 5),
                y=digits(mids[1][y0:y1], 5),
                z=digits(z),
                zmin=0,
                colorscale=[[0, see_through(shade, 0.25)], [0.3, see_through(shade, 0.7)], [1, see_through(shade, 1)]],
                showscale=False,
                hoverongaps=False,
                name=name,
                hovertemplate=f"{'outliers' if label < 0 else f'cluster {label}'}<extra></extra>",
            )
        )
        # A heat map has no symbol in the legend: an empty trace provides it.
        traces.append(
            go.Scatter(
                x=[None], y=[None], mode="markers", name=name, hoverinfo="skip",
                marker={"symbol": "square" if label >= 0 else "x", "size": 10, "color": shade},
            )
        )  # fmt: skip
    for i in range(0, len(traces), 2):
        traces[i].legendgroup = traces[i + 1].legendgroup = str(i)
    return traces


def _columns(view: View, X: np.ndarray, labels: np.ndarray) -> list:
    values = view.place(X)[:, 0]
    edges = np.histogram_bin_edges(values, bins=min(60, max(10, int(np.sqrt(len(values))) * 2)))
    mids = (edges[1:] + edges[:-1]) / 2
    traces = []
    for label, name in _named(labels):
        counts, _ = np.histogram(values[labels == label], edges)
        look = {"color": color(label), "line": {"width": 0}}
        bar = go.Bar(x=digits(mids, 5), y=counts, name=name, marker=look, width=float(edges[1] - edges[0]))
        traces.append(bar.update(hovertemplate="%{x}: %{y} points<extra></extra>"))
    return traces


def _center_lines(places: np.ndarray) -> dict[str, Any]:
    lines = [
        {"type": "line", "x0": x, "x1": x, "yref": "paper", "y0": 0, "y1": 1,
         "line": {"color": OUTLIER, "width": 1.5, "dash": "dot"}}
        for x in places.tolist()
    ]  # fmt: skip
    notes = [
        {
            "x": x,
            "y": 1,
            "yref": "paper",
            "text": f"<b>{j}</b>",
            "showarrow": False,
            "yanchor": "top",
            "xanchor": "left",
        }
        for j, x in enumerate(places.tolist())
    ]
    return {"shapes": lines, "annotations": notes}


def numbered_centers(places: np.ndarray) -> go.Scatter:
    """Numbered circles, white on any background."""
    numbers, few = np.arange(len(places)), len(places) <= FEW
    return go.Scatter(
        x=digits(places[:, 0], 5),
        y=digits(places[:, 1], 5),
        mode="markers+text",
        marker={
            "size": 21 if few else 15,
            "color": "#ffffff",
            "line": {"width": 3 if few else 2, "color": [color(j) for j in numbers.tolist()]},
        },
        text=[f"<b>{j}</b>" for j in numbers],
        textfont={"color": "#1d2430", "size": 12 if few else 9},
        name="centres",
        hovertemplate="centre of cluster %{pointNumber}<extra></extra>",
        cliponaxis=False,
        showlegend=False,
    )


def _frame(points: np.ndarray, view: View) -> dict[str, Any]:
    """Axis titles, and limits that do not depend on a few distant outliers."""
    least, most = bulk(points)
    return {
        f"{axis}axis": {
            "title": {"text": words(view.titles[i])},
            "range": [float(f"{least[i]:.5g}"), float(f"{most[i]:.5g}")],
        }
        for i, axis in enumerate("xy")
    }


def _named(labels: np.ndarray) -> list[tuple[int, str]]:
    """Labels in order, outliers last, with a name that contains the size."""
    found, counts = np.unique(labels, return_counts=True)
    pairs = [(int(label), f"cluster {label} ({count:,})") for label, count in zip(found, counts) if label >= 0]
    return pairs + [(-1, f"outliers ({int(counts[found < 0].sum()):,})")] * bool((found < 0).any())


def _legend(count: int) -> dict[str, Any]:
    return {
        "showlegend": 1 < count <= LEGEND_LIMIT,
        "legend": {
            "orientation": "h",
            "y": 1.02,
            "yanchor": "bottom",
            "x": 0,
            "xanchor": "left",
            "itemsizing": "constant",
            "traceorder": "normal",
        },
    }
