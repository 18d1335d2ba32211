"""What the command line prints: progress on standard error, results on standard output, as text or as JSON."""

import json
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Literal

import numpy as np
from rich import markup
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from coterie.cli.application import working
from coterie.cli.outputs import Outputs
from coterie.estimators.capabilities import has_parameter
from coterie.explain.facts import ClusterSummary, Facts
from coterie.living.checking import Check
from coterie.selection import Candidate, Choice
from coterie.tabular.clustering import Watcher
from coterie.tabular.encoded_table import EncodedTable
from coterie.wording import joined, number, number_and_name, plural, shown

SHOWN_COLUMNS = 6
WORDS, LONGEST = 6, 70  # words of a cluster of texts that are shown, and characters of a text


def escape(text: str) -> str:
    """A text as it is: neither markup nor control characters in it have an effect."""
    return markup.escape(shown(text))


class ProgressWatcher(Watcher):
    """Shows progress on standard error, and checks ``--view`` as soon as the columns are known."""

    def __init__(self, outputs: Outputs | None = None, *, in_blocks: bool = False):
        self.outputs = outputs or Outputs()
        # Of data in blocks, an iteration may take minutes: without a terminal, each is one line.
        self.verbose = 1 if sys.stderr.isatty() else 2 if in_blocks else 0
        self.axes: str | list[str] = "auto"

    def reading(self, name: str) -> AbstractContextManager[Any]:
        return working(f"Reading {name}")

    def on_encoded(self, rows: EncodedTable, estimator: Any) -> None:
        from coterie.tables.label_files import require_workbook

        self.axes = self.outputs.axes(rows.encoding.value_names)
        if self.outputs.with_data and self.outputs.output is not None and self.outputs.output.suffix == ".xlsx":
            require_workbook(rows.table.cells(as_text=False))  # before the fit

    @contextmanager
    def choosing(self, ks: Sequence[int]) -> Iterator[Callable[[Candidate], Any]]:
        with counting("Trying numbers of clusters", len(ks)) as advance:
            yield lambda candidate: advance()

    @contextmanager
    def fitting(self, estimator: Any) -> Iterator[None]:
        speaks = has_parameter(estimator, "verbose")
        if speaks:
            estimator.set_params(verbose=self.verbose)
        with nullcontext() if speaks else working("Finding clusters"):
            yield
        if speaks:
            estimator.set_params(verbose=0)

    def writing(self, name: str) -> AbstractContextManager[Any]:
        return working(f"Writing {name}")


