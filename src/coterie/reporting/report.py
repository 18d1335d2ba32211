"""``coterie.report``: from a fitted estimator to one HTML file."""

import html
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from coterie.files import check_writable, replacing
from coterie.reporting import quality, sections
from coterie.reporting.cautions import cautions
from coterie.reporting.differences import portraits
from coterie.reporting.origin import Origin
from coterie.reporting.page import Page
from coterie.reporting.recipe import recipe
from coterie.reporting.replay import Replay, replay
from coterie.reporting.subject import Subject


@dataclass(frozen=True)
class Report:
    """A finished report. A notebook shows it; ``save`` writes it to a file."""

    html: str

    def save(self, path: str | os.PathLike) -> Path:
        with replacing(path) as temporary:
            temporary.write_text(self.html, encoding="utf-8")
        return Path(path)

    def _repr_html_(self) -> str:
        # Its scripts are known by their hashes: no page may indent a line or widen a tab.
        inside = html.escape(self.html, quote=True).translate({9: "&#9;", 10: "&#10;"})
        return f'<iframe srcdoc="{inside}" style="width:100%;height:800px;border:0" title="coterie report"></iframe>'

    def __repr__(self) -> str:
        return f"Report({len(self.html) / 1e6:.1f} MB of HTML; save(path) writes it)"


def report(
    estimator: Any,
    X: Any,
    path: str | os.PathLike | None = None,
    *,
    table: Any = None,
    columns: Sequence[Any] | None = None,
    title: str | None = None,
    view: str | Sequence[Any] = "auto",
    refits: int = 5,
    seconds: float = 3.0,
    choice: Any = None,
    origin: Origin | None = None,
    notes: Sequence[str] = (),
    on_step: Callable[[str], Any] = lambda _: None,
) -> Report:
    """Explain a clustering to people: one HTML file that opens anywhere, offline.

    Parameters
    ----------
    estimator : a fitted estimator of coterie or scikit-learn with ``labels_``, or a Pipeline that ends in one
    X : the rows that it was fitted on: array, DataFrame or CSR matrix
    path : where to write the file; None writes nothing
    table : DataFrame, optional
        The same rows in their own units, if X was scaled before. It may have more columns, which are shown as words
        beside the rows and took no part.
    columns : names of the table's columns that X was made from, optional
    title : str, optional
    view : "auto", "columns", "pca", "umap" or a pair of columns
        The map of the rows. "auto" is the columns themselves if there are at most two, else principal axes; "umap"
        needs umap-learn.
    refits : int, default=5
        Refits with other seeds; 0 leaves stability and other numbers of clusters out.
    seconds : float, default=3.0
        Time for the refits; with at least one the time may be longer.
    choice : the :class:`coterie.selection.Choice` that found the number of clusters, optional
    origin : :class:`Origin`, optional
        For a report on a file.
    notes : further warnings to show
    on_step : called with a word before every part of the work

    Returns
    -------
    Report
        Its ``html`` is the whole document; a notebook shows it.

    Examples
    --------
    >>> from coterie import KMeans, report
    >>> from sklearn.datasets import load_iris
    >>> X = load_iris(as_frame=True).data
    >>> report(KMeans(3, random_state=0).fit(X), X, "iris.html")  # doctest: +SKIP
    """
    if path is not None:
        check_writable(path)
    subject = Subject.of(estimator, X, table, columns if columns is not None or origin is None else origin.columns)
    if subject.k == 0:
        raise ValueError("The estimator found no cluster, only outliers: there is nothing to report.")
    on_step("measuring")
    found = portraits(subject)
    sure = quality.sureness(subject)
    shares = quality.memberships(subject)
    on_step("fitting again with other seeds")
    stable = quality.stability(subject, refits, seconds) if refits else "Stability over seeds was not asked for."
    counts = quality.other_counts(subject, choice) if refits or choice is not None else None
    on_step("replaying the layers")
    played = replay(subject)
    on_step("drawing")
    page = Page(title or _title(subject, origin), _subtitle(subject))
    draw = page.figure
    source = None if origin is None else origin.source
    page.section("In short", sections.overview(subject, source, found, sure, stable))
    page.section("Warnings", sections.cautions_box(cautions(subject, sure, stable, counts, choice, notes)))
    page.section("Where the rows lie", sections.where(subject, view, draw))
    page.section("Sizes", sections.sizes(subject))
    page.section("What makes each cluster different", sections.differences(subject, found, draw))
    page.section("How sure", sections.certainty(subject, sure, shares, draw))
    page.section("Outliers", sections.outliers(subject, found))
    page.section("Layer by layer", sections.layers(subject, played, view, draw))
    if isinstance(played, Replay):
        page.values("layer-names", list(played.layers.names))
    page.section("Stability", sections.steadiness(stable, draw))
    page.section("How many clusters", sections.how_many(counts, draw))
    page.section("What was done", sections.done(subject, source, None if origin is None else origin.seconds))
    page.section("Do it again", sections.again(recipe(subject, origin), origin.command if origin else None))
    made = Report(page.html())
    if path is not None:
        made.save(path)
    return made


def _title(subject: Subject, origin: Origin | None) -> str:
    what = f"{sections.plural(subject.k, 'cluster')} of {sections.plural(subject.n, 'row')}"
    return what if origin is None else f"{origin.source}: {what}"


def _subtitle(subject: Subject) -> str:
    names = subject.value_names
    by = f"by the column {names[0]}" if len(names) == 1 else f"by {len(names):,} columns"
    return f"{type(subject.estimator).__name__}, {by}. {date.today():%d %B %Y}."
