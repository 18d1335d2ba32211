"""Atomic writing of files, and folders with one writer."""

import errno
import os
import signal
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_FULL = (errno.ENOSPC, errno.EFBIG, errno.EROFS, getattr(errno, "EDQUOT", errno.ENOSPC))
_ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
_temporary: set[tuple[int, Path]] = set()  # files that are being written, with the process that writes them


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
    with _removed_on_signal(probe):
        try:
            _create(probe, path)
        finally:
            probe.unlink(missing_ok=True)
    return path


def make_folder(folder: Path) -> Path:
    """Create a folder, or raise an :class:`OutputError`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"The folder {folder} cannot be created ({error.strerror}): use another one.") from error
    return folder


@contextmanager
def replacing(path: str | os.PathLike) -> Iterator[Path]:
    """A temporary file in the same folder, which replaces ``path`` if the block succeeds and is removed otherwise.

    The new file keeps the permissions of the one that it replaces. File and folder are flushed to the disk, so that a
    power failure leaves the old or the new file. SIGTERM and SIGHUP remove the temporary file before they end the
    process, unless the program handles them itself. A full disk raises an :class:`OutputError`.
    """
    path = Path(path)
    target, temporary = Path(os.path.realpath(path)), _beside(path)
    with _removed_on_signal(temporary):
        try:
            _create(temporary, path)
            yield temporary
            if target.exists():
                os.chmod(temporary, stat.S_IMODE(target.stat().st_mode))
            _flush(temporary)
            os.replace(temporary, target)
            if os.name == "posix":
                _flush(target.parent)
        except OSError as error:
            if error.errno in _FULL and not isinstance(error, OutputError):
                raise OutputError(
                    f"{path} could not be written ({error.strerror}): free some space, or use another location."
                ) from error
            raise
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def only_writer(folder: str | os.PathLike) -> Iterator[None]:
    """Hold a lock on an existing folder, or raise an :class:`OutputError` if another process holds it.

    The system releases the lock when the process ends, however it ends. Without ``fcntl`` (Windows) there is no lock.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    place = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(place)
        raise OutputError(
            f"Another process is writing to {folder}: wait until it has ended, or use another folder."
        ) from error
    except OSError:  # a file system without locks
        pass
    try:
        yield
    finally:
        os.close(place)


def _beside(path: Path) -> Path:
    """A hidden file next to the target of ``path``. If ``path`` is a link, it remains one."""
    real = Path(os.path.realpath(path))
    return real.with_name(f".{real.stem[:100]}-{os.getpid()}-{os.urandom(4).hex()}{real.suffix}")


def _create(temporary: Path, path: Path) -> None:
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    except OSError as error:
        raise OutputError(f"{path} cannot be written ({error.strerror}): use another location.") from error


def _flush(path: Path) -> None:
    place = os.open(path, os.O_RDONLY)
    try:
        os.fsync(place)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EBADF, errno.EACCES):  # some file systems cannot flush a folder
            raise
    finally:
        os.close(place)


@contextmanager
def _removed_on_signal(path: Path) -> Iterator[None]:
    """Remove a file before a signal ends the process. Handlers of the program stay as they are."""
    _temporary.add((os.getpid(), path))
    able = threading.current_thread() is threading.main_thread()
    taken = [number for number in _ENDING if able and signal.getsignal(number) is signal.SIG_DFL]
    for number in taken:
        signal.signal(number, _end)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)
        _temporary.discard((os.getpid(), path))


def _end(number: int, frame: object) -> None:
    for owner, path in list(_temporary):
        if owner == os.getpid():  # not the files of the process from which this one was forked
            path.unlink(missing_ok=True)
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
