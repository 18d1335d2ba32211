"""The commands of ``coterie-research``, most of which ``coterie`` passes on, too."""

import difflib
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from coterie.cli import console, run_application
from coterie.cli.application import Commands, Refused, user_errors
from coterie.files import make_folder

if TYPE_CHECKING:
    from coterie_research.training.loop import Progress as Step

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Reproduce the papers behind coterie, compare coterie with other packages, and train networks.",
)
Name = Annotated[str | None, typer.Argument(metavar="NAME", help="What to run; without a name, all names are listed.")]
Quick = Annotated[bool, typer.Option("--quick", help="Run a small version, to check that it works.")]


# Packages of the extras. A package that is missing is named with the extra that installs it.
EXTRAS = {
    **dict.fromkeys(("dask", "distributed"), "dask"),
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


def check_name(kind: str, name: str, known: list[str]) -> None:
    """Refuse a name that is not known, with the nearest known one."""
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise Refused(f"There is no {kind} {name!r}.{hint} Known names: {', '.join(known)}.")


@app.command()
def reproduce(
    name: Name = None,
    quick: Quick = False,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Change a setting of the experiment (several times)."),
    ] = None,
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
    coterie reproduce flow/columns --set steps=200
    """
    from coterie_research import experiments, records

    if name is None:
        print("\n".join(experiments.available()))
        return
    name = name.strip("/")
    try:
        found = experiments.find(name)
    except KeyError:
        check_name("experiment", name, [*experiments.available(), *experiments.MODULES])
        raise
    with user_errors(experiments.UnknownSetting):
        given = {one: experiments.settings_of(one, run, changes or ()) for one, run in found.items()}
    records.settings = dict(text.split("=", 1) for text in changes or ())
    output = output or Path("results/quick" if quick else "results")
    for one, run in found.items():
        folder = make_folder(output / one.partition("/")[0])
        started, before = time.perf_counter(), time.time()
        with needing_extras(f"The experiment {one}"), console.working(f"Running {one}"):
            run(folder, quick, **given[one])
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
def train(
    kind: Annotated[
        str, typer.Argument(metavar="KIND", help="Kind of network: flow, incontext, learned-lloyd or zeroshot.")
    ],
    config: Annotated[Path, typer.Option("--config", "-c", metavar="FILE", help="JSON file that describes the run.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Folder of the run, for its log and checkpoints.")
    ],
    resume: Annotated[bool, typer.Option("--resume", help="Continue from the checkpoint in that folder.")] = False,
    start_from: Annotated[
        Path | None,
        typer.Option("--start-from", metavar="FILE", help="Start from the checkpoint (state.pt) of another run."),
    ] = None,
) -> None:
    """Train a network as described in a JSON file. A run that was interrupted continues with --resume.

    [bold]Example[/]

    \b
    coterie train flow --config flow.json --output runs/flow
    coterie train flow --config flow.json --output runs/flow --resume
    coterie ship runs/flow my-flow
    """
    from coterie_research.training import run as training_run

    check_name("kind of network", kind, list(training_run.KINDS))
    if not config.is_file():
        raise Refused(f"There is no file {config}. --config names the JSON file that describes the run.")
    if start_from is not None and (resume or not start_from.is_file()):
        raise Refused("--start-from names the state.pt of another run, and cannot be combined with --resume.")
    mistakes = (ValueError, KeyError, TypeError, FileNotFoundError, FileExistsError, ImportError)
    with user_errors(*mistakes):
        run = training_run.run_class(kind).from_json(config)
    make_folder(output)
    with _steps() as show, user_errors(*mistakes):
        run.train(output, resume=resume, start_from=start_from, on_progress=show)
    print(f"{kind}: the log and the checkpoint are in {output}. To use the network: coterie ship {output} NAME")


@app.command()
def ship(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a training run (--output of coterie train).")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name under which estimators find the network.")],
    about: Annotated[
        str | None, typer.Option("--about", metavar="TEXT", help="One line about the network, for coterie models.")
    ] = None,
    scores: Annotated[
        Path | None, typer.Option("--scores", metavar="FILE", help="JSON file with the scores of the network.")
    ] = None,
    licence: Annotated[str, typer.Option("--licence", metavar="TEXT", help="Licence of the weights.")] = "not stated",
    shelf: Annotated[
        Path | None,
        typer.Option("--shelf", metavar="FOLDER", help="Folder to write to. Default: your network directory."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a network of that name.")] = False,
) -> None:
    """Make the network of a training run available to the estimators.

    The weights (NAME.safetensors) and a card (NAME.json) are written to your network directory: the folder networks
    in COTERIE_HOME or, if that variable is not set, in the data folder of your platform.

    [bold]Example[/]

    \b
    coterie ship runs/flow my-flow
    python -c "from coterie import FlowMixture; FlowMixture(network='my-flow')"
    """
    from coterie_research.training import run as training_run

    with user_errors(ValueError, KeyError, TypeError, OSError), console.working(f"Shipping {name}"):
        found = training_run.read_run(run)
        measured = training_run.read_json(scores) if scores is not None else None
        card = found.ship(run, name, measured, shelf, about=about, licence=licence, force=force)
    print(f"The {found.kind} network {name} is in {card.parent}.")


@contextmanager
def _steps() -> Iterator[Callable[["Step"], None]]:
    """A progress bar with the loss and the remaining time on a terminal; elsewhere one line now and then."""
    stderr = Console(stderr=True)
    columns = (TextColumn("step"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=stderr, disable=not stderr.is_terminal) as bar:
        task = bar.add_task("")

        def show(at: "Step") -> None:
            text = f"loss {at.loss:.4g}, {at.cpu_seconds_left / 60:.0f} min left"
            bar.update(task, completed=at.step, total=at.steps, description=text)
            if not stderr.is_terminal:
                print(f"step {at.step} of {at.steps}: {text}", file=sys.stderr)

        yield show


@app.command()
def claims(
    check: Annotated[bool, typer.Option("--check", help="Only say whether the page is up to date.")] = False,
) -> None:
    """Write research/CLAIMS.md: every claim of the papers against our records."""
    from coterie_research.claims import write

    raise typer.Exit(write(check))


def main() -> None:
    """Entry point."""
    run_application(app, "coterie-research")
