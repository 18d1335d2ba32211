"""The commands for tables: demo, cluster, columns, granularity, predict."""

import json
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from coterie.catalogue import CATALOGUE, algorithms
from coterie.cli import options
from coterie.cli.application import Refused, app, user_errors, working
from coterie.cli.options import flag, for_blocks, option, to_file, tuning
from coterie.cli.outputs import Outputs

CHANGED = 3  # exit code


@app.command()
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the pictures.")] = Path("demo"),
) -> None:
    """Show what the library does on a mixed table and on points with outliers. Takes seconds and writes pictures."""
    from coterie.cli.demo import run
    from coterie.files import make_folder

    run(make_folder(output))


def _listing_algorithms(command: Any) -> Any:
    """The command with the catalogue in its help."""
    lines = [f"{short:<9}  {CATALOGUE[name].about.rstrip('.')}" for short, name in algorithms().items()]
    command.__doc__ = command.__doc__.replace("ALGORITHMS", "\n    ".join(lines))
    return command


@app.command()
@_listing_algorithms
def cluster(
    file: str = options.FILE,
    clusters: str | None = option(
        "The number of clusters (5), or a range to choose from (2..12).", "K", "--clusters", "-k"
    ),
    algorithm: str | None = option(
        "One of the algorithms above.", "NAME", "--algorithm", "-a", autocompletion=lambda: list(algorithms())
    ),
    columns: list[str] | None = option("Columns to use. Default: all.", "A,B", "--columns", "-c"),
    exclude: list[str] | None = option("Columns not to use.", "A,B", "--exclude", "-x"),
    kind: list[str] | None = options.KIND,
    keep: list[str] | None = options.KEEP,
    scale: bool | None = option(
        "Scale every column to the same spread, or none. Default: as suits encoded columns; none of other numbers.",
        None,
        "--scale/--no-scale",
    ),
    encode: bool | None = option(
        "Read text as categories and dates as days, fill missing values, and scale. Default: if the table has text, "
        "dates or missing values.",
        None,
        "--encode/--no-encode",
    ),
    criterion: str | None = option("The criterion that chooses from a range, see above. Default: silhouette.", "NAME"),
    labels: str | None = option("Column with known labels; empty means unknown.", "COLUMN", "--labels", "-l"),
    text: str | None = option("A column of texts, which are compared by what they say.", "COLUMN", "--text"),
    embedder: str | None = tuning(
        "For --text: tfidf, wordllama, or the folder of a model of sentence-transformers or model2vec. Default: "
        "wordllama if it is installed, else tfidf.",
        "NAME",
    ),
    header: bool | None = options.HEADER,
    skip_rows: int = options.SKIP,
    query: str | None = options.QUERY,
    output: Path | None = options.OUTPUT,
    with_data: bool = options.WITH_DATA,
    escape_formulas: bool = options.ESCAPE,
    plot: Path | None = to_file("A picture of the clusters: .png or .svg.", "FILE", "--plot", "-p"),
    report: Path | None = to_file("A web page that explains the clusters: .html.", "FILE", "--report", "-r"),
    view: str | None = to_file("Axes of --plot and --report: A,B (columns), pca or umap.", "VIEW", "--view"),
    save: Path | None = to_file("The model, for coterie predict.", "FILE", "--save", "-s"),
    names: str | None = to_file("Names of the clusters in their order, or 0=A,3=B.", "A,B", "--names"),
    as_json: bool = options.JSON,
    outliers: str | None = tuning(
        "zeroshot, trimmed, flow: how many rows may stay outside: auto, none or a share. Default: auto, 0.05 and none.",
        "SHARE",
    ),
    trim: float | None = typer.Option(None, hidden=True),  # the name of outliers in 0.1.0
    gamma: float | None = tuning("soft, robust: larger values give harder clusters. Default: from the data.", "X"),
    sizes: str | None = tuning(
        "kmeans, spherical, trimmed: fewest and most rows of a cluster (50..200, 50.. or ..200), or balanced.",
        "MIN..MAX",
    ),
    contexts: str | None = tuning(
        "zeroshot: number of samples that are read of a large table, or auto: until the clusters stay the same.", "N"
    ),
    n_init: int | None = tuning("Number of starts; the best is kept. Default: 10, or 1 for large tables.", "N", min=1),
    max_iter: int | None = tuning("Maximum number of iterations per start. Default: 300.", "N", min=1),
    seed: int = typer.Option(
        0, metavar="N", min=0, help="Random seed. The same seed gives the same clusters.", rich_help_panel="Fine tuning"
    ),
    from_model: Path | None = tuning(
        "Cut the hierarchy of this model at -k, without fitting again.", "MODEL", "--from"
    ),
    previous: Path | None = tuning(
        "A model of an earlier table: clusters that continue one of its clusters keep its number and name.", "MODEL"
    ),
    scheduler: str | None = for_blocks("Run on this Dask cluster, for example tcp://10.0.0.1:8786.", "ADDRESS"),
    workers: int | None = for_blocks("Number of processes of a cluster on this machine.", "N", min=1),
    checkpoint: Path | None = for_blocks("Save the centres to this file after every iteration.", "FILE"),
    resume: bool = flag("Continue from the centres in --checkpoint.", "--resume", panel=options.BLOCKS),
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
    coterie cluster sensors.npy -k 5 --algorithm trimmed --outliers 0.1 --json
    coterie cluster shop.sqlite --query "SELECT age, spent FROM customers"
    coterie cluster patients.csv --labels diagnosis --output labels.csv
    coterie cluster shop.csv --from shop.model -k 7 --output labels.csv
    coterie cluster may.csv --previous april.model --save may.model
    coterie cluster posts.csv --text body --report topics.html
    coterie cluster 'clicks/*.parquet' -k 100 --workers 8
    """
    with working("Starting"):
        from coterie.cli import console
        from coterie.tabular import Blocks, Request, TableModel, cluster_table
        from coterie.tabular.clustering import recut_table
        from coterie.tabular.make_estimator import outliers_of, sizes_of
        from coterie.tabular.partial_labels import cluster_names

    use, leave, kinds, keeps = (",".join(one) if one else None for one in (columns, exclude, kind, keep))
    if use is not None and leave is not None:
        raise Refused("--columns and --exclude cannot be combined: use one of them.")
    if embedder is not None and text is None:
        raise Refused("--embedder is for texts: add --text COLUMN.")
    if text is not None and save is not None:
        raise Refused("A model of texts cannot be saved, because it has not their embeddings: use --output.")
    if resume and checkpoint is None:
        raise Refused("--resume continues from the centres in --checkpoint: add that option.")
    ks = None if clusters is None else _numbers(clusters)
    settings: dict[str, Any] = {
        "outliers": trim if outliers is None else outliers_of(outliers),
        "gamma": gamma,
        "n_init": n_init,
        "max_iter": max_iter,
        "n_contexts": _samples(contexts),
    }
    settings["sizes"] = None if sizes is None else sizes_of(sizes)
    outputs = Outputs(output, with_data, plot, report, view, save, escape_formulas, checkpoint)
    called = cluster_names(names or "")
    how: dict[str, Any] = {"header": header, "skip_rows": skip_rows, "query": query, "cells": with_data}
    if trim is not None:
        print("note: --trim is called --outliers now, and will be removed", file=sys.stderr)
        algorithm = algorithm or "trimmed"
    if from_model is not None:
        chosen = (algorithm, use, leave, criterion, labels, kinds, keeps, scheduler, workers, previous, text)
        if ks is None or len(ks) > 1:
            raise Refused("--from MODEL needs one number of clusters: add, for example, -k 7.")
        if encode or any(one is not None for one in (scale, *chosen, *settings.values())):
            raise Refused(
                "--from MODEL uses the columns and settings of the model: remove the options that choose or set them."
            )
        outputs.check([file], from_model)
        with console.working(f"Reading {shown_source(file)}"):
            recut = recut_table(file, TableModel.load(from_model), ks[0], **how)
        recut = recut.named(called) if called else recut
        _finish(file, recut, outputs, outputs.axes(recut.value_names), as_json)
        return
    blocks = Blocks(scheduler, workers, checkpoint, resume, output)
    in_blocks = blocks.are_needed(file)
    if in_blocks:
        outputs = outputs.in_parts(file, blocks)
    elif checkpoint is not None:
        raise Refused("--checkpoint is for Parquet files in blocks: add --workers 2, or remove --checkpoint.")
    else:
        outputs.check([file], previous)
    request = Request(
        use, leave, scale, encode, kinds=kinds, keep=keeps or (), algorithm=algorithm, clusters=ks, criterion=criterion,
        seed=seed, labels=labels, names=called, settings=settings, previous=previous, text=text,
        embedder=embedder or "auto",
    )  # fmt: skip
    watcher = console.ProgressWatcher(outputs, in_blocks=in_blocks and not as_json)
    found = cluster_table(file, request, watcher, blocks=blocks, **how)
    _finish(file, found, outputs, watcher.axes, as_json)


@app.command()
def columns(
    file: str = options.FILE,
    kind: list[str] | None = options.KIND,
    keep: list[str] | None = options.KEEP,
    header: bool | None = options.HEADER,
    skip_rows: int = options.SKIP,
    query: str | None = options.QUERY,
    as_json: bool = options.JSON,
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
    with working("Starting"):
        from coterie.cli import console
        from coterie.tables.columns import described
        from coterie.tables.table import Table

    name = shown_source(file)
    with console.working(f"Reading {name}"):
        table = Table.read(file, header=header, skip_rows=skip_rows, query=query)
        read = table.read_columns(kinds=",".join(kind) if kind else None, keep=",".join(keep) if keep else ())
        rows = [described(column) for column in read]
    if as_json:
        document = {"file": name, "rows": len(table), "columns": rows, "notes": list(table.notes)}
        print(json.dumps(document, allow_nan=False))
    else:
        console.show_columns(name, len(table), rows, table.notes)


@app.command()
def granularity(
    file: str = options.FILE,
    columns: list[str] | None = option("Use only these columns.", "A,B", "--columns", "-c"),
    exclude: list[str] | None = option("Use all columns but these.", "A,B", "--exclude", "-x"),
    scale: bool = flag("Give all columns the same weight.", "--scale"),
    algorithm: str | None = option(
        "zeroshot or one of the k-means family. Default: zeroshot.", "NAME", "--algorithm", "-a"
    ),
    most: int = typer.Option(20, metavar="N", min=2, help="The largest number of clusters."),
    plot: Path | None = to_file("A picture of all numbers: .png or .svg.", "FILE", "--plot", "-p"),
    header: bool | None = options.HEADER,
    skip_rows: int = options.SKIP,
    query: str | None = options.QUERY,
    seed: int = typer.Option(0, metavar="N", min=0, help="Random seed."),
    as_json: bool = options.JSON,
) -> None:
    """Show what 1, 2, ... clusters of a table are worth, before one number is chosen.

    For every number: the expected agreement with the true clusters (zeroshot) or the silhouette, how well the clusters
    recur in samples of 80% of the rows, and which cluster splits into which. The network reads the table once.

    [bold]Examples[/]

    \b
    coterie granularity shop.csv --plot numbers.png
    coterie granularity shop.csv --algorithm kmeans --scale --most 12
    """
    from coterie.cli import console
    from coterie.plot import save_granularity
    from coterie.tabular import Request, cluster_table

    use, leave = (",".join(one) if one else None for one in (columns, exclude))
    with user_errors(ValueError):
        Outputs(plot=plot).check([file])
        request = Request(use, leave, scale or None, algorithm=algorithm, seed=seed)
        with console.working(f"Reading {shown_source(file)}"):
            clustered = cluster_table(file, request, header=header, skip_rows=skip_rows, query=query)
            if not hasattr(clustered, "granularity"):
                raise Refused("The table does not fit in memory: take a sample of its rows.")
            found = clustered.granularity(most)
        files = {} if plot is None else {"plot": str(save_granularity(plot, found, clustered.run.source or ""))}
    if as_json:
        print(json.dumps({"file": shown_source(file), **found.document(), "files": files}, allow_nan=False))
    else:
        console.show_granularity(found, files)


@app.command()
def predict(
    model: Path = options.MODEL,
    file: str = options.FILE,
    output: Path | None = options.OUTPUT,
    with_data: bool = options.WITH_DATA,
    escape_formulas: bool = options.ESCAPE,
    header: bool | None = options.HEADER,
    skip_rows: int = options.SKIP,
    query: str | None = options.QUERY,
    check: bool = flag(
        "Compare the rows with those of the fit: what fits no cluster, sizes, drift. The exit code is 0 if they are as "
        "before, and 3 if they changed.",
        "--check",
    ),
    nearest: bool = flag("Give outliers the cluster that they would belong to, instead of -1.", "--nearest"),
    as_json: bool = options.JSON,
) -> None:
    """Assign the rows of another table to the clusters of a saved model.

    Columns are found by name. They are scaled and encoded as they were when the model was fitted.

    [bold]Examples[/]

    \b
    coterie cluster january.csv -k 5 --scale --save shop.model
    coterie predict shop.model february.csv --output february-labels.csv
    coterie predict shop.model february.csv --check || echo "look at the clusters again"
    """
    from coterie.cli import console
    from coterie.explain.certainty import predicted_facts
    from coterie.tables.table import Table
    from coterie.tabular import EncodedTable, TableModel

    outputs = Outputs(output, with_data, escape_formulas=escape_formulas)
    with user_errors(ValueError):
        outputs.check([file], model)
        loaded = TableModel.load(model)
        if check and not loaded.living._moments():
            raise Refused(
                f"{model} does not remember the rows of its fit, to which --check compares others: save the model of a "
                "fit in memory, by coterie cluster --save without --workers."
            )
        with console.working(f"Reading {shown_source(file)}"):
            how: dict[str, Any] = {"header": header, "skip_rows": skip_rows, "query": query, "cells": with_data}
            rows = EncodedTable.apply(loaded.encoding, Table.read(file, **how))
        labels = loaded.predict_encoded(rows, "nearest" if nearest else None)
        checked = loaded.living.check(rows.rows) if check else None
        files = (
            {} if output is None else outputs.write_labels(labels, rows.table, predicted_facts(loaded, rows, labels))
        )
    told = (str(model), shown_source(file), loaded.ids, labels, files, list(rows.notes), as_json, loaded.names)
    console.show_prediction(*told, checked)
    if checked is not None and checked.changed:
        raise typer.Exit(CHANGED)


def _finish(file: str, clustered: Any, outputs: Outputs, axes: str | list[str], as_json: bool) -> None:
    """Write the files that were asked for, and print the result."""
    from coterie.cli import console
    from coterie.explain.certainty import row_facts

    facts, warned, files = clustered.facts, (), {}  # type: Any, tuple[str, ...], dict[str, str]
    if hasattr(clustered, "labels_folder"):  # of data in blocks, written by the workers
        files["labels"] = str(clustered.labels_folder)
    elif outputs.output is not None:
        files = outputs.write_labels(clustered.labels, clustered.table, row_facts(clustered), facts.summaries)
    if outputs.plot is not None:
        title = f"{facts.run.source}: {facts.n_clusters} clusters by {facts.run.algorithm}"
        files["plot"] = str(clustered.save_picture(outputs.plot, title, axes))
    if outputs.save is not None:
        files["model"] = str(clustered.model.save(outputs.save))
    if outputs.report is not None:
        with console.working("Writing the report"):
            warned = clustered.report(outputs.report, view=axes, command=_command()).warnings
        files["report"] = str(outputs.report)
    more = [text for text in warned if text not in facts.notes]  # those that only the further fits of a report find
    console.show_clustering(shown_source(file), replace(facts, notes=(*facts.notes, *more)), files, as_json)


def _command() -> str | None:
    """The command line as it was typed, without folders: a report contains no paths of this machine."""
    from coterie.tables.file_reading import source_name

    words = [source_name(word) if "/" in word else word for word in sys.argv[1:]]
    return shlex.join(["coterie", *words]) if Path(sys.argv[0]).stem == "coterie" else None


def shown_source(file: str) -> str:
    """The file as it was given, but no password of a database."""
    from coterie.tables.databases import is_url
    from coterie.tables.file_reading import STDIN, source_name

    return source_name(file) if is_url(file) or file == STDIN else file


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


def _samples(text: str | None) -> int | str | None:
    """The samples that ``--contexts`` asks for."""
    if text is None or text == "auto":
        return text
    if not text.isdecimal() or int(text) < 1:
        raise Refused(f"--contexts is a number from 1, or auto; got {text!r}")
    return int(text)
