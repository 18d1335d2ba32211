"""The commands ``coterie-research reproduce`` and ``coterie-research bench``, which ``coterie`` passes on, too."""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from coterie.cli import console, run_application
from coterie.cli.application import Commands, Refused, check_name, make_folder, user_errors

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Reproduce the papers behind coterie, and compare coterie with other packages.",
)
Name = Annotated[str | None, typer.Argument(metavar="NAME", help="What to run; without a name, all names are listed.")]
Quick = Annotated[bool, typer.Option("--quick", help="Run a small version, to check that it works.")]


# Packages of the extras. A package that is missing is named with the extra that installs it.
EXTRAS = {
    **dict.fromkeys(("dask", "distributed"), "dask"),
    **dict.fromkeys(("lightning", "tensorboard"), "train"),
    **dict.fromkeys(("starlette", "uvicorn"), "studio"),
    **dict.fromkeys(("faiss", "sklearnex", "dask_ml", "genieclust", "clustpy"), "bench"),
    **dict.fromkeys(("kmedoids", "psutil", "hypothesis", "playwright"), "test"),
}


@contextmanager
def needing_extras(what: str) -> Iterator[None]:
    """Say which extra installs a package that is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").split(".")[0]
        if package not in EXTRAS:
            raise
        raise Refused(f"{what} needs the package {package}: pip install 'coterie[{EXTRAS[package]}]'") from error


@app.command()
def reproduce(
    name: Name = None,
    quick: Quick = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FOLDER",
            help="Default: results, or results/quick with --quick.",
        ),
    ] = None,
) -> None:
    """Reproduce a table or figure of one of the papers, and write it as JSON and as a picture.

    [bold]Examples[/]

    \b
    coterie reproduce                  list all names
    coterie reproduce kmeans/figure3
    coterie reproduce kmeans --quick   a small version of all experiments of one paper
    """
    from coterie_research import experiments

    if name is None:
        print("\n".join(experiments.available()))
        return
    with user_errors(experiments.UnknownExperiment):
        found = experiments.find(name)
    output = output or Path("results/quick" if quick else "results")
    for one, run in found.items():
        folder = make_folder(output / one.partition("/")[0])
        started, before = time.perf_counter(), time.time()
        with needing_extras(f"The experiment {one}"), console.working(f"Running {one}"):
            run(folder, quick)
        print(f"{one}: {time.perf_counter() - started:.1f} s")
        for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_mtime >= before - 1):
            print(f"  {path}")


@app.command()
def bench(
    name: Name = None,
    quick: Quick = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT",
            help="Measure only the cells whose names contain TEXT (several times for several texts). "
            "The others keep the rows of their last run.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FOLDER",
            help="Folder of the record (JSON) and its page (Markdown). Default: one of the benchmark in results, "
            "or in results/quick with --quick.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")] = False,
) -> None:
    """Run a benchmark that compares coterie with other packages, or a stress program.

    Packages are compared if they are installed: pip install 'coterie\\[bench]'.

    The same command continues a run that was interrupted.

    [bold]Examples[/]

    \b
    coterie bench                       list all names
    coterie bench kmedoids --quick      a small version, in less than a minute
    coterie bench kmeans --only blobs   some of the cells
    """
    from coterie_research.benchmarks import BENCHMARKS, find

    if name is None:
        print("\n".join(f"{one:<15}{what}" for one, (_, what) in BENCHMARKS.items()))
        return
    name = name.replace("_", "-")
    check_name("benchmark", name, list(BENCHMARKS))
    if output is None and quick:
        output = Path("results/quick") / name
    if output is not None:
        make_folder(output)
    from coterie_research.benchmarks.harness import NoSuchCell

    refusals = user_errors(NoSuchCell, FileNotFoundError)
    with refusals, needing_extras(f"The benchmark {name}"), console.working(f"Running {name}"):
        benchmark = find(name)
        record = benchmark.run(quick, output, only or (), tell=lambda line: print(line, file=sys.stderr, flush=True))
    print(json.dumps(record) if as_json else benchmark.markdown(record))
    if not as_json:
        print(f"Record and page: {output or benchmark.default_folder}")


@app.command()
def claims(
    check: Annotated[bool, typer.Option("--check", help="Only say whether the page is up to date.")] = False,
) -> None:
    """Write research/CLAIMS.md: every claim of the papers against our records."""
    from coterie_research.claims.__main__ import main as write

    raise typer.Exit(write(["--check"] if check else []))


def main() -> None:
    """Entry point."""
    run_application(app, "coterie-research")
