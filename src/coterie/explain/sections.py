"""The sections of the report, from the summary to the code that reproduces the clusters."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from coterie import plot
from coterie.estimators.capabilities import parameters
from coterie.explain.cautions import Caution
from coterie.explain.certainty import outlier_rows
from coterie.explain.differences import Portrait, Trait
from coterie.explain.fields import CATEGORY, Field, fields_of, own_frame
from coterie.explain.hierarchy import merges_of
from coterie.explain.markup import Html, join, table, tag
from coterie.explain.quality import Silhouettes, Stability
from coterie.explain.replay import Replay
from coterie.explain.verdict import Verdict
from coterie.plot.marks import PALETTE, color, short
from coterie.plot.view import View
from coterie.tabular.clustered_table import ClusteredTable
from coterie.wording import number, plural

CARDS = 40
OPEN_CARDS = 8
SHOWN_TRAITS = 5
ROW_COLUMNS = 8
FAR_ROWS = 8
MOST_BOXES = 12  # clusters whose boxes can be told apart

Draw = Callable[..., Html]  # (figure, what it shows, height) -> the place for it


def as_cautions(notes: Sequence[str]) -> list[Caution]:
    return [Caution(note, "") for note in notes]


def cautions_box(found: list[Caution]) -> Html:
    if not found:
        return tag("p", "There are no warnings about the data or the fit.", class_="calm")
    items = [
        tag("li", tag("strong", one.what), f" {one.advice}") if one.advice else tag("li", one.what) for one in found
    ]
    return tag("ul", items, class_="cautions")


def overview(
    clustered: ClusteredTable, found: list[Portrait], separation: Silhouettes | None, stable: Stability | str
) -> Html:
    """What was done, the most important numbers, and one line per cluster."""
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
    counts = [
        (clustered.n, "row"),
        (len(names), "column"),
        (clustered.k, "cluster"),
        (outliers, "outlier"),
    ]
    facts = [(word if count == 1 else f"{word}s", f"{count:,}") for count, word in counts if count]
    certainty = getattr(clustered.estimator, "certainty_", None)
    if certainty is not None and clustered.k > 1:
        facts.append(("mean certainty", f"{np.mean(certainty):.2f}"))
    if separation is not None:
        facts.append((f"{separation.words} separation", f"{separation.mean:.2f}"))
    if isinstance(stable, Stability):
        facts.append((f"{stable.words} in subsamples", f"{stable.mean:.2f}"))
    strip = tag("dl", [tag("div", tag("dt", name), tag("dd", value)) for name, value in facts], class_="facts")
    lines = [
        tag("li", chip(one.label), tag("strong", _title(clustered, one.label)), f" ({one.share:.0%}): {one.in_words()}")
        for one in (found[:12] if clustered.k > 1 else [])
    ]
    more = tag("p", f"{len(found) - 12} more clusters are described below.") if len(found) > 12 else None
    return join(_verdict(clustered.verdict), tag("p", told), strip, tag("ul", lines, class_="plain"), more)


def _verdict(verdict: Verdict) -> Html:
    words, _, rest = verdict.text.partition(".")
    return tag("p", tag("strong", f"{words}."), rest, class_="verdict", data_verdict=verdict.words)


def method(clustered: ClusteredTable) -> Html:
    """The data, the algorithm and its settings."""
    source, seconds = clustered.run.source, clustered.run.seconds
    estimator = clustered.estimator
    names = clustered.columns
    shown = ", ".join(short(name) for name in names[:40]) + (f" and {len(names) - 40} more" if len(names) > 40 else "")
    scaled = "unchanged"
    if clustered.scaled:
        scaled = "prepared by " + ", ".join(type(step).__name__ for _, step in clustered.pipeline.steps[:-1]) if (
            clustered.pipeline is not None and len(clustered.pipeline.steps) > 1
        ) else "scaled before clustering; this report shows them in their original units"  # fmt: skip
    rows: list[list[Any]] = []
    if source is not None:
        rows.append(["Data", source])
    rows += [
        ["Rows", f"{clustered.n:,}"],
        ["Columns used", f"{len(names):,}: {shown}"],
        ["Values", scaled],
        ["Algorithm", type(estimator).__name__],
        ["Settings", _settings(estimator)],
    ]
    if hasattr(estimator, "n_iter_"):
        rows.append(["Iterations", f"{estimator.n_iter_}"])
    if hasattr(estimator, "inertia_"):
        rows.append(
            ["Objective", f"{number(estimator.inertia_)}" + (" (of the scaled values)" if clustered.scaled else "")]
        )
    if hasattr(estimator, "snr_db_"):
        rows.append(["Signal-to-noise ratio", f"{estimator.snr_db_:.1f} dB"])
    if seconds is not None:
        rows.append(["Time", f"{seconds:.2f} s, with reading and encoding"])
    body = [tag("tr", tag("th", name, scope="row"), tag("td", value)) for name, value in rows]
    return tag("table", tag("tbody", body), class_="done")


def sizes(clustered: ClusteredTable) -> Html:
    largest = max(int(clustered.sizes.max(initial=1)), len(clustered.outliers), 1)
    counts = [(j, int(size)) for j, size in enumerate(clustered.sizes)]
    counts += [(-1, len(clustered.outliers))] * bool(len(clustered.outliers))
    rows = []
    for label, size in counts:
        bar = tag("span", class_="bar", style=f"width:{100 * size / largest:.1f}%;background:{color(label)}")
        rows.append(
            [
                join(chip(label), clustered.name(label)),
                tag("span", bar, class_="track"),
                f"{size:,}",
                f"{size / clustered.n:.1%}",
            ]
        )
    return table(["", "", "rows", "share"], rows, caption="Number of rows per cluster", text_columns=2)


def where(clustered: ClusteredTable, view: Any, draw: Draw) -> Html:
    """The map: one or two columns in their own units, more as the estimator saw them."""
    X, centers, names = clustered.map_rows(view)
    seen = View(X, names, view)
    index = clustered.table.frame.index
    row_names = None if isinstance(index, range) else index
    called = clustered.names
    figure = plot.clusters(X, clustered.labels, centers, names, view=seen, row_names=row_names, called=called)
    drawn = len(seen.rows)
    if drawn == clustered.n:
        note = f"All {clustered.n:,} rows are shown."
    elif seen.linear:
        note = f"All {clustered.n:,} rows are counted in small squares: a stronger colour means more rows."
    else:
        note = f"{drawn:,} of {clustered.n:,} rows are shown."
    how = {True: "", False: " UMAP preserves neighbourhoods; distances between separate groups are not meaningful."}[
        seen.linear
    ]
    if seen.linear and seen.titles[0].startswith("principal"):
        how = (
            " The map shows the two directions with the largest variance: groups that overlap here"
            " may be separate in other directions."
        )
    discs = " Numbered circles are the centres." if seen.dims == 2 else " Dotted lines are the centres."
    text = f"{note}{discs}{how} Click a name in the legend to hide its cluster; double-click to show it alone."
    return join(draw(figure, "Map of the rows, coloured by cluster", 520), tag("p", text, class_="note"))


def differences(clustered: ClusteredTable, found: list[Portrait], draw: Draw) -> Html:
    frame, called = own_frame(clustered), clustered.names
    figure = plot.profile(frame, clustered.labels, scale_bar=False, called=called)
    hidden = frame.shape[1] - len(figure.data[0].y)
    note = (
        "The cells show the mean of a column in each cluster, or the most frequent value of a category with its share. "
    )
    note += "Orange is above the mean of all rows and blue is below; the colour is strongest at "
    note += f"{figure.data[0].zmax:g} standard deviations."
    if hidden > 0:
        note += f" The {len(figure.data[0].y)} columns that differ most are shown; {hidden} are not."
    heat = draw(figure, "Heat map of the means of the columns in each cluster", int(figure.layout.height))
    cards = [_card(clustered, one, is_open=len(found) <= OPEN_CARDS) for one in found[:CARDS]]
    more = tag("p", f"{len(found) - CARDS} more clusters are not shown here.") if len(found) > CARDS else None
    return join(
        heat, tag("p", note, class_="note"), _distributions(frame, clustered, draw), _hierarchy(clustered, draw),
        tag("div", cards, class_="cards"), more,
    )  # fmt: skip


def _distributions(frame: Any, clustered: ClusteredTable, draw: Draw) -> Html | None:
    if clustered.k > MOST_BOXES:
        return None
    figure = plot.distributions(frame, clustered.labels, called=clustered.names)
    note = (
        "Boxes reach from the lower to the upper quartile, with the median inside; whiskers from the 5th to the 95th "
    )
    note += "percentile. Bars show the shares of the values of a category."
    drawn = draw(figure, "Distributions of the columns in each cluster", int(figure.layout.height))
    return join(tag("h3", "Distributions"), drawn, tag("p", note, class_="note"))


def _hierarchy(clustered: ClusteredTable, draw: Draw) -> Html | None:
    merges = merges_of(clustered)
    if len(merges) < 2:
        return None
    figure = plot.dendrogram([merge[:2] for merge in merges], clustered.sizes.tolist(), called=clustered.names)
    note = (
        "Clusters that are joined first are the most similar. A saved model can be cut at another number of clusters: "
    )
    note += "coterie cluster FILE --from MODEL -k 5."
    drawn = draw(figure, "Hierarchy of the clusters", int(figure.layout.height))
    return join(tag("h3", "Hierarchy of the clusters"), drawn, tag("p", note, class_="note"))


def _title(clustered: ClusteredTable, label: int) -> str:
    """A name as it was given, or "Cluster 0"."""
    return clustered.names.get(label, f"Cluster {label}")


def _card(clustered: ClusteredTable, one: Portrait, *, is_open: bool) -> Html:
    title = tag(
        "summary",
        chip(one.label),
        tag("h3", _title(clustered, one.label)),
        tag("span", f"{plural(one.size, 'row')}, {one.share:.1%}"),
    )
    rows = [
        [trait.column, trait.here_text, trait.elsewhere_text, f"{trait.away:+.1f}", _compared(trait)]
        for trait in one.traits[:SHOWN_TRAITS]
    ]
    name = clustered.name(one.label)
    traits = table(
        ["column", "in the cluster", "in other rows", "difference (std.)", "compared with other rows"],
        rows,
        caption=f"The columns that distinguish {name}: means, or shares of values",
    )
    mentions = [
        tag("li", f"{column}: {value} in {here:.0%} of its rows ({everywhere:.0%} of all rows)")
        for column, value, here, everywhere in one.mentions[:4]
    ]
    outside = join(tag("p", "Columns that were not used:", class_="note"), tag("ul", mentions)) if mentions else None
    columns = [trait.column for trait in one.traits[:ROW_COLUMNS]]
    typical = _rows(clustered, one.typical, columns, f"Most typical rows of {name}")
    border = _rows(clustered, one.borderline, columns, f"Borderline rows of {name}") if one.borderline else None
    attributes: dict[str, Any] = {"class_": "card", "style": f"--own:{color(one.label)}"}
    if is_open:
        attributes["open"] = "open"
    told = one.in_words()
    return tag(
        "details",
        title,
        tag("p", f"{told[0].upper()}{told[1:]}.", class_="told"),
        tag("p", f"Rule: {one.rule.text}.") if one.rule is not None else None,
        tag("div", traits, tag("div", outside), class_="beside") if outside else traits,
        typical,
        border,
        **attributes,
    )


def _compared(trait: Trait) -> str:
    if trait.level is not None:
        return f"{trait.level} {'more' if trait.here >= trait.elsewhere else 'less'} often"
    return _pairs(trait.above)


def _pairs(above: float) -> str:
    share = max(above, 1 - above)
    return f"{'higher' if above >= 0.5 else 'lower'} in {min(share, 0.999) if share < 1 else 1:.0%} of pairs"


def _rows(clustered: ClusteredTable, rows: list[int], columns: list[str], caption: str, extra: Any = None) -> Html:
    """Rows as they are in the table of the user: columns that were not used first, then the given columns."""
    frame, words = clustered.table.frame, clustered.unused_columns[:3]
    own = {one.name: one for one in fields_of(clustered)}
    heads = ["row", *([extra[0]] if extra else []), *(short(name, 24) for name in (*words, *columns))]
    body = []
    for i, row in enumerate(rows):
        said = [short(frame[name].iloc[row], 30) for name in words]
        values = [_cell(clustered, own[name], row) for name in columns]
        body.append([clustered.row_name(row), *([extra[1][i]] if extra else []), *said, *values])
    return table(heads, body, caption=caption, text_columns=1 + bool(extra) + len(words))


def _cell(clustered: ClusteredTable, one: Field, row: int) -> str:
    """The cell of the user's table if it has this column, else the value that was clustered."""
    table = clustered.table
    if table.is_frame and one.name in table.names:
        value = table.frame[one.name].iloc[row]
        if isinstance(value, str) or one.kind == CATEGORY:
            return short(value, 30)
    return one.show(clustered.values[row, one.first])


