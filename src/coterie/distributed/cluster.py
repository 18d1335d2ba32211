"""Whatever runs Dask: this process, or a cluster, whose workers are watched while a pass takes long."""

import sys
import time
import warnings
from contextlib import suppress
from typing import Any

import dask
from dask.delayed import Delayed

PATIENCE = 60.0  # seconds to wait for a scheduler to come back, or for a worker that can work
NOTICE = 8.0  # seconds after which a worker that stopped is named
LOOK = 2.0  # seconds between two looks at the workers


class ClusterError(RuntimeError):
    """Raised if a cluster cannot continue. The message says what to do."""


def local(n_workers: int, **options: Any) -> Any:
    """A cluster of processes with one thread each on this machine, on the loopback interface and with no dashboard."""
    import distributed

    quiet = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}
    return distributed.LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address=None,
        scheduler_kwargs=quiet,
        silence_logs=50,
        **options,
    )


def client() -> Any:
    """The active distributed client, or None."""
    if "distributed" not in sys.modules:
        return None
    import distributed

    try:
        return distributed.get_client()
    except ValueError:
        return None


def workers(here: Any, patience: float = PATIENCE) -> dict[str, dict[str, Any]]:
    """What the scheduler knows of all workers, by their addresses."""
    return here.sync(here.scheduler.identity, callback_timeout=patience)["workers"]


def compute(value: Delayed, patience: float) -> Any:
    """The value, computed on the active cluster or in this process.

    Workers that stop for some seconds are named in a warning. If none can work for ``patience`` seconds, a
    :class:`ClusterError` says why.
    """
    here = client()
    if here is None:
        return dask.compute(value, optimize_graph=False)[0]
    _await_scheduler(here, patience)
    future = here.compute(value, optimize_graph=False)
    watch, next_look = _Watch(here, patience), time.monotonic() + LOOK
    while not future.done():
        _wait(future, 1.0)
        if time.monotonic() < next_look or future.done() or here.status != "running":
            continue
        try:
            watch.look()
        except ClusterError:
            future.cancel()
            raise
        next_look = time.monotonic() + LOOK
    return future.result()


class _Watch:
    """Since when workers have stopped, and what was said about it."""

    def __init__(self, here: Any, patience: float):
        self.here, self.patience = here, patience
        self.heard: dict[str, tuple[float, float]] = {}  # worker -> last heartbeat, and when it was first seen here
        self.paused: dict[str, float] = {}  # worker -> since when
        self.idle_since: float | None = None
        self.named: set[str] = set()

    def look(self) -> None:
        now, found = time.monotonic(), workers(self.here, self.patience)
        stopped = {}
        for worker, known in found.items():
            if self.heard.get(worker, (None,))[0] != known["last_seen"]:
                self.heard[worker] = known["last_seen"], now
            if now - self.heard[worker][1] > NOTICE:
                stopped[worker] = f"has sent nothing for {now - self.heard[worker][1]:.0f} s"
            if known.get("status") != "paused":
                self.paused.pop(worker, None)
            elif now - self.paused.setdefault(worker, now) > NOTICE:
                stopped[worker] = "is paused, because it uses more than four fifths of its memory"
        for worker in sorted(stopped.keys() - self.named):
            self.named.add(worker)
            warnings.warn(
                f"The Dask worker {worker} {stopped[worker]}. The fit waits until it goes on or is given up.",
                stacklevel=2,
            )
        if len(stopped) < len(found):
            self.idle_since = None
            return
        self.idle_since = now if self.idle_since is None else self.idle_since
        if now - self.idle_since <= self.patience:
            return
        address = self.here.scheduler.address
        if not found:
            raise ClusterError(
                f"The scheduler at {address} has had no worker for {self.patience:.0f} s: start one with "
                f"dask worker {address}"
            )
        raise ClusterError(
            f"No worker of the scheduler at {address} has worked for {self.patience:.0f} s: {next(iter(stopped))} "
            f"{next(iter(stopped.values()))}. Give the workers more memory or use smaller blocks if they are paused; "
            "restart them if they are silent."
        )


def lost_errors() -> tuple[type[BaseException], ...]:
    """The errors that say that a cluster lost its work, which can be done again."""
    if "distributed" not in sys.modules:
        return ()
    from asyncio import CancelledError as LoopCancelled
    from concurrent.futures import CancelledError

    from distributed.client import FutureCancelledError
    from distributed.comm import CommClosedError

    from distributed import KilledWorker

    return (KilledWorker, FutureCancelledError, CancelledError, LoopCancelled, CommClosedError)


def _wait(future, seconds: float) -> None:
    import distributed

    with suppress(TimeoutError, distributed.TimeoutError):  # in Python 3.10 these are two
        distributed.wait([future], timeout=seconds)


def _await_scheduler(here, patience: float) -> None:
    until = time.monotonic() + patience
    while here.status != "running":
        if here.status in ("closed", "closing") or time.monotonic() > until:
            raise ClusterError(
                "The Dask scheduler does not answer. If the fit ran inside coterie.distributed.checkpoint(...), the "
                "centres of the last iteration are in the checkpoint: reconnect and fit with resume=True."
            )
        time.sleep(0.1)
