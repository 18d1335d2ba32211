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
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from importlib import import_module
from typing import Any, TypeVar

import joblib
from threadpoolctl import ThreadpoolController

T = TypeVar("T")

NUMBA_SECONDS = 0.5  # of a processor: about what importing numba and reading the first compiled functions takes
_interpreted_seconds = 0.0

_limit: ContextVar[int | None] = ContextVar("coterie_threads", default=None)
_pool: ThreadPoolExecutor | None = None
_only_one = False  # whether this process was forked: torch and BLAS then use the calling thread alone


def kernel(*, inner: bool = False, **options: Any) -> Any:
    """Compile a function to serial code without the GIL, and cache the machine code on disk.

    An ``inner`` kernel is called by other kernels only: it compiles faster without the code that Python would call.
    """
    from numba import njit

    _announce_compilation()
    options |= {"no_cpython_wrapper": inner, "no_cfunc_wrapper": True}

    def compiled(function: Callable[..., Any]) -> Any:
        try:
            return njit(nogil=True, cache=True, **options)(function)
        except RuntimeError:  # "no locator available": neither the package nor the user's folder can be written to
            return njit(nogil=True, **options)(function)

    return compiled


def intrinsic(plain: Callable[..., Any]) -> Callable[[Callable[..., Any]], Any]:
    """Generate machine code by a function, or use the plain function where numba does not compile (NUMBA_DISABLE_JIT).

    The decorated function has the form that :func:`numba.extending.intrinsic` expects.
    """
    from numba import config
    from numba.extending import intrinsic as generated

    return lambda function: plain if getattr(config, "DISABLE_JIT", 0) else generated(function)


def interpreted_first(kernels: str | None = None) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Let array operations do the work of a kernel as long as importing numba would take longer.

    The decorated function runs until numba is imported for another reason, or until such functions have taken as long
    as that import. From then on, the kernel of the same name in the module ``kernels`` runs, or without such a module
    the function itself, compiled. Both must give equal results, bit for bit, because the time of the change is not
    determined.
    """

    def decorate(function: Callable[..., T]) -> Callable[..., T]:
        @functools.cache
        def compiled() -> Callable[..., T]:
            return kernel()(function) if kernels is None else getattr(import_module(kernels), function.__name__)

        @functools.wraps(function)
        def call(*arguments: Any) -> T:
            global _interpreted_seconds
            if "numba" in sys.modules or _interpreted_seconds > NUMBA_SECONDS:
                return compiled()(*arguments)
            began = time.thread_time()
            result = function(*arguments)
            _interpreted_seconds += time.thread_time() - began
            return result

        return call

    return decorate


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
    """The number of threads to use: ``n_threads`` if it is positive, otherwise all processors of this process.

    None is the number of the enclosing :func:`limited` block, if there is one.
    """
    if n_threads is None:
        n_threads = _limit.get()
    if n_threads is not None and n_threads > 0:
        return int(n_threads)
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
        torch.set_num_threads(1 if _only_one else count(n_jobs))
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def limited(n_jobs: int | None) -> Iterator[None]:
    """Limit own threads, BLAS, and torch if it is imported, to ``n_jobs`` inside the block: -1 is all processors.

    None leaves everything as it is.
    """
    if n_jobs is None:
        yield
        return
    token = _limit.set(count(n_jobs))
    try:
        with blas_threads(count()), torch_threads(n_jobs) if "torch" in sys.modules else nullcontext():
            yield
    finally:
        _limit.reset(token)


def blas_threads(n_threads: int) -> AbstractContextManager[Any]:
    """Limit BLAS, with which numpy and scipy multiply matrices, to so many threads inside the block."""
    return _blas().limit(limits=1 if _only_one else n_threads)


@functools.cache
def _blas() -> ThreadpoolController:
    """The libraries that are loaded; finding them takes milliseconds."""
    return ThreadpoolController().select(user_api="blas")


def blocks(n: int, size: int, most: int = 64) -> list[tuple[int, int]]:
    """Divide ``range(n)`` into at most ``most`` equal blocks of at least ``size`` rows."""
    parts = max(1, min(most, n // size))
    cuts = [n * b // parts for b in range(parts + 1)]
    return list(itertools.pairwise(cuts))


def run(task: Callable[[int], T], n_tasks: int, n_threads: int) -> list[T]:
    """Return ``[task(0), ..., task(n_tasks - 1)]``, computed by up to ``n_threads`` threads including the caller.

    After an error, or Ctrl-C in the calling thread, no further task begins.
    """
    global _pool
    workers = min(n_threads, n_tasks)
    if workers <= 1:
        return [task(t) for t in range(n_tasks)]
    results: list = [None] * n_tasks
    following = iter(range(n_tasks))  # next() on a range iterator is atomic under the GIL

    def work():
        try:
            for t in following:
                results[t] = task(t)
        except BaseException:
            for _ in following:  # nothing is left for the other threads, so that the caller does not wait for them
                pass
            raise

    if _pool is None:
        _pool = ThreadPoolExecutor(max(1, 2 * (os.cpu_count() or 1)), thread_name_prefix="coterie")
    futures = [_pool.submit(work) for _ in range(workers - 1)]
    try:
        work()
    finally:
        for future in futures:
            # A future that no thread has begun has nothing left to do: never wait for a busy pool.
            if not future.cancel():
                future.result()
    return results


def _after_fork() -> None:
    """Forget threads that do not exist in a forked process: torch and scikit-learn would wait for theirs for ever."""
    global _pool, _only_one
    _pool, _only_one = None, True
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    ThreadpoolController().select(user_api="openmp").limit(limits=1)  # one thread needs no team of the parent


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
