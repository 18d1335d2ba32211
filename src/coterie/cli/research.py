"""Commands for research: reproduce the papers, run benchmarks, train networks, ship and list them."""

import difflib
import json
import pkgutil
import time
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from coterie.cli.application import Refused, app, make_folder, needing_extras, user_errors

Name = Annotated[str | None, typer.Argument(metavar="NAME", help="What to run; without a name, all names are listed.")]
Quick = Annotated[bool, typer.Option("--quick", help="Run a small version, to check that it works.")]


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
    with needing_extras(f"The benchmark {name}"):
        module = import_module(f"coterie.benchmarks.{name.replace('-', '_')}")
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


def _check_name(kind: str, name: str, known: list[str]) -> None:
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise Refused(f"There is no {kind} {name!r}.{hint} Known names: {', '.join(known)}.")


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
    from coterie import training_run
    from coterie.cli import console

    _check_name("kind of network", kind, list(training_run.KINDS))
    if not config.is_file():
        raise Refused(f"There is no file {config}. --config names the JSON file that describes the run.")
    if start_from is not None and (resume or not start_from.is_file()):
        raise Refused("--start-from names the state.pt of another run, and cannot be combined with --resume.")
    mistakes = (ValueError, KeyError, TypeError, FileNotFoundError, FileExistsError, ImportError)
    with user_errors(*mistakes):
        run = training_run.run_class(kind).from_json(config)
    make_folder(output)
    with console.training() as show:

        def on_progress(progress: Any) -> None:
            show(progress.step, progress.steps, progress.loss, progress.cpu_seconds_left)

        with user_errors(*mistakes):
            run.train(output, resume=resume, start_from=start_from, on_progress=on_progress)
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
        typer.Option("--shelf", metavar="FOLDER", help="Folder to write to. Default: your own shelf of networks."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a network of that name.")] = False,
) -> None:
    """Make the network of a training run available to the estimators.

    The weights (NAME.safetensors) and a card (NAME.json) are written to your own shelf of networks: the folder networks
    in COTERIE_HOME or, if that variable is not set, in the data folder of your platform.

    [bold]Example[/]

    \b
    coterie ship runs/flow my-flow
    python -c "from coterie import FlowMixture; FlowMixture(network='my-flow')"
    """
    from coterie import training_run
    from coterie.cli import console

    with user_errors(ValueError, KeyError, TypeError, OSError), console.working(f"Shipping {name}"):
        found = training_run.read_run(run)
        measured = training_run.read_json(scores) if scores is not None else None
        card = found.ship(run, name, measured, shelf, about=about, licence=licence, force=force)
    print(f"The {found.kind} network {name} is in {card.parent}.")


@app.command()
def models() -> None:
    """List the networks that come with the package, and your own."""
    from coterie import checkpoints
    from coterie.cli import console

    with user_errors(ValueError):
        shelves = {"package": checkpoints.SHELF, "own": checkpoints.user_shelf()}
        console.tell_models({title: checkpoints.available(shelf) for title, shelf in shelves.items()})
    print(f"Your own networks are in {shelves['own']}. Estimators take a name or a path: FlowMixture(network='NAME').")
