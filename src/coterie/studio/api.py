"""The API under ``/api/``. Everything is JSON except for files; an error is one sentence."""

import asyncio
import contextlib
import json
import secrets
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from coterie.catalogue import CATALOGUE, algorithms
from coterie.palette import OUTLIER, PALETTE, SYMBOLS
from coterie.studio.comparison import compare
from coterie.studio.connections import body
from coterie.studio.jobs import Job, JobQueue, TooManyJobs
from coterie.studio.limits import MEGABYTE, Limits
from coterie.studio.samples import SAMPLES
from coterie.studio.settings import CRITERIA, STARTS, edit_step, run_settings
from coterie.studio.store import Run, Store, Table, Unknown, display_name, download_name
from coterie.tabular.make_estimator import SettingError

FILES = {  # of a run: the end of the file name, and the media type
    "labels.csv": ("labels.csv", "text/csv; charset=utf-8"),
    "model.safetensors": ("model.safetensors", "application/octet-stream"),
    "report.html": ("report.html", "text/html; charset=utf-8"),
    "granularity.png": ("granularity.png", "image/png"),
}
FILE_KINDS = ("labels", "report", "granularity")  # tasks that write one of them
UPLOADS = 4  # at the same time
LONGEST_NAME = 60  # of a cluster
ALIVE_SECONDS = 15.0
STATE_BYTES = 4 * MEGABYTE  # of the results in the state that the page loads when it opens


