"""``coterie cluster`` on Parquet files that do not fit in memory, on a Dask cluster or on processes of this machine."""

import importlib
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from coterie.cli.application import Refused, user_errors
from coterie.cli.outputs import Outputs

CONNECT_SECONDS = 10
_COPIES_IN_MEMORY = 4  # of a table, during an ordinary run


@dataclass(frozen=True)
class BlocksRequest:
    """What to cluster, how, and where to write the results."""

    pattern: str
    n_clusters: int
    algorithm: str
    settings: dict[str, Any]
    columns: str | None
    exclude: str | None
    scale: bool
    outputs: Outputs
    as_json: bool


@dataclass(frozen=True)
class Execution:
    """Where the work is done, and whether it continues from a checkpoint."""

    scheduler: str | None
    workers: int | None
    resume: bool


def wanted(source: str, scheduler: str | None, workers: int | None) -> bool:
    """Whether to read the data in blocks: on request, or because there are several files or too many rows."""
    from coterie.tables.databases import is_url

    if is_url(source):
        if scheduler is not None or workers is not None:
            raise Refused("A database is read into memory: remove --scheduler and --workers, or write a Parquet file.")
        return False
    file = Path(source)
    if scheduler is not None or workers is not None or file.is_dir():
        return True
    if not file.exists():
        return any(sign in str(file) for sign in "*?[")
    return file.suffix.lower() == ".parquet" and _too_large(file)


def refuse_for_blocks(file: str, **options: Any) -> None:
    """Raise an error if there are no files, or if an option was given that needs the whole table in memory."""
    from coterie.distributed import parquet

    with user_errors():
        parquet.find(file)
    given = next((name for name, value in options.items() if value), None)
    if given is not None:
        option = "from" if given == "from_model" else given.replace("_", "-")
        raise Refused(
            f"{file} is read in blocks, for which --{option} is not available: remove that option, or cluster a sample."
        )


def _too_large(file: Path) -> bool:
    import pyarrow.parquet as pq

    try:
        metadata = pq.read_metadata(file)
    except Exception:  # the ordinary reader reports what is wrong with the file
        return False
    return _COPIES_IN_MEMORY * metadata.num_rows * metadata.num_columns * 8 > _memory()


def _memory() -> int:
    try:
        from distributed.system import MEMORY_LIMIT
    except ImportError:
        import os

        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return MEMORY_LIMIT


def run(request: BlocksRequest, execution: Execution) -> None:
    """Fit, write the labels as one file per input file, and print the result."""
    try:
        import dask.array  # noqa: F401

        import distributed  # noqa: F401
    except ImportError:
        raise Refused("Data in blocks need Dask: pip install 'coterie[dask]'.") from None
    from coterie import distributed as own
    from coterie.cli import console
    from coterie.distributed import parquet
    from coterie.distributed.blocks import blocks_of
    from coterie.distributed.fitting import look
    from coterie.distributed.passes import ClusterError, Passes
    from coterie.estimators.capabilities import takes_blocks
    from coterie.estimators.on_dask import DaskRows
    from coterie.explain.facts import Facts
    from coterie.tables.columns import split_names
    from coterie.tabular import TableModel, make_estimator
    from coterie.tabular.clustered_table import Run

    started = time.perf_counter()
    with user_errors(ValueError, ClusterError):
        estimator = make_estimator(request.algorithm, **request.settings)
        if not takes_blocks(estimator):
            raise Refused(
                f"The algorithm {request.algorithm!r} does not support data in blocks: use kmeans, for example."
            )
        estimator.set_params(n_clusters=request.n_clusters)
        files = parquet.find(request.pattern)
        chosen = None if request.columns is None else split_names(request.columns)
        excluded = [] if request.exclude is None else split_names(request.exclude)
        folder = request.outputs.output or parquet.labels_folder(request.pattern, files)
        outputs = replace(request.outputs, output=folder)
        outputs.check(files, in_parts=True)
        rows = parquet.open_files(files, chosen, excluded)
        parts = parquet.LabelParts(folder)
        saving = (
            nullcontext() if outputs.checkpoint is None else own.checkpoint(outputs.checkpoint, resume=execution.resume)
        )
        with connected(execution.scheduler, execution.workers), saving:
            X = rows.array()
            with console.working(f"Reading {rows.n_rows:,} rows in {len(files)} files"):
                known = look(Passes(blocks_of(X)), request.n_clusters)
            encoding, X, inner = _scaled(rows, X, known, request.scale)
            estimator.set_params(verbose=0 if request.as_json else 1 if sys.stderr.isatty() else 2)
            estimator._fit(DaskRows(estimator, X, known=inner))
            estimator.set_params(verbose=0)
            with console.working("Writing the labels"):
                counts = parts.write(rows, X, estimator.predict)
        del estimator.labels_
        seconds = time.perf_counter() - started
        done = Run(request.algorithm, request.settings["random_state"], seconds=seconds, source=request.pattern)
        facts = Facts.of(done, encoding, estimator, _summaries(estimator, encoding, known, counts))
        written = {"labels": str(parts.folder)}
        if outputs.save is not None:
            written["model"] = str(TableModel(estimator, encoding).save(outputs.save))
    console.show_clustering(request.pattern, facts, written, request.as_json)


