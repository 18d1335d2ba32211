"""What the command line says: progress on standard error, results on standard output, for people or as JSON."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from coterie.selection import Choice, uneven_columns
from coterie.tabular import ClusterSummary, TableModel

SHOWN_COLUMNS = 6


@dataclass
class Clustering:
    """Everything that there is to tell about one run."""

    file: str
    algorithm: str
    rows: int
    model: TableModel
    summaries: list[ClusterSummary]
    choice: Choice | None
    seed: int
    seconds: float
    notes: list[str]
    files: dict[str, str] = field(default_factory=dict)


@contextmanager
def working(what: str) -> Iterator[None]:
    """A turning wheel while something without a known length goes on."""
    with Console(stderr=True).status(escape(what)):
        yield


@contextmanager
def counting(what: str, total: int) -> Iterator[Callable[[], None]]:
    """A bar; each call of what it yields is one step."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=total == 1 or not console.is_terminal) as progress:
        task = progress.add_task(what, total=total)
        yield lambda: progress.advance(task)


def spread_notes(frame: Any, model: TableModel) -> list[str]:
    """A word of warning where one unscaled column outweighs others."""
    if not model.columns.raw:
        return []
    names = list(model.columns.names)
    uneven = uneven_columns(model.estimator, model.columns.numbers(frame))
    if uneven is None:
        return []
    widest, advice = names[uneven.widest], "add --scale to let every column count alike"
    if uneven.decides_alone:
        what = f"holds {uneven.shown_share} of all variance and decides the clusters nearly alone"
    else:
        what = f"spreads {uneven.ratio:,.0f} times as wide as {names[uneven.narrowest]!r}, which hardly counts"
    return [f"the column {widest!r} {what}: {advice}"]


def choice_notes(choice: Choice | None) -> list[str]:
    if choice is None or not choice.at_edge:
        return []
    return [f"{choice.k} is the largest number that was tried: a wider range may hold a better one"]


def tell(done: Clustering, as_json: bool) -> None:
    """The result of ``coterie cluster``."""
    done.notes.extend(choice_notes(done.choice))
    if as_json:
        print(json.dumps(_document(done), allow_nan=False))
        return
    for note in done.notes:
        print(f"note: {note}", file=sys.stderr)
    console = Console(width=None if sys.stdout.isatty() else 120)
    estimator = done.model.estimator
    columns = done.model.columns
    names = columns.source or columns.names
    kind = f"{len(names)} columns" if len(names) > 1 else f"column {escape(names[0])}"
    scaled = "" if columns.raw else ", encoded" if columns.has_categories else ", scaled"
    console.print(f"[bold]{escape(done.file)}[/]: {done.rows:,} rows, {kind}{scaled}", highlight=False)
    if done.choice is not None:
        console.print(f"How many clusters, by {done.choice.criterion}:", highlight=False)
        console.print(candidates_table(done.choice))
    k = len(estimator.cluster_centers_)
    console.print(f"{k} {'cluster' if k == 1 else 'clusters'} by {done.algorithm}", highlight=False)
    console.print(clusters_table(done.summaries, console))
    facts = [f"seed {done.seed}", f"{done.seconds:.2f} s"]
    if hasattr(estimator, "n_iter_"):
        facts.insert(0, f"{estimator.n_iter_} iterations")
    if hasattr(estimator, "inertia_"):
        facts.insert(0, f"inertia {number(estimator.inertia_)}{'' if columns.raw else ' (scaled)'}")
    console.print(", ".join(facts), highlight=False)
    tell_files(console, done.files)


def tell_files(console: Console, files: dict[str, str]) -> None:
    for what, path in files.items():
        console.print(f"{what:>7} → {escape(path)}", highlight=False, soft_wrap=True)


def number(value: float) -> str:
    """Four digits, or all digits before the point."""
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e12 else f"{value:.4g}"


def candidates_table(choice: Choice) -> Table:
    table = Table(box=None, pad_edge=False)
    for title in ("clusters", "inertia", choice.criterion, ""):
        table.add_column(title, justify="left" if title == "" else "right")
    for one in choice.candidates:
        error = f" ± {one.score_error:.3f}" if one.score_error else ""
        mark, style = ("← chosen", "bold") if one.k == choice.k else ("", "")
        table.add_row(str(one.k), f"{number(one.inertia)}", f"{one.score:.4g}{error}", mark, style=style)
    return table


def clusters_table(summaries: list[ClusterSummary], console: Console) -> Table:
    """Centres in the table's own units; where the columns are too many, those in which a cluster stands out."""
    names = list(summaries[0].center)
    if len(names) <= SHOWN_COLUMNS:
        rows = [[number(value) for value in one.center.values()] for one in summaries]
        table = _sizes_table(summaries, [escape(name) for name in names], rows, "right")
        if console.measure(table, options=console.options.update(width=10_000)).minimum <= console.width:
            return table
    rows = [[_standing_out(one)] for one in summaries]
    return _sizes_table(summaries, ["stands out by (value, standard deviations from the mean)"], rows, "left")


