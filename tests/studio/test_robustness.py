"""The studio with slow clients, full disks, workers that cannot start, and what was left behind."""

import asyncio
import io
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from starlette.requests import Request

from coterie.files import OutputError
from coterie.studio import api, clustering, connections, jobs, server, store, uploads
from coterie.studio.limits import Limits
from coterie.studio.store import Store
from tests.studio.serving import TOKEN, studio
from tests.studio.test_api import sample_task, with_queue


@pytest.fixture(scope="module")
def served():
    patch = pytest.MonkeyPatch()
    patch.setattr(connections, "HEADER_SECONDS", 1.0)
    patch.setattr(connections, "BLOCK_SECONDS", 1.0)
    with studio() as running:
        yield running
    patch.undo()


def connect(served):
    return socket.create_connection(("127.0.0.1", served.port), timeout=20)


def test_half_open_connections_are_closed_and_others_are_answered(served):
    silent = [connect(served) for _ in range(20)]
    for number, one in enumerate(silent):
        one.sendall(b"GET /api/samples HTTP/1.1\r\nHost: "[: number * 2])
    assert served.ask("GET", "/api/samples").status == 200
    for one in silent:
        assert one.recv(1000) == b""  # closed by the studio
        one.close()


def test_a_second_request_that_stays_incomplete_is_closed_too(served):
    head = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\n\r\n".encode()
    with connect(served) as one:
        one.sendall(head + b"GET / HT")
        received, began = b"", time.monotonic()
        while block := one.recv(2**16):
            received += block
        assert received.startswith(b"HTTP/1.1 200")
        assert time.monotonic() - began < 15


def test_stalled_uploads_end_and_make_room(served):
    head = (
        f"POST /api/tables?name=a.csv HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\n"
        f"Authorization: Bearer {TOKEN}\r\nContent-Length: 1000\r\n\r\na,b\n"
    ).encode()
    stalled = [connect(served) for _ in range(4)]
    for one in stalled:
        one.sendall(head)
    answers = [one.recv(2**16) for one in stalled]
    assert all(answer.startswith(b"HTTP/1.1 408") for answer in answers), answers
    for one in stalled:
        one.close()
    assert served.upload("a.csv", b"a,b\n1,2\n3,4\n").status == 201


def test_a_full_disk_is_said(served, monkeypatch):
    def full(self):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Store, "new_folder", full)
        uploads = [served.upload("a.csv", b"a,b\n1,2\n") for _ in range(api.UPLOADS)]
        for answer in (served.ask("POST", "/api/samples/crowd", b""), *uploads):
            assert answer.status == 507
            assert "(No space left on device): free some space" in answer.json["error"]
    assert served.upload("a.csv", b"a,b\n1,2\n3,4\n").status == 201  # failed uploads do not count as running


class SlowQueue:
    """Jobs that carry out nothing and end when they are told to."""

    def __init__(self):
        self.jobs = []

    def submit(self, task, seconds):
        self.jobs.append(jobs.Job(task, seconds))
        return self.jobs[-1]


def with_a_finished_run(folder, story):
    """Call ``story(api, queue, run, request)`` with a run whose state is done."""

    async def told():
        store, queue = Store(folder, Limits()), SlowQueue()
        table = store.add_table(*store.new_folder(), "a.csv", {"columns": []})
        run = store.add_run(*store.new_folder(), table, {}, jobs.Job({"kind": "run"}, 1.0))
        run.job.change("done")
        run.file("result.json").write_text("{}")

        def request(body=b"", query="", **names):
            async def receive():
                return {"type": "http.request", "body": body}

            scope = {"type": "http", "headers": [], "query_string": query.encode()}
            return Request({**scope, "path_params": {"identity": run.identity, **names}}, receive)

        return await asyncio.wait_for(story(api.Api(store, queue, Limits()), queue, run, request), 20)

    return asyncio.run(told())


def test_two_requests_for_axes_get_their_own(tmp_path):
    """They shared one file, which the second one overwrote before the first was answered."""

    async def story(served, queue, run, request):
        asked = [asyncio.create_task(served.axes(request(query=f"x={name}&y={name}"))) for name in "ab"]
        while len(queue.jobs) < 2:
            await asyncio.sleep(0.01)
        for job in queue.jobs:
            run.file(job.task["file"]).write_text(json.dumps(job.task["columns"]))
        for job in queue.jobs:
            job.change("done")
        return [json.loads((await one).body) for one in asked], sorted(path.name for path in run.folder.iterdir())

    assert with_a_finished_run(tmp_path, story) == ([["a", "a"], ["b", "b"]], ["result.json"])


