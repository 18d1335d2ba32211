"""Atomic writing of files."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class OutputError(OSError):
    """Raised if a file cannot be written. The message says what to do."""


def check_writable(path: str | os.PathLike) -> Path:
    """Return the path, or raise an :class:`OutputError` if a file cannot be written there. No file is left behind."""
    path = Path(path)
    if path.is_dir():
        raise OutputError(f"{path} is a folder: give the name of a file inside it.")
    if path.exists() and not path.is_file():
        raise OutputError(f"{path} is not a regular file: use another name.")
    folder = Path(os.path.realpath(path)).parent
    if not folder.exists():
        raise OutputError(f"{path} cannot be written: there is no folder {folder}. Create it first.")
    if not folder.is_dir():
        raise OutputError(f"{path} cannot be written: {folder} is not a folder. Use another location.")
    probe = _beside(path)
    try:
        _create(probe)
        probe.unlink()
    except OSError as error:
        raise OutputError(f"{path} cannot be written ({error.strerror}): use another location.") from error
    return path


@contextmanager
def replacing(path: str | os.PathLike) -> Iterator[Path]:
    """A temporary file in the same folder, which replaces ``path`` if the block succeeds and is removed otherwise."""
    path = Path(path)
    temporary = _beside(path)
    _create(temporary)
    try:
        yield temporary
        os.replace(temporary, os.path.realpath(path))
    finally:
        temporary.unlink(missing_ok=True)


def _beside(path: Path) -> Path:
    """A hidden file next to the target of ``path``. If ``path`` is a link, it remains one."""
    real = Path(os.path.realpath(path))
    return real.with_name(f".{real.stem[:100]}-{os.getpid()}-{os.urandom(4).hex()}{real.suffix}")


def _create(path: Path) -> None:
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
