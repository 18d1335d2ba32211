"""What the columns hold in every cluster, as plotly figures: a heat map of means, and distributions side by side."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from coterie.palette import color, see_through
from coterie.plot.columns import Column, columns_of, labels_of, shares_of
from coterie.plot.themes import digits, figure, words
from coterie.wording import cluster_name, short

MAX_COLUMNS = 30
MULTIPLES = 9  # columns of which distributions are shown
LEVELS = 6  # of a category that are told apart
LOW, HIGH = "#0072B2", "#D55E00"
# The colours are transparent, so that the numbers in the cells are readable on light and on dark pages.
DIVERGING = [[0, see_through(LOW, 0.75)], [0.5, see_through("#888888", 0.04)], [1, see_through(HIGH, 0.75)]]


def profile(
    X: Any,
    labels: np.ndarray,
    names: Sequence[Any] | None = None,
    *,
    max_columns: int = MAX_COLUMNS,
    scale_bar: bool = True,
    title: str = "",
    called: Mapping[int, str] | None = None,
) -> go.Figure:
    """What the columns hold in each cluster: texts in the units of the column, colours in standard deviations.

    Parameters
    ----------
    X : array or DataFrame of shape (n, d)
        The rows in the units to be shown. Numbers and dates are shown by their mean, categories by their most frequent
        value and its share.
    labels : array of shape (n,)
        Outliers (-1) have a column of their own.
    names : sequence of str, optional
        Names of the columns.
    max_columns : int
        Of more columns, those in which the clusters differ most are shown.
    scale_bar : bool
        Whether to explain the colours beside the figure.
    title : str
    called : mapping of int to str, optional
        Names of clusters.
    """
    read = columns_of(X, names)
    labels = labels_of(labels, len(read[0].values) if read else 0)
    found = [*np.unique(labels[labels >= 0]).tolist(), *([-1] if (labels < 0).any() else [])]
    cells = [one.profile(labels, found) for one in read]
    away = np.array([each for each, _ in cells]).reshape(len(read), len(found))
    columns = np.arange(len(read))
    if len(columns) > max_columns:
        clustered = np.array(found) >= 0
        columns = np.sort(np.argsort(-away[:, clustered].std(axis=1), kind="stable")[:max_columns])
    heads = [words(cluster_name(label, called)) for label in found]
    z = away[columns]
    limit = float(np.clip(np.ceil(2 * np.abs(z).max(initial=0.0)) / 2, 1.0, 3.0))  # where the colour is full
    heat = go.Heatmap(
        z=digits(z), x=heads, y=_distinct([words(short(read[i].name, 28)) for i in columns]),
        text=[[words(text) for text in cells[i][1]] for i in columns],
        texttemplate="%{text}" if len(found) <= 12 else None,
        customdata=[[words(short(read[i].name, 60))] * len(found) for i in columns],
        hovertemplate="%{customdata}, %{x}<br>%{text}: %{z:+.2f} standard deviations from all<extra></extra>",
        colorscale=DIVERGING, zmin=-limit, zmax=limit, zmid=0, xgap=2, ygap=2, showscale=scale_bar,
        colorbar={
            "thickness": 10, "len": 0.9, "tickvals": [-limit, 0, limit],
            "ticktext": [f"{limit:g} std. below", "mean of all rows", f"{limit:g} above"],
        },
    )  # fmt: skip
    return figure(
        [heat],
        title={"text": words(title)},
        height=70 + 28 * len(columns),
        margin={"t": 80 if title else 30},
        xaxis={"side": "top", "showgrid": False, "type": "category"},
        yaxis={"autorange": "reversed", "showgrid": False, "type": "category"},
    )


def distributions(
    X: Any,
    labels: np.ndarray,
    names: Sequence[Any] | None = None,
    *,
    max_columns: int = MULTIPLES,
    called: Mapping[int, str] | None = None,
) -> go.Figure:
    """Small multiples: one panel per column, with a box per cluster for numbers and dates, and shares for categories.

    Of more than ``max_columns`` columns, those in which the clusters differ most are shown. Boxes reach from the lower
    to the upper quartile, whiskers from the 5th to the 95th percentile.

    Parameters
    ----------
    X, labels, names, called : as for :func:`profile`
        Outliers (-1) are not shown.
    max_columns : int
    """
    read = columns_of(X, names)
    labels = labels_of(labels, len(read[0].values) if read else 0)
    found = np.unique(labels[labels >= 0]).tolist()
    strength = [np.std(one.profile(labels, found)[0]) for one in read]
    chosen = np.sort(np.argsort(-np.array(strength), kind="stable")[:max_columns]).tolist()
    across = min(3, len(chosen)) or 1
    down = -(-len(chosen) // across)
    traces, layout, notes = [], {}, []
    tall = max(90, 24 * len(found) + 50)
    for place, index in enumerate(chosen):
        one, axis = read[index], str(place + 1) if place else ""
        row, column = divmod(place, across)
        left, right = (column + 0.06) / across, (column + 0.94) / across
        top, bottom = 1 - (row + 38 / (tall + 60)) / down, 1 - (row + 0.9) / down
        heads = [words(short(cluster_name(label, called), 14)) for label in found]
        layout[f"xaxis{axis}"] = {"domain": [left, right], "anchor": f"y{axis}", "nticks": 4}
        layout[f"yaxis{axis}"] = {
            "domain": [bottom, top], "anchor": f"x{axis}", "type": "category", "autorange": "reversed",
            "categoryarray": heads, "showgrid": False, "showticklabels": column == 0,
        }  # fmt: skip
        notes.append(
            {"text": f"<b>{words(short(one.name, 34))}</b>", "x": left, "y": top, "xref": "paper", "yref": "paper",
             "xanchor": "left", "yanchor": "bottom", "showarrow": False}
        )  # fmt: skip
        where = {"xaxis": f"x{axis}", "yaxis": f"y{axis}"}
        if one.levels is None:
            traces += [_box(one, labels == label, head, label, where) for label, head in zip(found, heads)]
            layout[f"xaxis{axis}"] |= {"type": "date"} if one.dates else {}
        else:
            traces += _bars(one, labels, found, heads, where)
            layout[f"xaxis{axis}"] |= {"range": [0, 1], "tickformat": ".0%"}
    return figure(
        traces, height=down * (tall + 60), barmode="stack", showlegend=False, annotations=notes,
        margin={"t": 20, "b": 20}, **layout,
    )  # fmt: skip


def _box(one: Column, own: np.ndarray, head: str, label: int, where: dict[str, str]) -> go.Box:
    known = one.values[own & np.isfinite(one.values)]
    steps = np.percentile(known, (5, 25, 50, 75, 95)) if len(known) else np.full(5, np.nan)
    shown: Any = [one.show(step) for step in steps] if one.dates else steps
    low, q1, middle, q3, high = shown
    return go.Box(
        y=[head], lowerfence=[low], q1=[q1], median=[middle], q3=[q3], upperfence=[high], orientation="h", width=0.6,
        line={"color": color(label), "width": 1.5}, fillcolor=see_through(color(label), 0.35),
        name=head, hoverinfo="x", **where,
    )  # fmt: skip


def _bars(one: Column, labels: np.ndarray, found: Sequence[int], heads: Sequence[str], where: dict[str, str]) -> list:
    """Stacked shares of the most frequent levels; the others are grey."""
    assert one.levels is not None
    order = np.argsort(-shares_of(one.values, len(one.levels)), kind="stable")[:LEVELS]
    shares = np.array([shares_of(one.values[labels == label], len(one.levels)) for label in found])
    parts = [(one.levels[i], shares[:, i]) for i in order.tolist()]
    rest = 1 - shares[:, order].sum(axis=1)
    parts += [("other or missing", rest)] if rest.max() > 0.005 else []
    return [
        go.Bar(
            x=part, y=list(heads), orientation="h", width=0.6,
            marker={"color": see_through("#5a6472", 0.85 - 0.13 * place), "line": {"width": 0.5, "color": "#ffffff"}},
            text=[words(short(level, 12)) if share >= 0.2 else "" for share in part], textposition="inside",
            insidetextanchor="middle", textangle=0, textfont={"size": 11},
            hovertemplate=f"{words(short(level))}: %{{x:.0%}} of %{{y}}<extra></extra>", **where,
        )
        for place, (level, part) in enumerate(parts)
    ]  # fmt: skip


def _distinct(names: list[str]) -> list[str]:
    """Names that became equal when they were shortened get invisible endings, because plotly would merge them."""
    seen: dict[str, int] = {}
    result = []
    for name in names:
        seen[name] = seen.get(name, -1) + 1
        result.append(name + "\u200b" * seen[name])
    return result
