"""The commands for tables: cluster, columns, predict, demo."""

from pathlib import Path
from typing import Annotated, Any

import typer

from coterie.catalogue import CATALOGUE, algorithms
from coterie.cli import in_memory
from coterie.cli.application import Refused, app, make_folder, user_errors
from coterie.cli.outputs import Outputs


def _option(panel: str | None, *names: str, **settings: Any) -> Any:
    return typer.Option(*names, rich_help_panel=panel, **settings)


FILES, TUNING, BLOCKS = "Output files", "Fine tuning", "Parquet files that do not fit in memory"
Table = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="A table with one point per row: .csv, .tsv, .json, .jsonl, .parquet, .feather, .npy, .xlsx, "
        ".dta, .sav, .sqlite, .duckdb, the URL of a database, or - for standard input.",
    ),
]
K = Annotated[
    str | None,
    _option(
        None, "--clusters", "-k", metavar="K", help="The number of clusters (5), or a range to choose from (2..12)."
    ),
]
Algorithm = Annotated[
    str | None,
    _option(
        None,
        "--algorithm",
        "-a",
        metavar="NAME",
        help="One of the algorithms above.",
        show_default=False,
        autocompletion=lambda: list(algorithms()),
    ),
]
Columns = Annotated[
    list[str] | None, _option(None, "--columns", "-c", metavar="A,B", help="Columns to use. Default: all.")
]
Exclude = Annotated[list[str] | None, _option(None, "--exclude", "-x", metavar="A,B", help="Columns not to use.")]
Kind = Annotated[
    list[str] | None,
    _option(None, "--kind", metavar="A=KIND", help="Override guessed column kinds, for example year=category,no=id."),
]
Keep = Annotated[
    list[str] | None,
    _option(None, "--keep", metavar="A,B", help="Use these columns even if they seem to be identifiers."),
]
Scale = Annotated[bool, _option(None, "--scale", help="Standardise every column to mean 0 and standard deviation 1.")]
Encode = Annotated[
    bool | None,
    _option(
        None,
        "--encode/--no-encode",
        help="Read text as categories and dates as days, fill missing values, and scale. Default: if the table has "
        "text, dates or missing values.",
    ),
]
Criterion = Annotated[
    str | None,
    _option(None, metavar="NAME", help="The criterion that chooses from a range, see above. Default: silhouette."),
]
Known = Annotated[
    str | None,
    _option(None, "--labels", "-l", metavar="COLUMN", help="Column with known labels; empty means unknown."),
]
Header = Annotated[
    bool | None,
    _option(None, "--header/--no-header", help="Whether line 1 contains column names.", show_default=False),
]
Query = Annotated[
    str | None, _option(None, metavar="SQL", help="The query of a database, or the sheet of an Excel workbook.")
]
Labels = Annotated[
    Path | None,
    _option(
        FILES,
        "--output",
        "-o",
        metavar="FILE",
        help="Cluster and certainty of every row: .csv, .tsv, .parquet, .xlsx or .npy.",
    ),
]
WithData = Annotated[bool, _option(FILES, "--with-data", help="Write the columns of the table to --output too.")]
EscapeFormulas = Annotated[
    bool,
    _option(FILES, "--escape-formulas", help="Write ' before texts that a spreadsheet would run."),
]
Plot = Annotated[
    Path | None, _option(FILES, "--plot", "-p", metavar="FILE", help="A picture of the clusters: .png or .svg.")
]
Report = Annotated[
    Path | None, _option(FILES, "--report", "-r", metavar="FILE", help="A web page that explains the clusters: .html.")
]
MapView = Annotated[
    str | None,
    _option(FILES, "--view", metavar="VIEW", help="Axes of --plot and --report: A,B (columns), pca or umap."),
]
Save = Annotated[Path | None, _option(FILES, "--save", "-s", metavar="FILE", help="The model, for coterie predict.")]
Names = Annotated[
    str | None, _option(FILES, "--names", metavar="A,B", help="Names of the clusters in their order, or 0=A,3=B.")
]
Json = Annotated[bool, _option(FILES, "--json", help="Print one JSON document and nothing else.")]
Trim = Annotated[
    float | None, _option(TUNING, metavar="SHARE", help="trimmed: the share of rows to leave out. Default: 0.05.")
]
Gamma = Annotated[
    float | None,
    _option(TUNING, metavar="X", help="soft, robust: larger values give harder clusters. Default: from the data."),
]
Contexts = Annotated[
    int | None,
    _option(TUNING, metavar="N", min=1, help="zeroshot: number of samples that are read of a large table."),
]
Starts = Annotated[
    int | None,
    _option(TUNING, metavar="N", min=1, help="Number of starts; the best is kept. Default: 10, or 1 for large tables."),
]
MaxIter = Annotated[
    int | None, _option(TUNING, metavar="N", min=1, help="Maximum number of iterations per start. Default: 300.")
]
FromModel = Annotated[
    Path | None,
    _option(TUNING, "--from", metavar="MODEL", help="Cut the hierarchy of this model at -k, without fitting again."),
]
Scheduler = Annotated[
    str | None, _option(BLOCKS, metavar="ADDRESS", help="Run on this Dask cluster, for example tcp://10.0.0.1:8786.")
]
Workers = Annotated[
    int | None, _option(BLOCKS, metavar="N", min=1, help="Number of processes of a cluster on this machine.")
]
Checkpoint = Annotated[
    Path | None, _option(BLOCKS, metavar="FILE", help="Save the centres to this file after every iteration.")
]
Resume = Annotated[bool, _option(BLOCKS, "--resume", help="Continue from the centres in --checkpoint.")]
Seed = Annotated[int, _option(TUNING, metavar="N", min=0, help="Random seed. The same seed gives the same clusters.")]


