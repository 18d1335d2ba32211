"""The sections of the report about quality: certainty, stability and the number of clusters."""

from typing import Any

from coterie import plot
from coterie.explain.certainty import count_probabilities
from coterie.explain.markup import Html, join, table, tag
from coterie.explain.quality import OtherCounts, Silhouettes, Stability
from coterie.explain.sections import Draw, chip
from coterie.plot.marks import color
from coterie.tabular.clustered_table import ClusteredTable
from coterie.wording import plural


def certainty(clustered: ClusteredTable, separation: Silhouettes | None, shares: Any, draw: Draw) -> Html:
    parts: list[Any] = []
    if separation is None:
        parts.append(
            tag("p", "The silhouette compares the own cluster of a row with the next one, so it needs two clusters.")
        )
    else:
        sampled = f", on {len(separation.rows):,} rows" if len(separation.rows) < clustered.n else ""
        parts.append(
            tag(
                "p",
                "The silhouette of a row is close to 1 if its own cluster is much nearer than the next one, close to 0 "
                "on the border between two clusters, and negative if another cluster is nearer. The mean is "
                f"{separation.mean:.2f}{sampled}: {separation.words} separation.",
            )
        )
        parts.append(
            draw(
                plot.silhouette(separation.values, clustered.labels[separation.rows]),
                "Silhouettes of the rows, per cluster",
                0,
            )
        )
        rows = [
            [join(chip(j), clustered.name(j)), f"{mean:.2f}", f"{negative:.0%}", clustered.name(near)]
            for j, (mean, negative, near) in separation.by_cluster.items()
        ]
        heads = ["", "mean silhouette", "rows nearer to another cluster", "nearest cluster"]
        parts.append(table(heads, rows, caption="Silhouettes per cluster"))
    if shares is not None:
        _, values = shares
        doubtful = float((values.max(axis=1) < 0.6).mean())
        name = type(clustered.estimator).__name__
        text = (
            f"{name} gives every row a probability of belonging to each cluster. For {doubtful:.0%} of the rows, the "
        )
        text += "probability of their own cluster is below 0.6."
        figure = plot.memberships(values, values.argmax(axis=1))
        parts += [
            tag("h3", "Membership"),
            tag("p", text),
            draw(figure, "Probability of the own cluster", 300),
        ]
    return join(*parts)


def stability(clustered: ClusteredTable, stable: Stability | str) -> Html:
    if isinstance(stable, str):
        return tag("p", stable)
    count = len(stable.agreement)
    times = f"{count} random subsamples" if count > 1 else "a random subsample"
    text = (
        f"The estimator was fitted again to {times} of {stable.rows:,} rows. The mean agreement with the clusters of "
        f"this report, on the rows of the subsample, is {stable.mean:.2f} (adjusted Rand index; 1 is identical): "
        f"{stable.words}."
    )
    rows = [
        [
            join(chip(j), clustered.name(j)),
            tag(
                "span",
                tag("span", class_="bar", style=f"width:{100 * share:.0f}%;background:{color(j)}"),
                class_="track",
            ),
            f"{share:.0%}",
            "yes" if share >= 0.85 else "partly" if share >= 0.6 else "no",
        ]
        for j, share in stable.recovery.items()
    ]
    heads = ["", "", "overlap with its best match", "found again"]
    return join(tag("p", text), table(heads, rows, caption="How well each cluster recurs", text_columns=2))


def number_of_clusters(clustered: ClusteredTable, counts: OtherCounts | None, draw: Draw) -> Html | None:
    proba = count_probabilities(clustered)
    if proba:
        chosen = f"This report is about {plural(clustered.k, 'cluster')}"
        own = f" (probability {proba[clustered.k]:.2f})." if clustered.k in proba else "."
        text = f"The network gives every number of clusters a probability. {chosen}{own}"
        ks = sorted(proba)
        figure = plot.candidates(ks, [proba[k] for k in ks], clustered.k, "probability")
        return join(tag("p", text), draw(figure, "Probability of each number of clusters", 280))
    if counts is None:
        return None
    figure = plot.candidates(counts.ks, counts.scores, counts.chosen, counts.criterion)
    better = "" if counts.best == counts.chosen else f" The best {counts.criterion} is reached with {counts.best}."
    text = f"{counts.note} This report is about {plural(counts.chosen, 'cluster')}.{better}"
    return join(tag("p", text), draw(figure, f"{counts.criterion} for each number of clusters", 280))
