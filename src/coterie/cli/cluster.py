"""The commands for tables: cluster, columns, predict, demo."""

from pathlib import Path
from typing import Annotated, Any

import typer

from coterie.catalogue import CATALOGUE, algorithms
from coterie.cli import in_memory
from coterie.cli.application import Refused, app, make_folder, user_errors
from coterie.cli.outputs import Outputs

CHANGED = 3  # exit code
FILES, TUNING, BLOCKS = "Output files", "Fine tuning", "Parquet files that do not fit in memory"


def _option(about: str, metavar: str | None = None, *names: str, panel: str | None = None, **more: Any) -> Any:
    return typer.Option(None, *names, metavar=metavar, help=about, rich_help_panel=panel, show_default=False, **more)


def _flag(about: str, *names: str, panel: str | None = None) -> Any:
    return typer.Option(False, *names, help=about, rich_help_panel=panel)


FILE = typer.Argument(
    metavar="FILE",
    help="A table with one point per row: .csv, .tsv, .json, .jsonl, .parquet, .feather, .npy, .xlsx, .dta, .sav, "
    ".sqlite, .duckdb, the URL of a database, or - for standard input.",
)
MODEL = typer.Argument(metavar="MODEL", help="A file that `coterie cluster --save MODEL` wrote.")
CLUSTERS = _option("The number of clusters (5), or a range to choose from (2..12).", "K", "--clusters", "-k")
ALGORITHM = _option(
    "One of the algorithms above.", "NAME", "--algorithm", "-a", autocompletion=lambda: list(algorithms())
)
COLUMNS = _option("Columns to use. Default: all.", "A,B", "--columns", "-c")
EXCLUDE = _option("Columns not to use.", "A,B", "--exclude", "-x")
KIND = _option("Override guessed column kinds, for example year=category,no=id.", "A=KIND")
KEEP = _option("Use these columns even if they seem to be identifiers.", "A,B")
SCALE = _flag("Standardise every column to mean 0 and standard deviation 1.", "--scale")
ENCODE = _option(
    "Read text as categories and dates as days, fill missing values, and scale. Default: if the table has text, dates "
    "or missing values.", None, "--encode/--no-encode",
)  # fmt: skip
CRITERION = _option("The criterion that chooses from a range, see above. Default: silhouette.", "NAME")
KNOWN = _option("Column with known labels; empty means unknown.", "COLUMN", "--labels", "-l")
HEADER = _option("Whether line 1 contains column names.", None, "--header/--no-header")
QUERY = _option("The query of a database, or the sheet of an Excel workbook.", "SQL")
OUTPUT = _option(
    "Cluster and certainty of every row: .csv, .tsv, .parquet, .xlsx or .npy.", "FILE", "--output", "-o", panel=FILES
)
WITH_DATA = _flag("Write the columns of the table to --output too.", "--with-data", panel=FILES)
ESCAPE = _flag("Write ' before texts that a spreadsheet would run.", "--escape-formulas", panel=FILES)
PLOT = _option("A picture of the clusters: .png or .svg.", "FILE", "--plot", "-p", panel=FILES)
REPORT = _option("A web page that explains the clusters: .html.", "FILE", "--report", "-r", panel=FILES)
VIEW = _option("Axes of --plot and --report: A,B (columns), pca or umap.", "VIEW", "--view", panel=FILES)
SAVE = _option("The model, for coterie predict.", "FILE", "--save", "-s", panel=FILES)
NAMES = _option("Names of the clusters in their order, or 0=A,3=B.", "A,B", "--names", panel=FILES)
JSON = _flag("Print one JSON document and nothing else.", "--json", panel=FILES)
TRIM = _option("trimmed: the share of rows to leave out. Default: 0.05.", "SHARE", panel=TUNING)
GAMMA = _option("soft, robust: larger values give harder clusters. Default: from the data.", "X", panel=TUNING)
CONTEXTS = _option("zeroshot: number of samples that are read of a large table.", "N", panel=TUNING, min=1)
STARTS = _option("Number of starts; the best is kept. Default: 10, or 1 for large tables.", "N", panel=TUNING, min=1)
MAX_ITER = _option("Maximum number of iterations per start. Default: 300.", "N", panel=TUNING, min=1)
FROM = _option("Cut the hierarchy of this model at -k, without fitting again.", "MODEL", "--from", panel=TUNING)
SEED = typer.Option(
    0, metavar="N", min=0, help="Random seed. The same seed gives the same clusters.", rich_help_panel=TUNING
)
PREVIOUS = _option(
    "A model of an earlier table: clusters that continue one of its clusters keep its number and name.", "MODEL",
    panel=TUNING,
)  # fmt: skip
SCHEDULER = _option("Run on this Dask cluster, for example tcp://10.0.0.1:8786.", "ADDRESS", panel=BLOCKS)
WORKERS = _option("Number of processes of a cluster on this machine.", "N", panel=BLOCKS, min=1)
CHECKPOINT = _option("Save the centres to this file after every iteration.", "FILE", panel=BLOCKS)
CHECK = _flag(
    "Compare the rows with those of the fit: what fits no cluster, sizes, drift. The exit code is 0 if they are as "
    "before, and 3 if they changed.", "--check",
)  # fmt: skip
RESUME = _flag("Continue from the centres in --checkpoint.", "--resume", panel=BLOCKS)


