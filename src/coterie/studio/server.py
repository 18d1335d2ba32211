"""The server of the studio: the page, its API, and the guard in front of both."""

import contextlib
import secrets
import shutil
import socket
import tempfile
import webbrowser
from collections.abc import AsyncIterator, Callable
from importlib.resources import files
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route

from coterie.studio.api import HANDLERS, Api
from coterie.studio.guard import Guard, is_loopback
from coterie.studio.jobs import JobQueue
from coterie.studio.limits import Limits
from coterie.studio.store import Store

USUAL_PORT = 8642
KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


class PortTaken(Exception):
    """The port cannot be used. The message says what to do."""


def create_app(*, token: str, host: str, port: int, limits: Limits | None = None) -> Starlette:
    """The application for one address. Its files are in a temporary folder, which is deleted when it stops."""
    limits = limits or Limits()
    folder = Path(tempfile.mkdtemp(prefix="coterie-studio-"))  # readable by this user alone
    empty = folder / "empty"
    empty.mkdir()
    store, queue = Store(folder, limits), JobQueue(limits, empty)

    @contextlib.asynccontextmanager
    async def living(app: Starlette) -> AsyncIterator[None]:
        queue.open()
        try:
            yield
        finally:
            await queue.close()
            shutil.rmtree(folder, ignore_errors=True)

    page = _page()
    free = frozenset(route.path for route in page)
    return Starlette(
        routes=[*page, Mount("/api", routes=Api(store, queue, limits).routes())],
        middleware=[Middleware(Guard, token=token, host=host, port=port, free=free)],
        exception_handlers=HANDLERS,
        lifespan=living,
    )


def _page() -> list[Route]:
    """One route per file of the page."""
    static = files("coterie.studio") / "static"
    pages = {one.name: one.read_bytes() for one in static.iterdir() if one.is_file()}
    return [
        Route(f"/{'' if name == 'index.html' else name}", _answer(content, KINDS[Path(name).suffix]))
        for name, content in pages.items()
        if Path(name).suffix in KINDS
    ]


def _answer(content: bytes, kind: str) -> Callable[[Request], Response]:
    def answer(request: Request) -> Response:
        return Response(content, media_type=kind)

    return answer


def bind(host: str, port: int | None) -> socket.socket:
    """A listening socket: on the given port, or else on the usual port or any free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for wanted in [USUAL_PORT, 0] if port is None else [port]:
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((host, wanted))
            listener.listen(64)
            return listener
        except OSError as error:
            listener.close()
            if wanted == 0 or port is not None:
                reason = error.strerror or str(error)
                raise PortTaken(f"{host}:{wanted} cannot be used ({reason}): choose another --port.") from error
    raise AssertionError("a free port is always tried last")


def serve(
    host: str = "127.0.0.1",
    port: int | None = None,
    *,
    open_browser: bool = True,
    announce: Callable[[str], None] = print,
    limits: Limits | None = None,
) -> None:
    """Run until interrupted. ``announce`` is called with the address, which includes the token."""
    listener = bind(host, port)
    token = secrets.token_urlsafe(32)
    port = listener.getsockname()[1]
    app = create_app(token=token, host=host, port=port, limits=limits)
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, ws="none", lifespan="on",
        timeout_graceful_shutdown=1, limit_concurrency=100,
    )  # fmt: skip
    shown = "127.0.0.1" if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{port}/#token={token}"
    announce(address)
    if open_browser and is_loopback(shown.strip("[]")):
        webbrowser.open(address)
    uvicorn.Server(config).run(sockets=[listener])
