"""Tables and runs of the studio, in a private folder that is deleted when the studio stops.

Every path consists of that folder, a random identity that the store created, and a fixed name. Identities that a client
sends are only looked up.
"""

import asyncio
import json
import os
import re
import secrets
import shutil
import tempfile
import time
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any, TypeVar

from coterie.files import OutputError, only_writer
from coterie.studio.jobs import Job
from coterie.studio.limits import Limits

PREFIX = "coterie-studio-"
NEW_SECONDS = 60.0  # a folder that young may belong to a studio that is just starting
Record = TypeVar("Record", "Table", "Run")


class Unknown(Exception):
    """There is no such table or run, or it was removed."""


@dataclass
class Table:
    """A table that was read; ``about`` describes its columns."""

    identity: str
    name: str
    folder: Path
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def file(self) -> Path:
        return self.folder / "table.arrow"

    def public(self) -> dict[str, Any]:
        return {"id": self.identity, "name": self.name, **self.about}


@dataclass
class Run:
    """A clustering of a table. ``number`` counts the runs of this studio, for display."""

    identity: str
    number: int
    table: Table
    folder: Path
    wanted: dict[str, Any]
    job: Job
    jobs: set[Job] = field(default_factory=set)  # which write further files
    writing: asyncio.Lock = field(default_factory=asyncio.Lock)  # of files with the names of the clusters

    def file(self, name: str) -> Path:
        return self.folder / name

    def result_bytes(self) -> int:
        return self.file("result.json").stat().st_size if self.job.state == "done" else 0

    def public(self, *, with_result: bool = True) -> dict[str, Any]:
        done = self.job.state == "done" and with_result
        result = json.loads(self.file("result.json").read_bytes()) if done else None
        return {
            "id": self.identity,
            "number": self.number,
            "table": self.table.identity,
            "table_name": self.table.name,
            "wanted": self.wanted,
            "result": result,
            **self.job.status(),
        }


class Store:
    def __init__(self, folder: Path, limits: Limits):
        self.folder, self.limits = folder, limits
        self.tables: dict[str, Table] = {}
        self.runs: dict[str, Run] = {}
        self._count = 0

    def new_folder(self) -> tuple[str, Path]:
        identity = secrets.token_hex(8)
        folder = self.folder / identity
        folder.mkdir(mode=0o700)
        return identity, folder

    def add_table(self, identity: str, folder: Path, name: str, about: dict[str, Any]) -> Table:
        table = self.tables[identity] = Table(identity, name, folder, about)
        while len(self.tables) > self.limits.kept_tables:
            self.drop_table(next(iter(self.tables)))
        return table

    def add_run(self, identity: str, folder: Path, table: Table, wanted: dict[str, Any], job: Job) -> Run:
        self._count += 1
        run = self.runs[identity] = Run(identity, self._count, table, folder, wanted, job)
        while len(self.runs) > self.limits.kept_runs:
            self.drop_run(next(iter(self.runs)))
        return run

    def table(self, identity: str) -> Table:
        return _found(self.tables, identity, "table")

    def run(self, identity: str) -> Run:
        return _found(self.runs, identity, "run")

    def drop_run(self, identity: str) -> None:
        run = self.runs.pop(identity)
        for job in (run.job, *run.jobs):
            job.stop()
        shutil.rmtree(run.folder, ignore_errors=True)

    def drop_table(self, identity: str) -> None:
        table = self.tables.pop(identity)
        for run in [run for run in self.runs.values() if run.table is table]:
            self.drop_run(run.identity)
        shutil.rmtree(table.folder, ignore_errors=True)


def _found(records: "dict[str, Record]", identity: str, kind: str) -> Record:
    if identity not in records:
        raise Unknown(f"The studio no longer has this {kind}: open it again.")
    return records[identity]


def display_name(given: str) -> str:
    """A name for display: the last part of a path, on one line, of limited length. It is never used as a path."""
    last = re.split(r"[/\\]", given)[-1]
    clean = "".join(letter for letter in last if letter.isprintable()).strip()
    return (clean if len(clean) <= 80 else clean[:79] + "…") or "table"


def download_name(table: str, number: int, ending: str) -> str:
    """A file name that is valid on every system."""
    stem = re.sub(r"\.(csv|tsv|txt|parquet|pq|gz)\b", "", table, flags=re.IGNORECASE)
    stem = re.sub(r"[^A-Za-z0-9_-]+", "-", stem).strip("-")[:40] or "table"
    return f"{stem}-run{number}-{ending}"


def make_folder() -> Path:
    """A folder that only this user can read. A running studio holds a lock on it."""
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    (folder / "empty").mkdir()
    return folder


def remove_abandoned() -> None:
    """Delete folders of studios that were killed: those of this user on which nobody holds a lock."""
    if not hasattr(os, "getuid"):
        return
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        try:
            status = folder.lstat()
            if status.st_uid != os.getuid() or time.time() - status.st_mtime < NEW_SECONDS or not folder.is_dir():
                continue
            with only_writer(folder):
                shutil.rmtree(folder, ignore_errors=True)
        except (OutputError, OSError):  # in use, or removed meanwhile
            continue


def redirect(folder: Path, address: str) -> Path:
    """A page that leads to the address. The list of processes then shows its name, and not the token."""
    path = folder / "open.html"
    place = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(place, "w", encoding="utf-8") as file:
        file.write(
            '<!doctype html><meta charset="utf-8"><title>coterie studio</title>'
            f'<meta http-equiv="refresh" content="0;url={escape(address)}">'
        )
    return path
