"""How rows move between the clusters of two models, as a plotly figure."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from coterie.palette import OUTLIER, color, see_through
from coterie.plot.themes import figure, words
from coterie.wording import cluster_name


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
