"""Computation on blocks of rows in several threads.

Kernels are compiled as serial code that releases the GIL, and threads run them on disjoint blocks. Unlike a parallel
region inside a compiled kernel, this is safe next to other threads of a server or a Dask worker. The division into
blocks depends only on the number of rows, and results are reduced in order, so the result does not depend on the number
of threads.
"""

import functools
import itertools
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import joblib

T = TypeVar("T")

_pool: ThreadPoolExecutor | None = None


def kernel(**options: Any) -> Any:
    """Compile a function to serial code without the GIL, and cache the machine code on disk."""
    from numba import njit

    _announce_compilation()
    return njit(nogil=True, cache=True, **options)


@functools.cache
def _announce_compilation() -> None:
    """Tell whoever sits at the terminal, once, why the first call on a machine takes some seconds."""
    from numba.core import event

    class Announcer(event.Listener):
        told = False

        def on_start(self, event):
            ours = event.data["dispatcher"].py_func.__module__.startswith("coterie.")
            if ours and not self.told and sys.stderr.isatty():
                print("Compiling for this processor, once; later calls read the result from disk.", file=sys.stderr)
                self.told = True

        def on_end(self, event):
            pass

    event.register("numba:compile", Announcer())


def count(n_threads: int | None = None) -> int:
    """The number of threads to use: ``n_threads`` if it is positive, otherwise all processors of this process."""
    if n_threads is not None and n_threads > 0:
        return n_threads
    limit = os.environ.get("OMP_NUM_THREADS", "")
    cores = _n_processors()
    return max(1, min(cores, int(limit)) if limit.isdigit() and int(limit) else cores)


@functools.cache
def _n_processors() -> int:
    """The processors that this process may use. joblib reads files to find out."""
    return joblib.cpu_count()


@contextmanager
def torch_threads(n_jobs: int | None) -> Iterator[None]:
    """Limit torch to ``n_jobs`` threads inside the block: -1 is all processors, None leaves torch as it is."""
    import torch

    before = torch.get_num_threads()
    if n_jobs is not None:
        torch.set_num_threads(count(n_jobs))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def blocks(n: int, size: int, most: int = 64) -> list[tuple[int, int]]:
    """Divide ``range(n)`` into at most ``most`` equal blocks of at least ``size`` rows."""
    parts = max(1, min(most, n // size))
    cuts = [n * b // parts for b in range(parts + 1)]
    return list(itertools.pairwise(cuts))


def run(task: Callable[[int], T], n_tasks: int, n_threads: int) -> list[T]:
    """Return ``[task(0), ..., task(n_tasks - 1)]``, computed by up to ``n_threads`` threads including the caller."""
    workers = min(n_threads, n_tasks)
    if workers <= 1:
        return [task(t) for t in range(n_tasks)]
    results: list = [None] * n_tasks
    following = iter(range(n_tasks))  # next() on a range iterator is atomic under the GIL

    def work():
        for t in following:
            results[t] = task(t)

    futures = [_executor().submit(work) for _ in range(workers - 1)]
    try:
        work()
    finally:
        for future in futures:
            # A future that no thread has begun has nothing left to do: never wait for a busy pool.
            if not future.cancel():
                future.result()
    return results


def _executor() -> ThreadPoolExecutor:
    global _pool
    if _pool is None:
        _pool = ThreadPoolExecutor(max(1, 2 * (os.cpu_count() or 1)), thread_name_prefix="coterie")
    return _pool


def _forget_pool():
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)
