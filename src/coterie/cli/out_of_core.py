"""``coterie cluster`` on Parquet files that do not fit in memory: on a cluster, or on one of its own here."""

import importlib
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from coterie.cli.application import Refused, split_names, user_errors

CONNECT_SECONDS = 10
_IN_MEMORY = 4  # copies of a table that an ordinary run needs


@dataclass(frozen=True)
class Request:
    """What the command line asked for."""

    pattern: str
    n_clusters: int
    algorithm: str
    settings: dict[str, Any]
    columns: "ColumnRequest"
    output: Path | None
    save: Path | None
    as_json: bool


@dataclass(frozen=True)
class ColumnRequest:
    """Which columns take part."""

    names: list[str] | None
    exclude: list[str]
    scale: bool

    @classmethod
    def of(cls, columns: str | None, exclude: str | None, scale: bool) -> "ColumnRequest":
        names, others = (None if text is None else split_names(text) for text in (columns, exclude))
        return cls(names, others or [], scale)


@dataclass(frozen=True)
class Execution:
    """Where it runs, and where its centres are kept meanwhile."""

    scheduler: str | None
    workers: int | None
    checkpoint: Path | None
    resume: bool


def wanted(file: Path, scheduler: str | None, workers: int | None) -> bool:
    """Whether a run goes by blocks: because it was asked for, or because the data are many files or too much."""
    if scheduler is not None or workers is not None or file.is_dir():
        return True
    if not file.exists():
        return any(sign in str(file) for sign in "*?[")
    return file.suffix.lower() == ".parquet" and _too_large(file)


def _too_large(file: Path) -> bool:
    import pyarrow.parquet as pq

    try:
        metadata = pq.read_metadata(file)
    except Exception:  # whatever is wrong with it, the ordinary reader says
        return False
    return _IN_MEMORY * metadata.num_rows * metadata.num_columns * 8 > _memory()


def _memory() -> int:
    try:
        from distributed.system import MEMORY_LIMIT
    except ImportError:
        import os

        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return MEMORY_LIMIT


def run(request: Request, execution: Execution) -> None:
    """Fit, write the labels as parts beside the input, and tell."""
    try:
        import dask.array  # noqa: F401

        import distributed  # noqa: F401
    except ImportError:
        raise Refused("Data in blocks need dask: pip install 'coterie[dask]'.") from None
    from coterie import distributed as own
    from coterie.cli import console
    from coterie.distributed import parquet
    from coterie.distributed.blocks import blocks_of
    from coterie.distributed.fitting import look
    from coterie.distributed.passes import ClusterError, Passes
    from coterie.estimators import on_dask
    from coterie.tabular import TableModel, make_estimator

    started = time.perf_counter()
    with user_errors(ValueError, ClusterError):
        estimator = make_estimator(request.algorithm, **request.settings)
        if not getattr(estimator, "_takes_blocks", False):
            raise Refused(f"The algorithm {request.algorithm!r} cannot read data in blocks: take kmeans, say.")
        estimator.set_params(n_clusters=request.n_clusters)
        files = parquet.find(request.pattern)
        rows = parquet.open_files(files, request.columns.names, request.columns.exclude)
        parts = parquet.LabelParts(request.output or parquet.labels_folder(request.pattern, files))
        saving = (
            nullcontext()
            if execution.checkpoint is None
            else own.checkpoint(execution.checkpoint, resume=execution.resume)
        )
        with connected(execution.scheduler, execution.workers), saving:
            X = rows.array()
            with console.working(f"Looking at {rows.n_rows:,} rows in {len(files)} files"):
                known = look(Passes(blocks_of(X)), request.n_clusters)
            columns, X, inner = _scaled(rows, X, known, request.columns.scale)
            estimator.set_params(verbose=0 if request.as_json else 1 if sys.stderr.isatty() else 2)
            on_dask.fit(estimator, X, known=inner)
            estimator.set_params(verbose=0)
            with console.working("Writing the labels"):
                counts = parts.write(rows, X, estimator.predict)
        del estimator.labels_
        done = console.Clustering(
            file=request.pattern,
            algorithm=request.algorithm,
            rows=rows.n_rows,
            model=TableModel(estimator, columns),
            summaries=_summaries(estimator, columns, known, counts),
            choice=None,
            seed=request.settings["random_state"],
            seconds=time.perf_counter() - started,
            notes=[],
            files={"labels": str(parts.folder)},
        )
        if request.save is not None:
            done.files["model"] = str(done.model.save(request.save))
    console.tell(done, request.as_json)


@contextmanager
def connected(scheduler: str | None, workers: int | None) -> Iterator[Any]:
    """A client of the scheduler, or of a cluster of processes on this machine, on loopback and without a dashboard."""
    import distributed

    if scheduler is None:
        import joblib

        from coterie.distributed.passes import local

        with local(workers or joblib.cpu_count()) as cluster, distributed.Client(cluster) as client:
            yield client
        return
    try:
        client = distributed.Client(scheduler, timeout=CONNECT_SECONDS)
    except (OSError, ValueError, TimeoutError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise Refused(
            f"The scheduler {scheduler} did not answer within {CONNECT_SECONDS} s ({reason}): is it running, is the "
            "address that of the scheduler, and does it want TLS (tls://...)?"
        ) from None
    with client:
        _check_workers(client, scheduler)
        yield client


def _check_workers(client: Any, scheduler: str) -> None:
    try:
        client.wait_for_workers(1, timeout=CONNECT_SECONDS)
    except TimeoutError:
        raise Refused(f"The scheduler {scheduler} has no workers: start some with dask worker {scheduler}") from None
    try:
        client.run(importlib.import_module, "coterie.distributed")
    except ModuleNotFoundError:
        raise Refused("The workers do not have coterie: install it there, with pip install 'coterie[dask]'.") from None


def _scaled(rows: Any, X: Any, known: Any, scale: bool) -> tuple[Any, Any, Any]:
    """The columns of the model, the rows as the estimator sees them, and what is known of those."""
    import numpy as np

    from coterie.tabular import Columns

    if not scale:
        return Columns(rows.names), X, known
    deviation = np.sqrt(known.sq / known.weight)
    deviation = np.where(deviation > 0, deviation, 1.0)
    scaled = ((X - known.mean) / deviation).astype(rows.dtype)
    inner = replace(known, mean=np.zeros_like(known.mean), sq=known.sq / deviation**2)
    return Columns(rows.names, known.mean, deviation), scaled, inner


def _summaries(estimator: Any, columns: Any, known: Any, counts: Any) -> list[Any]:
    import numpy as np

    from coterie.tabular import ClusterSummary

    deviation = np.sqrt(known.sq / known.weight)
    deviation = np.where(deviation > 0, deviation, 1.0)
    centers = columns.original(np.asarray(estimator.cluster_centers_, dtype=np.float64))
    sizes = np.zeros(len(centers) + 1, np.int64)
    sizes[: len(counts)] = counts
    found = []
    for label in [*range(len(centers)), *([-1] if sizes[0] else [])]:
        center = centers[label] if label >= 0 else np.full(len(columns.names), np.nan)
        away = (center - known.mean) / deviation
        names = dict(zip(columns.names, center.tolist())), dict(zip(columns.names, away.tolist()))
        found.append(ClusterSummary(label, int(sizes[label + 1]), float(sizes[label + 1] / sizes.sum()), *names))
    return found