@contextmanager
def counting(what: str, total: int) -> Iterator[Callable[[], None]]:
    """A progress bar; every call of what it yields is one step."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=total == 1 or not console.is_terminal) as progress:
        task = progress.add_task(what, total=total)
        yield lambda: progress.advance(task)


def show_clustering(file: str, facts: Facts, files: dict[str, str], as_json: bool) -> None:
    """The result of ``coterie cluster``."""
    if as_json:
        print(json.dumps({"file": file, **facts.document(), "files": files}, allow_nan=False))
        return
    _print_notes(facts.notes)
    console = wide_console()
    encoding = facts.encoding
    names = encoding.names
    columns = f"{len(names)} columns" if len(names) > 1 else f"column {escape(names[0])}"
    scaled = "" if encoding.is_identity else ", encoded" if encoding.has_categories else ", scaled"
    console.print(f"[bold]{escape(file)}[/]: {plural(facts.rows, 'row')}, {columns}{scaled}", highlight=False)
    if facts.choice is not None:
        console.print(f"Number of clusters, by {facts.choice.criterion}:", highlight=False)
        console.print(candidates_table(facts.choice))
    console.print(f"{plural(facts.n_clusters, 'cluster')} by {facts.run.algorithm}", highlight=False)
    print_verdict(console, facts)
    if facts.verdict is None or facts.n_clusters > 1:  # one cluster has nothing to differ from
        console.print(_texts_table(facts) if facts.texts else clusters_table(facts.summaries, console, facts.names))
    if facts.outliers:
        stay = f"{plural(facts.outliers, 'row')} ({facts.outliers / facts.rows:.1%}) outside all clusters"
        console.print(f"{stay}: --outliers sets how many may be, and predict --nearest assigns them", highlight=False)
    told = [f"seed {facts.run.seed}", f"{facts.run.seconds:.2f} s"]
    if facts.iterations is not None:
        told.insert(0, f"{facts.iterations} iterations")
    if facts.inertia is not None:
        told.insert(0, f"inertia {number(facts.inertia)}{'' if encoding.is_identity else ' (of scaled values)'}")
    console.print(", ".join(told), highlight=False)
    _print_files(console, files)


def show_columns(file: str, rows: int, described: Sequence[dict[str, Any]], notes: Sequence[str]) -> None:
    """The result of ``coterie columns``."""
    _print_notes(notes)
    console = wide_console()
    used = sum(one["used"] for one in described)
    console.print(
        f"[bold]{escape(file)}[/]: {plural(rows, 'row')}, {used} of {plural(len(described), 'column')} are used",
        highlight=False,
    )
    table = Table("column", "kind", "values", "missing", "why", show_edge=False, pad_edge=False)
    for one in described:
        kind = one["kind"] if one["used"] else f"{one['kind']} (ignored)"
        cells = (
            escape(one["name"]),
            kind,
            escape(one["values"]),
            f"{one['missing']:,}" if one["missing"] else "",
            escape(one["why"]),
        )
        table.add_row(*cells, style=None if one["used"] else "dim")
    console.print(table)
    console.print("Correct kinds with --kind COLUMN=KIND, and use ignored columns with --keep COLUMN.", highlight=False)


def print_verdict(console: Console, facts: Facts) -> None:
    """How sure the clustering is, in words and numbers."""
    if facts.verdict is None:
        return
    words, _, rest = facts.verdict.text.partition(".")
    console.print(f"[bold]{words}.[/]{escape(rest)}", highlight=False)
    if facts.count_probabilities:
        listed = ", ".join(f"{k} ({p:.0%})" for k, p in facts.count_probabilities.items())
        console.print(f"Probability of the number of clusters: {listed}", highlight=False)
    if facts.certainty is not None and facts.n_clusters > 1:
        console.print(f"Mean certainty of the rows: {facts.certainty:.2f}", highlight=False)


def show_prediction(
    model: str,
    file: str,
    ids: Sequence[int],
    labels: np.ndarray,
    files: dict[str, str],
    notes: list[str],
    as_json: bool,
    names: Mapping[int, str],
    checked: Check | None = None,
) -> None:
    """The result of ``coterie predict``."""
    counts = {label: int((labels == label).sum()) for label in ids}
    outliers = int((labels < 0).sum())
    if as_json:
        rows = [
            {"label": label, "name": names.get(label), "rows": count, "share": count / len(labels)}
            for label, count in counts.items()
        ]
        document = {
            "model": model, "file": file, "rows": len(labels), "clusters": rows, "outliers": outliers, "files": files,
            "notes": notes, **({} if checked is None else {"check": checked.document()}),
        }  # fmt: skip
        print(json.dumps(document))
        return
    _print_notes(notes)
    console = wide_console()
    told = f"{escape(file)}: {plural(len(labels), 'row')}, assigned to the clusters of {escape(model)}"
    console.print(told, highlight=False)
    sizes = [*counts.items(), *([(-1, outliers)] if outliers else [])]
    console.print(_sizes_table([(label, size, size / len(labels)) for label, size in sizes], called=names))
    if checked is not None:
        console.print(f"[bold]{escape(checked.verdict)}[/]", highlight=False)
    _print_files(console, files)


def show_granularity(found: Any, files: dict[str, str]) -> None:
    """The result of ``coterie granularity``."""
    console = wide_console()
    table = Table("clusters", found.measure, "stability", "what splits", show_edge=False, pad_edge=False)
    good = {k for first, last in found.plateaus for k in range(first, last + 1)}
    for k, (quality, stability, parents) in enumerate(zip(found.quality, found.stability, [{}, *found.parents]), 1):
        parts = {old: [str(new) for new, one in parents.items() if one == old] for old in parents.values()}
        split = "; ".join(f"{old} into {joined(into)}" for old, into in sorted(parts.items()) if len(into) > 1)
        cells = (str(k), "" if np.isnan(quality) else f"{quality:.2f}", f"{stability:.2f}", split)
        table.add_row(*cells, style="bold" if k in good else None)
    console.print(table)
    count = f"{plural(found.k, 'cluster')} {'was' if found.k == 1 else 'were'} found."
    console.print(f"[bold]{found.verdict}[/] {count}", highlight=False)
    _print_files(console, files)


def wide_console() -> Console:
    """As wide as the terminal, and 120 columns in a file."""
    return Console(width=None if sys.stdout.isatty() else 120)


def _print_notes(notes: Sequence[str]) -> None:
    for note in notes:
        print(f"note: {shown(note)}", file=sys.stderr)


def _print_files(console: Console, files: dict[str, str]) -> None:
    for what, path in files.items():
        console.print(f"{what:>7}: {escape(path)}", highlight=False, soft_wrap=True)


def candidates_table(choice: Choice) -> Table:
    """One line per number of clusters that was tried."""
    table = Table(box=None, pad_edge=False)
    for title in ("clusters", "inertia", choice.criterion, ""):
        table.add_column(title, justify="left" if title == "" else "right")
    for one in choice.candidates:
        error = f" ± {one.score_error:.3f}" if one.score_error else ""
        mark, style = ("← chosen", "bold") if one.k == choice.k else ("", "")
        table.add_row(str(one.k), f"{number(one.inertia)}", f"{one.score:.4g}{error}", mark, style=style)
    return table


def clusters_table(
    summaries: Sequence[ClusterSummary], console: Console, called: Mapping[int, str] | None = None
) -> Table:
    """Centres in the units of the table or, if there are too many columns, those that distinguish each cluster."""
    names, sizes = list(summaries[0].center), [(one.label, one.size, one.share) for one in summaries]
    if len(names) <= SHOWN_COLUMNS:
        rows = [[one.texts.get(name, number(value)) for name, value in one.center.items()] for one in summaries]
        table = _sizes_table(sizes, [escape(name) for name in names], rows, "right", called)
        if console.measure(table, options=console.options.update(width=10_000)).minimum <= console.width:
            return table
    rows = [[_distinctive(one)] for one in summaries]
    title = "most distinctive (value, standard deviations from the mean)"
    return _sizes_table(sizes, [title], rows, "left", called)


def _texts_table(facts: Facts) -> Table:
    """Words and a typical text of every cluster of texts."""
    sizes = [(one.label, one.size, one.share) for one in facts.summaries]
    told = [facts.texts.get(label) for label, *_ in sizes]
    rows = [["", ""] if one is None else [", ".join(one.words[:WORDS]), *one.typical[:1]] for one in told]
    cells = [[escape(textwrap.shorten(cell, LONGEST, placeholder="...")) for cell in row] for row in rows]
    return _sizes_table(sizes, ["words", "a typical text"], cells)


def _sizes_table(
    sizes: Sequence[tuple[int, int, float]],
    titles: Sequence[str] = (),
    rows: Sequence[Sequence[str]] | None = None,
    justify: Literal["left", "right"] = "left",
    called: Mapping[int, str] | None = None,
) -> Table:
    table = Table()
    for title in ("cluster", "rows", "share"):
        table.add_column(title, justify="right", no_wrap=True)
    for title in titles:
        table.add_column(title, justify=justify)
    for (label, size, share), cells in zip(sizes, rows or [[]] * len(sizes)):
        name = escape(number_and_name(label, called))
        table.add_row(name, f"{size:,}", f"{share:.1%}", *cells, style="dim" if label < 0 else "")
    return table


def _distinctive(one: ClusterSummary) -> str:
    return ", ".join(
        f"{escape(name)} {one.texts.get(name, number(one.center[name]))} ({one.deviation[name]:+.1f})"
        for name in one.distinctive()
    )
