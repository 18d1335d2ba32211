"""The figures and the rows of the report, by the names that its template report.html uses."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from coterie import plot
from coterie.explain.certainty import count_probabilities
from coterie.explain.differences import Portrait
from coterie.explain.hierarchy import merges_of
from coterie.explain.page import Place
from coterie.explain.quality import OtherCounts, Silhouettes
from coterie.explain.replay import Replay
from coterie.plot.columns import Column
from coterie.plot.view import View
from coterie.tabular.clustered_table import ClusteredTable
from coterie.wording import short

WORDS = 3  # columns that were not used, beside rows
FAR_ROWS = 8
MOST_BOXES = 12  # clusters whose boxes can be told apart

Draw = Callable[..., Place]  # (figure, what it shows, height) -> the place for it


def where(clustered: ClusteredTable, view: Any, draw: Draw) -> dict[str, Any]:
    """The map: one or two columns in their own units, more as the estimator saw them."""
    X, centers, names = clustered.map_rows(view)
    seen = View(X, names, view)
    index = clustered.table.frame.index
    row_names = None if isinstance(index, range) else index
    called = clustered.names
    figure = plot.clusters(X, clustered.labels, centers, names, view=seen, row_names=row_names, called=called)
    return {"map": seen, "map_place": draw(figure, "Map of the rows, coloured by cluster", 520)}


def differences(clustered: ClusteredTable, draw: Draw) -> dict[str, Any]:
    """The heat map of means, boxes of few clusters, and the hierarchy if there is one."""
    fields, called = clustered.fields, clustered.names
    figure = plot.profile(fields, clustered.labels, scale_bar=False, called=called)
    heat, height = figure.data[0], int(figure.layout.height)
    shown, limit = len(heat.y), f"{heat.zmax:g}"
    place = draw(figure, "Heat map of the means of the columns in each cluster", height)
    said: dict[str, Any] = {"distributions": None, "hierarchy": None}
    said["profile"] = {"place": place, "limit": limit, "shown": shown, "hidden": len(fields) - shown}
    if clustered.k <= MOST_BOXES:
        figure = plot.distributions(fields, clustered.labels, called=called)
        label = "Distributions of the columns in each cluster"
        said["distributions"] = draw(figure, label, int(figure.layout.height))
    if len(merges := merges_of(clustered)) > 1:
        figure = plot.dendrogram([merge[:2] for merge in merges], clustered.sizes.tolist(), called=called)
        said["hierarchy"] = draw(figure, "Hierarchy of the clusters", int(figure.layout.height))
    return said


def rows_in(clustered: ClusteredTable) -> Callable[..., tuple[list[str], list[list[str]]]]:
    """A function that gives some rows as they are in the table of the user, with heads.

    Columns that were not used come first, then the given columns; ``marks`` are the distances of the rows.
    """
    frame, words = clustered.table.frame, clustered.unused_columns[:WORDS]
    own = {one.name: one for one in clustered.fields}

    def rows_of(rows: list[int], columns: list[str], marks: Sequence[str] = ()) -> tuple[list[str], list[list[str]]]:
        heads = ["row", *["distance"] * bool(marks), *(short(name, 24) for name in (*words, *columns))]
        body = []
        for place, row in enumerate(rows):
            said = [short(frame[name].iloc[row], 30) for name in words]
            values = [_cell(clustered, own[name], row) for name in columns]
            body.append([clustered.row_name(row), *marks[place : place + 1], *said, *values])
        return heads, body

    return rows_of


def _cell(clustered: ClusteredTable, one: Column, row: int) -> str:
    """The cell of the user's table if it has this column, else the value that was clustered."""
    table = clustered.table
    if table.is_frame and one.name in table.names:
        value = table.frame[one.name].iloc[row]
        if isinstance(value, str) or one.levels is not None:
            return short(value, 30)
    return one.show(clustered.values[row, one.first])


def certainty(clustered: ClusteredTable, separation: Silhouettes | None, shares: Any, draw: Draw) -> dict[str, Any]:
    """Silhouettes, and probabilities where the estimator gives them."""
    said: dict[str, Any] = {"separation": separation, "memberships": None}
    if separation is not None:
        figure = plot.silhouette(separation.values, clustered.labels[separation.rows])
        said["silhouettes"] = draw(figure, "Silhouettes of the rows, per cluster", 0)
    if shares is not None:
        _, values = shares
        place = draw(plot.memberships(values, values.argmax(axis=1)), "Probability of the own cluster", 300)
        said["memberships"] = {"doubtful": float((values.max(axis=1) < 0.6).mean()), "place": place}
    return said


def number_of_clusters(clustered: ClusteredTable, counts: OtherCounts | None, draw: Draw) -> dict[str, Any]:
    """How probable, or how good, other numbers of clusters are."""
    proba = count_probabilities(clustered)
    said: dict[str, Any] = {"proba": proba, "counts": counts, "count_place": None}
    if proba:
        ks = sorted(proba)
        figure = plot.candidates(ks, [proba[k] for k in ks], clustered.k, "probability")
        said["count_place"] = draw(figure, "Probability of each number of clusters", 280)
    elif counts is not None:
        figure = plot.candidates(counts.ks, counts.scores, counts.chosen, counts.criterion)
        said["count_place"] = draw(figure, f"{counts.criterion} for each number of clusters", 280)
    return said


def far_rows(clustered: ClusteredTable, found: list[Portrait]) -> tuple[list[int], list[str], list[str]]:
    """Outliers, or the rows that are farthest from their centre: rows, columns to show, and distances."""
    distance, out = clustered.distances(), clustered.outliers
    if len(out):
        far = out[np.argsort(-distance[out])][:FAR_ROWS]
        return far.tolist(), _most_telling(found), [f"{distance[i]:.3g}" for i in far]
    members = [clustered.labels == j for j in range(len(clustered.sizes))]
    usual = np.array([np.median(distance[own]) if own.any() else 0 for own in members])
    times = distance / np.where(usual > 0, usual, np.inf)[clustered.labels] if clustered.k else distance
    far = np.argsort(-times)[:FAR_ROWS]
    marks = [f"{times[i]:.1f} × ({clustered.name(clustered.labels[i])})" for i in far]
    return far.tolist(), _most_telling(found), marks


def _most_telling(found: list[Portrait], count: int = 6) -> list[str]:
    best: dict[str, float] = {}
    for one in found:
        for trait in one.traits:
            best[trait.column] = max(best.get(trait.column, 0.0), trait.strength)
    return sorted(best, key=lambda name: -best[name])[:count]


def layers(clustered: ClusteredTable, played: Replay | str, view: Any, draw: Draw) -> list[Place]:
    """The centres among the points, the attention map and the objective, which are played together."""
    if isinstance(played, str):
        return []
    X, steps, names = clustered.space[played.rows], played.layers, clustered.point_names
    if view == "umap" or not (isinstance(view, str) or clustered.same_columns):
        view = "auto"  # the centres move in the space of the estimator
    moving = plot.trajectory(X, steps, names, view=View(X, names, view), controls=False)
    attending = plot.attention(X, steps, controls=False)
    return [
        draw(moving, "The centres moving among the points", 460, group="layers"),
        draw(attending, "Attention map: which points attend to each centre", 230, group="layers"),
        draw(plot.objective(X, steps, controls=False), "The objective in every layer", 230, group="layers"),
    ]