def test_names_wait_for_a_file_that_is_being_written_with_the_old_ones(tmp_path):
    """Otherwise the labels with the old names would be written after they had been removed."""

    async def story(served, queue, run, request):
        first = asyncio.create_task(served.file(request(name="labels.csv")))
        await asyncio.sleep(0.01)
        second = asyncio.create_task(served.rename(request(json.dumps({"names": {"0": "a"}}).encode())))
        await asyncio.sleep(0.05)
        before = [job.task["kind"] for job in queue.jobs]
        run.file("labels.csv").write_text("cluster")
        queue.jobs[0].change("done")
        await first
        while len(queue.jobs) < 2:
            await asyncio.sleep(0.01)
        queue.jobs[1].change("done")
        await second
        return before, [job.task["kind"] for job in queue.jobs], run.jobs

    assert with_a_finished_run(tmp_path, story) == (["labels"], ["labels", "names"], set())


def test_a_sample_that_cannot_be_read_leaves_no_folder(tmp_path):
    async def story(served, queue, run, request):
        def full(task, seconds):
            raise jobs.TooManyJobs("Too many runs are waiting.")

        queue.submit = full
        before = set(tmp_path.iterdir())
        with pytest.raises(jobs.TooManyJobs):
            await served.open_sample(request(name="crowd"))
        return set(tmp_path.iterdir()) - before

    assert with_a_finished_run(tmp_path, story) == set()


def test_a_result_is_whole_whenever_it_is_read(tmp_path, monkeypatch):
    path = tmp_path / "result.json"
    clustering._write_json(path, {"names": {}})

    def half(self, text):
        self.write_bytes(text.encode()[:5])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", half)
        with pytest.raises(OutputError, match="free some space"):
            clustering._write_json(path, {"names": {"0": "a"}})
    assert json.loads(path.read_text()) == {"names": {}}
    assert list(tmp_path.iterdir()) == [path]


def test_a_worker_that_cannot_write_says_so(tmp_path):
    async def story(queue):
        return await queue.submit(sample_task(tmp_path / "missing"), 60).finished()

    job = with_queue(tmp_path, Limits(), story)
    assert job.state == "failed"
    assert "could not be written or read" in job.error


def test_a_worker_that_cannot_start_fails_its_job_and_frees_the_queue(tmp_path, monkeypatch):
    async def story(queue):
        with monkeypatch.context() as patch:

            async def refused(*arguments, **options):
                raise OSError(11, "Resource temporarily unavailable")

            patch.setattr(asyncio, "create_subprocess_exec", refused)
            queue.open()
            failed = [
                await queue.submit({**sample_task(tmp_path), "kind": kind}, 30).finished() for kind in ("read", "run")
            ]
        done = await queue.submit(sample_task(tmp_path), 60).finished()
        return [*failed, done]

    first, second, done = with_queue(tmp_path, Limits(running=1), story)
    for job in (first, second):
        assert job.state == "failed"
        assert "could not be started (Resource temporarily unavailable)" in job.error
    assert done.state == "done"


def test_answers_beyond_a_mebibyte_arrive_and_endless_ones_are_named(tmp_path, monkeypatch):
    worker = (
        "import json, sys; sys.stdin.readline();"
        "print(json.dumps({'done': 'x' * int(sys.argv[1])}), flush=True); sys.stdin.readline()"
    )

    async def story(queue):
        async def start(*, prepare=True):
            return await asyncio.create_subprocess_exec(
                sys.executable, "-c", worker, str(size), stdin=-1, stdout=-1, limit=jobs.LONGEST_LINE,
                start_new_session=True,
            )  # fmt: skip

        monkeypatch.setattr(queue, "_start", start)
        size = 3 * 2**20
        large = await queue.submit(sample_task(tmp_path), 60).finished()
        size = jobs.LONGEST_LINE + 10
        endless = await queue.submit(sample_task(tmp_path), 60).finished()
        return large, endless

    large, endless = with_queue(tmp_path, Limits(), story)
    assert large.state == "done"
    assert len(large.result) == 3 * 2**20
    assert (endless.state, endless.error[:31]) == ("failed", "The answer of this job is too l")


