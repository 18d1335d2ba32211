"""How clusters relate, as plotly figures: the hierarchy above them, and the rows that move between two models."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from scipy.cluster import hierarchy

from coterie.palette import OUTLIER, color, see_through
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


def flows(
    counts: np.ndarray,
    old: Sequence[int],
    new: Sequence[int],
    *,
    colors: Mapping[int, int] | None = None,
    called_before: Mapping[int, str] | None = None,
    called: Mapping[int, str] | None = None,
) -> go.Figure:
    """A Sankey diagram.

    Parameters
    ----------
    counts : array of shape (len(old) + 1, len(new) + 1)
        Numbers of rows. The last row and column are rows that fit no cluster.
    old, new : sequence of int
        The ids of the clusters on the left and on the right.
    colors : mapping of int to int, optional
        The clusters on the left whose colours those on the right have.
    called_before, called : mapping of int to str, optional
        Names of the clusters on the left and on the right.
    """
    left, right = [*old, -1], [*new, -1]
    sides = ((left, called_before or {}, counts.sum(axis=1)), (right, called or {}, counts.sum(axis=0)))
    names = [
        words(f"{'no cluster' if label < 0 else cluster_name(label, known)} ({size:,})")
        for labels, known, sizes in sides
        for label, size in zip(labels, sizes.tolist())
    ]
    partner = colors or {}
    inks = [color(label) if label >= 0 else OUTLIER for label in [*left, *(partner.get(one, one) for one in right)]]
    sources, targets = np.nonzero(counts)
    return figure(
        [
            go.Sankey(
                node={"label": names, "color": inks, "pad": 14, "thickness": 16, "line": {"width": 0}},
                link={
                    "source": sources.tolist(), "target": (targets + len(left)).tolist(),
                    "value": counts[sources, targets].tolist(),
                    "color": [see_through(inks[i], 0.35) for i in sources],
                },
            )
        ],
        height=120 + 36 * max(len(left), len(right)),
    )  # fmt: skip
