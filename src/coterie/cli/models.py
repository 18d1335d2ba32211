"""The commands for models and networks: edit, compare, export, models."""

import json
from pathlib import Path
from typing import Any

import typer

from coterie.cli import options
from coterie.cli.application import Refused, app, user_errors
from coterie.cli.options import option
from coterie.cli.outputs import Outputs, identity


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
    model: Path = options.MODEL,
    merge: list[str] | None = option("Join clusters. The first number stays.", "A,B"),
    split: list[str] | None = option("Divide a cluster, into N parts if given.", "A[=N]"),
    pin: list[str] | None = option("Put a row of --rows into a cluster; the first row is 1.", "ROW=A"),
    name: list[str] | None = option("Name a cluster.", "A=NAME"),
    undo: int = typer.Option(0, metavar="N", min=0, help="Take back the last N changes."),
    rows: str | None = option("The table that the model was fitted to, for --split and --pin.", "FILE"),
    output: Path | None = option("The new model.", "FILE", "--output", "-o"),
    as_json: bool = options.JSON,
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
        Outputs(edited=output).check([] if rows is None else [rows], model)
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
    from coterie.wording import joined, number_and_name, plural

    console = wide_console()
    for number, step in enumerate(living.history, 1):
        console.print(f"{number}. {escape(step)}", highlight=False)
    listed = joined([number_and_name(label, living.names_) for label in living.ids_], limit=20)
    console.print(f"{plural(len(living.ids_), 'cluster')}: {escape(listed)}", highlight=False)
    if changes:
        console.print(f"  model: {escape(str(output))}", highlight=False, soft_wrap=True)


@app.command()
def compare(
    before: Path = typer.Argument(metavar="A", help="The earlier model."),
    after: Path = typer.Argument(metavar="B", help="The later model."),
    file: str = typer.Argument(metavar="FILE", help="A table with the columns of both."),
    report: Path | None = option("The page What changed: .html.", "FILE", "--report", "-r"),
    as_json: bool = options.JSON,
) -> None:
    """Say what changed between two models: clusters that continued, began or ended, sizes, flows and drift.

    [bold]Examples[/]

    \b
    coterie cluster may.csv --previous april.model --save may.model
    coterie compare april.model may.model may.csv --report changed.html
    """
    from coterie.cli.console import escape, wide_console
    from coterie.explain.changes import changes
    from coterie.tables.file_reading import source_name

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


@app.command()
def export(
    model: Path = options.MODEL, file: Path = typer.Argument(metavar="FILE", help="The ONNX file to write: .onnx.")
) -> None:
    """Write a model of k-means or one of its variants as an ONNX graph, which runs without Python.

    The graph takes the columns of the table, in the order of the model, and scales them itself. Its outputs are the
    labels and the squared distances to the centres.

    [bold]Examples[/]

    \b
    coterie cluster shop.csv -k 5 --scale --save shop.model
    coterie export shop.model shop.onnx
    """
    from coterie.tabular import TableModel
    from coterie.tabular.onnx_export import export_onnx

    if file.suffix.lower() != ".onnx":
        raise Refused(f"{file}: choose a name that ends in .onnx")
    if identity(file) == identity(model):
        raise Refused(f"{file} would overwrite the model: choose another name.")
    loaded = TableModel.load(model)
    export_onnx(loaded, file)
    print(f"{file}: columns {', '.join(loaded.encoding.names)}")


@app.command()
def models() -> None:
    """List the networks that come with the package, and your own."""
    from rich.table import Table

    from coterie import checkpoints
    from coterie.cli.console import escape, wide_console

    with user_errors(ValueError):
        shelves = {"package": checkpoints.SHELF, "own": checkpoints.user_shelf()}
        cards = [(title, card) for title, shelf in shelves.items() for card in checkpoints.available(shelf)]
    table = Table()
    for title in ("name", "kind", "shelf", "description", "size", "training", "licence"):
        table.add_column(title, overflow="fold")
    for shelf, card in cards:
        size, minutes = f"{card['bytes'] / 2**10:,.1f} kB", f"{card['training']['cpu_seconds'] / 60:.0f} CPU min"
        cells = (card["name"], card["kind"], shelf, card["about"], size, minutes, card["licence"])
        table.add_row(*map(escape, cells))
    wide_console().print(table)
    print(f"Your own networks are in {shelves['own']}. Estimators take a name or a path: FlowMixture(network='NAME').")
