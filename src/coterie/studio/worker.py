"""The process of a job: ``python -m coterie.studio.worker``.

With ``--prepare`` it first imports all libraries, so that a spare worker can start at once. It reads tasks from
standard input, one per line, applies the limits of a task to itself, and writes its progress to standard output, one
line of JSON per message. The studio ends it after the task or gives it another one; it ends by itself when the studio
has ended.
"""

import contextlib
import json
import os
import queue
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any


def main() -> None:
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # output of libraries must not be mistaken for a message

    def tell(document: dict[str, Any]) -> None:
        out.write(json.dumps(document, allow_nan=False) + "\n")
        out.flush()

    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(lines,), daemon=True).start()
    if "--prepare" in sys.argv:
        from coterie.studio.tasks import prepare

        prepare()
    tell({"ready": True})
    while True:
        carry_out(json.loads(lines.get()), tell)


def carry_out(task: dict[str, Any], tell: Callable[[dict[str, Any]], None]) -> None:
    """Tell the result of a task, or in one sentence why there is none."""
    from coterie.files import OutputError
    from coterie.studio.tasks import TASKS

    _bind(task["memory"], task["seconds"], task["file_bytes"])
    try:
        tell({"done": TASKS[task["kind"]](task, tell)})
    except ValueError as error:  # errors of tables and settings, whose messages say what to do
        tell({"failed": " ".join(str(error).split())[:1000]})
    except OSError as error:
        reason = str(error) if isinstance(error, OutputError) else error.strerror or str(error)
        tell({"failed": f"A file could not be written or read ({reason}): free some space on the disk."})
    except MemoryError:
        most = task["memory"] / 2**30
        tell({"failed": f"This needs more memory than the limit of {most:.3g} GB: use fewer rows or columns."})
    except Exception as error:
        traceback.print_exc()
        tell({"failed": f"An unexpected error occurred ({type(error).__name__}); see the terminal for details."})


def _bind(memory: int, seconds: float, file_bytes: int) -> None:
    """Limits that the operating system enforces; without them (Windows), only the time limit of the studio remains."""
    try:
        import resource
    except ImportError:
        return
    cores, used = os.cpu_count() or 1, resource.getrusage(resource.RUSAGE_SELF)
    bounds = {
        # Not the address space, where it can be helped: libraries for GPUs map gigabytes of code that is never read.
        resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS: _taken() + memory,
        resource.RLIMIT_CPU: int(used.ru_utime + used.ru_stime + seconds * cores) + 1,
        resource.RLIMIT_FSIZE: file_bytes,
        resource.RLIMIT_CORE: 0,
    }
    for what, most in bounds.items():
        with contextlib.suppress(ValueError, OSError):  # a system may not support a limit
            resource.setrlimit(what, (most, resource.getrlimit(what)[1]))  # the next task has limits of its own


def _taken() -> int:
    """Bytes of private memory that the libraries use already."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[5]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 2**32


def _read(lines: "queue.SimpleQueue[bytes]") -> None:
    """Hand on the lines of standard input, and end the process with the studio."""
    for line in sys.stdin.buffer:
        lines.put(line)
    os._exit(1)


if __name__ == "__main__":
    main()
