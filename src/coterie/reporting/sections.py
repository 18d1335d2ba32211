"""The sections of the report, from what was done to how to do it again."""

from collections.abc import Callable
from typing import Any

import numpy as np
import plotly.graph_objects as go

from coterie import plot
from coterie.plot.marks import PALETTE, color, short
from coterie.plot.themes import number
from coterie.plot.view import View
from coterie.reporting.cautions import Caution
from coterie.reporting.differences import SHOWN, Portrait
from coterie.reporting.markup import Html, join, table, tag
from coterie.reporting.quality import OtherCounts, Stability, Sureness
from coterie.reporting.replay import Replay
from coterie.reporting.subject import Subject

CARDS = 40
OPEN_CARDS = 8
ROW_COLUMNS = 8
FAR_ROWS = 8

Draw = Callable[..., Html]  # (figure, what it shows, height) -> the place for it


def words_for_silhouette(mean: float) -> str:
    """Kaufman and Rousseeuw's reading, of the number as it is printed."""
    mean = round(mean, 2)
    return "clear" if mean >= 0.7 else "reasonable" if mean >= 0.5 else "weak" if mean >= 0.25 else "hardly any"


def words_for_agreement(mean: float) -> str:
    mean = round(mean, 2)
    return (
        "stable" if mean >= 0.95 else "mostly stable" if mean >= 0.8 else "partly stable" if mean >= 0.5 else "unstable"
    )


def plural(count: int, one: str) -> str:
    return f"{count:,} {one if count == 1 else one + 's'}"


def cautions_box(found: list[Caution]) -> Html:
    if not found:
        return tag("p", "Nothing in the data or in the fit calls for a warning.", class_="calm")
    items = [tag("li", tag("strong", one.what), f" {one.advice}" if one.advice else None) for one in found]
    return tag("ul", items, class_="cautions")


def overview(
    subject: Subject, source: str | None, found: list[Portrait], sure: Sureness | None, stable: Stability | str
) -> Html:
    """What was done, the numbers that everybody asks for first, and each cluster in a line."""
    rows = f"the {subject.n:,} rows" + (f" of {source}" if source is not None else "")
    names = subject.value_names
    by = f"the column {names[0]}" if len(names) == 1 else f"{len(names):,} columns"
    told = f"{type(subject.estimator).__name__} put {rows} into {plural(subject.k, 'cluster')} by {by}"
    told += ", brought to one scale." if subject.scaled else "."
    if len(subject.outliers):
        told += f" {plural(len(subject.outliers), 'row')} stayed outside as outliers."
    counts = [(subject.n, "row"), (len(names), "column"), (subject.k, "cluster"), (len(subject.outliers), "outlier")]
    facts = [(word if count == 1 else f"{word}s", f"{count:,}") for count, word in counts if count]
    if sure is not None:
        facts.append((f"{words_for_silhouette(sure.mean)} separation", f"{sure.mean:.2f}"))
    if isinstance(stable, Stability):
        facts.append((f"{words_for_agreement(stable.mean)} over seeds", f"{stable.mean:.2f}"))
    strip = tag("dl", [tag("div", tag("dt", name), tag("dd", value)) for name, value in facts], class_="facts")
    lines = [
        tag("li", chip(one.label), tag("strong", f"Cluster {one.label}"), f" ({one.share:.0%}): {one.in_words()}")
        for one in found[:12]
    ]
    more = tag("p", f"and {len(found) - 12} more, below.") if len(found) > 12 else None
    return join(tag("p", told), strip, tag("ul", lines, class_="plain"), more)


def done(subject: Subject, source: str | None, seconds: float | None) -> Html:
    estimator = subject.estimator
    names = subject.value_names
    shown = ", ".join(short(name) for name in names[:40]) + (f" and {len(names) - 40} more" if len(names) > 40 else "")
    scaled = "as they are"
    if subject.scaled:
        scaled = "prepared by " + ", ".join(type(step).__name__ for _, step in subject.pipeline.steps[:-1]) if (
            subject.pipeline is not None and len(subject.pipeline.steps) > 1
        ) else "scaled before clustering; this report shows them in their own units"  # fmt: skip
    rows: list[list[Any]] = []
    if source is not None:
        rows.append(["Data", source])
    rows += [
        ["Rows", f"{subject.n:,}"],
        ["Columns used", f"{len(names):,}: {shown}"],
        ["Values", scaled],
        ["Algorithm", type(estimator).__name__],
        ["Settings", _settings(estimator)],
    ]
    if hasattr(estimator, "n_iter_"):
        rows.append(["Iterations", f"{estimator.n_iter_}"])
    if hasattr(estimator, "inertia_"):
        rows.append(
            ["Objective", f"{number(estimator.inertia_)}" + (" (of the values as clustered)" if subject.scaled else "")]
        )
    if hasattr(estimator, "snr_db_"):
        rows.append(["Signal to noise", f"{estimator.snr_db_:.1f} dB"])
    if seconds is not None:
        rows.append(["Time of the fit", f"{seconds:.2f} s"])
    body = [tag("tr", tag("th", name, scope="row"), tag("td", value)) for name, value in rows]
    return tag("table", tag("tbody", body), class_="done")


