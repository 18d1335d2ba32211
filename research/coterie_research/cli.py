"""The commands ``coterie-research reproduce`` and ``coterie-research bench``, which ``coterie`` passes on, too."""

import json
import pkgutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
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
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FOLDER",
            help="Default: a folder of the benchmark in results.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")] = False,
) -> None:
    """Run a benchmark that compares coterie with other packages.

    [bold]Examples[/]

    \b
    coterie bench                   list all names
    coterie bench kmedoids --quick
    """
    from coterie_research import benchmarks

    known = sorted(
        one.name.replace("_", "-") for one in pkgutil.iter_modules(benchmarks.__path__) if one.name[0] != "_"
    )
    if name is None:
        print("\n".join(known))
        return
    name = name.replace("_", "-")
    check_name("benchmark", name, known)
    with needing_extras(f"The benchmark {name}"):
        module = import_module(f"coterie_research.benchmarks.{name.replace('-', '_')}")
    if output is None and quick:
        output = Path("results/quick") / name
    settings = {} if output is None else {"output": make_folder(output)}
    with user_errors(ImportError), needing_extras(f"The benchmark {name}"), console.working(f"Running {name}"):
        result = module.run(quick=quick, **settings)
    if as_json:
        print(json.dumps(result))
    elif hasattr(module, "markdown"):
        print(module.markdown(result))
    if output is not None and not as_json:
        print(f"The results are in {output}")


def main() -> None:
    """Entry point."""
    run_application(app, "coterie-research")
