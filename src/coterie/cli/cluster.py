"""Commands for people with a table: cluster, predict, demo."""

from pathlib import Path
from typing import Annotated, Any

import typer

from coterie.cli import in_memory, out_of_core
from coterie.cli.application import Refused, app, make_folder, user_errors


def _option(panel: str | None, *names: str, **settings: Any) -> Any:
    return typer.Option(*names, rich_help_panel=panel, **settings)


WRITTEN, TUNING, BLOCKS = "What to write", "Fine tuning", "Parquet files that do not fit in memory"
Table = Annotated[Path, typer.Argument(metavar="FILE", help="A .csv, .tsv, .parquet or .npy table, one row a point.")]
K = Annotated[
    str | None,
    _option(None, "--clusters", "-k", metavar="K", help="A number, as in 5, or a range, as in 2..12."),
]
Algorithm = Annotated[
    str | None, _option(None, "--algorithm", "-a", metavar="NAME", help="One of the names above.", show_default=False)
]
Columns = Annotated[str | None, _option(None, "--columns", "-c", metavar="A,B", help="Columns to use. Default: all.")]
Exclude = Annotated[str | None, _option(None, "--exclude", "-x", metavar="A,B", help="Columns to leave out.")]
Scale = Annotated[bool, _option(None, "--scale", help="Bring every column to mean 0 and deviation 1.")]
Encode = Annotated[
    bool, _option(None, "--encode", help="Take text as categories and dates as days, fill missing values; also scales.")
]
Criterion = Annotated[
    str | None,
    _option(None, metavar="NAME", help="Chooses from a range, by one of the names above. Default: silhouette."),
]
Header = Annotated[
    bool | None, _option(None, "--header/--no-header", help="Whether line 1 names the columns.", show_default=False)
]
Labels = Annotated[
    Path | None,
    _option(WRITTEN, "--output", "-o", metavar="FILE", help="Each row's cluster: .csv, .tsv, .parquet or .npy."),
]
WithData = Annotated[bool, _option(WRITTEN, "--with-data", help="In --output, the table's own columns too.")]
Plot = Annotated[Path | None, _option(WRITTEN, "--plot", "-p", metavar="FILE", help="A picture of the clusters: .png.")]
Report = Annotated[
    Path | None, _option(WRITTEN, "--report", "-r", metavar="FILE", help="A page that explains the clusters: .html.")
]
MapView = Annotated[
    str | None,
    _option(WRITTEN, "--view", metavar="VIEW", help="Axes of --plot and --report: A,B (columns), pca or umap."),
]
Save = Annotated[Path | None, _option(WRITTEN, "--save", "-s", metavar="FILE", help="The model, for coterie predict.")]
Json = Annotated[bool, _option(WRITTEN, "--json", help="Print one JSON document and nothing else.")]
Trim = Annotated[float | None, _option(TUNING, metavar="SHARE", help="trimmed: rows to leave out. Default: 0.05.")]
Gamma = Annotated[
    float | None, _option(TUNING, metavar="X", help="soft, robust: the larger, the harder. Default: by data.")
]
Starts = Annotated[
    int | None,
    _option(TUNING, metavar="N", min=1, help="Starts; the best is kept. Default: 10, or 1 for large tables."),
]
MaxIter = Annotated[int | None, _option(TUNING, metavar="N", min=1, help="Most iterations of a start. Default: 300.")]
Scheduler = Annotated[
    str | None, _option(BLOCKS, metavar="ADDRESS", help="Run on this Dask cluster, as in tcp://10.0.0.1:8786.")
]
Workers = Annotated[int | None, _option(BLOCKS, metavar="N", min=1, help="Processes of a cluster on this machine.")]
Checkpoint = Annotated[
    Path | None, _option(BLOCKS, metavar="FILE", help="Keep the centres here after every iteration.")
]
Resume = Annotated[bool, _option(BLOCKS, "--resume", help="Go on from the centres in --checkpoint.")]
Seed = Annotated[int, _option(TUNING, metavar="N", min=0, help="The same seed gives the same clusters.")]


