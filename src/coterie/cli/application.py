"""The application to which all commands belong, and how it reports errors of the user."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from coterie import __version__
from coterie.wording import shown

MISUSE = 2


class Refused(Exception):
    """An error of the user. The message says what to change."""


class Commands(TyperGroup):
    """Reports errors of the user as one line on standard error, with exit code 2."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except Exception as error:
            from coterie.files import OutputError
            from coterie.tables.columns import TableError
            from coterie.tabular.make_estimator import SettingError

            if not isinstance(error, Refused | TableError | OutputError | SettingError):
                raise
            complain(error)
            raise typer.Exit(MISUSE) from None


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Cluster tables by attention: pretrained networks, and k-means and its variants.",
    epilog="Start with [bold]coterie demo[/], then [bold]coterie cluster YOUR.csv --plot clusters.png[/]",
)


def complain(message: object) -> None:
    print("coterie:", shown(" ".join(str(message).split())), file=sys.stderr)


@contextmanager
def working(what: str) -> Iterator[None]:
    """A spinner during work of unknown length."""
    from rich import markup
    from rich.console import Console

    with Console(stderr=True).status(markup.escape(shown(what))):
        yield


@contextmanager
def user_errors(*kinds: type[Exception]) -> Iterator[None]:
    """Further errors whose messages are written for users."""
    try:
        yield
    except kinds as error:
        raise Refused(str(error)) from error


def _version(wanted: bool) -> None:
    if wanted:
        print(f"coterie {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass
