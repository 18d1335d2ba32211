"""The command line. Results go to standard output, everything else to standard error.

Heavy imports happen inside the commands, so that ``coterie --help`` is fast.
"""

import errno
import io
import os
import sys

import typer

from coterie.cli import cluster, models, research, studio, warmup
from coterie.cli.application import MISUSE, app, complain

__all__ = ["app", "cluster", "main", "models", "research", "run_application", "studio", "warmup"]


def main() -> None:
    """Entry point."""
    run_application(app, "coterie")


def run_application(application: typer.Typer, name: str) -> None:
    """Run a command and exit. A wrong option is reported as one line too, instead of a box."""
    sys.stdout, sys.stderr = (each or open(os.devnull, "w") for each in (sys.stdout, sys.stderr))  # noqa: SIM115 - closed
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that is not UTF-8 cannot show every name
    try:
        code = application(standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        complain("interrupted")
        code = 130
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENAMETOOLONG):
            raise
        complain(f"{str(error.filename)[:80]} is no file ({error.strerror}): give another name.")
        code = MISUSE
    except Exception as error:
        describe = getattr(error, "format_message", None)
        if describe is None:
            raise
        message = describe().rstrip(".")
        if message:  # otherwise `coterie` was called without arguments and has printed its help
            context = getattr(error, "ctx", None)
            where = context.command_path if context is not None else name
            complain(f"{message}. See {where} --help")
        code = MISUSE if message else 0
    sys.exit(code if isinstance(code, int) else 0)
