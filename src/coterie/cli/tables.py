"""Commands for people with a table: cluster, predict, demo."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from coterie.cli import scale as scale_by_blocks
from coterie.cli.base import Refused, app, make_folder, split_names, user_errors


def _option(panel: str | None, *names: str, **settings: Any) -> Any:
    return typer.Option(*names, rich_help_panel=panel, **settings)


LARGE = 100_000  # rows
MOST_ROWS_READ = 1_000_000  # by zeroshot
DEFAULT_RANGE = "2..10"
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

    Without -k a pretrained network (zeroshot) finds clusters of any shape and their number, and scales the columns
    itself. With -k the algorithm is kmeans: scale the columns (--scale) when their units differ.

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
    coterie cluster wine.csv -k 3 --exclude cultivar --scale --plot wine.png
    coterie cluster shop.parquet -k 2..12 -c age,income --scale --save shop.model
    coterie cluster sensors.npy -k 5 --algorithm trimmed --trim 0.1 --json
    coterie cluster 'clicks/*.parquet' -k 100 --workers 8
    """
    from coterie.cli import console
    from coterie.data.tables import read_table
    from coterie.tabular import Columns as ChosenColumns
    from coterie.tabular import TableModel, check_algorithm, fit_table, make_estimator, summarise

    started = time.perf_counter()
    wanted = _numbers(clusters or DEFAULT_RANGE)
    asked = (algorithm, clusters, criterion, trim, gamma, n_init, max_iter, scheduler, workers)
    automatic = all(one is None for one in asked)
    algorithm = "zeroshot" if automatic else algorithm or "kmeans"
    if columns is not None and exclude is not None:
        raise Refused("--columns and --exclude say the same thing in two ways: give one of them.")
    if resume and checkpoint is None:
        raise Refused("--resume goes on from the centres in --checkpoint: name that file too.")
    settings = {"trim": trim, "gamma": gamma, "n_init": n_init, "max_iter": max_iter, "random_state": seed}
    if scale_by_blocks.wanted(file, scheduler, workers):
        if len(wanted) > 1 or plot is not None or report is not None or with_data:
            raise Refused("Data in blocks take one number of clusters (-k 5), no --plot, --report or --with-data.")
        chosen_by_name = scale_by_blocks.ColumnWish.of(columns, exclude, scale)
        settings["max_iter"] = max_iter or 300
        wish = scale_by_blocks.Wish(str(file), wanted[0], algorithm, settings, chosen_by_name, output, save, as_json)
        scale_by_blocks.run(wish, scale_by_blocks.Place(scheduler, workers, checkpoint, resume))
        return
    if checkpoint is not None:
        raise Refused("--checkpoint is for Parquet files in blocks: add --workers 2, or leave it out.")
    with user_errors():
        _check_places(file, output, with_data, plot, save, report)
        check_algorithm(algorithm)
        with console.working(f"Reading {file.name}"):
            frame = read_table(file, header=header)
            if automatic and len(frame) > MOST_ROWS_READ:
                algorithm = "kmeans"
            names = _chosen_columns(frame, columns, exclude)
            # zeroshot scales inside: picture and report then show what it saw
            chosen = ChosenColumns.of(frame, names, scale=scale or algorithm == "zeroshot")
        axes = _axes(view, chosen.names, drawn=plot is not None or report is not None)
        usual = {"n_init": 10 if len(frame) <= LARGE else 1, "max_iter": 300}
        model = TableModel(make_estimator(algorithm, usual, **settings), chosen)
        wanted = _possible(wanted, model.estimator, algorithm, len(frame), by_default=clusters is None)
        if criterion is not None and len(wanted) < 2:
            raise Refused("--criterion chooses from a range of numbers of clusters: give one, as in -k 2..12.")
    with user_errors(ValueError), console.counting("Trying numbers of clusters", len(wanted)) as advance:
        fitted = fit_table(
            model,
            frame,
            wanted,
            criterion=criterion or "silhouette",
            seed=seed,
            verbose=sys.stderr.isatty(),
            on_candidate=advance,
        )
    done = console.Clustering(
        file=str(file),
        algorithm=algorithm,
        rows=len(frame),
        model=fitted.model,
        summaries=summarise(fitted.model, frame, fitted.labels),
        choice=fitted.choice,
        seed=seed,
        seconds=time.perf_counter() - started,
        notes=console.spread_notes(frame, fitted.model) + list(fitted.warnings),
    )
    with user_errors():
        _write(done, frame, fitted.labels, output, with_data, plot, axes, save)
        if report is not None:
            with console.working("Writing the report"):
                done.files["report"] = str(_report(report, done, frame, axes, list(fitted.warnings)))
    console.tell(done, as_json)


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

    Columns are found by name, and scaled as they were when the model was made.

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
        _check_places(file, output, with_data)
        table_model = TableModel.load(model)
        with console.working(f"Reading {file.name}"):
            frame = read_table(file, header=header)
        labels = table_model.predict(frame)
        if output is not None:
            write_labels(output, labels, frame if with_data else None)
    console.tell_prediction(str(model), str(file), table_model, labels, output, as_json)


