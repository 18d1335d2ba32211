"""Jobs: each runs in a process of its own, with limits on time, memory and number, and can be observed."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from coterie.studio.limits import MEGABYTE, Limits

LONGEST_LINE = 16 * MEGABYTE
ENDED = ("done", "failed", "stopped")
ANSWERS = ("labels", "names", "axes")  # kinds of tasks about results; their workers are kept for the next one


class TooManyJobs(Exception):
    """The queue is full."""


class Job:
    """One task: waiting, running, and then done, failed or stopped. ``progress`` is what it reported last."""

    def __init__(self, task: dict[str, Any], seconds: float):
        self.task, self.seconds = task, seconds
        self.state = "waiting"
        self.progress: dict[str, Any] = {}
        self.error: str | None = None
        self.result: Any = None
        self.process: asyncio.subprocess.Process | None = None
        self._changed = asyncio.Event()

    @property
    def lane(self) -> str:
        """The kind of places that the job takes."""
        return self.task["kind"] if self.task["kind"] in ("run", "report") else "answer"

    @property
    def ended(self) -> bool:
        return self.state in ENDED

    def status(self) -> dict[str, Any]:
        return {"state": self.state, "progress": self.progress, "error": self.error}

    def change(self, state: str | None = None, *, error: str | None = None) -> None:
        if self.ended:
            return
        self.state, self.error = state or self.state, error
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def stop(self) -> None:
        self.change("stopped")
        if self.process is not None:
            kill(self.process)

    async def statuses(self) -> AsyncIterator[dict[str, Any]]:
        """The current status, and every change; a slow reader skips intermediate ones."""
        while True:
            changed, told = self._changed, self.status()
            yield told
            if told["state"] in ENDED:  # not self.ended: the job may have ended while the reader was busy
                return
            await changed.wait()

    async def finished(self) -> "Job":
        while not self.ended:
            await self._changed.wait()
        return self


class JobQueue:
    """Starts workers, keeps a spare one ready, and limits how many work at a time.

    Runs, reports and quick answers have places of their own, so that none of them waits for another kind. A worker ends
    with its task, except one that answered a question about a result: starting another takes longer than most answers.
    """

    def __init__(self, limits: Limits, folder: Path):
        self.limits, self.folder = limits, folder
        self._places = {"run": limits.running, "report": limits.reporting, "answer": limits.answering}
        self._turns = {lane: asyncio.Semaphore(places) for lane, places in self._places.items()}
        self._spare: asyncio.Task[asyncio.subprocess.Process] | None = None
        self._kept: list[asyncio.subprocess.Process] = []
        self._jobs: dict[asyncio.Task[None], Job] = {}

    def open(self) -> None:
        self._spare = asyncio.create_task(self._start())

    async def close(self) -> None:
        for job in list(self._jobs.values()):
            job.stop()
        await asyncio.gather(*self._jobs, return_exceptions=True)
        if self._spare is not None:
            with contextlib.suppress(OSError):  # it could not be started
                self._kept.append(await self._spare)
        for process in self._kept:
            kill(process)
            await process.wait()

    def submit(self, task: dict[str, Any], seconds: float) -> Job:
        job = Job(task, seconds)
        alike = [other for other in self._jobs.values() if other.lane == job.lane and not other.ended]
        if len(alike) >= self._places[job.lane] + self.limits.waiting:
            raise TooManyJobs("Too many jobs of this kind are waiting: stop one, or wait until one has finished.")
        work = asyncio.create_task(self._carry_out(job))
        self._jobs[work] = job
        work.add_done_callback(self._jobs.pop)
        return job

    async def _carry_out(self, job: Job) -> None:
        async with self._turns[job.lane]:
            if job.ended:
                return
            try:
                process = job.process = await self._worker(job.task["kind"])
            except OSError as error:
                reason = error.strerror or type(error).__name__
                job.change("failed", error=f"The process of this job could not be started ({reason}): try again later.")
                return
            if job.ended:  # stopped while its process began
                kill(process)
            job.change("running")
            try:
                await asyncio.wait_for(self._follow(job, process), job.seconds)
            except asyncio.TimeoutError:
                job.change("failed", error=f"This took longer than the limit of {job.seconds:g} seconds.")
            except asyncio.LimitOverrunError:
                job.change("failed", error="The answer of this job is too large: use fewer columns or clusters.")
            except (ValueError, ConnectionError) as error:  # no JSON, a broken pipe
                job.change("failed", error=f"The process of this job ended unexpectedly ({type(error).__name__}).")
            finally:
                if job.state == "done" and job.task["kind"] in ANSWERS:
                    job.process = None  # no longer its own: it must not be ended with the job
                    self._kept.append(process)
                else:
                    kill(process)
                    await process.wait()
            why = "This exceeded the limit of CPU time."
            if process.returncode != -getattr(signal, "SIGXCPU", 24):
                most = f"{self.limits.memory_bytes / 2**30:.3g} GB"
                why = f"The process of this job died; it may have needed more than {most}. Use fewer rows or columns."
            job.change("failed", error=why)  # unless it had ended before

    async def _follow(self, job: Job, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        bounds = {"memory": self.limits.memory_bytes, "seconds": job.seconds, "file_bytes": 2 * self.limits.table_bytes}
        process.stdin.write(json.dumps({**job.task, **bounds}).encode() + b"\n")
        await process.stdin.drain()
        while line := await _line(process.stdout):
            message = json.loads(line)
            if "done" in message:
                job.result = message["done"]
                job.change("done")
                return
            if "failed" in message:
                job.change("failed", error=message["failed"])
                return
            if "ready" not in message:
                job.progress = {**job.progress, **message}
                job.change()

    async def _worker(self, kind: str) -> asyncio.subprocess.Process:
        while kind in ANSWERS and self._kept:
            kept = self._kept.pop()
            if kept.returncode is None:
                return kept
        return await (self._start(prepare=False) if kind == "read" else self._take())

    async def _take(self) -> asyncio.subprocess.Process:
        spare, self._spare = self._spare, asyncio.create_task(self._start())
        if spare is not None:
            with contextlib.suppress(OSError):  # the spare could not be started: perhaps another one can
                process = await spare
                if process.returncode is None:
                    return process
        return await self._start()

    async def _start(self, *, prepare: bool = True) -> asyncio.subprocess.Process:
        # In an empty folder: a module there cannot take the place of a real one.
        return await asyncio.create_subprocess_exec(
            sys.executable, "-W", "ignore", "-m", "coterie.studio.worker", *(["--prepare"] if prepare else []),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            cwd=self.folder, start_new_session=True, limit=LONGEST_LINE,
        )  # fmt: skip


async def _line(stream: asyncio.StreamReader) -> bytes:
    """The next line; nothing at the end. A line beyond the limit raises LimitOverrunError."""
    try:
        return await stream.readuntil()
    except asyncio.IncompleteReadError as error:
        return error.partial


def kill(process: asyncio.subprocess.Process) -> None:
    """End a worker and all processes that it started."""
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
