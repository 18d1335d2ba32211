"""Commands of the package coterie-research, passed on to it."""

from importlib.util import find_spec

import typer

from coterie.cli.application import Refused, app

PASSED_ON = {
    "reproduce": "Reproduce a table or figure of one of the papers",
    "bench": "Run a benchmark that compares coterie with other packages",
    "train": "Train a network as described in a JSON file",
    "ship": "Make the network of a training run available to the estimators",
}


def _pass_on(ctx: typer.Context) -> None:
    if find_spec("coterie_research") is None:
        raise Refused(
            f"coterie {ctx.command.name} is a command of the package coterie-research, which is not installed: "
            "pip install ./research in a copy of the repository (https://github.com/coterie-clustering/coterie)"
        )
    from coterie_research.cli import app as research

    code = research([str(ctx.command.name), *ctx.args], prog_name="coterie", standalone_mode=False)
    if isinstance(code, int) and code:
        raise typer.Exit(code)


for name, what in PASSED_ON.items():
    app.command(
        name,
        help=f"{what} (needs the package coterie-research).",
        context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
        add_help_option=False,
    )(_pass_on)