def _listing_algorithms(command: Any) -> Any:
    """The command with the catalogue in its help."""
    lines = [f"{short:<9}  {CATALOGUE[name].about.rstrip('.')}" for short, name in algorithms().items()]
    command.__doc__ = command.__doc__.replace("ALGORITHMS", "\n    ".join(lines))
    return command


@app.command()
@_listing_algorithms
def cluster(
    file: Table,
    clusters: K = None,
    algorithm: Algorithm = None,
    columns: Columns = None,
    exclude: Exclude = None,
    kind: Kind = None,
    keep: Keep = None,
    scale: Scale = False,
    encode: Encode = None,
    criterion: Criterion = None,
    labels: Known = None,
    header: Header = None,
    query: Query = None,
    output: Labels = None,
    with_data: WithData = False,
    escape_formulas: EscapeFormulas = False,
    plot: Plot = None,
    report: Report = None,
    view: MapView = None,
    save: Save = None,
    names: Names = None,
    as_json: Json = False,
    trim: Trim = None,
    gamma: Gamma = None,
    contexts: Contexts = None,
    n_init: Starts = None,
    max_iter: MaxIter = None,
    seed: Seed = 0,
    from_model: FromModel = None,
    scheduler: Scheduler = None,
    workers: Workers = None,
    checkpoint: Checkpoint = None,
    resume: Resume = False,
) -> None:
    """Find clusters in a table.

    Without -k, a pretrained network (zeroshot) finds the clusters and their
    number; it scales and encodes the columns itself. With -k, the algorithm
    is kmeans, and text, dates and missing values are encoded: add --scale if
    the columns of a table of numbers have different units.

    [bold]Algorithms[/]

    \b
    ALGORITHMS

    [bold]Criteria that choose from a range[/]

    \b
    silhouette         rows are close to their own cluster, far from the next
    calinski-harabasz  variance between clusters over variance within them
    davies-bouldin     no two clusters are similar
    gap                inertia compared with data without clusters; can choose 1

    [bold]Examples[/]

    \b
    coterie cluster points.csv --output labels.csv
    coterie cluster shop.csv --scale --report report.html --view age,income
    coterie cluster passengers.csv -k 2..8 --exclude ticket
    coterie cluster wine.csv -k 3 --exclude cultivar --scale --plot wine.png
    coterie cluster shop.parquet -k 2..12 -c age,income --scale --save shop.model
    coterie cluster sensors.npy -k 5 --algorithm trimmed --trim 0.1 --json
    coterie cluster shop.sqlite --query "SELECT age, spent FROM customers"
    coterie cluster patients.csv --labels diagnosis --output labels.csv
    coterie cluster shop.csv --from shop.model -k 7 --output labels.csv
    coterie cluster 'clicks/*.parquet' -k 100 --workers 8
    """
    use, leave, kinds, keeps = (_joined(one) for one in (columns, exclude, kind, keep))
    if use is not None and leave is not None:
        raise Refused("--columns and --exclude cannot be combined: use one of them.")
    if resume and checkpoint is None:
        raise Refused("--resume continues from the centres in --checkpoint: add that option.")
    numbers = None if clusters is None else _numbers(clusters)
    settings: dict[str, Any] = {"trim": trim, "gamma": gamma, "n_init": n_init, "max_iter": max_iter}
    settings["n_contexts"] = contexts
    outputs = Outputs(output, with_data, plot, report, view, save, escape_formulas, checkpoint)
    how: dict[str, Any] = {"header": header, "query": query, "cells": with_data}
    wanted = {
        "columns": use, "exclude": leave, "kinds": kinds, "keep": keeps or (), "scale": scale, "encode": encode,
        "algorithm": algorithm, "clusters": numbers, "criterion": criterion, "seed": seed, "settings": settings,
        "labels": labels, "names": names or "",
    }  # fmt: skip
    if from_model is not None:
        chosen = (algorithm, use, leave, criterion, labels, kinds, keeps, scheduler, workers, *settings.values())
        if numbers is None or len(numbers) > 1:
            raise Refused("--from MODEL needs one number of clusters: add, for example, -k 7.")
        if scale or encode or any(one is not None for one in chosen):
            raise Refused(
                "--from MODEL uses the columns and settings of the model: remove the options that choose or set them."
            )
        in_memory.recut(from_model, file, how, numbers[0], names or "", outputs, as_json)
        return
    in_memory.run(file, how, wanted, outputs, as_json, (scheduler, workers, checkpoint, resume))