@contextmanager
def connected(scheduler: str | None, workers: int | None) -> Iterator[Any]:
    """A client of the scheduler, or of processes on this machine (on the loopback interface, without a dashboard)."""
    import distributed

    if scheduler is None:
        import joblib

        from coterie.distributed.passes import local

        with local(workers or joblib.cpu_count()) as cluster, distributed.Client(cluster) as client:
            yield client
        return
    try:
        client = distributed.Client(scheduler, timeout=CONNECT_SECONDS)
    except (OSError, ValueError, distributed.TimeoutError) as error:  # in Python 3.10 not the one of Python
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise Refused(
            f"The scheduler {scheduler} did not answer within {CONNECT_SECONDS} s ({reason}): check that it runs, that "
            "the address is correct, and whether it needs TLS (tls://...)."
        ) from None
    with client:
        _check_workers(client, scheduler)
        yield client


def _check_workers(client: Any, scheduler: str) -> None:
    import distributed

    try:
        client.wait_for_workers(1, timeout=CONNECT_SECONDS)
    except (TimeoutError, distributed.TimeoutError):  # in Python 3.10 these are two
        raise Refused(f"The scheduler {scheduler} has no workers: start some with `dask worker {scheduler}`") from None
    try:
        client.run(importlib.import_module, "coterie.distributed")
    except ModuleNotFoundError:
        raise Refused(
            "coterie is not installed on the workers: install it there, with pip install 'coterie[dask]'."
        ) from None


def _scaled(rows: Any, X: Any, known: Any, scale: bool) -> tuple[Any, Any, Any]:
    """The encoding of the columns, the rows as the estimator sees them, and the statistics of those."""
    import numpy as np

    from coterie import starts
    from coterie.kmeans.scaling import exponent_of_size
    from coterie.tables.encoding import Encoding

    if not scale:
        return Encoding.affine(rows.names), X, known
    deviation = np.sqrt(known.sq / known.weight)
    deviation = np.where(deviation > 0, deviation, 1.0)
    scaled = ((X - known.mean) / deviation).astype(rows.dtype)
    inner = replace(
        known,
        mean=np.zeros_like(known.mean),
        sq=known.sq / deviation**2,
        largest=1.0 if exponent_of_size(known.largest, rows.dtype) else known.largest,  # they are of ordinary size now
        fingerprint=starts.fingerprint(np.array([known.fingerprint], np.uint64)),  # rows and means determine the rest
    )
    return Encoding.affine(rows.names, known.mean, deviation), scaled, inner


def _summaries(estimator: Any, encoding: Any, known: Any, counts: Any) -> list[Any]:
    """Summaries from the statistics of all blocks; the mean of the outliers is not known."""
    import numpy as np

    from coterie.explain.facts import summary

    centers = dict(enumerate(encoding.original(np.asarray(estimator.cluster_centers_, dtype=np.float64))))
    sizes = np.zeros(len(centers) + 1, np.int64)
    sizes[: len(counts)] = counts  # the outliers first
    if sizes[0]:
        centers[-1] = np.full(len(encoding.names), np.nan)
    deviation = np.sqrt(known.sq / known.weight)
    total = int(sizes.sum())
    return [
        summary(label, int(sizes[label + 1]), total, center, encoding.names, known.mean, deviation)
        for label, center in centers.items()
    ]
