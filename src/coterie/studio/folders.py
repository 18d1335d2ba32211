"""The private folder of a studio: its tables and results, and the page that leads a browser to it."""

import os
import shutil
import tempfile
import time
from html import escape
from pathlib import Path

from coterie.files import OutputError, only_writer

PREFIX = "coterie-studio-"
NEW_SECONDS = 60.0  # a folder that young may belong to a studio that is just starting


def make() -> Path:
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
