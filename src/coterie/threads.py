"""Blocks of rows over threads.

Kernels are compiled once, serial and without the GIL, and threads run them on disjoint blocks: that is safe
beside other threads of a server or a worker, where a parallel region of a compiled kernel is not. Blocks are
cut by the number of rows alone and their results are reduced in order, so that the number of threads changes
no bit of a result.
"""

import itertools
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import joblib
from numba import njit

T = TypeVar("T")

_pool: ThreadPoolExecutor | None = None


def kernel(**options: Any) -> Any:
    """Compile a function serial, without the GIL, and keep the machine code on disk for the next process."""
    return njit(nogil=True, cache=True, **options)


def count(n_threads: int | None = None) -> int:
    """Threads to use: those asked for, else the processors this process may use."""
    if n_threads is not None and n_threads > 0:
        return n_threads
    limit = os.environ.get("OMP_NUM_THREADS", "")
    cores = joblib.cpu_count()
    return max(1, min(cores, int(limit)) if limit.isdigit() and int(limit) else cores)


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
    """Cut ``range(n)`` into at most ``most`` equal blocks of at least ``size`` rows, whatever the threads."""
    parts = max(1, min(most, n // size))
    cuts = [n * b // parts for b in range(parts + 1)]
    return list(itertools.pairwise(cuts))


def run(task: Callable[[int], T], n_tasks: int, n_threads: int) -> list[T]:
    """``[task(0), ..., task(n_tasks - 1)]``, on up to ``n_threads`` threads of which the caller is one."""
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