def sizes(subject: Subject) -> Html:
    largest = max(int(subject.sizes.max(initial=1)), len(subject.outliers), 1)
    counts = [(j, int(size)) for j, size in enumerate(subject.sizes)]
    counts += [(-1, len(subject.outliers))] * bool(len(subject.outliers))
    rows = []
    for label, size in counts:
        bar = tag("span", class_="bar", style=f"width:{100 * size / largest:.1f}%;background:{color(label)}")
        name = "outliers" if label < 0 else f"cluster {label}"
        rows.append([join(chip(label), name), tag("span", bar, class_="track"), f"{size:,}", f"{size / subject.n:.1%}"])
    return table(["", "", "rows", "share"], rows, caption="Rows of each cluster", text_columns=2)


def where(subject: Subject, view: Any, draw: Draw) -> Html:
    """The map: one or two columns in their own units, more as the estimator saw them."""
    X, centers, names = subject.space, subject.centers, subject.names
    own = subject.own_units(centers) if subject.same_columns else subject.value_means
    if own is not None and (not isinstance(view, str) or (view in ("auto", "columns") and X.shape[1] <= 2)):
        X, centers, names = subject.values, own, subject.value_names
    seen = View(X, names, view)
    row_names = None if isinstance(subject.table.index, range) else subject.table.index
    figure = plot.clusters(X, subject.labels, centers, names, view=seen, row_names=row_names)
    drawn = len(seen.rows)
    if drawn == subject.n:
        note = f"All {subject.n:,} rows are drawn."
    elif seen.linear:
        note = f"All {subject.n:,} rows are counted in small squares: the fuller the colour, the more rows."
    else:
        note = f"{drawn:,} of {subject.n:,} rows are drawn."
    how = {True: "", False: " UMAP keeps neighbours together; distances between far groups mean little."}[seen.linear]
    if seen.linear and seen.titles[0].startswith("principal"):
        how = (
            " The map is the flat picture of all columns that keeps most of their variance: groups that overlap here"
            " may still be apart in other columns."
        )
    discs = " Numbered discs are the centres." if seen.dims == 2 else " Dotted lines are the centres."
    text = f"{note}{discs}{how} Click a name to hide its cluster, twice to see it alone."
    return join(draw(figure, "Map of the rows, coloured by cluster", 520), tag("p", text, class_="note"))


def differences(subject: Subject, found: list[Portrait], draw: Draw) -> Html:
    figure = plot.profile(subject.values, subject.labels, subject.value_names, scale_bar=False)
    hidden = len(subject.value_names) - len(figure.data[0].y)
    note = "A number is the mean of the column in the cluster; orange is above the mean of all rows, blue below, "
    note += f"in full colour at {figure.data[0].zmax:g} standard deviations of the column."
    if hidden > 0:
        note += f" The {len(figure.data[0].y)} columns that differ most are shown, {hidden} are not."
    heat = draw(figure, "Heat map of the mean of every column in every cluster", int(figure.layout.height))
    cards = [_card(subject, one, is_open=len(found) <= OPEN_CARDS) for one in found[:CARDS]]
    more = tag("p", f"{len(found) - CARDS} more clusters are left out here.") if len(found) > CARDS else None
    return join(heat, tag("p", note, class_="note"), tag("div", cards, class_="cards"), more)


