"""``coterie.report``: from a fitted estimator to one HTML file."""

import html
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from coterie.estimators.capabilities import parameters
from coterie.explain import quality, sections
from coterie.explain.cautions import Caution, cautions
from coterie.explain.differences import portraits
from coterie.explain.page import Page
from coterie.explain.recipe import recipe
from coterie.explain.replay import Replay, replay
from coterie.files import check_writable, replacing
from coterie.selection import Choice
from coterie.tabular.clustered_table import ClusteredTable
from coterie.wording import plural

CARDS = 40
OPEN_CARDS = 8
SECTIONS = (
    "Summary", "Warnings", "Map of the rows", "Sizes", "Differences between the clusters", "Certainty", "Outliers",
    "Layer by layer", "Stability", "Number of clusters", "Method", "Reproduce",
)  # fmt: skip


@dataclass(frozen=True)
class Report:
    """A finished report. Notebooks display it; :meth:`save` writes it to a file."""

    html: str
    warnings: tuple[str, ...] = ()  # those that needed further fits included

    def save(self, path: str | os.PathLike) -> Path:
        """Write the document to a file."""
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
    choice: Choice | None = None,
    notes: Sequence[str] = (),
    on_step: Callable[[str], Any] = lambda _: None,
) -> Report:
    """Explain a clustering in one HTML file that opens in any browser without a network connection.

    Parameters
    ----------
    estimator : fitted estimator
        An estimator of coterie or scikit-learn with ``labels_``, or a Pipeline that ends in one.
    X : array, DataFrame, CSR matrix or :class:`coterie.tabular.EncodedTable`
        The rows to which the estimator was fitted.
    path : path, optional
        The file to write. By default no file is written.
    table : DataFrame, optional
        The same rows in their own units, if X was scaled. Further columns are shown as descriptions of the rows.
    columns : sequence of str, optional
        The names of those columns of ``table`` from which X was made.
    title : str, optional
        The title of the page. By default it is made from the numbers of clusters and rows.
    view : "auto", "columns", "pca", "umap" or a pair of columns
        The axes of the map. "auto" shows one or two columns as they are, and more columns by their principal axes;
        "umap" needs the package umap-learn.
    refits : int, default=5
        The number of further fits, each to a random subsample of 80% of the rows. With 0, the report says nothing about
        stability and about other numbers of clusters.
    seconds : float, default=3.0
        The time for the further fits. At least one is made, however long it takes.
    choice : :class:`coterie.selection.Choice`, optional
        The result of :func:`coterie.selection.choose_k`, if that determined the number of clusters.
    notes : sequence of str
        Further warnings to show.
    on_step : callable
        Called with a description before every part of the work.

    Returns
    -------
    Report
        Its attribute ``html`` is the whole document, and ``warnings`` has the warnings in it.

    Examples
    --------
    >>> from coterie import KMeans, report
    >>> from sklearn.datasets import load_iris
    >>> X = load_iris(as_frame=True).data
    >>> report(KMeans(3, random_state=0).fit(X), X, "iris.html")  # doctest: +SKIP
    """
    if path is not None:
        if Path(path).suffix.lower() not in (".html", ".htm"):
            raise ValueError(f"{path}: a report is a web page. Choose a name that ends in .html")
        check_writable(path)
    clustered = ClusteredTable.of(estimator, X, table, columns, choice=choice, notes=tuple(notes))
    return report_on(clustered, path, title=title, view=view, refits=refits, seconds=seconds, on_step=on_step)


def report_on(
    clustered: ClusteredTable,
    path: str | os.PathLike | None = None,
    *,
    title: str | None = None,
    view: str | Sequence[Any] = "auto",
    refits: int = 5,
    seconds: float = 3.0,
    command: str | None = None,
    on_step: Callable[[str], Any] = lambda _: None,
) -> Report:
    """Report on a clustered table. ``command`` is the command line that made it; for the rest see :func:`report`."""
    if clustered.k == 0:
        raise ValueError("The estimator found no cluster, only outliers: there is nothing to report.")
    on_step("measuring")
    choice = clustered.run.choice
    found = portraits(clustered)
    separation = clustered.silhouettes
    shares = quality.memberships(clustered)
    on_step("fitting to subsamples")
    stable = quality.stability(clustered, refits, seconds) if refits else "Stability was not measured (refits=0)."
    counts = quality.other_counts(clustered, choice) if refits or choice is not None else None
    on_step("replaying the layers")
    played = replay(clustered)
    on_step("drawing")
    page = Page()
    draw = page.figure
    warned = [*cautions(clustered, stable, counts), *(Caution(note, "") for note in clustered.run.notes)]
    several = clustered.k > 1  # one cluster has nothing to differ from
    sizes = [*zip(clustered.ids, clustered.sizes[clustered.ids].tolist())]
    sizes += [(-1, len(clustered.outliers))] * bool(len(clustered.outliers))
    what = f"{plural(clustered.k, 'cluster')} in {plural(clustered.n, 'row')}"
    what = what if clustered.run.source is None else f"{clustered.run.source}: {what}"
    said: dict[str, Any] = {
        "title": title or what, "today": f"{date.today():%d %B %Y}", "command": command,
        "recipe": recipe(clustered), "estimator": type(clustered.estimator).__name__, "clustered": clustered,
        "found": found, "stable": stable, "played": played, "warned": warned, "several": several, "CARDS": CARDS,
        "OPEN_CARDS": OPEN_CARDS, "words": len(clustered.unused_columns[: sections.WORDS]), "parameters": parameters,
        "title_of": lambda label: clustered.names.get(label, f"Cluster {label}"), "sizes": sizes,
        "largest": max(1, *(size for _, size in sizes)), "n_outliers": len(clustered.outliers),
        "rows_of": sections.rows_in(clustered), "separation": separation, **sections.where(clustered, view, draw),
    }  # fmt: skip
    if several:
        said |= sections.differences(clustered, draw) | sections.certainty(clustered, separation, shares, draw)
    said["far"] = sections.far_rows(clustered, found)
    said["layers"] = sections.layers(clustered, played, view, draw)
    if isinstance(played, Replay):
        page.values("layer-names", list(played.layers.names))
    said |= sections.number_of_clusters(clustered, counts, draw)
    left_out = {"Number of clusters"} if said["count_place"] is None else set()
    left_out |= set() if several else {"Differences between the clusters", "Certainty", "Stability"}
    document = page.html("report.html", sections=[name for name in SECTIONS if name not in left_out], **said)
    made = Report(document, tuple(one.text for one in warned))
    if path is not None:
        made.save(path)
    return made
