"""The application to which all commands belong, and how it reports errors of the user."""

import difflib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from coterie import __version__
from coterie.wording import shown

MISUSE = 2
ORDER = [
    "demo",
    "cluster",
    "columns",
    "predict",
    "compare",
    "edit",
    "export",
    "studio",
    "reproduce",
    "bench",
    "train",
    "ship",
    "models",
    "completion",
]


class Refused(Exception):
    """An error of the user. The message says what to change."""


class Commands(TyperGroup):
    """Reports errors of the user as one line on standard error, with exit code 2."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(super().list_commands(ctx), key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except Refused as error:
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
def user_errors(*more: type[Exception]) -> Iterator[None]:
    """Errors whose messages are written for users."""
    from coterie.files import OutputError
    from coterie.tables.columns import TableError
    from coterie.tabular.make_estimator import SettingError

    kinds: tuple[type[Exception], ...] = (TableError, OutputError, SettingError, *more)
    try:
        yield
    except kinds as error:
        raise Refused(str(error)) from error


def make_folder(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Refused(
            f"The folder {folder} cannot be created ({error.strerror}): choose another one with --output"
        ) from error
    return folder


def check_name(kind: str, name: str, known: list[str]) -> None:
    """Refuse a name that is not known, with the nearest known one."""
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise Refused(f"There is no {kind} {name!r}.{hint} Known names: {', '.join(known)}.")


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