def _card(subject: Subject, one: Portrait, *, is_open: bool) -> Html:
    title = tag(
        "summary",
        chip(one.label),
        tag("h3", f"Cluster {one.label}"),
        tag("span", f"{plural(one.size, 'row')}, {one.share:.1%}"),
    )
    rows = [
        [trait.column, number(trait.here), number(trait.elsewhere), f"{trait.away:+.1f}", _pairs(trait.above)]
        for trait in one.traits[:SHOWN]
    ]
    traits = table(
        ["column", "mean here", "mean elsewhere", "deviations apart", "against other rows"],
        rows,
        caption=f"The columns that set cluster {one.label} apart",
    )
    mentions = [
        tag("li", f"{name}: {value} in {here:.0%} of its rows ({everywhere:.0%} of all)")
        for name, value, here, everywhere in one.mentions[:4]
    ]
    outside = join(tag("p", "Columns that took no part:", class_="note"), tag("ul", mentions)) if mentions else None
    columns = [trait.column for trait in one.traits[:ROW_COLUMNS]]
    typical = _rows(subject, one.typical, columns, f"Most typical rows of cluster {one.label}")
    attributes: dict[str, Any] = {"class_": "card", "style": f"--own:{color(one.label)}"}
    if is_open:
        attributes["open"] = "open"
    told = one.in_words()
    return tag(
        "details",
        title,
        tag("p", f"{told[0].upper()}{told[1:]}.", class_="told"),
        tag("div", traits, tag("div", outside), class_="beside") if outside else traits,
        typical,
        **attributes,
    )


def _pairs(above: float) -> str:
    share = max(above, 1 - above)
    return f"{'higher' if above >= 0.5 else 'lower'} in {min(share, 0.999) if share < 1 else 1:.0%} of pairs"


def _rows(subject: Subject, rows: list[int], columns: list[str], caption: str, extra: Any = None) -> Html:
    """Rows of the table in their own units: words that took no part first, then the given columns."""
    frame = subject.table
    used = set(subject.value_names)
    words = [name for name in frame.columns if str(name) not in used][:3]
    places = [subject.value_names.index(name) for name in columns]
    heads = [
        "row",
        *([extra[0]] if extra else []),
        *(short(name, 24) for name in words),
        *(short(name, 24) for name in columns),
    ]
    body = []
    for i, row in enumerate(rows):
        said = [short(frame[name].iloc[row], 30) for name in words]
        values = [number(subject.values[row, place]) for place in places]
        body.append([subject.row_name(row), *([extra[1][i]] if extra else []), *said, *values])
    return table(heads, body, caption=caption, text_columns=1 + bool(extra) + len(words))


def certainty(subject: Subject, sure: Sureness | None, shares: Any, draw: Draw) -> Html:
    parts: list[Any] = []
    if sure is None:
        parts.append(
            tag("p", "A silhouette compares a row's own cluster with the next one: it needs two clusters or more.")
        )
    else:
        sampled = f", on {len(sure.rows):,} rows" if len(sure.rows) < subject.n else ""
        parts.append(
            tag(
                "p",
                "The silhouette of a row is near 1 where its own cluster is much nearer than the next, near 0 on a "
                f"border, and below 0 where another cluster is nearer. The mean is {sure.mean:.2f}{sampled}: "
                f"{words_for_silhouette(sure.mean)} separation.",
            )
        )
        parts.append(draw(plot.silhouette(sure.values, subject.labels[sure.rows]), "Silhouettes of every cluster", 0))
        rows = [
            [join(chip(j), f"cluster {j}"), f"{mean:.2f}", f"{negative:.0%}", f"cluster {near}"]
            for j, (mean, negative, near) in sure.by_cluster.items()
        ]
        heads = ["", "mean silhouette", "nearer to another", "nearest cluster"]
        parts.append(table(heads, rows, caption="How sure each cluster is"))
    if shares is not None:
        _, values = shares
        doubtful = float((values.max(axis=1) < 0.6).mean())
        name = type(subject.estimator).__name__
        text = f"{name} gives every row a share in every cluster. {doubtful:.0%} of the rows have less than 0.6 in "
        text += "their own."
        figure = plot.memberships(values, values.argmax(axis=1))
        parts += [
            tag("h3", "Membership"),
            tag("p", text),
            draw(figure, "How large the share of the own cluster is", 300),
        ]
    return join(*parts)


