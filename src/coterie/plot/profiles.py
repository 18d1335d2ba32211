"""The mean of every column in every cluster, as a plotly figure."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from coterie.plot.marks import see_through, short
from coterie.plot.themes import digits, figure, words
from coterie.wording import number

MAX_COLUMNS = 30
LOW, HIGH = "#0072B2", "#D55E00"
# The colours are transparent, so that the numbers in the cells are readable on light and on dark pages.
DIVERGING = [[0, see_through(LOW, 0.75)], [0.5, see_through("#888888", 0.04)], [1, see_through(HIGH, 0.75)]]


def profile(
    X: np.ndarray,
    labels: np.ndarray,
    names: Sequence[Any] | None = None,
    *,
    max_columns: int = MAX_COLUMNS,
    scale_bar: bool = True,
    title: str = "",
    theme: str = "light",
) -> go.Figure:
    """The means of the columns in each cluster: numbers in the units of the column, colours in standard deviations.

    Parameters
    ----------
    X : array of shape (n, d)
        The rows in the units to be shown.
    labels : array of shape (n,)
        Outliers (-1) have a column of their own.
    names : sequence of str, optional
        Names of the columns.
    max_columns : int
        Of more columns, those in which the clusters differ most are shown.
    scale_bar : bool
        Whether to show a colour scale.
    title : str
    theme : {"light", "dark"}

    Returns
    -------
    plotly.graph_objects.Figure
    """
    X, labels = np.asarray(X, dtype=np.float64), np.asarray(labels)
    names = [f"x{i}" for i in range(X.shape[1])] if names is None else [str(name) for name in names]
    found = [*np.unique(labels[labels >= 0]).tolist(), *([-1] if (labels < 0).any() else [])]
    means = np.array([X[labels == label].mean(axis=0) for label in found])
    spread = X.std(axis=0)
    away = (means - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    columns = np.arange(X.shape[1])
    if len(columns) > max_columns:
        clustered = np.array(found) >= 0
        columns = np.sort(np.argsort(-away[clustered].std(axis=0), kind="stable")[:max_columns])
    heads = ["outliers" if label < 0 else f"cluster {label}" for label in found]
    z = away[:, columns].T
    limit = float(np.clip(np.ceil(2 * np.abs(z).max(initial=0.0)) / 2, 1.0, 3.0))  # where the colour is full
    written = [[number(value) for value in row] for row in means[:, columns].T]
    heat = go.Heatmap(
        z=digits(z, 3),
        x=heads,
        y=_distinct([words(short(names[i], 28)) for i in columns]),
        text=written,
        texttemplate="%{text}" if len(found) <= 12 else None,
        customdata=[[words(short(names[i], 60))] * len(found) for i in columns],
        hovertemplate="%{customdata}, %{x}<br>mean %{text}: %{z:+.2f} standard deviations from all<extra></extra>",
        colorscale=DIVERGING,
        zmin=-limit,
        zmax=limit,
        zmid=0,
        xgap=2,
        ygap=2,
        showscale=scale_bar,
        colorbar={
            "thickness": 10, "len": 0.9, "tickvals": [-limit, 0, limit],
            "ticktext": [f"{limit:g} std. below", "mean of all rows", f"{limit:g} above"],
        },
    )  # fmt: skip
    return figure(
        [heat],
        theme,
        title={"text": words(title)},
        height=70 + 28 * len(columns),
        margin={"t": 80 if title else 30},
        xaxis={"side": "top", "showgrid": False, "type": "category"},
        yaxis={"autorange": "reversed", "showgrid": False, "type": "category"},
    )


def _distinct(names: list[str]) -> list[str]:
    """Names that became equal when they were shortened get invisible endings, because plotly would merge them."""
    seen: dict[str, int] = {}
    result = []
    for name in names:
        seen[name] = seen.get(name, -1) + 1
        result.append(name + "\u200b" * seen[name])
    return result
