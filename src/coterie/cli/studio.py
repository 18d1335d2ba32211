"""``coterie studio``: the page for people who would rather see and click."""

from typing import Annotated

import typer

from coterie.cli.application import Refused, app, complain


@app.command()
def studio(
    port: Annotated[
        int | None,
        typer.Option("--port", metavar="N", min=1, max=65535, help="Default: 8642, or a free one.", show_default=False),
    ] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Whether to open the page.")] = True,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Another address lets others on the network in, by token.")
    ] = "127.0.0.1",
) -> None:
    """Cluster a table in the browser: drop a file, choose, run, watch the layers play, compare, keep the results.

    The page is served by this machine to this machine, and loads nothing from anywhere else. Ctrl+C ends it.

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
        raise Refused("The studio needs two more packages: pip install 'coterie[studio]'") from error

    def announce(address: str) -> None:
        print(f"The studio is open at\n\n    {address}\n\nCtrl+C ends it.", flush=True)
        if not is_loopback(host):
            complain("others on the network can come in with this token, and what they send is not encrypted")

    try:
        serve(host, port, open_browser=browser, announce=announce)
    except PortTaken as error:
        raise Refused(str(error)) from error
