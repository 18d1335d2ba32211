"""The studio's interface, and people who try to get more out of it than they should."""

import asyncio
import contextlib
import gzip
import io
import json
import os
import signal
import socket
import threading
import time
import zipfile

import numpy as np
import pandas as pd
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coterie.studio.jobs import JobQueue, TooManyJobs
from coterie.studio.limits import MEGABYTE, Limits
from coterie.studio.settings import run_settings
from coterie.studio.tasks import TASKS
from coterie.tables.columns import TableError
from coterie.tabular import TableModel
from tests.studio.serving import TOKEN, studio

LIMITS = Limits(
    upload_bytes=8 * MEGABYTE, table_bytes=24 * MEGABYTE, rows=100_000, columns=40, memory_bytes=3072 * MEGABYTE,
    reading_seconds=60,
)  # fmt: skip
EVIL = "<img src=x onerror=alert(1)>"
SCRIPT = "<script>alert(1)</script>"
POINTS = f"x,{EVIL},name\n" + "\n".join(f"{i % 7 + (i % 2) * 50},{i % 5},{SCRIPT}" for i in range(60))


@pytest.fixture(scope="module")
def served():
    with studio(LIMITS) as one:
        yield one


@pytest.fixture(scope="module")
def table(served):
    return served.upload(f"{EVIL}.csv", POINTS.encode()).json


@pytest.fixture(scope="module")
def run(served, table):
    return served.finish(served.start(table, clusters=2))


def alive(served):
    return served.ask("GET", "/api/samples").status == 200


@pytest.mark.parametrize("path", ["/api/samples", "/api/state", "/api/runs/x", "/api/nothing", "/nothing", "/api"])
@pytest.mark.parametrize("token", [None, "", "wrong", TOKEN + "x", TOKEN[:-1]])
def test_without_the_token_nothing_is_told(served, path, token):
    assert served.ask("GET", path, token=token).status == 401


def test_a_token_in_the_address_or_in_a_cookie_does_not_count(served):
    assert served.ask("GET", f"/api/samples?token={TOKEN}", token=None).status == 401
    assert served.ask("GET", "/api/samples", token=None, Cookie=f"token={TOKEN}").status == 401
    assert served.ask("GET", "/api/samples", token=None, Authorization=f"Basic {TOKEN}").status == 401


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1:1", "localhost", "127.0.0.1.evil.example:{port}",
             "127.0.0.1:{port}@evil.example", "evil.example/127.0.0.1:{port}", "", "127.0.0.1:port"],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/", "/api/samples"])
def test_a_wrong_host_is_refused(served, host, path):
    assert 400 <= served.ask("GET", path, Host=host.format(port=served.port)).status < 500


def test_two_hosts_are_refused(served):
    with socket.create_connection(("127.0.0.1", served.port)) as connection:
        hosts = f"Host: 127.0.0.1:{served.port}\r\nHost: evil.example\r\n"
        connection.sendall(f"GET / HTTP/1.1\r\n{hosts}Connection: close\r\n\r\n".encode())
        assert connection.recv(4096).split()[1].startswith(b"4")


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1:1"])
def test_a_foreign_origin_is_refused(served, origin):
    origin = origin.format(port=served.port)
    assert served.ask("POST", "/api/samples/wine", b"", Origin=origin).status == 403
    assert served.ask("GET", "/", Origin=origin).status == 403


def test_requests_that_another_site_makes_the_browser_send_are_refused(served):
    assert served.ask("GET", "/api/samples", Sec_Fetch_Site="cross-site").status == 403
    assert served.ask("GET", "/api/samples", Sec_Fetch_Site="same-site").status == 403
    own = f"http://localhost:{served.port}"
    assert served.ask("GET", "/api/samples", Sec_Fetch_Site="same-origin", Origin=own).status == 200