def outliers(clustered: ClusteredTable, found: list[Portrait]) -> Html:
    distance = clustered.distances()
    usual = np.array(
        [np.median(distance[clustered.labels == j]) if size else 0 for j, size in enumerate(clustered.sizes)]
    )
    columns = _most_telling(found)
    out = clustered.outliers
    if len(out):
        belong = "belongs" if len(out) == 1 else "belong"
        text = (
            f"{plural(len(out), 'row')} ({len(out) / clustered.n:.1%}) probably {belong} "
            "to no cluster. The table shows those that are farthest from the nearest centre."
        )
        far = out[np.argsort(-distance[out])][:FAR_ROWS]
        marks = [f"{distance[i]:.3g}" for i in far]
        return join(
            tag("p", text), _rows(clustered, far.tolist(), columns, "The farthest outliers", ("distance", marks))
        )
    times = distance / np.where(usual > 0, usual, np.inf)[clustered.labels] if clustered.k else distance
    far = np.argsort(-times)[:FAR_ROWS]
    text = (
        f"{type(clustered.estimator).__name__} assigns every row to a cluster. The table shows the rows that are "
        "farthest from their centre; distances are multiples of the median distance in the cluster."
    )
    marks = [f"{times[i]:.1f} × ({clustered.name(clustered.labels[i])})" for i in far]
    return join(
        tag("p", text),
        _rows(clustered, far.tolist(), columns, "The rows that are farthest from their centre", ("distance", marks)),
    )