@app.command()
def cluster(
    file: Table,
    clusters: K = None,
    algorithm: Algorithm = None,
    columns: Columns = None,
    exclude: Exclude = None,
    scale: Scale = False,
    encode: Encode = False,
    criterion: Criterion = None,
    header: Header = None,
    output: Labels = None,
    with_data: WithData = False,
    plot: Plot = None,
    report: Report = None,
    view: MapView = None,
    save: Save = None,
    as_json: Json = False,
    trim: Trim = None,
    gamma: Gamma = None,
    n_init: Starts = None,
    max_iter: MaxIter = None,
    seed: Seed = 0,
    scheduler: Scheduler = None,
    workers: Workers = None,
    checkpoint: Checkpoint = None,
    resume: Resume = False,
) -> None:
    """Find clusters in a table.

    Without -k a pretrained network (zeroshot) finds clusters of any shape
    and their number; it scales the columns and encodes text by itself.
    With -k the algorithm is kmeans: scale the columns (--scale) when their
    units differ, and let it take text as categories (--encode).

    [bold]Algorithms[/]

    \b
    zeroshot   a pretrained network: clusters of any shape; the default without -k
    kmeans     compact clusters; the default with -k
    trimmed    leaves out the farthest rows; outliers get the label -1
    robust     keeps all rows, but far ones count little
    soft       overlapping clusters
    spherical  clusters of directions: texts, embeddings
    medoids    centres are rows of the table
    incontext  a pretrained network that refines k-means: overlapping clusters, up to 10
    flow       a pretrained network that finds the number of clusters itself
    vae        clusters of any shape, an autoencoder for each; new rows can be drawn from the saved model

    [bold]Criteria that choose from a range[/]

    \b
    silhouette         a row is near its own cluster and far from the next
    calinski-harabasz  variance between clusters over variance within
    davies-bouldin     no two clusters are alike
    gap                inertia against structureless data; can answer 1

    [bold]Examples[/]

    \b
    coterie cluster points.csv --output labels.csv
    coterie cluster shop.csv --scale --report report.html --view age,income
    coterie cluster passengers.csv -k 2..8 --encode --exclude ticket
    coterie cluster wine.csv -k 3 --exclude cultivar --scale --plot wine.png
    coterie cluster shop.parquet -k 2..12 -c age,income --scale --save shop.model
    coterie cluster sensors.npy -k 5 --algorithm trimmed --trim 0.1 --json
    coterie cluster 'clicks/*.parquet' -k 100 --workers 8
    """
    if columns is not None and exclude is not None:
        raise Refused("--columns and --exclude say the same thing in two ways: give one of them.")
    if resume and checkpoint is None:
        raise Refused("--resume goes on from the centres in --checkpoint: name that file too.")
    numbers = None if clusters is None else _numbers(clusters)
    settings = {"trim": trim, "gamma": gamma, "n_init": n_init, "max_iter": max_iter, "random_state": seed}
    if out_of_core.wanted(file, scheduler, workers):
        if numbers is None or len(numbers) > 1 or plot is not None or report is not None or with_data or encode:
            raise Refused(
                "Data in blocks take one number of clusters (-k 5), no --encode, --plot, --report or --with-data."
            )
        settings["max_iter"] = max_iter or 300
        by_name = out_of_core.ColumnRequest.of(columns, exclude, scale)
        request = out_of_core.Request(
            str(file), numbers[0], algorithm or "kmeans", settings, by_name, output, save, as_json
        )
        out_of_core.run(request, out_of_core.Execution(scheduler, workers, checkpoint, resume))
        return
    if checkpoint is not None:
        raise Refused("--checkpoint is for Parquet files in blocks: add --workers 2, or leave it out.")
    in_memory.run(
        in_memory.Request(file, header, columns, exclude, scale, encode, algorithm, numbers, criterion, settings),
        in_memory.Outputs(output, with_data, plot, report, view, save),
        as_json,
    )


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="What `coterie cluster --save MODEL` wrote.")],
    file: Table,
    output: Labels = None,
    with_data: WithData = False,
    header: Header = None,
    as_json: Json = False,
) -> None:
    """Put the rows of another table into the clusters of a saved model.

    Columns are found by name, and scaled and encoded as they were when the model was made.

    [bold]Examples[/]

    \b
    coterie cluster january.csv -k 5 --scale --save shop.model
    coterie predict shop.model february.csv --output february-labels.csv
    """
    from coterie.cli import console
    from coterie.data.tables import read_table, write_labels
    from coterie.tabular import TableModel

    if output is not None and output.resolve() == model.resolve():
        raise Refused(f"--output {output} would overwrite the model: choose another name.")
    with user_errors(ValueError):
        in_memory.Outputs(output, with_data).check(file)
        table_model = TableModel.load(model)
        with console.working(f"Reading {file.name}"):
            frame = read_table(file, header=header)
        labels = table_model.predict(frame)
        if output is not None:
            write_labels(output, labels, frame if with_data else None)
    notes = table_model.columns.gap_notes(frame)
    console.tell_prediction(str(model), str(file), table_model, labels, output, notes, as_json)


@app.command()
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the pictures.")] = Path("demo"),
) -> None:
    """See what it does: a real table, and points with outliers. Takes seconds and writes pictures."""
    from coterie.cli.demo import run

    make_folder(output)
    with user_errors():
        run(output)


def _numbers(text: str) -> list[int]:
    """The numbers of clusters that ``-k`` asks for."""
    first, dots, last = text.strip().partition("..")
    try:
        low = int(first)
        high = int(last) if dots else low
    except ValueError:
        raise Refused(f"-k wants a number, as in 5, or a range, as in 2..12; got {text!r}") from None
    if low < 1:
        raise Refused(f"-k must be at least 1; got {text}")
    if high < low:
        raise Refused(f"-k {text} is an empty range: put the smaller number first, -k {high}..{low}")
    return list(range(low, high + 1))
