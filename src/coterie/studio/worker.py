"""The process of one job: ``python -m coterie.studio.worker``.

With ``--prepare`` it first imports all libraries, so that a spare worker can start at once. It reads one task from
standard input, applies the limits of the task to itself, and writes its progress to standard output, one line of JSON
per message. It ends with the task, or when the studio that started it has ended.
"""

import contextlib
import json
import os
import sys
import threading
import traceback
from typing import Any


def main() -> None:
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # output of libraries must not be mistaken for a message

    def tell(document: dict[str, Any]) -> None:
        out.write(json.dumps(document, allow_nan=False) + "\n")
        out.flush()

    from coterie.files import OutputError
    from coterie.studio.tasks import TASKS, prepare

    if "--prepare" in sys.argv:
        prepare()
    tell({"ready": True})
    line = sys.stdin.buffer.readline()
    if not line:
        return
    task = json.loads(line)
    _bind(task["memory"], task["seconds"], task["file_bytes"])
    threading.Thread(target=_end_with_the_studio, daemon=True).start()
    try:
        tell({"done": TASKS[task["kind"]](task, tell)})
    except ValueError as error:  # errors of tables and settings, whose messages say what to do
        tell({"failed": " ".join(str(error).split())[:1000]})
    except OSError as error:
        reason = str(error) if isinstance(error, OutputError) else error.strerror or str(error)
        tell({"failed": f"A file could not be written or read ({reason}): free some space on the disk."})
    except MemoryError:
        tell({"failed": _about_memory(task["memory"])})
    except Exception as error:
        traceback.print_exc()
        tell({"failed": f"An unexpected error occurred ({type(error).__name__}); see the terminal for details."})


def _about_memory(memory: int) -> str:
    return f"This needs more memory than the limit of {memory / 2**30:.3g} GB: use fewer rows or columns."


def _bind(memory: int, seconds: float, file_bytes: int) -> None:
    """Limits that the operating system enforces; without them (Windows), only the time limit of the studio remains."""
    try:
        import resource
    except ImportError:
        return
    cores = os.cpu_count() or 1
    bounds = {
        # Not the address space, where it can be helped: libraries for GPUs map gigabytes of code that is never read.
        resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS: _taken() + memory,
        resource.RLIMIT_CPU: int(seconds * cores) + 1,
        resource.RLIMIT_FSIZE: file_bytes,
        resource.RLIMIT_CORE: 0,
    }
    for what, most in bounds.items():
        with contextlib.suppress(ValueError, OSError):  # a system may not support a limit
            resource.setrlimit(what, (most, most))


def _taken() -> int:
    """Bytes of private memory that the libraries use already."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[5]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 2**32


def _end_with_the_studio() -> None:
    while sys.stdin.buffer.read(1):
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
