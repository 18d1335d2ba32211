"""Commands for saved models: edit their clusters, and compare two of them."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from coterie.cli.application import Refused, app, user_errors
from coterie.cli.outputs import Outputs


def _pairs(option: str, given: list[str] | None) -> list[tuple[int, str]]:
    """``1=regulars``, ``2=guests`` as pairs of a number and a text."""
    found = []
    for text in given or []:
        number, _, rest = text.partition("=")
        if not number.strip().isdigit():
            raise Refused(f"{option} {text}: {number!r} is not the number of a cluster.")
        found.append((int(number), rest.strip()))
    return found


def _whole(option: str, text: str) -> int:
    if not text.strip().isdigit():
        raise Refused(f"{option}: {text!r} is not a whole number.")
    return int(text)


@app.command()
def edit(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A file that `coterie cluster --save MODEL` wrote.")],
    merge: Annotated[
        list[str] | None, typer.Option("--merge", metavar="A,B", help="Join clusters. The first number stays.")
    ] = None,
    split: Annotated[
        list[str] | None, typer.Option("--split", metavar="A[=N]", help="Divide a cluster, into N parts if given.")
    ] = None,
    pin: Annotated[
        list[str] | None,
        typer.Option("--pin", metavar="ROW=A", help="Put a row of --rows into a cluster; the first row is 1."),
    ] = None,
    name: Annotated[list[str] | None, typer.Option("--name", metavar="A=NAME", help="Name a cluster.")] = None,
    undo: Annotated[int, typer.Option("--undo", metavar="N", min=0, help="Take back the last N changes.")] = 0,
    rows: Annotated[
        str | None,
        typer.Option("--rows", metavar="FILE", help="The table that the model was fitted to, for --split and --pin."),
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="The new model.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")] = False,
) -> None:
    """Change the clusters of a saved model, and list what was changed so far.

    The model stays as it is; the new one predicts, and remembers the changes. They are made in the order undo, merge,
    split, pin, name. Models of zeroshot are split along their hierarchy; others are fitted again to the rows of the
    cluster, which --rows gives.

    [bold]Examples[/]

    \b
    coterie edit shop.model --merge 0,3 --name "1=regulars" --output shop2.model
    coterie edit shop.model --split 2=3 --rows shop.csv --output shop2.model
    coterie edit shop2.model --undo 1 --output shop3.model
    coterie edit shop2.model
    """
    from coterie.tables.table import Table
    from coterie.tabular import EncodedTable, TableModel

    changes = bool(merge or split or pin or name or undo)
    if changes and output is None:
        raise Refused("The changed model needs a file: add --output NEW.model")
    if pin and rows is None:
        raise Refused("--pin needs the table that the model was fitted to: add --rows TABLE.csv")
    with user_errors(ValueError):
        Outputs(save=output).check([] if rows is None else [rows], model)
        loaded = TableModel.load(model)
        living = loaded.living
        X: Any = None if rows is None else EncodedTable.apply(loaded.encoding, Table.read(rows)).rows
        for _ in range(undo):
            living = living.undo()
        for text in merge or []:
            living = living.merge([_whole(f"--merge {text}", one) for one in text.split(",")])
        for label, parts in _pairs("--split", split):
            living = living.split(label, _whole(f"--split {label}={parts}", parts) if parts else None, X=X)
        for row, to in _pairs("--pin", pin):
            living = living.pin([row - 1], _whole(f"--pin {row}={to}", to), X=X)
        for label, text in _pairs("--name", name):
            living = living.rename(label, text)
        if changes:
            assert output is not None
            loaded.with_living(living).save(output)
    document: dict[str, Any] = {"model": str(output or model), "clusters": living.ids_, "history": living.history}
    document["names"] = {str(label): text for label, text in living.names_.items()}
    if as_json:
        print(json.dumps(document))
        return
    from coterie.cli.console import escape, wide_console
    from coterie.wording import cluster_name, joined

    console = wide_console()
    for number, step in enumerate(living.history, 1):
        console.print(f"{number}. {escape(step)}", highlight=False)
    listed = joined([cluster_name(label, living.names_) for label in living.ids_], limit=20)
    console.print(f"{len(living.ids_)} clusters: {escape(listed)}", highlight=False)
    if changes:
        console.print(f"  model: {escape(str(output))}", highlight=False, soft_wrap=True)


@app.command()
def compare(
    before: Annotated[Path, typer.Argument(metavar="A", help="The earlier model.")],
    after: Annotated[Path, typer.Argument(metavar="B", help="The later model.")],
    file: Annotated[str, typer.Argument(metavar="FILE", help="A table with the columns of both.")],
    report: Annotated[
        Path | None, typer.Option("--report", "-r", metavar="FILE", help="The page What changed: .html.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")] = False,
) -> None:
    """Say what changed between two models: clusters that continued, began or ended, sizes, flows and drift.

    [bold]Examples[/]

    \b
    coterie cluster may.csv --previous april.model --save may.model
    coterie compare april.model may.model may.csv --report changed.html
    """
    from coterie.cli.console import escape, wide_console
    from coterie.explain.changes import changes
    from coterie.tables.sources import source_name

    with user_errors(ValueError):
        Outputs(report=report).check([file, before], after)
        found = changes(before, after, file)
        if report is not None:
            found.page(report, f"What changed: {source_name(before)} to {source_name(after)}")
    if as_json:
        print(json.dumps(found.document()))
        return
    console = wide_console()
    for sentence in found.sentences:
        console.print(escape(sentence), highlight=False)
    if report is not None:
        console.print(f" report: {escape(str(report))}", highlight=False, soft_wrap=True)