def _most_telling(found: list[Portrait], count: int = 6) -> list[str]:
    best: dict[str, float] = {}
    for one in found:
        for trait in one.traits:
            best[trait.column] = max(best.get(trait.column, 0.0), trait.strength)
    return sorted(best, key=lambda name: -best[name])[:count]


def layers(clustered: ClusteredTable, played: Replay | str, view: Any, draw: Draw) -> Html:
    if isinstance(played, str):
        return tag("p", played)
    X = clustered.space[played.rows]
    if view == "umap" or not (
        isinstance(view, str) or clustered.same_columns
    ):  # the centres move in the space of the estimator
        view = "auto"
    seen = View(X, clustered.point_names, view)
    steps = played.layers
    last = len(steps.names) - 1
    figures: list[tuple[go.Figure, str, int]] = [
        (
            plot.trajectory(X, steps, clustered.point_names, view=seen, controls=False),
            "The centres moving among the points",
            460,
        ),
        (plot.attention(X, steps, controls=False), "Attention map: which points attend to each centre", 230),
        (plot.objective(X, steps, controls=False), "The objective in every layer", 230),
    ]
    places = [draw(figure, label, height, group="layers") for figure, label, height in figures]
    controls = tag(
        "div",
        tag("button", "Play", type="button", id="play"),
        tag("label", "Layer", for_="layer"),
        tag("input", type="range", id="layer", min="0", max=str(last), value="0", step="1"),
        tag("output", steps.names[0], id="layer-name", for_="layer"),
        class_="controls",
        role="group",
        aria_label="Play the layers",
    )
    text = (
        "In each layer, every point attends to all centres, and every centre attends to its points and moves to their "
        "mean. Points have the colour of the centre to which they attend most. The attention map has one line per "
        "centre; the curve shows the objective, which decreases."
    )
    side = tag("div", places[1], places[2], class_="side")
    return join(
        tag("p", text), controls, tag("div", places[0], side, class_="beside"), tag("p", played.note, class_="note")
    )


def again(lines: str, command: str | None) -> Html:
    parts = [tag("p", "In Python:"), tag("pre", tag("code", lines), tabindex="0")]
    if command is not None:
        parts += [tag("p", "On the command line:"), tag("pre", tag("code", command), tabindex="0")]
    return join(*parts)


def chip(label: int) -> Html:
    return tag(
        "span",
        class_="chip out" if label < 0 else "chip square" if label // len(PALETTE) % 2 else "chip",
        style=f"background:{color(label)}",
        aria_hidden="true",
    )


def _settings(estimator: Any) -> str:
    given = {name: value for name, value in parameters(estimator).items() if value is not None and name != "verbose"}
    told = [
        f"{name} {short(value, 60)}" if not isinstance(value, np.ndarray) else f"{name} passed as an array"
        for name, value in given.items()
    ]
    return ", ".join(told) or "defaults"
