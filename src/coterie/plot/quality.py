"""The quality of a clustering as plotly figures: silhouettes, memberships, numbers of clusters."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from coterie.palette import OUTLIER, PALETTE, color, see_through
from coterie.plot.columns import labels_of
from coterie.plot.themes import digits, figure


def silhouette(values: np.ndarray, labels: np.ndarray) -> go.Figure:
    """The silhouettes of the rows: one area per cluster, with its rows in decreasing order.

    Parameters
    ----------
    values : array of shape (n,)
        The silhouette of every row, for example of :func:`sklearn.metrics.silhouette_samples`.
    labels : array of shape (n,)
        The cluster of every row.
    """
    values = np.asarray(values)
    labels = labels_of(labels, len(values))
    traces, ticks, base = [], [], 0.0
    gap = max(1.0, 0.02 * len(values))
    for label in np.unique(labels):
        own = np.sort(values[labels == label])[::-1]
        y = base + np.arange(len(own) + 1)
        x = np.append(own, own[-1])
        traces.append(
            go.Scatter(
                x=digits(np.concatenate([[0], x, [0]])), y=digits(np.concatenate([y[:1], y, y[-1:]])),
                fill="toself", mode="lines", line={"width": 0.5, "color": color(label), "shape": "hv"},
                name=f"cluster {label}", fillcolor=see_through(color(label), 0.85), hoverinfo="skip",
            )
        )  # fmt: skip
        ticks.append((base + len(own) / 2, f"cluster {label}"))
        base += len(own) + gap
    mean = float(values.mean())
    line = {"type": "line", "x0": mean, "x1": mean, "yref": "paper", "y0": 0, "y1": 1}
    return figure(
        traces,
        showlegend=False,
        height=int(np.clip(160 + 45 * len(ticks), 260, 900)),
        shapes=[line | {"line": {"color": OUTLIER, "dash": "dash", "width": 1.5}}],
        xaxis={"title": {"text": "silhouette (dashed: mean)"}, "range": [min(-0.2, float(values.min()) - 0.05), 1]},
        yaxis={
            "tickvals": [t[0] for t in ticks], "ticktext": [t[1] for t in ticks], "autorange": "reversed",
            "showgrid": False,
        },
    )  # fmt: skip


def memberships(shares: np.ndarray, labels: np.ndarray) -> go.Figure:
    """A histogram of the largest probability of every row, with one colour per cluster.

    Parameters
    ----------
    shares : array of shape (n, k)
        The probabilities of the clusters, as ``predict_proba`` gives them.
    labels : array of shape (n,)
        The cluster of every row.
    """
    labels = labels_of(labels, len(shares))
    largest = np.asarray(shares).max(axis=1)
    edges = np.linspace(0, 1, 21)
    mids = (edges[1:] + edges[:-1]) / 2
    traces = []
    for label in np.unique(labels):
        counts, _ = np.histogram(largest[labels == label], edges)
        traces.append(
            go.Bar(
                x=digits(mids), y=counts, width=0.05, marker={"color": color(label), "line": {"width": 0}},
                name=f"cluster {label}", hovertemplate=f"cluster {label}<br>%{{x}}: %{{y}} rows<extra></extra>",
            )
        )  # fmt: skip
    return figure(
        traces,
        barmode="stack",
        bargap=0.05,
        showlegend=False,
        xaxis={"title": {"text": "probability of the own cluster"}, "range": [0, 1]},
        yaxis={"title": {"text": "rows"}},
    )


def candidates(ks: Sequence[int], scores: Sequence[float], chosen: int, criterion: str) -> go.Figure:
    """The score of each number of clusters; a large dot marks the chosen one, if it has a score.

    Parameters
    ----------
    ks : sequence of int
        The numbers of clusters that were tried.
    scores : sequence of float
        Their scores.
    chosen : int
        The number of clusters that was chosen.
    criterion : str
        Name of the score, the title of the vertical axis.
    """
    ks, scores = list(ks), [float(score) for score in scores]
    marked = [i for i, k in enumerate(ks) if k == chosen]
    line = go.Scatter(
        x=ks, y=digits(scores), mode="lines+markers", line={"color": PALETTE[0], "width": 2}, marker={"size": 7},
        hovertemplate="%{x} clusters: %{y:.3f}<extra></extra>",
    )  # fmt: skip
    dot = go.Scatter(
        x=[chosen] * len(marked), y=digits([scores[i] for i in marked]), mode="markers", hoverinfo="skip",
        marker={"size": 16, "color": PALETTE[5], "line": {"width": 3, "color": "#ffffff"}},
    )  # fmt: skip
    return figure(
        [line, dot],
        showlegend=False,
        xaxis={"title": {"text": "number of clusters"}, "dtick": 1, "showgrid": False},
        yaxis={"title": {"text": criterion}},
    )
