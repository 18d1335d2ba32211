"""What the sections of the report say and show, by the names that the template report.html uses."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from coterie import plot
from coterie.estimators.capabilities import parameters
from coterie.explain.certainty import count_probabilities, outlier_rows
from coterie.explain.differences import Portrait, Trait
from coterie.explain.hierarchy import merges_of
from coterie.explain.page import Place, bar, chip
from coterie.explain.quality import OtherCounts, Silhouettes, Stability
from coterie.explain.replay import Replay
from coterie.plot.frames import Column
from coterie.plot.marks import short
from coterie.plot.view import View
from coterie.tabular.clustered_table import ClusteredTable
from coterie.wording import number, plural

SHOWN_TRAITS = 5
ROW_COLUMNS = 8
WORDS = 3  # columns that were not used, beside rows
FAR_ROWS = 8
MOST_BOXES = 12  # clusters whose boxes can be told apart

Draw = Callable[..., Place]  # (figure, what it shows, height) -> the place for it


def overview(
    clustered: ClusteredTable, separation: Silhouettes | None, stable: Stability | str
) -> dict[str, str | list[tuple[str, str]]]:
    """What was done, and the most important numbers."""
    source = clustered.run.source
    rows = f"the {clustered.n:,} rows" + (f" of {source}" if source is not None else "")
    names = clustered.columns
    by = f"the column {names[0]}" if len(names) == 1 else f"{len(names):,} columns"
    told = f"{type(clustered.estimator).__name__} divided {rows} into {plural(clustered.k, 'cluster')}, using {by}"
    told += f", which {'was' if len(names) == 1 else 'were'} scaled." if clustered.scaled else "."
    marked = outlier_rows(clustered)
    outliers = 0 if marked is None else int(marked.sum())
    if outliers:
        told += f" {plural(outliers, 'row')} {'is an outlier' if outliers == 1 else 'are outliers'}."
    counts = [(clustered.n, "row"), (len(names), "column"), (clustered.k, "cluster"), (outliers, "outlier")]
    facts = [(word if count == 1 else f"{word}s", f"{count:,}") for count, word in counts if count]
    certainty = getattr(clustered.estimator, "certainty_", None)
    if certainty is not None and clustered.k > 1:
        facts.append(("mean certainty", f"{np.mean(certainty):.2f}"))
    if separation is not None:
        facts.append((f"{separation.words} separation", f"{separation.mean:.2f}"))
    if isinstance(stable, Stability):
        facts.append((f"{stable.words} in subsamples", f"{stable.mean:.2f}"))
    return {"told": told, "facts": facts}


def method(clustered: ClusteredTable) -> list[tuple[str, str]]:
    """The data, the algorithm and its settings."""
    estimator, names, seconds = clustered.estimator, clustered.columns, clustered.run.seconds
    shown = ", ".join(short(name) for name in names[:40]) + (f" and {len(names) - 40} more" if len(names) > 40 else "")
    scaled = "unchanged"
    if clustered.scaled:
        steps = [] if clustered.pipeline is None else clustered.pipeline.steps[:-1]
        prepared = "prepared by " + ", ".join(type(step).__name__ for _, step in steps)
        scaled = prepared if steps else "scaled before clustering; this report shows them in their original units"
    of_scaled = " (of the scaled values)" if clustered.scaled else ""
    rows = {
        "Data": clustered.run.source,
        "Rows": f"{clustered.n:,}",
        "Columns used": f"{len(names):,}: {shown}",
        "Values": scaled,
        "Algorithm": type(estimator).__name__,
        "Settings": _settings(estimator),
        "Iterations": str(estimator.n_iter_) if hasattr(estimator, "n_iter_") else None,
        "Objective": number(estimator.inertia_) + of_scaled if hasattr(estimator, "inertia_") else None,
        "Signal-to-noise ratio": f"{estimator.snr_db_:.1f} dB" if hasattr(estimator, "snr_db_") else None,
        "Time": None if seconds is None else f"{seconds:.2f} s, with reading and encoding",
    }
    return [(name, value) for name, value in rows.items() if value is not None]


def sizes(clustered: ClusteredTable) -> list[list[Any]]:
    """One row per cluster, then the outliers."""
    counts = [
        *((j, int(clustered.sizes[j])) for j in clustered.ids),
        *[(-1, len(clustered.outliers))] * bool(len(clustered.outliers)),
    ]
    largest = max(1, *(size for _, size in counts))
    return [
        [chip(label, clustered.name(label)), bar(label, size / largest), f"{size:,}", f"{size / clustered.n:.1%}"]
        for label, size in counts
    ]


def where(clustered: ClusteredTable, view: Any, draw: Draw) -> dict[str, Any]:
    """The map: one or two columns in their own units, more as the estimator saw them."""
    X, centers, names = clustered.map_rows(view)
    seen = View(X, names, view)
    index = clustered.table.frame.index
    row_names = None if isinstance(index, range) else index
    called = clustered.names
    figure = plot.clusters(X, clustered.labels, centers, names, view=seen, row_names=row_names, called=called)
    note = f"{len(seen.rows):,} of {clustered.n:,} rows are shown."
    if len(seen.rows) == clustered.n:
        note = f"All {clustered.n:,} rows are shown."
    elif seen.linear:
        note = f"All {clustered.n:,} rows are counted in small squares: a stronger colour means more rows."
    how = ""
    if not seen.linear:
        how = " UMAP preserves neighbourhoods; distances between separate groups are not meaningful."
    elif seen.titles[0].startswith("principal"):
        how = (
            " The map shows the two directions with the largest variance: groups that overlap here"
            " may be separate in other directions."
        )
    discs = " Numbered circles are the centres." if seen.dims == 2 else " Dotted lines are the centres."
    return {"place": draw(figure, "Map of the rows, coloured by cluster", 520), "note": f"{note}{discs}{how}"}


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


def trait_rows(one: Portrait) -> list[list[str]]:
    """The strongest traits of a cluster, for its card."""
    return [
        [trait.column, trait.here_text, trait.elsewhere_text, f"{trait.away:+.1f}", _compared(trait)]
        for trait in one.traits[:SHOWN_TRAITS]
    ]


def trait_columns(one: Portrait) -> list[str]:
    """The columns that are shown of the rows of a cluster."""
    return [trait.column for trait in one.traits[:ROW_COLUMNS]]


def _compared(trait: Trait) -> str:
    if trait.level is not None:
        return f"{trait.level} {'more' if trait.here >= trait.elsewhere else 'less'} often"
    share = max(trait.above, 1 - trait.above)
    return f"{'higher' if trait.above >= 0.5 else 'lower'} in {min(share, 0.999) if share < 1 else 1:.0%} of pairs"


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
        said["silhouette_rows"] = [
            [chip(j, clustered.name(j)), f"{mean:.2f}", f"{negative:.0%}", clustered.name(near)]
            for j, (mean, negative, near) in separation.by_cluster.items()
        ]
    if shares is not None:
        _, values = shares
        place = draw(plot.memberships(values, values.argmax(axis=1)), "Probability of the own cluster", 300)
        said["memberships"] = {"doubtful": float((values.max(axis=1) < 0.6).mean()), "place": place}
    return said


def recovery(clustered: ClusteredTable, stable: Stability) -> list[list[Any]]:
    """How well every cluster recurs."""
    return [
        [
            chip(j, clustered.name(j)), bar(j, share), f"{share:.0%}",
            "yes" if share >= 0.85 else "partly" if share >= 0.6 else "no",
        ]
        for j, share in stable.recovery.items()
    ]  # fmt: skip


def number_of_clusters(clustered: ClusteredTable, counts: OtherCounts | None, draw: Draw) -> dict[str, Any] | None:
    """How probable, or how good, other numbers of clusters are."""
    proba = count_probabilities(clustered)
    about = f"This report is about {plural(clustered.k, 'cluster')}"
    if proba:
        own = f" (probability {proba[clustered.k]:.2f})." if clustered.k in proba else "."
        ks = sorted(proba)
        figure = plot.candidates(ks, [proba[k] for k in ks], clustered.k, "probability")
        text = f"The network gives every number of clusters a probability. {about}{own}"
        return {"text": text, "place": draw(figure, "Probability of each number of clusters", 280)}
    if counts is None:
        return None
    figure = plot.candidates(counts.ks, counts.scores, counts.chosen, counts.criterion)
    better = "" if counts.best == counts.chosen else f" The best {counts.criterion} is reached with {counts.best}."
    place = draw(figure, f"{counts.criterion} for each number of clusters", 280)
    return {"text": f"{counts.note} This report is about {plural(counts.chosen, 'cluster')}.{better}", "place": place}


def outliers(clustered: ClusteredTable, found: list[Portrait]) -> dict[str, Any]:
    """The outliers, or the rows that are farthest from their centre."""
    distance, out = clustered.distances(), clustered.outliers
    if len(out):
        far = out[np.argsort(-distance[out])][:FAR_ROWS]
        marks = [f"{distance[i]:.3g}" for i in far]
        caption = "The farthest outliers"
        belong = "belongs" if len(out) == 1 else "belong"
        text = (
            f"{plural(len(out), 'row')} ({len(out) / clustered.n:.1%}) probably {belong} to no cluster. The table "
            "shows those that are farthest from the nearest centre."
        )
    else:
        members = [clustered.labels == j for j in range(len(clustered.sizes))]
        usual = np.array([np.median(distance[own]) if own.any() else 0 for own in members])
        times = distance / np.where(usual > 0, usual, np.inf)[clustered.labels] if clustered.k else distance
        far = np.argsort(-times)[:FAR_ROWS]
        marks = [f"{times[i]:.1f} × ({clustered.name(clustered.labels[i])})" for i in far]
        caption = "The rows that are farthest from their centre"
        text = (
            f"{type(clustered.estimator).__name__} assigns every row to a cluster. The table shows the rows that are "
            "farthest from their centre; distances are multiples of the median distance in the cluster."
        )
    return {"text": text, "rows": far.tolist(), "columns": _most_telling(found), "marks": marks, "caption": caption}


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


def _settings(estimator: Any) -> str:
    given = {name: value for name, value in parameters(estimator).items() if value is not None and name != "verbose"}
    told = [
        f"{name} {short(value, 60)}" if not isinstance(value, np.ndarray) else f"{name} passed as an array"
        for name, value in given.items()
    ]
    return ", ".join(told) or "defaults"
