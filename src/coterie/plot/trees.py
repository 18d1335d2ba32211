"""The hierarchy above the clusters as a plotly figure."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from scipy.cluster import hierarchy

from coterie.palette import color
from coterie.plot.themes import figure, words
from coterie.wording import cluster_name, short


def dendrogram(
    merges: Sequence[tuple[int, int]], sizes: Sequence[int], *, called: Mapping[int, str] | None = None
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
    """
    k = len(sizes)
    steps = np.arange(1.0, k)
    drawn = hierarchy.dendrogram(np.column_stack([merges, steps, np.ones(k - 1)]), no_plot=True)
    order = drawn["leaves"]
    traces = [
        go.Scatter(
            x=x, y=(np.array(y) - 5) / 10,  # the leaves of scipy are at 5, 15, 25, ...
            mode="lines", line={"color": "#8a94a3", "width": 2, "shape": "linear"}, hoverinfo="text",
            text=f"{k - x[1]:.0f} clusters remain" if x[1] < k - 1 else "one cluster remains",
        )
        for y, x in sorted(zip(drawn["icoord"], drawn["dcoord"]), key=lambda line: line[1][1])
    ]  # fmt: skip
    dots = go.Scatter(
        x=np.zeros(k), y=np.arange(k), mode="markers", hoverinfo="skip",
        marker={"size": 11, "color": [color(label) for label in order]},
    )  # fmt: skip
    names = [f"{words(short(cluster_name(label, called), 24))} ({sizes[label]:,})" for label in order]
    return figure(
        [*traces, dots],
        showlegend=False,
        height=90 + 26 * k,
        xaxis={
            "title": {"text": "number of clusters that remain"}, "tickvals": list(range(k)),
            "ticktext": [str(k - i) if k <= 15 or i % 5 == 0 else "" for i in range(k)], "showgrid": False,
        },
        yaxis={"tickvals": list(range(k)), "ticktext": names, "autorange": "reversed", "showgrid": False},
    )  # fmt: skip
