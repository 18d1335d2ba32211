"""``coterie studio``: clustering in the browser."""

from typing import Annotated

import typer

from coterie.cli.application import Refused, app, complain


@app.command()
def studio(
    port: Annotated[
        int | None,
        typer.Option(
            "--port", metavar="N", min=1, max=65535, help="Default: 8642, or a free port.", show_default=False
        ),
    ] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Whether to open a browser.")] = True,
    host: Annotated[
        str,
        typer.Option(
            "--host",
            metavar="ADDRESS",
            help="Another address makes the studio available to others on the network, who need the token.",
        ),
    ] = "127.0.0.1",
) -> None:
    """Cluster tables in the browser: open a file, choose settings, run, compare, and save the results.

    The studio runs on this machine and loads nothing from the internet. Press Ctrl+C to stop it.

    [bold]Examples[/]

    \b
    coterie studio
    coterie studio --port 9000 --no-browser
    """
    try:
        from coterie.studio.guard import is_loopback
        from coterie.studio.server import PortTaken, serve
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("starlette", "uvicorn"):
            raise
        raise Refused("The studio needs two further packages: pip install 'coterie[studio]'") from error

    def announce(address: str) -> None:
        print(f"The studio is running at\n\n    {address}\n\nPress Ctrl+C to stop it.", flush=True)
        if not is_loopback(host):
            complain("others on the network can use the studio with this token; the connection is not encrypted")

    try:
        serve(host, port, open_browser=browser, announce=announce)
    except PortTaken as error:
        raise Refused(str(error)) from error