@app.command()
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the pictures.")] = Path("demo"),
) -> None:
    """See what it does: a real table, and points with outliers. Takes seconds and writes pictures."""
    from coterie.cli.demonstration import run

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


def _possible(wanted: list[int], estimator: Any, algorithm: str, rows: int, *, by_default: bool) -> list[int]:
    """The numbers of clusters to try; none for an algorithm that finds it."""
    from coterie.tabular import finds_count

    if finds_count(estimator):
        if by_default:
            return []
        if len(wanted) > 1 or "n_clusters" not in estimator.get_params():
            raise Refused(f"The algorithm {algorithm!r} finds the number of clusters itself: leave -k out.")
    elif by_default and rows >= 3:
        return [k for k in wanted if k < rows]
    if wanted[-1] > rows:
        raise Refused(f"-k asks for {wanted[-1]} clusters, but the table has {rows} rows: take {rows} or fewer.")
    return wanted


def _chosen_columns(frame: Any, columns: str | None, exclude: str | None) -> list[str] | None:
    from coterie.data.tables import all_but

    known = list(frame.columns)
    if exclude is not None:
        return all_but(frame, split_names(exclude, known))
    return None if columns is None else split_names(columns, known)


def _check_places(
    file: Path,
    output: Path | None,
    with_data: bool = False,
    plot: Path | None = None,
    save: Path | None = None,
    report: Path | None = None,
) -> None:
    """Everything that would go wrong when writing, found before the work begins."""
    from coterie.data.tables import check_labels_place
    from coterie.files import check_writable

    taken = {file.resolve(): "the input"}
    for option, path in (("--output", output), ("--plot", plot), ("--save", save), ("--report", report)):
        if path is None:
            continue
        if path.resolve() in taken:
            raise Refused(f"{option} {path} would overwrite {taken[path.resolve()]}: choose another name.")
        taken[path.resolve()] = f"what {option} writes"
    if output is not None:
        check_labels_place(output, with_data=with_data)
    elif with_data:
        raise Refused("--with-data needs a place to write to: add --output labels.csv")
    if plot is not None and plot.suffix.lower() != ".png":
        raise Refused(f"{plot}: pictures are PNG files. Give a name that ends in .png")
    if report is not None and report.suffix.lower() not in (".html", ".htm"):
        raise Refused(f"{report}: a report is a web page. Give a name that ends in .html")
    for path in (plot, save, report):
        if path is not None:
            check_writable(path)


def _axes(view: str | None, names: Sequence[str], *, drawn: bool) -> str | list[str]:
    """What ``--view`` asks for: a kind of map, or one or two columns."""
    from importlib.util import find_spec

    if view is None:
        return "auto"
    if not drawn:
        raise Refused("--view is for a picture: add --report report.html or --plot clusters.png")
    if view in ("pca", "umap"):
        if view == "umap" and find_spec("umap") is None:
            raise Refused("--view umap needs UMAP: pip install umap-learn, or take --view pca")
        return view
    columns = split_names(view, names)
    unknown = [name for name in columns if name not in names]
    if unknown or len(columns) > 2:
        what = f"{unknown[0]!r} is not among the clustered columns" if unknown else "a map has one or two columns"
        raise Refused(f"--view {view}: {what}. Give A,B of {', '.join(names[:20])}; or pca, or umap.")
    return columns


def _write(
    done: Any,
    frame: Any,
    labels: Any,
    output: Path | None,
    with_data: bool,
    plot: Path | None,
    axes: str | list[str],
    save: Path | None,
) -> None:
    from coterie.data.tables import write_labels
    from coterie.tabular import draw

    if output is not None:
        done.files["labels"] = str(write_labels(output, labels, frame if with_data else None))
    if plot is not None:
        title = f"{Path(done.file).name}: {len(done.model.estimator.cluster_centers_)} clusters by {done.algorithm}"
        done.files["plot"] = str(draw(plot, done.model, frame, labels, title, axes))
    if save is not None:
        done.files["model"] = str(done.model.save(save))


def _report(path: Path, done: Any, frame: Any, axes: str | list[str], warnings: list[str]) -> Path:
    import shlex

    from coterie.reporting import Origin, report

    columns = done.model.columns
    words = [Path(word).name if "/" in word else word for word in sys.argv[1:]]  # a report tells no folders
    command = shlex.join(["coterie", *words]) if Path(sys.argv[0]).stem == "coterie" else None
    origin = Origin(Path(done.file).name, columns.names, columns.scale is not None, command, done.seconds)
    matrix = done.model.input(frame)
    report(
        done.model.estimator, matrix, path,
        table=frame, view=axes, choice=done.choice, origin=origin, notes=warnings,
    )  # fmt: skip
    return path