def _listing_algorithms(command: Any) -> Any:
    """The command with the catalogue in its help."""
    lines = [f"{short:<9}  {CATALOGUE[name].about.rstrip('.')}" for short, name in algorithms().items()]
    command.__doc__ = command.__doc__.replace("ALGORITHMS", "\n    ".join(lines))
    return command


@app.command()
@_listing_algorithms
def cluster(
    file: str = FILE,
    clusters: str | None = CLUSTERS,
    algorithm: str | None = ALGORITHM,
    columns: list[str] | None = COLUMNS,
    exclude: list[str] | None = EXCLUDE,
    kind: list[str] | None = KIND,
    keep: list[str] | None = KEEP,
    scale: bool = SCALE,
    encode: bool | None = ENCODE,
    criterion: str | None = CRITERION,
    labels: str | None = KNOWN,
    header: bool | None = HEADER,
    query: str | None = QUERY,
    output: Path | None = OUTPUT,
    with_data: bool = WITH_DATA,
    escape_formulas: bool = ESCAPE,
    plot: Path | None = PLOT,
    report: Path | None = REPORT,
    view: str | None = VIEW,
    save: Path | None = SAVE,
    names: str | None = NAMES,
    as_json: bool = JSON,
    trim: float | None = TRIM,
    gamma: float | None = GAMMA,
    contexts: int | None = CONTEXTS,
    n_init: int | None = STARTS,
    max_iter: int | None = MAX_ITER,
    seed: int = SEED,
    from_model: Path | None = FROM,
    previous: Path | None = PREVIOUS,
    scheduler: str | None = SCHEDULER,
    workers: int | None = WORKERS,
    checkpoint: Path | None = CHECKPOINT,
    resume: bool = RESUME,
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
    coterie cluster may.csv --previous april.model --save may.model
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
        "labels": labels, "names": names or "", "previous": previous,
    }  # fmt: skip
    if from_model is not None:
        chosen = (
            algorithm,
            use,
            leave,
            criterion,
            labels,
            kinds,
            keeps,
            scheduler,
            workers,
            previous,
            *settings.values(),
        )
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
    file: str = FILE,
    kind: list[str] | None = KIND,
    keep: list[str] | None = KEEP,
    header: bool | None = HEADER,
    query: str | None = QUERY,
    as_json: bool = JSON,
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
    model: Path = MODEL,
    file: str = FILE,
    output: Path | None = OUTPUT,
    with_data: bool = WITH_DATA,
    escape_formulas: bool = ESCAPE,
    header: bool | None = HEADER,
    query: str | None = QUERY,
    check: bool = CHECK,
    as_json: bool = JSON,
) -> None:
    """Assign the rows of another table to the clusters of a saved model.

    Columns are found by name. They are scaled and encoded as they were when the model was fitted.

    [bold]Examples[/]

    \b
    coterie cluster january.csv -k 5 --scale --save shop.model
    coterie predict shop.model february.csv --output february-labels.csv
    coterie predict shop.model february.csv --check || echo "look at the clusters again"
    """
    outputs = Outputs(output, with_data, escape_formulas=escape_formulas)
    how = {"header": header, "query": query, "cells": with_data}
    if in_memory.predict(model, file, how, outputs, as_json, check):
        raise typer.Exit(CHANGED)


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
