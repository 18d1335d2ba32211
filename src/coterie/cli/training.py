"""Commands that train, ship and list networks, and those that the package coterie-research adds."""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from coterie.cli.application import Refused, app, check_name, make_folder, user_errors

PASSED_ON = {"allow_extra_args": True, "ignore_unknown_options": True}


@app.command(context_settings=PASSED_ON, add_help_option=False)
def reproduce(ctx: typer.Context) -> None:
    """Reproduce a table or figure of one of the papers (needs the package coterie-research)."""
    _research(ctx)


@app.command(context_settings=PASSED_ON, add_help_option=False)
def bench(ctx: typer.Context) -> None:
    """Run a benchmark that compares coterie with other packages (needs the package coterie-research)."""
    _research(ctx)


def _research(ctx: typer.Context) -> None:
    if find_spec("coterie_research") is None:
        raise Refused(
            f"coterie {ctx.command.name} is a command of the package coterie-research, which is not installed: "
            "pip install ./research in a copy of the repository (https://github.com/coterie-clustering/coterie)"
        )
    from coterie_research.cli import app as research

    code = research([str(ctx.command.name), *ctx.args], prog_name="coterie", standalone_mode=False)
    if isinstance(code, int) and code:
        raise typer.Exit(code)


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
    from coterie.cli import console
    from coterie.training import run as training_run

    check_name("kind of network", kind, list(training_run.KINDS))
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
    from coterie.cli import console
    from coterie.training import run as training_run

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
