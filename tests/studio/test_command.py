"""``coterie studio``, as a person starts it."""

import contextlib
import re
import signal
import socket
import subprocess
import sys
import time
from http.client import HTTPConnection

import psutil
import pytest
from typer.testing import CliRunner

from coterie.cli import app


def test_it_prints_its_address_answers_there_and_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    command = [sys.executable, "-c", "from coterie.cli import main; main()", "studio", "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        lines = [process.stdout.readline() for _ in range(3)]
        found = re.search(r"http://127\.0\.0\.1:(\d+)/#token=([\w-]{43})$", lines[2].strip())
        assert found, lines
        with contextlib.closing(HTTPConnection("127.0.0.1", int(found[1]), timeout=60)) as connection:
            connection.request("GET", "/api/samples", headers={"Authorization": f"Bearer {found[2]}"})
            assert connection.getresponse().status == 200
        workers = psutil.Process(process.pid).children()
        process.send_signal(signal.SIGINT)
        process.wait(30)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    end = time.monotonic() + 10
    while any(worker.is_running() for worker in workers) and time.monotonic() < end:
        time.sleep(0.05)
    assert not [worker for worker in workers if worker.is_running()]
    assert list(tmp_path.iterdir()) == []


def test_a_taken_port_is_told():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = CliRunner().invoke(app, ["studio", "--no-browser", "--port", str(port)])
    assert done.exit_code == 2
    assert "choose another --port" in done.stderr


@pytest.mark.parametrize("missing", ["starlette", "uvicorn"])
def test_without_the_extra_it_says_what_to_install(monkeypatch, missing):
    for name in [name for name in sys.modules if name.startswith("coterie.studio")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    for name in [name for name in sys.modules if name.startswith(f"{missing}.")]:
        monkeypatch.delitem(sys.modules, name)
    done = CliRunner().invoke(app, ["studio"])
    assert done.exit_code == 2
    assert "pip install 'coterie[studio]'" in done.stderr