def outliers(subject: Subject, found: list[Portrait]) -> Html:
    distance = subject.distances()
    usual = np.array([np.median(distance[subject.labels == j]) if size else 0 for j, size in enumerate(subject.sizes)])
    columns = _most_telling(found)
    out = subject.outliers
    if len(out):
        text = (
            f"{plural(len(out), 'row')} ({len(out) / subject.n:.1%}) {'belongs' if len(out) == 1 else 'belong'} to no "
            "cluster. These lie farthest from the nearest centre."
        )
        far = out[np.argsort(-distance[out])][:FAR_ROWS]
        marks = [f"{distance[i]:.3g}" for i in far]
        return join(tag("p", text), _rows(subject, far.tolist(), columns, "The farthest outliers", ("distance", marks)))
    times = distance / np.where(usual > 0, usual, np.inf)[subject.labels] if subject.k else distance
    far = np.argsort(-times)[:FAR_ROWS]
    text = (
        f"{type(subject.estimator).__name__} gives every row a cluster. These rows lie farthest from their centre, as "
        "a multiple of the usual distance in their cluster."
    )
    marks = [f"{times[i]:.1f} × (cluster {subject.labels[i]})" for i in far]
    return join(tag("p", text), _rows(subject, far.tolist(), columns, "The rows that fit worst", ("distance", marks)))


def _most_telling(found: list[Portrait], count: int = 6) -> list[str]:
    best: dict[str, float] = {}
    for one in found:
        for trait in one.traits:
            best[trait.column] = max(best.get(trait.column, 0.0), trait.strength)
    return sorted(best, key=lambda name: -best[name])[:count]


def layers(subject: Subject, played: Replay | str, view: Any, draw: Draw) -> Html:
    if isinstance(played, str):
        return tag("p", played)
    X = subject.space[played.rows]
    if view == "umap" or not (isinstance(view, str) or subject.same_columns):  # centres move where the estimator sees
        view = "auto"
    seen = View(X, subject.names, view)
    steps = played.layers
    last = len(steps.names) - 1
    figures: list[tuple[go.Figure, str, int]] = [
        (
            plot.trajectory(X, steps, subject.names, view=seen, controls=False),
            "The centres moving over the points",
            460,
        ),
        (plot.attention(X, steps, controls=False), "Attention map: which points each centre has", 230),
        (plot.objective(X, steps, controls=False), "The objective, layer by layer", 230),
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
        "A layer is one look of every point at all centres, and one look of every centre at its points. The points "
        "take the colour of the centre they look at, and the centres move. The second map shows who looks at whom, "
        "one row a centre; the curve is the objective, which falls."
    )
    side = tag("div", places[1], places[2], class_="side")
    return join(
        tag("p", text), controls, tag("div", places[0], side, class_="beside"), tag("p", played.note, class_="note")
    )


def steadiness(stable: Stability | str, draw: Draw) -> Html:
    if isinstance(stable, str):
        return tag("p", stable)
    names = ["this report", *(f"seed {seed}" for seed in stable.seeds)]
    count = len(stable.seeds)
    times = f"{count} more times with other seeds" if count > 1 else "once more with another seed"
    text = (
        f"The same estimator was fitted {times}, on {stable.rows:,} "
        f"rows. The clusterings agree to {stable.mean:.2f} on average (adjusted Rand index; 1 is the same): "
        f"{words_for_agreement(stable.mean)}."
    )
    rows = [
        [join(chip(j), f"cluster {j}"), f"{share:.0%}", "yes" if share >= 0.85 else "partly" if share >= 0.6 else "no"]
        for j, share in stable.recovery.items()
    ]
    found = table(["", "overlap with its best match", "found again"], rows, caption="Does each cluster come back?")
    figure = plot.agreement(stable.matrix, names)
    height = int(figure.layout.height)
    return join(
        tag("p", text), tag("div", draw(figure, "Agreement of the refits", height), found, class_="beside even")
    )


def how_many(counts: OtherCounts | None, draw: Draw) -> Html | None:
    if counts is None:
        return None
    figure = plot.candidates(counts.ks, counts.scores, counts.chosen, counts.criterion)
    better = "" if counts.best == counts.chosen else f" The best {counts.criterion} has {counts.best}."
    text = f"{counts.note} This report has {counts.chosen}.{better}"
    return join(tag("p", text), draw(figure, f"{counts.criterion} for every number of clusters", 280))


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
    given = {
        name: value
        for name, value in estimator.get_params(deep=False).items()
        if value is not None and name != "verbose"
    }
    told = [
        f"{name} {short(value, 60)}" if not isinstance(value, np.ndarray) else f"{name} given"
        for name, value in given.items()
    ]
    return ", ".join(told) or "as they come"