class Api:
    """The routes, over one store and one queue."""

    def __init__(self, store: Store, queue: JobQueue, limits: Limits):
        self.store, self.queue, self.limits = store, queue, limits
        self._uploads = 0

    def routes(self) -> list[Route]:
        return [
            Route("/samples", self.samples),
            Route("/samples/{name}", self.open_sample, methods=["POST"]),
            Route("/state", self.state),
            Route("/tables", self.upload, methods=["POST"]),
            Route("/points", self.draw, methods=["POST"]),
            Route("/tables/{identity}", self.table),
            Route("/tables/{identity}", self.close_table, methods=["DELETE"]),
            Route("/runs", self.start_run, methods=["POST"]),
            Route("/runs/{identity}", self.run),
            Route("/runs/{identity}", self.drop_run, methods=["DELETE"]),
            Route("/runs/{identity}/events", self.events),
            Route("/runs/{identity}/stop", self.stop, methods=["POST"]),
            Route("/runs/{identity}/points", self.points),
            Route("/runs/{identity}/map", self.map),
            Route("/runs/{identity}/clusters/{label:int}", self.rows),
            Route("/runs/{identity}/outliers", self.rows),
            Route("/runs/{identity}/axes", self.axes),
            Route("/runs/{identity}/names", self.rename, methods=["POST"]),
            Route("/runs/{identity}/edit", self.edit, methods=["POST"]),
            Route("/runs/{identity}/files/{name}", self.file),
            Route("/compare", self.compare),
        ]

    async def samples(self, request: Request) -> Response:
        return JSONResponse([{"name": name, "title": one.title, "about": one.about} for name, one in SAMPLES.items()])

    async def state(self, request: Request) -> Response:
        """Everything that the page needs when it opens."""
        return JSONResponse(
            {
                "samples": json.loads(bytes((await self.samples(request)).body)),
                "tables": [table.public() for table in self.store.tables.values()],
                "runs": self._recent_runs(),
                "algorithms": [
                    {"name": short, "title": name, **CATALOGUE[name]._asdict()} for short, name in algorithms().items()
                ],
                "criteria": CRITERIA,
                "starts": STARTS,
                "limits": vars(self.limits),
                "palette": PALETTE,
                "symbols": SYMBOLS,
                "outlier": OUTLIER,
            }
        )

    def _recent_runs(self) -> list[dict[str, Any]]:
        """All runs; the results of the newest ones only. The page asks for others when they are shown."""
        left, told = STATE_BYTES, []
        for run in reversed(self.store.runs.values()):
            left -= run.result_bytes()
            told.append(run.public(with_result=left >= 0))
        return told[::-1]

    async def open_sample(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in SAMPLES:
            raise HTTPException(404, f"There is no such sample. Available are {', '.join(SAMPLES)}.")
        with self._new_folder() as (identity, folder):
            return await self._read(identity, folder, SAMPLES[name].title, {"sample": name})

    async def draw(self, request: Request) -> Response:
        given = (await self._json(request)).get("points")
        if not isinstance(given, list) or not 2 <= len(given) <= self.limits.drawn_points:
            raise SettingError(f"Draw at least 2 and at most {self.limits.drawn_points:,} points.")
        for point in given:
            if not isinstance(point, list) or len(point) != 2 or not all(type(one) in (int, float) for one in point):
                raise SettingError("Every point must be a pair of numbers between -1e9 and 1e9.")
            if not all(-1e9 <= one <= 1e9 for one in point):
                raise SettingError("Every point must be a pair of numbers between -1e9 and 1e9.")
        with self._new_folder() as (identity, folder):
            return await self._read(identity, folder, "Drawn points", {"points": given})

    async def upload(self, request: Request) -> Response:
        """The body is the file itself. Its name is for display; its type is recognised by its first bytes."""
        header = {"yes": True, "no": False}.get(request.query_params.get("header", ""))
        name = display_name(request.query_params.get("name", ""))
        if self._uploads >= UPLOADS:
            raise TooManyJobs("Several files are being uploaded already: wait a moment.")
        self._uploads += 1
        try:
            with self._new_folder() as (identity, folder):
                await self._receive(request, folder / "upload")
                bounds = {key: getattr(self.limits, key) for key in ("table_bytes", "rows", "columns")}
                return await self._read(identity, folder, name, {"name": name, "header": header, "bounds": bounds})
        finally:
            self._uploads -= 1

    @contextlib.contextmanager
    def _new_folder(self) -> Iterator[tuple[str, Path]]:
        """A folder of a table or run, which is removed if the block fails."""
        identity, folder = self.store.new_folder()
        try:
            yield identity, folder
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    async def _receive(self, request: Request, path: Path) -> None:
        most = self.limits.upload_bytes
        too_large = f"The file is larger than {most / 2**20:,.0f} MB, which is the limit."
        with open(path, "wb") as file:
            async for block in body(request, most, too_large):
                await asyncio.to_thread(file.write, block)
        if not path.stat().st_size:
            raise SettingError("The file is empty: it needs a line of column names and at least one row.")

    async def _read(self, identity: str, folder: Path, name: str, source: dict[str, Any]) -> Response:
        task = {"kind": "read", "folder": str(folder), **source}
        job = await self.queue.submit(task, self.limits.reading_seconds).finished()
        if job.state != "done":
            raise HTTPException(422, job.error or "Reading was stopped.")
        return JSONResponse(self.store.add_table(identity, folder, name, job.result).public(), 201)

    async def table(self, request: Request) -> Response:
        return JSONResponse(self._table(request).public())

    async def close_table(self, request: Request) -> Response:
        self.store.drop_table(self._table(request).identity)
        return Response(status_code=204)

    async def start_run(self, request: Request) -> Response:
        given = await self._json(request)
        table = self.store.table(str(given.get("table")))
        wanted = run_settings(given, table.about["columns"], self.limits)
        with self._new_folder() as (identity, folder):
            task = {"kind": "run", "folder": str(folder), "table": str(table.file), "wanted": wanted}
            job = self.queue.submit(task, self.limits.run_seconds)
        return JSONResponse(self.store.add_run(identity, folder, table, wanted, job).public(), 201)

    async def run(self, request: Request) -> Response:
        return JSONResponse(self._run(request).public())

    async def drop_run(self, request: Request) -> Response:
        self.store.drop_run(self._run(request).identity)
        return Response(status_code=204)

    async def events(self, request: Request) -> Response:
        """The run's status as server-sent events, until it ends."""
        job = self._run(request).job
        return StreamingResponse(_told(job), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    async def stop(self, request: Request) -> Response:
        run = self._run(request)
        run.job.stop()
        return JSONResponse(run.public())

    async def points(self, request: Request) -> Response:
        """The positions of the rows on the map; available when the status says ``placed``."""
        run = self._run(request)
        if not run.job.progress.get("placed"):
            raise HTTPException(409, "The map of this run is not available yet.")
        return FileResponse(run.file("points.json"), media_type="application/json")

    async def map(self, request: Request) -> Response:
        return FileResponse(self._done(request).file("map.json"), media_type="application/json")

    async def rows(self, request: Request) -> Response:
        """Rows of one cluster, the most typical first."""
        document = json.loads(await asyncio.to_thread(self._done(request).file("rows.json").read_bytes))
        cluster = document["clusters"].get(str(request.path_params.get("label", -1)))
        if cluster is None:
            raise HTTPException(404, "This cluster has no rows.")
        return JSONResponse({"columns": document["columns"], "chosen": document["chosen"], **cluster})

    async def axes(self, request: Request) -> Response:
        """The positions of the rows and centres in two columns."""
        run = self._done(request)
        columns = [request.query_params.get(side, "") for side in ("x", "y")]
        path = run.file(f"axes-{secrets.token_hex(8)}.json")  # another request may ask for other columns
        try:
            await self._finish(run, {"kind": "axes", "columns": columns, "file": path.name})
            return Response(await asyncio.to_thread(path.read_bytes), media_type="application/json")
        finally:
            path.unlink(missing_ok=True)

    async def rename(self, request: Request) -> Response:
        """Names of clusters, by their numbers; an empty name removes one."""
        run = self._done(request)
        given = (await self._json(request)).get("names")
        fair = isinstance(given, dict) and all(
            label.isdecimal() and len(label) <= 6 and isinstance(name, str) and len(name) <= LONGEST_NAME
            for label, name in given.items()
        )
        if not isinstance(given, dict) or not fair:
            raise SettingError(f"Names must be texts of at most {LONGEST_NAME} characters, by the number of a cluster.")
        names = {label: " ".join(name.split()) for label, name in given.items() if name.split()}
        async with run.writing:
            await self._finish(run, {"kind": "names", "names": names})
        return JSONResponse(run.public())

    async def edit(self, request: Request) -> Response:
        """Merge clusters, split one or take another number: a new run, so that the one before stays as it is."""
        earlier = self._done(request)
        step = edit_step(await self._json(request), self.limits)
        with self._new_folder() as (identity, folder):
            place = {"folder": str(folder), "earlier": str(earlier.folder), "table": str(earlier.table.file)}
            job = self.queue.submit({"kind": "edit", **place, "step": step}, self.limits.run_seconds)
        wanted = {**earlier.wanted, "edited": earlier.identity}
        return JSONResponse(self.store.add_run(identity, folder, earlier.table, wanted, job).public(), 201)

    async def _finish(self, run: Run, task: dict[str, Any]) -> None:
        """Carry out a task in the folder of a run that has ended."""
        seconds = self.limits.report_seconds if task["kind"] in FILE_KINDS else self.limits.reading_seconds
        job = self.queue.submit({"folder": str(run.folder), **task}, seconds)
        run.jobs.add(job)
        try:
            await job.finished()
        finally:
            run.jobs.discard(job)
        if job.state != "done":
            raise HTTPException(422, job.error or "This was stopped.")

    async def compare(self, request: Request) -> Response:
        left, right = (self.store.run(request.query_params.get(side, "")) for side in ("left", "right"))
        if left.table is not right.table:
            raise HTTPException(409, "These runs belong to different tables: compare two runs of the same table.")
        if not left.job.state == right.job.state == "done":
            raise HTTPException(409, "Both runs must have finished successfully.")
        labels = [np.load(run.file("labels.npy"), allow_pickle=False) for run in (left, right)]
        return JSONResponse(await asyncio.to_thread(compare, *labels))

    async def file(self, request: Request) -> Response:
        """A file of a run. Labels and reports are written when they are requested for the first time."""
        run, name = self._done(request), request.path_params["name"]
        if name not in FILES:
            raise HTTPException(404, f"There is no such file. Available are {', '.join(FILES)}.")
        kind = name.partition(".")[0]
        async with run.writing:
            if kind != "model" and not run.file(name).exists():
                await self._finish(run, {"kind": kind, "table": str(run.table.file), "name": run.table.name})
        ending, media_type = FILES[name]
        shown = download_name(run.table.name, run.number, ending)
        return FileResponse(run.file(name), media_type=media_type, filename=shown)

    def _table(self, request: Request) -> Table:
        return self.store.table(request.path_params["identity"])

    def _run(self, request: Request) -> Run:
        return self.store.run(request.path_params["identity"])

    def _done(self, request: Request) -> Run:
        run = self._run(request)
        if run.job.state != "done":
            raise HTTPException(409, "This run has no result: it has not finished, or it failed.")
        return run

    async def _json(self, request: Request) -> dict[str, Any]:
        blocks = [block async for block in body(request, self.limits.request_bytes, "The request is too large.")]
        try:
            document = json.loads(b"".join(blocks))
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict):
            raise HTTPException(400, "The request must be a JSON object.")
        return document


async def _told(job: Job) -> AsyncIterator[str]:
    statuses = job.statuses()
    following: asyncio.Future[dict[str, Any]] | None = None
    try:
        while True:
            following = following or asyncio.ensure_future(anext(statuses))
            done, _ = await asyncio.wait([following], timeout=ALIVE_SECONDS)
            if not done:
                yield ": the studio is alive\n\n"
                continue
            try:
                status = following.result()
            except StopAsyncIteration:
                return
            following = None
            yield f"data: {json.dumps(status)}\n\n"
    finally:
        if following is not None:
            following.cancel()


def _answering(status: int, say: Callable[[Any], str] = str) -> Callable[[Request, Exception], Any]:
    """A handler that answers an error with one sentence, by default its own."""

    async def answer(request: Request, error: Exception) -> Response:
        return JSONResponse({"error": say(error)}, getattr(error, "status_code", status))

    return answer


HANDLERS: dict[Any, Any] = {
    HTTPException: _answering(500, lambda error: error.detail),
    Unknown: _answering(404),
    SettingError: _answering(422),
    TooManyJobs: _answering(429),
    ClientDisconnect: _answering(499),  # nobody reads it
    OSError: _answering(
        507,
        lambda error: (
            f"A file of the studio could not be written or read ({error.strerror or error}): free some space."
        ),
    ),
}
