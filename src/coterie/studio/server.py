"""The server of the studio: the page, its API, and the guard in front of both."""

import contextlib
import secrets
import shutil
import signal
import socket
import threading
import webbrowser
from collections.abc import AsyncIterator, Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route

from coterie.files import only_writer
from coterie.studio.api import HANDLERS, Api
from coterie.studio.connections import TimedProtocol
from coterie.studio.guard import Guard, is_loopback
from coterie.studio.jobs import JobQueue
from coterie.studio.limits import Limits
from coterie.studio.store import Store, make_folder, redirect, remove_abandoned

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
    folder = make_folder()
    store, queue = Store(folder, limits), JobQueue(limits, folder / "empty")

    @contextlib.asynccontextmanager
    async def living(app: Starlette) -> AsyncIterator[None]:
        with only_writer(folder):  # folders without a lock were left behind
            queue.open()
            try:
                yield
            finally:
                await queue.close()
                shutil.rmtree(folder, ignore_errors=True)

    page = _page()
    free = frozenset(route.path for route in page)
    app = Starlette(
        routes=[*page, Mount("/api", routes=Api(store, queue, limits).routes())],
        middleware=[Middleware(Guard, token=token, host=host, port=port, free=free)],
        exception_handlers=HANDLERS,
        lifespan=living,
    )
    app.state.folder = folder
    return app


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
    remove_abandoned()
    app = create_app(token=token, host=host, port=port, limits=limits)
    server = uvicorn.Server(configured(app, limit_concurrency=100))
    shown = "127.0.0.1" if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{port}/#token={token}"
    announce(address)
    if open_browser and is_loopback(shown.strip("[]")):
        webbrowser.open(redirect(app.state.folder, address).as_uri())
    with _ended_by_hangup(server):
        server.run(sockets=[listener])


def configured(app: Starlette, **options: Any) -> uvicorn.Config:
    """How the application is served: plain HTTP with time limits, and no log of requests."""
    return uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, ws="none", lifespan="on", http=TimedProtocol,
        timeout_graceful_shutdown=1, **options,
    )  # fmt: skip


@contextlib.contextmanager
def _ended_by_hangup(server: uvicorn.Server) -> Iterator[None]:
    """Let a closed terminal end the server as Ctrl+C does, so that no table is left behind."""
    if not hasattr(signal, "SIGHUP") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: Any) -> None:
        server.should_exit = True

    before = signal.signal(signal.SIGHUP, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)
