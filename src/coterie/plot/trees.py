"""The hierarchy above the clusters as a plotly figure."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from coterie.plot.marks import color, short
from coterie.plot.themes import figure, words
from coterie.wording import cluster_name


def dendrogram(
    merges: Sequence[tuple[int, int]],
    sizes: Sequence[int],
    *,
    called: Mapping[int, str] | None = None,
    theme: str = "light",
) -> go.Figure:
    """How clusters are joined, step by step, until one is left.

    Parameters
    ----------
    merges : sequence of (left, right)
        Merge i joins two parts: a cluster (its number), or ``len(sizes) + j`` for the earlier merge j.
    sizes : sequence of int
        Number of rows of each cluster.
    called : mapping of int to str, optional
        Names of clusters.
    theme : {"light", "dark"}
    """
    k = len(sizes)
    order = leaves(merges, k)
    place = {label: float(i) for i, label in enumerate(order)}
    height = {label: 0.0 for label in order}
    traces = []
    for step, (left, right) in enumerate(pair[:2] for pair in merges):
        top = step + 1.0
        line = go.Scatter(
            x=[height[left], top, top, height[right]], y=[place[left], place[left], place[right], place[right]],
            mode="lines", line={"color": "#8a94a3", "width": 2, "shape": "linear"}, hoverinfo="text",
            text=f"{k - step - 1} clusters remain" if k - step > 2 else "one cluster remains",
        )  # fmt: skip
        traces.append(line)
        place[k + step], height[k + step] = (place[left] + place[right]) / 2, top
    dots = go.Scatter(
        x=np.zeros(k), y=np.arange(k), mode="markers", hoverinfo="skip",
        marker={"size": 11, "color": [color(label) for label in order]},
    )  # fmt: skip
    names = [f"{words(short(cluster_name(label, called), 24))} ({sizes[label]:,})" for label in order]
    return figure(
        [*traces, dots],
        theme,
        showlegend=False,
        height=90 + 26 * k,
        xaxis={
            "title": {"text": "number of clusters that remain"}, "tickvals": list(range(k)),
            "ticktext": [str(k - i) if k <= 15 or i % 5 == 0 else "" for i in range(k)], "showgrid": False,
        },
        yaxis={"tickvals": list(range(k)), "ticktext": names, "autorange": "reversed", "showgrid": False},
    )  # fmt: skip


def leaves(merges: Sequence[tuple[int, int]], k: int) -> list[int]:
    """The clusters in an order in which no lines cross."""
    members = {label: [label] for label in range(k)}
    for step, (left, right) in enumerate(pair[:2] for pair in merges):
        members[k + step] = members.pop(left) + members.pop(right)
    return [label for part in members.values() for label in part]