def _sizes_table(
    summaries: list[ClusterSummary], titles: list[str], rows: list[list[str]], justify: Literal["left", "right"]
) -> Table:
    table = Table()
    for title in ("cluster", "rows", "share"):
        table.add_column(title, justify="right", no_wrap=True)
    for title in titles:
        table.add_column(title, justify=justify)
    for one, cells in zip(summaries, rows):
        label = "outliers" if one.label < 0 else str(one.label)
        table.add_row(label, f"{one.size:,}", f"{one.share:.1%}", *cells, style="dim" if one.label < 0 else "")
    return table


def _standing_out(one: ClusterSummary) -> str:
    return ", ".join(
        f"{escape(name)} {number(one.center[name])} ({one.deviation[name]:+.1f})" for name in one.distinctive()
    )


def _document(done: Clustering) -> dict[str, Any]:
    estimator, columns, choice = done.model.estimator, done.model.columns, done.choice
    return {
        "file": done.file,
        "rows": done.rows,
        "columns": list(columns.names),
        "scaled": not columns.raw,
        "encoded": list(columns.source),
        "algorithm": done.algorithm,
        "n_clusters": len(estimator.cluster_centers_),
        "seed": done.seed,
        "inertia": float(estimator.inertia_) if hasattr(estimator, "inertia_") else None,
        "iterations": int(estimator.n_iter_) if hasattr(estimator, "n_iter_") else None,
        "seconds": round(done.seconds, 4),
        "clusters": [_cluster_entry(one) for one in done.summaries if one.label >= 0],
        "outliers": sum(one.size for one in done.summaries if one.label < 0),
        "choice": None
        if choice is None
        else {
            "criterion": choice.criterion,
            "candidates": [
                {"n_clusters": one.k, "inertia": one.inertia, "score": one.score if np.isfinite(one.score) else None}
                for one in choice.candidates
            ],
        },
        "files": done.files,
        "notes": done.notes,
    }


def _cluster_entry(one: ClusterSummary) -> dict[str, Any]:
    return {"label": one.label, "rows": one.size, "share": one.share, "center": one.center}


def tell_prediction(
    model: str,
    file: str,
    table_model: TableModel,
    labels: np.ndarray,
    output: Path | None,
    notes: list[str],
    as_json: bool,
) -> None:
    """The result of ``coterie predict``."""
    counts = {label: int((labels == label).sum()) for label in range(len(table_model.estimator.cluster_centers_))}
    outliers = int((labels < 0).sum())
    files = {} if output is None else {"labels": str(output)}
    if as_json:
        rows = [{"label": label, "rows": count, "share": count / len(labels)} for label, count in counts.items()]
        document = {
            "model": model, "file": file, "rows": len(labels), "clusters": rows, "outliers": outliers, "files": files,
            "notes": notes,
        }  # fmt: skip
        print(json.dumps(document))
        return
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(f"{escape(file)}: {len(labels):,} rows in the clusters of {escape(model)}", highlight=False)
    table = Table()
    for title in ("cluster", "rows", "share"):
        table.add_column(title, justify="right")
    for label, count in counts.items():
        table.add_row(str(label), f"{count:,}", f"{count / len(labels):.1%}")
    if outliers:
        table.add_row("outliers", f"{outliers:,}", f"{outliers / len(labels):.1%}", style="dim")
    console.print(table)
    tell_files(console, files)


@contextmanager
def training() -> Iterator[Callable[[int, int, float, float], None]]:
    """A bar with the loss and the time left, on a terminal; elsewhere a line now and then."""
    console = Console(stderr=True)
    columns = (TextColumn("step"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("")

        def show(step: int, steps: int, loss: float, seconds_left: float) -> None:
            text = f"loss {loss:.4g}, {seconds_left / 60:.0f} min left"
            progress.update(task, completed=step, total=steps, description=text)
            if not console.is_terminal:
                print(f"step {step} of {steps}: {text}", file=sys.stderr)

        yield show


def tell_models(shelves: dict[str, list[dict[str, Any]]]) -> None:
    """The result of ``coterie models``: the cards on every shelf."""
    table = Table()
    for title in ("name", "kind", "shelf", "description", "size", "training", "licence"):
        table.add_column(title, overflow="fold")
    for shelf, cards in shelves.items():
        for card in cards:
            size = f"{card['bytes'] / 2**10:,.1f} kB"
            minutes = f"{card['training']['cpu_seconds'] / 60:.0f} CPU min"
            cells = (card["name"], card["kind"], shelf, card["about"], size, minutes, card["licence"])
            table.add_row(*map(escape, cells))
    Console(width=None if sys.stdout.isatty() else 120).print(table)