@app.command()
def columns(
    file: Table, kind: Kind = None, keep: Keep = None, header: Header = None, query: Query = None, as_json: Json = False
) -> None:
    """Show how the columns of a table are read, before it is clustered.

    A column is a number, a count, an ordinal (steps of a scale), a category,
    a date, an id or text. The kind is guessed from the values and the name.
    Ids, free text and constant columns are not used; numbers with a decimal
    comma, a currency or a unit and dates in any usual order are understood.

    [bold]Examples[/]

    \b
    coterie columns shop.csv
    coterie columns shop.csv --kind year=category,account_no=id
    coterie columns shop.csv --kind joined=date:dmy --keep customer
    """
    from coterie.cli import columns as listing

    listing.run(file, {"header": header, "query": query}, _joined(kind), _joined(keep), as_json)


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A file that `coterie cluster --save MODEL` wrote.")],
    file: Table,
    output: Labels = None,
    with_data: WithData = False,
    escape_formulas: EscapeFormulas = False,
    header: Header = None,
    query: Query = None,
    as_json: Json = False,
) -> None:
    """Assign the rows of another table to the clusters of a saved model.

    Columns are found by name. They are scaled and encoded as they were when the model was fitted.

    [bold]Examples[/]

    \b
    coterie cluster january.csv -k 5 --scale --save shop.model
    coterie predict shop.model february.csv --output february-labels.csv
    """
    outputs = Outputs(output, with_data, escape_formulas=escape_formulas)
    how = {"header": header, "query": query, "cells": with_data}
    in_memory.predict(model, file, how, outputs, as_json)


@app.command()
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the pictures.")] = Path("demo"),
) -> None:
    """Show what the library does on a mixed table and on points with outliers. Takes seconds and writes pictures."""
    from coterie.cli.demo import run

    make_folder(output)
    with user_errors():
        run(output)


def _joined(given: list[str] | None) -> str | None:
    """The values of an option that can be repeated, as one text with commas."""
    return ",".join(given) if given else None


def _numbers(text: str) -> list[int]:
    """The numbers of clusters that ``-k`` asks for."""
    first, dots, last = text.strip().partition("..")
    try:
        low = int(first)
        high = int(last) if dots else low
    except ValueError:
        raise Refused(f"-k must be a number, such as 5, or a range, such as 2..12; got {text!r}") from None
    if low < 1:
        raise Refused(f"-k must be at least 1; got {text}")
    if high < low:
        raise Refused(f"-k {text} is an empty range: put the smaller number first, -k {high}..{low}")
    return list(range(low, high + 1))
