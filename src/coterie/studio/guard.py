"""Access to the studio: checks of Host, Origin and token for every request, and security headers for every response."""

import hmac
import ipaddress
import socket
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
SECURITY_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
}
LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Guard:
    """The outermost middleware.

    The token is in the fragment of the printed address, which browsers never send, and the page sends it in the
    ``Authorization`` header. There is no cookie, because cookies ignore ports and would be sent to any other server on
    this machine. The files of the page contain nothing secret: their paths are ``free``. All others need the token.
    """

    def __init__(self, app: ASGIApp, *, token: str, host: str, port: int, free: frozenset[str]):
        self.app = app
        self.free = free
        self.token = token.encode()
        self.port = port
        self.names = {*LOOPBACK, host.lower().strip("[]")}
        if not is_loopback(host):
            self.names.add(socket.gethostname().lower())
        self.any_address = host in ("0.0.0.0", "::")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # web sockets are not supported
            return

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(SECURITY_HEADERS)
            await send(message)

        refusal = self._refusal(scope)
        await (refusal or self.app)(scope, receive, send_safely)

    def _refusal(self, scope: Scope) -> JSONResponse | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._is_ours(f"http://{hosts[0]}"):
            return refuse(421, "This is not the address of the studio: use the one that it printed.")
        if not all(self._is_ours(origin) for origin in headers.getlist("origin")):
            return refuse(403, "Pages of other sites may not use the studio.")
        if scope["path"] in self.free:
            return None
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return refuse(403, "Pages of other sites may not use the studio.")
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self.token):
            return refuse(401, "The token is missing or wrong: open the address that the studio printed.")
        return None

    def _is_ours(self, origin: str) -> bool:
        try:
            parts = urlsplit(origin)
            name, port = parts.hostname or "", parts.port or 80
        except ValueError:
            return False
        if parts.scheme != "http" or parts.path or parts.query or parts.fragment or parts.username is not None:
            return False
        return port == self.port and (name in self.names or (self.any_address and _is_address(name)))


def _is_address(name: str) -> bool:
    """Whether this is an IP address; a foreign name could have been rebound to this machine."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def refuse(status: int, sentence: str) -> JSONResponse:
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
    return JSONResponse({"error": sentence}, status, headers)


def is_loopback(host: str) -> bool:
    return host in LOOPBACK or (_is_address(host) and ipaddress.ip_address(host).is_loopback)
