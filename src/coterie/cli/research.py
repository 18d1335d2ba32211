"""Commands for people with a question: reproduce, compare, train, list what is shipped."""

import difflib
import json
import pkgutil
import time
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from coterie.cli.application import Refused, app, make_folder, user_errors

TRAINABLE = ("kmeans", "flow", "incontext", "zeroshot")


@app.command()
def reproduce(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="As in kmeans/figure3; without it, the names are listed.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A small version, to see that it runs.")] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FOLDER", help="Default: results, or results/quick for --quick."),
    ] = None,
) -> None:
    """Run a table or a figure of one of the papers again, and write its JSON and pictures.

    [bold]Examples[/]

    \b
    coterie reproduce                  lists the names
    coterie reproduce kmeans/figure3
    coterie reproduce kmeans --quick   all of one paper, small
    """
    from coterie import experiments
    from coterie.cli import console

    if name is None:
        print("\n".join(experiments.available()))
        return
    with user_errors(experiments.UnknownExperiment):
        found = experiments.find(name)
    output = output or Path("results/quick" if quick else "results")
    for one, run in found.items():
        folder = make_folder(output / one.partition("/")[0])
        started, before = time.perf_counter(), time.time()
        with console.working(f"Running {one}"):
            run(folder, quick)
        print(f"{one}: {time.perf_counter() - started:.1f} s")
        for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_mtime >= before - 1):
            print(f"  {path}")


@app.command()
def bench(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="As in kmedoids; without it, the names are listed.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A small version, to see that it runs.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FOLDER", help="Default: the benchmark's own, in results.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")] = False,
) -> None:
    """Compare with other packages, side by side in one run.

    [bold]Examples[/]

    \b
    coterie bench                   lists the names
    coterie bench kmedoids --quick
    """
    from coterie import benchmarks
    from coterie.cli import console

    known = sorted(
        one.name.replace("_", "-") for one in pkgutil.iter_modules(benchmarks.__path__) if one.name[0] != "_"
    )
    if name is None:
        print("\n".join(known))
        return
    name = name.replace("_", "-")
    _check_name("benchmark", name, known)
    module = import_module(f"coterie.benchmarks.{name.replace('-', '_')}")
    if output is None and quick:
        output = Path("results/quick") / name
    settings = {} if output is None else {"output": make_folder(output)}
    with user_errors(ImportError), console.working(f"Running {name}"):
        result = module.run(quick=quick, **settings)
    if as_json:
        print(json.dumps(result))
    elif hasattr(module, "markdown"):
        print(module.markdown(result))
    if output is not None and not as_json:
        print(f"The results are in {output}")


def _check_name(kind: str, name: str, known: list[str]) -> None:
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise Refused(f"There is no {kind} {name!r}.{hint} Known are {', '.join(known) or 'none'}.")


@app.command()
def train(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Which network: kmeans, flow, incontext or zeroshot.")],
    config: Annotated[Path, typer.Option("--config", "-c", metavar="FILE", help="The run, as a JSON file.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="Folder for the log and the state.")],
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the state in that folder.")] = False,
    start_from: Annotated[
        Path | None,
        typer.Option(
            "--start-from", metavar="FILE", help="Begin with the state of another run, say to let its rate fall."
        ),
    ] = None,
) -> None:
    """Train a network from a JSON file. A run that was stopped goes on with --resume, as if it never had been.

    [bold]Example[/]

    \b
    coterie train flow --config flow.json --output runs/flow
    coterie train flow --config flow.json --output runs/flow --resume
    """
    from coterie.cli import console

    known = [one for one in TRAINABLE if find_spec(f"coterie.{one}") and find_spec(f"coterie.{one}.train")]
    _check_name("network", name, known)
    if not config.is_file():
        raise Refused(f"There is no file {config}: --config names the JSON file that describes the run.")
    if start_from is not None and (resume or not start_from.is_file()):
        raise Refused("--start-from names a state.pt to begin with, and excludes --resume.")
    make_folder(output)
    with console.training() as show:

        def on_progress(progress: Any) -> None:
            show(progress.step, progress.steps, progress.loss, progress.cpu_seconds_left)

        with user_errors(ValueError, KeyError, TypeError, FileNotFoundError, FileExistsError):
            run = import_module(f"coterie.{name}.train").RUN.from_json(config)
            run.train(output, resume=resume, start_from=start_from, on_progress=on_progress)
    print(f"{name}: the log and the state are in {output}")


@app.command()
def models() -> None:
    """List the networks that come with the package."""
    from coterie import checkpoints
    from coterie.cli import console

    console.tell_models(checkpoints.available())
