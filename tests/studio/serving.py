"""A real studio on a free port, in a thread, and a plain client for it."""

import contextlib
import http.client
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import uvicorn

from coterie.studio.limits import Limits
from coterie.studio.server import bind, configured, create_app

TOKEN = "a-token-for-tests"


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Studio:
    port: int

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def address(self) -> str:
        return f"{self.origin}/#token={TOKEN}"

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = TOKEN,
        timeout: float = 60,
        **headers: str,
    ) -> Answer:
        """``headers`` with underscores for hyphens; a Host there replaces the true one."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if token is not None:
            given.setdefault("Authorization", f"Bearer {token}")
        if isinstance(body, dict | list):
            body = json.dumps(body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, body, given)
            answer = connection.getresponse()
            return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def upload(self, name: str, content: bytes, header: str = "") -> Answer:
        return self.ask("POST", f"/api/tables?name={quote(name, safe='')}&header={header}", content)

    def open(self, sample: str) -> dict[str, Any]:
        answer = self.ask("POST", f"/api/samples/{sample}", b"")
        assert answer.status == 201, answer.body
        return answer.json

    def start(self, table: dict[str, Any], **wanted: Any) -> dict[str, Any]:
        columns = [column["name"] for column in table["columns"] if column["used"]]
        answer = self.ask("POST", "/api/runs", {"table": table["id"], "columns": columns, **wanted})
        assert answer.status == 201, answer.body
        return answer.json

    def finish(self, run: dict[str, Any], timeout: float = 60) -> dict[str, Any]:
        """Follow the events of a run to its end."""
        answer = self.ask("GET", f"/api/runs/{run['id']}/events", timeout=timeout)
        assert answer.headers["content-type"].startswith("text/event-stream")
        return self.ask("GET", f"/api/runs/{run['id']}").json

    def running(self, run: dict[str, Any], timeout: float = 40) -> dict[str, Any]:
        """Wait until a run has told something of itself."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            found = self.ask("GET", f"/api/runs/{run['id']}").json
            if found["progress"] or found["state"] not in ("waiting", "running"):
                return found
            time.sleep(0.05)
        raise AssertionError("the run did not begin")


@contextlib.contextmanager
def studio(limits: Limits | None = None) -> Iterator[Studio]:
    listener = bind("127.0.0.1", 0)
    port = listener.getsockname()[1]
    app = create_app(token=TOKEN, host="127.0.0.1", port=port, limits=limits)
    server = uvicorn.Server(configured(app))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield Studio(port)
    finally:
        server.should_exit = True
        thread.join(20)