@pytest.mark.parametrize("path", ["/", "/studio.js", "/api/samples", "/nothing"])
def test_every_answer_has_the_strict_headers(served, path):
    headers = served.ask("GET", path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert "set-cookie" not in headers


@pytest.mark.parametrize(
    "path", ["/../server.py", "/%2e%2e/server.py", "/static/..%2f..%2fserver.py", "/..%5cserver.py", "//etc/passwd",
             "/api/tables/..%2f..", "/api/runs/..%2f..%2fetc/files/labels.csv", "/api/../index.html",
             "/api/runs/%00/map"],
)  # fmt: skip
def test_paths_lead_nowhere(served, path):
    assert served.ask("GET", path).status == 404
    assert served.ask("GET", path, token=None).status == 401


def test_a_name_with_a_path_is_only_its_last_part(served):
    table = served.upload("../../etc/evil\\..\\pass\nwd.csv", POINTS.encode()).json
    assert table["name"] == "passwd.csv"


def test_a_gzip_bomb_is_refused(served):
    bomb = gzip.compress(bytes(100 * MEGABYTE))
    assert len(bomb) < MEGABYTE
    answer = served.upload("bomb.csv.gz", bomb)
    assert answer.status == 422
    assert "more than 24 MB" in answer.json["error"]
    assert alive(served)


def parquet(table, **settings):
    out = io.BytesIO()
    pq.write_table(table, out, **settings)
    return out.getvalue()


def test_a_parquet_file_of_endless_rows_is_refused(served):
    ones = pa.table({"x": pa.array(np.ones(5_000_000))})
    bomb = parquet(ones, compression="zstd")
    assert len(bomb) < MEGABYTE
    answer = served.upload("rows.parquet", bomb)
    assert answer.status == 422
    assert "5,000,000 rows" in answer.json["error"]


def test_a_parquet_file_that_grows_in_memory_is_refused(served):
    """Each of 50,000 rows points to the same text of a megabyte: 50 GB when read, nearly nothing in the file."""
    words = pa.DictionaryArray.from_arrays(pa.array(np.zeros(50_000, np.int32)), pa.array(["a" * MEGABYTE]))
    bomb = parquet(pa.table({"word": words.cast(pa.dictionary(pa.int32(), pa.string()))}), store_schema=False)
    assert len(bomb) < 2 * MEGABYTE
    answer = served.upload("memory.parquet", bomb)
    assert answer.status == 422, answer.body[:300]
    assert alive(served)


NO_TABLES = {
    "holiday.png": (b"\x89PNG\r\n\x1a\n" + bytes(100), "holiday.png is a picture"),
    "sheet.xlsx": (b"PK\x03\x04" + bytes(100), "save its table as .xlsx or CSV"),
    "program.csv": (b"MZ\x00\x00" + bytes(500), "not a table"),
    "page.csv": (b"<html><body>no</body></html>", "not a table"),
    "half.parquet": (b"PAR1" + bytes(30), "not a complete Parquet file"),
    "half.csv.gz": (gzip.compress(b"a,b\n1,2\n" * 999)[:-20], "not a complete gzip file"),
    "empty.csv": (b"", "empty"),
    "names.csv": (b"a,b\n", "no rows"),
    "ragged.csv": (b"a,b\n1,2\n1,2,3\n", "ragged.csv is ragged: line 3"),
    "wide.csv": (",".join(f"c{i}" for i in range(99)).encode() + b"\n", "99 columns"),
    "half.jsonl": (b'{"a": 1}\n{"a": \n', "half.jsonl is not a JSON object: one object per line"),
    "long.csv": (b"a\n" + b"1\n" * 120_000, "120,000 rows"),
}


@pytest.mark.parametrize("name", NO_TABLES)
def test_what_is_no_table_is_refused_with_its_name_and_no_path(tmp_path, name):
    content, told = NO_TABLES[name]
    (tmp_path / "upload").write_bytes(content)
    with pytest.raises(TableError, match=told) as refused:
        TASKS["read"]({"folder": str(tmp_path), "name": name, "header": None, "bounds": vars(LIMITS)}, print)
    assert str(tmp_path) not in str(refused.value)


def test_the_reason_of_a_refusal_is_answered_and_no_path(served):
    answer = served.upload("holiday.png", NO_TABLES["holiday.png"][0])
    assert answer.status == 422
    assert "holiday.png is a picture" in answer.json["error"]
    assert "/tmp" not in answer.json["error"]
    assert "coterie-studio" not in answer.json["error"]


def test_too_large_a_file_is_refused_whether_it_says_so_or_not(served):
    assert served.ask("POST", "/api/tables?name=a.csv", b"1" * (9 * MEGABYTE)).status == 413

    def blocks():
        for _ in range(9):
            yield b"1" * MEGABYTE

    with contextlib.suppress(ConnectionError):  # the studio may have hung up before all was sent
        assert served.ask("POST", "/api/tables?name=a.csv", blocks()).status == 413
    assert alive(served)


def test_too_large_or_odd_requests_are_refused(served, table):
    assert served.ask("POST", "/api/runs", b"[" * 100_000).status == 400
    assert served.ask("POST", "/api/runs", b'{"a":"' + b"x" * (3 * MEGABYTE) + b'"}').status == 413
    assert served.ask("POST", "/api/runs", {"table": "../../etc"}).status == 404
    assert served.ask("PUT", "/api/runs", b"").status == 405
    for wrong in (
        {"columns": []}, {"columns": ["nobody"]}, {"columns": ["x", "x"]}, {"clusters": 10**9},
        {"clusters": True}, {"seed": -1}, {"algorithm": "__class__"}, {"starts": 1e9}, {"most": 999},
        {"algorithm": "trimmed", "outliers": "NaN"}, {"start": "lambda"}, {"criterion": []}, {"scale": 1},
    ):  # fmt: skip
        answer = served.ask("POST", "/api/runs", {"table": table["id"], "columns": ["x"], **wrong})
        assert answer.status == 422, wrong
        assert answer.json["error"].endswith(".")
    for points in ([], [[1, 2]], [[1, 2], [3]], [[1, 2], [3, "x"]], [[1, 2], [3, 1e99]], "x"):
        assert served.ask("POST", "/api/points", {"points": points}).status == 422


def test_two_uploads_at_once_do_not_mix(served):
    answers = {}

    def send(number):
        content = "a,b\n" + "\n".join(f"{number},{i}" for i in range(500 + number))
        answers[number] = served.upload(f"table{number}.csv", content.encode()).json

    threads = [threading.Thread(target=send, args=(number,)) for number in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, table in answers.items():
        assert table["name"] == f"table{number}.csv"
        assert table["rows"] == 500 + number
        assert table["columns"][0]["values"] == str(number)


def test_a_first_line_of_numbers_is_data_unless_told_otherwise(served):
    table = served.upload("bare.csv", b"1,2\n3,4\n5,6\n").json
    assert table["rows"] == 3
    assert "--header" in table["notes"][0]
    assert served.upload("bare.csv", b"1,2\n3,4\n5,6\n", header="yes").json["rows"] == 2


def test_a_run_of_a_table_full_of_html_gives_labels_model_rows_layers_and_report_as_text(served, table, run, tmp_path):
    assert table["columns"][1]["name"] == EVIL
    assert run["state"] == "done", run["error"]
    assert [one["rows"] for one in run["result"]["clusters"]] == [30, 30]
    assert run["id"] in [one["id"] for one in served.ask("GET", "/api/state").json["runs"]]
    assert served.ask("GET", f"/api/runs/{run['id']}/map").json["layers"]
    rows = served.ask("GET", f"/api/runs/{run['id']}/clusters/1")
    assert rows.headers["content-type"] == "application/json"
    assert rows.json["columns"] == ["x", EVIL, "name"]
    assert rows.json["total"] == len(rows.json["cells"]) == 30
    assert served.ask("GET", f"/api/runs/{run['id']}/clusters/7").status == 404

    files = f"/api/runs/{run['id']}/files"
    labels = served.ask("GET", f"{files}/labels.csv")
    saved = f"img-src-x-onerror-alert-1-run{run['number']}-labels.csv"
    assert labels.headers["content-disposition"] == f'attachment; filename="{saved}"'
    assert labels.body.splitlines()[0] == f"x,{EVIL},name,cluster".encode()
    model = tmp_path / "model"
    model.write_bytes(served.ask("GET", f"{files}/model.safetensors").body)
    assert TableModel.load(model).encoding.names == ["x", EVIL]
    report = served.ask("GET", f"{files}/report.html")
    assert report.status == 200
    assert report.headers["content-disposition"].startswith("attachment")
    assert EVIL.encode() not in report.body
    assert SCRIPT.encode() not in report.body
    for name in ("..%2fresult.json", "result.json", "labels.npy", "%2fetc%2fpasswd", "report.html%00"):
        assert served.ask("GET", f"{files}/{name}").status == 404


@pytest.mark.parametrize(
    "algorithm, wanted", [("incontext", {"clusters": 2}), ("flow", {}), ("zeroshot", {}), ("vae", {"clusters": 2})]
)
@pytest.mark.usefixtures("brief_training")
def test_networks_run_too(tmp_path, algorithm, wanted):
    (tmp_path / "upload").write_text(POINTS)
    read = {"folder": str(tmp_path), "name": "points.csv", "header": None, "bounds": vars(LIMITS)}
    columns = TASKS["read"](read, print)["columns"]
    used = [column["name"] for column in columns if column["used"]]
    wanted = run_settings({"columns": used, "algorithm": algorithm, **wanted}, columns, LIMITS)
    task = {"folder": str(tmp_path), "table": str(tmp_path / "table.arrow"), "wanted": wanted}
    TASKS["run"](task, lambda told: None)
    assert sum(one["rows"] for one in json.loads((tmp_path / "result.json").read_bytes())["clusters"]) == 60
    assert json.loads((tmp_path / "map.json").read_bytes())["layers"]


def test_text_dates_and_missing_values_are_encoded(served, tmp_path):
    kinds, gap = ("left", "right"), ("", "2024-02-01")
    ages = ["" if i % 9 == 4 else i % 2 * 40 + i * 7 % 23 / 5 for i in range(80)]
    sizes = [i % 2 * 9 + i * 5 % 31 / 10 for i in range(80)]
    lines = [f"{ages[i]},{sizes[i]},{kinds[i % 2]},{gap[i % 2]},person {i}," for i in range(80)]
    table = served.upload("people.csv", "\n".join(["age,size,side,day,who,nothing", *lines]).encode()).json
    about = {column["name"]: column for column in table["columns"]}
    assert {name: one["kind"] for name, one in about.items()} == {
        "age": "number", "size": "number", "side": "category", "day": "date", "who": "text", "nothing": "empty",
    }  # fmt: skip
    assert about["side"]["values"] == "left, right"
    for name, words in (("who", "nearly every value is different"), ("nothing", "is empty")):
        answer = served.ask("POST", "/api/runs", {"table": table["id"], "columns": ["age", name]})
        assert answer.status == 422
        assert words in answer.json["error"]
    chosen = {"columns": ["age", "size", "side", "day"], "algorithm": "kmeans", "clusters": 2}
    run = served.finish(served.start(table, **chosen))
    assert run["state"] == "done", run["error"]
    assert [one["rows"] for one in run["result"]["clusters"]] == [40, 40]
    assert run["result"]["columns"] == ["age", "size", "side = left", "side = right", "day"]
    assert run["result"]["used"] == 4
    assert any("most similar row: 'age'" in note for note in run["result"]["notes"])
    rows = served.ask("GET", f"/api/runs/{run['id']}/clusters/1").json
    assert rows["columns"][:4] == ["age", "size", "side", "day"]
    files = f"/api/runs/{run['id']}/files"
    (tmp_path / "model").write_bytes(served.ask("GET", f"{files}/model.safetensors").body)
    assert TableModel.load(tmp_path / "model").encoding.names == ["age", "size", "side", "day"]
    assert "almost always side = left" in served.ask("GET", f"{files}/report.html").body.decode()
    left_out = served.finish(served.start(table, **{**chosen, "columns": ["age", "side"]}, drop_missing=True))
    assert left_out["result"]["left_out"] == sum(i % 9 == 4 for i in range(80))


def test_a_run_stopped_in_the_middle_leaves_no_process_and_the_studio_lives_on(served):
    table = served.open("crowd")
    run = served.start(table, algorithm="soft", clusters=40, starts=100, start="random")
    assert served.running(run)["state"] == "running"
    busy = [one for one in psutil.Process().children() if "coterie.studio.worker" in one.cmdline()]
    told = []
    reader = threading.Thread(target=lambda: told.append(served.ask("GET", f"/api/runs/{run['id']}/events").body))
    reader.start()
    assert served.ask("POST", f"/api/runs/{run['id']}/stop").json["state"] == "stopped"
    reader.join(20)
    assert json.loads(told[0].decode().strip().split("data: ")[-1])["state"] == "stopped"
    end = time.monotonic() + 10
    while len([one for one in busy if one.is_running()]) == len(busy) and time.monotonic() < end:
        time.sleep(0.05)
    assert len([one for one in busy if one.is_running()]) < len(busy)
    assert served.ask("GET", f"/api/runs/{run['id']}/map").status == 409
    assert served.ask("GET", f"/api/runs/{run['id']}/files/labels.csv").status == 409
    assert served.ask("DELETE", f"/api/tables/{table['id']}").status == 204
    assert served.ask("GET", f"/api/runs/{run['id']}").status == 404


def with_queue(folder, limits, story):
    async def live():
        queue = JobQueue(limits, folder)
        try:
            return await story(queue)
        finally:
            await queue.close()

    return asyncio.run(live())


def sample_task(folder):
    return {"kind": "read", "sample": "crowd", "folder": str(folder)}


def test_a_job_that_takes_too_long_is_ended(tmp_path):
    async def story(queue):
        return await queue.submit(sample_task(tmp_path), 0.05).finished()

    job = with_queue(tmp_path, Limits(), story)
    assert (job.state, job.error) == ("failed", "This took longer than the limit of 0.05 seconds.")


def test_only_so_many_jobs_are_taken(tmp_path):
    async def story(queue):
        jobs = [queue.submit(sample_task(tmp_path), 30) for _ in range(2)]
        with pytest.raises(TooManyJobs):
            queue.submit(sample_task(tmp_path), 30)
        for job in jobs:
            job.stop()
        return [job.state for job in jobs]

    assert with_queue(tmp_path, Limits(answering=1, waiting=1), story) == ["stopped", "stopped"]


def with_full_runs(queue):
    """As many runs as the queue takes: two that work, here on nothing, and those that wait."""
    for _ in range(queue.limits.running):
        queue._turns["run"]._value -= 1
    jobs = [queue.submit({"kind": "run"}, 30) for _ in range(queue.limits.running + queue.limits.waiting)]
    with pytest.raises(TooManyJobs):
        queue.submit({"kind": "run"}, 30)
    return jobs


def test_runs_that_are_stopped_while_they_wait_give_back_their_places(tmp_path):
    """They kept them until a run before them had ended, and everything was answered with 429."""

    async def story(queue):
        jobs = with_full_runs(queue)
        await asyncio.sleep(0)  # they wait now
        for job in jobs:
            job.stop()
        again = [queue.submit({"kind": "run"}, 30) for _ in jobs]
        states = [job.state for job in again]
        for job in again:
            job.stop()
        for _ in range(queue.limits.running):
            queue._turns["run"].release()
        return states

    assert with_queue(tmp_path, Limits(), story) == ["waiting"] * 10


def test_tables_labels_and_maps_do_not_wait_for_runs(tmp_path):
    """Beside two long runs nothing else was answered."""

    async def story(queue):
        waiting = with_full_runs(queue)
        job = await asyncio.wait_for(queue.submit(sample_task(tmp_path), 60).finished(), 60)
        states = {each.state for each in waiting}
        for each in waiting:
            each.stop()
        for _ in range(queue.limits.running):
            queue._turns["run"].release()
        return job.state, states

    assert with_queue(tmp_path, Limits(), story) == ("done", {"waiting"})


def test_the_worker_of_an_answer_is_kept_for_the_next_one(served, run):
    """Each name and each axis waited for a new process."""
    name = run["result"]["columns"][0]

    def workers():
        return {one.pid for one in psutil.Process().children() if "coterie.studio.worker" in one.cmdline()}

    answers, seen = [], []
    for _ in range(2):
        answers.append(served.ask("GET", f"/api/runs/{run['id']}/axes?x={name}&y={name}").json)
        seen.append(workers())
    assert answers[0] == answers[1]
    assert seen[1] != set()
    assert seen[1] <= seen[0]  # no other was started


def test_a_job_whose_process_dies_says_so(tmp_path):
    async def story(queue):
        job = queue.submit(sample_task(tmp_path), 30)
        while job.process is None:
            await asyncio.sleep(0.01)
        os.kill(job.process.pid, signal.SIGKILL)
        return await job.finished()

    job = with_queue(tmp_path, Limits(), story)
    assert job.state == "failed"
    assert "died" in job.error or "ended unexpectedly" in job.error


def test_the_labels_file_has_the_cells_of_the_upload(served):
    rows = [f"{i % 7}.50,{i // 20 * 40 + i % 5},{i:05d},{9007199254740993 + i}" for i in range(60)]
    table = served.upload("a.csv", "\n".join(["x,y,code,id", *rows]).encode()).json
    run = served.finish(served.start(table, algorithm="kmeans", clusters=3))
    lines = served.ask("GET", f"/api/runs/{run['id']}/files/labels.csv").body.decode().splitlines()
    assert [line.split(",")[:4] for line in lines[1:]] == [row.split(",") for row in rows]


def test_clusters_are_named_and_seen_in_other_axes(served, run, tmp_path):
    address = f"/api/runs/{run['id']}"
    named = served.ask("POST", f"{address}/names", {"names": {"0": f"  {EVIL} ", "1": ""}})
    assert named.status == 200, named.json
    assert named.json["result"]["names"] == {"0": EVIL}
    assert EVIL.encode() in served.ask("GET", f"{address}/files/labels.csv").body
    assert served.ask("POST", f"{address}/names", {"names": {"0": "=1+1"}}).status == 200
    assert b",'=1+1\n" in served.ask("GET", f"{address}/files/labels.csv").body
    assert served.ask("POST", f"{address}/names", {"names": {"0": EVIL}}).status == 200
    (tmp_path / "model").write_bytes(served.ask("GET", f"{address}/files/model.safetensors").body)
    assert TableModel.load(tmp_path / "model").names == {0: EVIL}
    for wrong in ({"9": "x"}, {"x": "y"}, {"0": 5}, {"0": "x" * 99}, {"0": "same", "1": "same"}, []):
        assert served.ask("POST", f"{address}/names", {"names": wrong}).status == 422
    columns = run["result"]["columns"]
    seen = served.ask("GET", f"{address}/axes?x={columns[0]}&y={columns[0]}").json
    assert seen["titles"] == [columns[0]] * 2
    assert len(seen["centers"]) == 2
    assert served.ask("GET", f"{address}/axes?x=nothing&y={columns[0]}").status == 422
    assert served.ask("GET", f"/api/runs/{run['id']}/points").json["hover"][0]["name"] == columns[0]


def test_a_workbook_is_read_and_one_that_grows_too_large_is_refused(served):
    content = io.BytesIO()
    with pd.ExcelWriter(content) as writer:
        pd.DataFrame({"a": range(20), "b": ["x", "y"] * 10}).to_excel(writer, sheet_name="first", index=False)
        pd.DataFrame({"c": [1]}).to_excel(writer, sheet_name="second", index=False)
    read = served.upload("book.xlsx", content.getvalue()).json
    assert ([column["name"] for column in read["columns"]], read["rows"]) == (["a", "b"], 20)
    assert "book.xlsx has 2 sheets; 'first' was read" in " ".join(read["notes"])
    with zipfile.ZipFile(content, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/media/large.bin", bytes(200 * MEGABYTE))
    refused = served.upload("book.xlsx", content.getvalue())
    assert refused.status == 422
    assert "book.xlsx unpacks to more than" in refused.json["error"]


def test_json_lines_are_read_as_such(served):
    lines = [json.dumps({"a": i, "b": i % 3, "c": "x, y"}) for i in range(20)]
    read = served.upload("rows.jsonl", "\n".join(lines).encode()).json
    assert [column["name"] for column in read["columns"]] == ["a", "b", "c"]
    assert read["rows"] == 20
