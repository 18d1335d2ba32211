"""The layers of a fit as plotly figures with a slider: centres, assignments and the objective."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from coterie.palette import OUTLIER, PALETTE, SYMBOLS, see_through
from coterie.plot.maps import numbered_centers
from coterie.plot.themes import digits, figure, words
from coterie.plot.view import View

MAX_POINTS = 1_000
MAX_COLUMNS = 240  # of the attention map


@dataclass(frozen=True)
class Layers:
    """The centres (layers, k, d), assignments (layers, n, k) and objective (layers,) of every layer."""

    centers: np.ndarray
    assignments: np.ndarray
    objective: np.ndarray
    names: tuple[str, ...]

    @classmethod
    def of(
        cls, X: np.ndarray, steps: Sequence[Any], objective: Sequence[float] | None = None, start: Any = None
    ) -> "Layers":
        """From ``trajectory_``, a list of (centers, assignments).

        ``start`` are the centres before the first layer, if they are known. By default the objective is the sum of
        squared distances between points and centres, weighted by the assignments.
        """
        if isinstance(steps, Layers):
            return steps
        if len(steps) == 0:
            raise ValueError("There are no layers to draw: fit with engine='literal', which stores trajectory_.")
        pairs = [(np.asarray(centers, dtype=np.float64), np.asarray(shares)) for centers, shares in steps]
        names = [str(i + 1) for i in range(len(pairs))]
        if start is not None:
            pairs = [(np.asarray(start, dtype=np.float64), pairs[0][1]), *pairs]
            names = ["start", *names]
        if objective is None:
            objective = [_inertia(X, centers, shares) for centers, shares in pairs]
        return cls(
            np.stack([p[0] for p in pairs]), np.stack([p[1] for p in pairs]), np.asarray(objective), tuple(names)
        )


def trajectory(
    X: np.ndarray,
    steps: Sequence[Any],
    names: Sequence[Any] | None = None,
    *,
    view: "str | Sequence[Any] | View" = "auto",
    start: Any = None,
    controls: bool = True,
    title: str = "",
) -> go.Figure:
    """The centres and the colours of the points, one frame per layer.

    Parameters
    ----------
    X : array of shape (n, d)
    steps : :class:`Layers`, or ``trajectory_`` of an estimator with ``engine="literal"``
    names : sequence of str, optional
        Names of the columns.
    view : "auto", "columns", "pca", "umap", a pair of columns, or a :class:`coterie.plot.view.View`
        The axes. "auto" shows one or two columns as they are, and more columns by their principal axes.
    start : array of shape (k, d), optional
        The centres before the first layer.
    controls : bool
        Whether the figure has its own slider and button.
    title : str
    """
    X = np.asarray(X)
    layers = Layers.of(X, steps, start=start)
    if not isinstance(view, View):
        view = View(X, names, view, MAX_POINTS)
    rows = np.arange(len(X))
    if len(rows) > MAX_POINTS:
        rows = np.sort(np.random.default_rng(0).choice(len(rows), MAX_POINTS, replace=False))
    points = _two(view.place(X[rows]))
    depth, k, _ = layers.centers.shape
    paths = _two(view.place(layers.centers.reshape(depth * k, -1))).reshape(depth, k, 2)
    frames = [
        go.Frame(name=name, data=[_colors(shares[rows]), _paths(paths[: i + 1]), numbered_centers(paths[i])])
        for i, (name, shares) in enumerate(zip(layers.names, layers.assignments))
    ]
    ground = go.Scatter(
        x=digits(points[:, 0]), y=digits(points[:, 1]), mode="markers", hoverinfo="skip", showlegend=False,
        marker={"size": 6 if len(rows) > 400 else 8, "opacity": 0.55},
    )  # fmt: skip
    ground.update(frames[0].data[0].to_plotly_json())
    least, most = view.limits(points, paths.reshape(-1, 2))
    titles = [*view.titles, ""][:2]
    axes = {
        f"{axis}axis": {"title": {"text": words(titles[i])}, "range": [float(least[i]), float(most[i])]}
        for i, axis in enumerate("xy")
    }
    made = figure([ground, *frames[0].data[1:]], title={"text": words(title)}, showlegend=False, **axes)
    if view.dims == 1:
        made.update_yaxes(visible=False)
    return _played(made, frames, controls)


def attention(X: np.ndarray, steps: Sequence[Any], *, start: Any = None, controls: bool = True) -> go.Figure:
    """The attention weights between points and centres: one row per centre, one column per point, one frame per layer.

    Points are sorted by their final cluster, so that converged assignments look like a staircase. The parameters are
    those of :func:`trajectory`.
    """
    layers = Layers.of(np.asarray(X), steps, start=start)
    last = layers.assignments[-1]
    order = np.lexsort((-last.max(1), last.argmax(1)))
    if len(order) > MAX_COLUMNS:  # clusters keep their shares of the points
        order = order[np.linspace(0, len(order) - 1, MAX_COLUMNS).astype(int)]
    k = layers.assignments.shape[2]
    marked = digits(np.arange(len(order)))
    scale = [[0, see_through(PALETTE[0], 0.05)], [1, see_through(PALETTE[0], 1.0)]]
    seen = [np.round(100 * np.clip(shares[order].T, 0, 1)).astype(np.uint8) for shares in layers.assignments]
    heat = go.Heatmap(
        z=seen[0], x=marked, y=[f"centre {j}" for j in range(k)], zmin=0, zmax=100, colorscale=scale, showscale=False,
        ygap=1, hovertemplate="%{y}: %{z}% of the attention of a point<extra></extra>",
    )  # fmt: skip
    frames = [go.Frame(name=name, data=[go.Heatmap(z=z)]) for name, z in zip(layers.names, seen)]
    made = figure(
        [heat],
        xaxis={"title": {"text": "points, sorted by their final cluster"}, "showticklabels": False, "showgrid": False},
        yaxis={"autorange": "reversed", "showgrid": False},
    )
    return _played(made, frames, controls)


def objective(X: np.ndarray, steps: Sequence[Any], *, start: Any = None, controls: bool = True) -> go.Figure:
    """The objective in every layer; a dot marks the layer that is shown. Parameters as for :func:`trajectory`."""
    layers = Layers.of(np.asarray(X), steps, start=start)
    x, y = list(layers.names), digits(layers.objective)
    line = go.Scatter(
        x=x, y=y, mode="lines", line={"color": OUTLIER, "width": 2}, hovertemplate="layer %{x}: %{y}<extra></extra>"
    )
    frames = [
        go.Frame(name=name, data=[go.Scatter(x=x[: i + 1], y=y[: i + 1]), go.Scatter(x=[x[i]], y=y[i : i + 1])])
        for i, name in enumerate(layers.names)
    ]
    gone = go.Scatter(x=x[:1], y=y[:1], mode="lines", line={"color": PALETTE[0], "width": 3}, hoverinfo="skip")
    dot = go.Scatter(x=x[:1], y=y[:1], mode="markers", marker={"color": PALETTE[0], "size": 12}, hoverinfo="skip")
    for frame in frames:
        frame.traces = [1, 2]
    made = figure(
        [line, gone, dot],
        showlegend=False,
        xaxis={"title": {"text": "layer"}, "type": "category", "categoryarray": x, "range": [-0.4, len(x) - 0.6]},
        yaxis={"title": {"text": "objective"}, "rangemode": "normal"},
    )
    return _played(made, frames, controls)


def _inertia(X: np.ndarray, centers: np.ndarray, shares: np.ndarray) -> float:
    X = np.asarray(X, dtype=np.float64)
    sq = (X**2).sum(1)[:, None] - 2 * X @ centers.T + (centers**2).sum(1)[None]
    return float((np.clip(sq, 0, None) * shares).sum())


def _two(places: np.ndarray) -> np.ndarray:
    """Positions on a line get the height zero."""
    return places if places.shape[1] == 2 else np.column_stack([places, np.zeros(len(places))])


def _colors(shares: np.ndarray) -> go.Scatter:
    labels = shares.argmax(1)
    k = len(PALETTE)
    scale = [[edge, shade] for j, shade in enumerate(PALETTE) for edge in (j / k, (j + 1) / k)]
    look: dict[str, Any] = {"color": (labels % k).astype(np.uint8), "cmin": -0.5, "cmax": k - 0.5, "colorscale": scale}
    if shares.shape[1] > k:
        look["symbol"] = [SYMBOLS[j // k % len(SYMBOLS)] for j in labels.tolist()]
    return go.Scatter(marker=look)


def _paths(paths: np.ndarray) -> go.Scatter:
    """The paths of all centres so far in one trace, separated by missing values."""
    gaps = np.concatenate([paths, np.full((1, *paths.shape[1:]), np.nan)]).transpose(1, 0, 2).reshape(-1, 2)
    return go.Scatter(
        x=digits(gaps[:, 0]), y=digits(gaps[:, 1]), mode="lines+markers", hoverinfo="skip",
        line={"color": OUTLIER, "width": 2}, marker={"size": 5, "color": OUTLIER},
    )  # fmt: skip


def _played(made: go.Figure, frames: list, controls: bool) -> go.Figure:
    made.frames = frames
    if not controls:
        return made
    now = {"mode": "immediate", "frame": {"duration": 0, "redraw": True}, "transition": {"duration": 0}}
    on = {"fromcurrent": True, "frame": {"duration": 600, "redraw": True}, "transition": {"duration": 0}}
    steps = [{"label": frame.name, "method": "animate", "args": [[frame.name], now]} for frame in frames]
    made.update_layout(
        sliders=[{"steps": steps, "currentvalue": {"prefix": "layer "}, "x": 0.12, "len": 0.88, "pad": {"t": 46}}],
        updatemenus=[
            {
                "type": "buttons", "x": 0.0, "y": 0.0, "xanchor": "left", "yanchor": "top", "pad": {"t": 62},
                "showactive": False, "buttons": [{"label": "Play", "method": "animate", "args": [None, on]}],
            }
        ],
    )  # fmt: skip
    return made