def test_lists_and_structures_in_parquet_become_texts(tmp_path):
    file = io.BytesIO()
    table = pa.table({"list": [[1, 2], [3], None], "x": [1.0, 2.0, 3.0], "struct": [{"a": 1}, {"a": 2}, None]})
    pq.write_table(table, file)
    (tmp_path / "upload").write_bytes(file.getvalue())
    bounds = {"table_bytes": 10**9, "rows": 10**6, "columns": 500}
    table, _ = uploads.read_upload(tmp_path / "upload", "a.parquet", None, bounds)
    json.dumps(uploads.describe(table.frame), allow_nan=False)
    plain = uploads.plain(table.frame)
    assert all(value is None or isinstance(value, str) or value != value for value in plain["list"])


def test_previews_and_names_are_bounded(tmp_path):
    wide = pd.DataFrame({f"column {i}": ["ü" * 1_000] * 30 for i in range(500)})
    assert len(json.dumps(uploads.describe(wide)["preview"])) < 2 * 2**20
    (tmp_path / "upload").write_text("n" * 5_000 + ",b\n1,2\n3,4\n")
    bounds = {"table_bytes": 10**9, "rows": 10**6, "columns": 500}
    with pytest.raises(ValueError, match="name has 5,000 letters"):
        uploads.read_upload(tmp_path / "upload", "a.csv", True, bounds)


def test_the_state_has_the_newest_results_only(tmp_path, monkeypatch):
    store = Store(tmp_path, Limits())

    async def story(queue):
        table = store.add_table("t", tmp_path, "t", {})
        for number in range(5):
            identity, folder = store.new_folder()
            (folder / "result.json").write_text(json.dumps({"text": "x" * 1000}))
            job = jobs.Job({}, 1.0)
            job.change("done")
            store.add_run(identity, folder, table, {"number": number}, job)
        return api.Api(store, queue, Limits())._recent_runs()

    monkeypatch.setattr(api, "STATE_BYTES", 2_500)
    runs = with_queue(tmp_path, Limits(), story)
    assert [run["wanted"]["number"] for run in runs] == [0, 1, 2, 3, 4]
    assert [run["result"] is not None for run in runs] == [False, False, False, True, True]


def test_folders_of_killed_studios_are_removed_by_the_next_one(tmp_path, monkeypatch):
    monkeypatch.setattr(store.tempfile, "gettempdir", lambda: str(tmp_path))
    old, new, used, other = (tmp_path / f"{store.PREFIX}{name}" for name in ("old", "new", "used", "other"))
    for folder in (old, new, used):
        folder.mkdir()
        (folder / "table.arrow").write_text("secret")
        if folder != new:
            os.utime(folder, (0, 0))
    other.symlink_to(tmp_path)
    code = "from coterie.files import only_writer\n"
    code += f"with only_writer({str(used)!r}): print(1, flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        holder.stdout.readline()
        store.remove_abandoned()
        assert {path.name for path in tmp_path.iterdir()} == {new.name, used.name, other.name}
        holder.communicate(b"\n")


def test_a_browser_is_given_a_private_file_and_not_the_token(tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr(server.webbrowser, "open", opened.append)
    monkeypatch.setattr(server.uvicorn.Server, "run", lambda self, sockets: [one.close() for one in sockets])
    addresses = []
    server.serve(port=None, announce=addresses.append)
    (uri,) = opened
    assert uri.startswith("file://")
    token = addresses[0].partition("#token=")[2]
    assert token not in uri
    path = uri.removeprefix("file://")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert token in Path(path).read_text()
    store.shutil.rmtree(os.path.dirname(path))


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="there is no SIGHUP")
def test_a_closed_terminal_ends_the_studio_in_order(monkeypatch):
    seen = []

    def run(self, sockets):
        os.kill(os.getpid(), signal.SIGHUP)
        seen.append(self.should_exit)
        for one in sockets:
            one.close()

    monkeypatch.setattr(server.uvicorn.Server, "run", run)
    before = signal.getsignal(signal.SIGHUP)
    server.serve(announce=lambda address: None, open_browser=False)
    assert seen == [True]
    assert signal.getsignal(signal.SIGHUP) is before
