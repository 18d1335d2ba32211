"""A fitted estimator in a notebook: below scikit-learn's diagram, the sizes of the clusters and a small map."""

from typing import Any

import numpy as np

from coterie.geometry.spread import principal_axes
from coterie.palette import color

WIDTH, HEIGHT, EDGE = 300, 200, 14
MAP_POINTS = 400
LISTED = 12


class NotebookMixin:
    """Adds the clusters to what notebooks show of a fitted estimator."""

    def _repr_html_inner(self) -> str:
        return super()._repr_html_inner() + summary_html(self)  # type: ignore[misc]

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle and "coterie-clusters" not in bundle["text/html"]:
            bundle["text/html"] += summary_html(self)
        return bundle


def summary_html(estimator: Any) -> str:
    """Sizes and a map of a fitted estimator as HTML; empty before the fit, and for labels that are not in memory."""
    labels = getattr(estimator, "labels_", None)
    if not isinstance(labels, np.ndarray) or not len(labels):
        return ""
    found, counts = np.unique(labels, return_counts=True)
    largest = int(counts.max())
    lines = []
    for label, count in list(zip(found.tolist(), counts.tolist()))[:LISTED]:
        bar = (
            f'<div style="background:{color(label)};height:10px;width:{max(1, round(120 * count / largest))}px"></div>'
        )
        name = "outliers" if label < 0 else f"cluster {label}"
        lines.append(f"<tr><td>{name}</td><td>{bar}</td><td>{count:,}</td></tr>")
    if len(found) > LISTED:
        lines.append(f"<tr><td>{len(found) - LISTED} more</td><td></td><td></td></tr>")
    inside = f"<table>{''.join(lines)}</table>{_map(estimator, labels)}"
    return f'<div class="coterie-clusters" style="display:flex;gap:20px;align-items:center">{inside}</div>'


def _map(estimator: Any, labels: np.ndarray) -> str:
    """The rows that a network read, or the centres with areas by size, on two principal axes."""
    read = getattr(estimator, "context_proba_", None)
    if read is not None:
        rows, shown = np.asarray(estimator.context_), np.asarray(read).argmax(axis=1)
        step = max(1, len(rows) // MAP_POINTS)
        rows, shown, sizes = rows[::step], shown[::step], np.full(len(rows[::step]), 2.5)
        what = "rows"
    else:
        rows = np.asarray(getattr(estimator, "cluster_centers_", np.empty((0, 0))), dtype=np.float64)
        if rows.ndim != 2 or not np.isfinite(rows).all():
            return ""
        shown = np.arange(len(rows))
        sizes = 4 + 14 * np.sqrt(np.bincount(labels[labels >= 0], minlength=len(rows))[: len(rows)] / len(labels))
        what = "centres"
    if len(rows) < 2:
        return ""
    places = _principal(rows)
    circles = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size:.1f}" fill="{color(label)}" fill-opacity="0.75"/>'
        for (x, y), size, label in zip(places.tolist(), sizes.tolist(), shown.tolist())
    )
    style = "border:1px solid #8886;border-radius:6px"
    return (
        f'<svg width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="Map of the {what}" style="{style}">'
        f"<title>{what} on two principal axes</title>{circles}</svg>"
    )


def _principal(rows: np.ndarray) -> np.ndarray:
    """(n, 2) positions inside the picture."""
    centred = rows - rows.mean(axis=0)
    unit = np.abs(centred).max() or 1.0
    axes = principal_axes(centred / unit)[0][:2]
    places = centred / unit @ axes.T
    if places.shape[1] < 2:
        places = np.column_stack([places, np.zeros(len(places))])
    low, high = places.min(axis=0), places.max(axis=0)
    spread = np.where(high > low, high - low, 1.0)
    room = np.array([WIDTH, HEIGHT]) - 2 * EDGE
    inside = (places - low) / spread
    inside[:, high <= low] = 0.5
    return EDGE + inside * room
