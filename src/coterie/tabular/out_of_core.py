"""Clustering of Parquet files that do not fit in memory, on a Dask cluster or on processes of this machine."""

import importlib
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.catalogue import row_of
from coterie.estimators.capabilities import parameter, takes_blocks
from coterie.tables.columns import split_names
from coterie.tables.databases import is_url
from coterie.tables.encoding import Encoding
from coterie.tabular.clustered_table import Run
from coterie.tabular.make_estimator import SettingError, make_estimator
from coterie.tabular.model import TableModel

if TYPE_CHECKING:
    from coterie.explain.facts import Facts
    from coterie.tabular.clustering import Request, Watcher

CONNECT_SECONDS = 10
SAMPLE = 100_000  # rows in which clusters are found where sums over all rows are not enough
_COPIES_IN_MEMORY = 4  # of a table, during an ordinary run


@dataclass(frozen=True)
class Blocks:
    """Where blocks of files are read, and where their labels go.

    Parameters
    ----------
    scheduler : str, optional
        Address of a Dask cluster, for example "tcp://10.0.0.1:8786". By default processes on this machine are started.
    workers : int, optional
        The number of these processes; by default one per core.
    checkpoint : path, optional
        The centres are saved to this file after every iteration.
    resume : bool
        Continue from the centres in ``checkpoint``.
    labels : path, optional
        The folder in which one file of labels per input file is written. It must not exist. By default it is beside the
        input.
    """

    scheduler: str | None = None
    workers: int | None = None
    checkpoint: Path | None = None
    resume: bool = False
    labels: Path | None = None

    def are_needed(self, source: Any) -> bool:
        """Whether to read a source in blocks: on request, or because there are several files or too many rows."""
        if not isinstance(source, str | os.PathLike):
            return False
        if is_url(source):
            if self.scheduler is not None or self.workers is not None:
                raise SettingError(
                    "A database is read into memory: remove --scheduler and --workers, or write a Parquet file."
                )
            return False
        file = Path(source)
        if self.scheduler is not None or self.workers is not None or file.is_dir():
            return True
        if not file.exists():
            return any(sign in str(source) for sign in "*?[")
        return file.suffix.lower() == ".parquet" and _too_large(file)

    def files(self, source: str | os.PathLike) -> tuple[list[Path], Path]:
        """The files of a source, and the folder of their labels."""
        from coterie.distributed import parquet

        files = parquet.find(source)
        return files, self.labels or parquet.labels_folder(source, files)


@dataclass(frozen=True)
class ClusteredFiles:
    """A clustering of files in blocks: its estimator, its facts, and the folder with the labels of the rows."""

    estimator: Any
    encoding: Encoding
    facts: "Facts"
    labels_folder: Path

    @property
    def model(self) -> TableModel:
        """What ``coterie predict`` needs."""
        return TableModel(self.estimator, self.encoding)


def refuse_in_blocks(source: object, **options: Any) -> None:
    """Raise an error if an option was given that needs the whole table in memory."""
    given = next((name for name, value in options.items() if value), None)
    if given is not None:
        option = {"from_model": "from", "kinds": "kind", "drop_missing": "drop-missing"}.get(given, given)
        raise SettingError(
            f"{source} is read in blocks, for which --{option.replace('_', '-')} is not available: remove that "
            "option, or leave --workers and --scheduler out if the table fits in memory."
        )


def cluster_files(source: str | os.PathLike, request: "Request", watcher: "Watcher", blocks: Blocks) -> ClusteredFiles:
    """Fit, and write the labels as one file per input file."""
    try:
        import dask.array  # noqa: F401

        import distributed  # noqa: F401
    except ImportError:
        raise SettingError("Data in blocks need Dask: pip install 'coterie[dask]'.") from None
    from coterie.distributed.cluster import ClusterError

    try:
        return _fitted(source, request, watcher, blocks)
    except (ValueError, ClusterError) as error:  # their messages say what is wrong with data and parameters
        raise error if isinstance(error, SettingError) else SettingError(str(error)) from error


def _fitted(source: str | os.PathLike, request: "Request", watcher: "Watcher", blocks: Blocks) -> ClusteredFiles:
    from coterie.distributed import parquet

    files, folder = blocks.files(source)
    rows = parquet.open_files(files, _names(request.columns), _names(request.exclude) or [])
    parts = parquet.LabelParts(folder)
    estimator = None if rows.others else _summing(request)
    if estimator is None:
        return _fitted_to_sample(source, rows, parts, request, watcher, blocks)
    return _fitted_to_all(source, rows, parts, estimator, request, watcher, blocks)


def _summing(request: "Request") -> Any:
    """The estimator that was asked for, if sums over all rows are all that it and the other wishes need."""
    wishes = (
        request.encode, request.kinds, request.keep, request.labels, request.names, request.previous, request.text,
    )  # fmt: skip
    algorithm = request.algorithm or ("kmeans" if request.ks else "zeroshot")
    counts = row_of(algorithm).counts
    if any(wishes) or request.drop_missing or len(request.ks) != counts:
        return None
    estimator = make_estimator(algorithm, {"max_iter": 300}, random_state=request.seed, **request.settings)
    if takes_blocks(estimator):
        return estimator.set_params(n_clusters=request.ks[0])
    return estimator if row_of(algorithm).needs == "sample and passes" else None


def _fitted_to_all(
    source: str | os.PathLike, rows: Any, parts: Any, estimator: Any, request: "Request", watcher: "Watcher",
    blocks: Blocks,
) -> ClusteredFiles:  # fmt: skip
    """A fit that passes over all rows."""
    from coterie import distributed as own
    from coterie.distributed.blocks import blocks_of
    from coterie.distributed.fitting import look
    from coterie.distributed.passes import Passes
    from coterie.explain.facts import Facts

    started = time.perf_counter()
    saving = nullcontext() if blocks.checkpoint is None else own.checkpoint(blocks.checkpoint, resume=blocks.resume)
    with connected(blocks.scheduler, blocks.workers), saving:
        X = rows.array()
        with watcher.reading(f"{rows.n_rows:,} rows in blocks"):
            known = look(Passes(blocks_of(X)), parameter(estimator, "n_clusters", 1))
        encoding, X = _scaled(rows, X, known, bool(request.scale))
        with watcher.fitting(estimator):
            estimator.fit(X)
        with watcher.writing("the labels"):
            counts = parts.write(rows.stretches, estimator.predict(X).to_delayed().ravel())
    del estimator.labels_
    notes = () if request.scale else _scale_notes(estimator, known, rows.names)
    seconds = time.perf_counter() - started
    run = Run(request.algorithm or "kmeans", request.seed, notes=notes, seconds=seconds, source=str(source))
    facts = Facts.of(run, encoding, estimator, _summaries(estimator, encoding, known, counts))
    return ClusteredFiles(estimator, encoding, facts, parts.folder)


def _fitted_to_sample(
    source: str | os.PathLike, rows: Any, parts: Any, request: "Request", watcher: "Watcher", blocks: Blocks
) -> ClusteredFiles:
    """A fit in memory to a sample, whose model labels all rows."""
    import dask

    from coterie.distributed.chunks import Chunks
    from coterie.tabular.clustering import cluster_table

    refuse_in_blocks(
        source, drop_missing=request.drop_missing, labels=request.labels, text=request.text,
        checkpoint=blocks.checkpoint,
    )  # fmt: skip
    started = time.perf_counter()
    with watcher.reading(f"{rows.n_rows:,} rows in blocks"):
        few = min(SAMPLE, rows.n_rows)
        chosen = np.random.default_rng(request.seed).choice(rows.n_rows, few, replace=False, shuffle=False)
        table = Chunks(source).take(np.sort(chosen), mixed=True)
    with watcher.reading("a sample, and finding its clusters"):
        found = cluster_table(table, request)
    model, facts = found.model, found.facts
    with connected(blocks.scheduler, blocks.workers), watcher.writing("the labels"):
        sent, label = dask.delayed(model, pure=True), dask.delayed(_labels)
        counts = parts.write(rows.stretches, [label(sent, one, rows.names) for one in rows.stretches])
    sizes = dict(enumerate(map(int, counts), -1))
    summaries = [
        replace(one, size=sizes.get(one.label, 0), share=sizes.get(one.label, 0) / rows.n_rows)
        for one in facts.summaries
    ]
    notes = facts.notes
    if rows.n_rows > SAMPLE:
        notes = (f"The clusters were found in {SAMPLE:,} rows drawn at random; their model labelled all rows.", *notes)
    run = replace(facts.run, seconds=time.perf_counter() - started, source=str(source))
    facts = replace(
        facts, run=run, rows=rows.n_rows, summaries=tuple(summaries), notes=notes, outliers=sizes[-1] or None
    )
    return ClusteredFiles(model.estimator, model.encoding, facts, parts.folder)


def _labels(model: TableModel, stretch: Any, names: Sequence[str]) -> np.ndarray:
    from coterie.distributed.parquet import read_frame

    return np.asarray(model.predict(read_frame(stretch, names)))


def _names(given: str | Sequence[str] | None) -> list[str] | None:
    return split_names(given) if isinstance(given, str) else given if given is None else list(given)


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
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return MEMORY_LIMIT


@contextmanager
def connected(scheduler: str | None, workers: int | None) -> Iterator[Any]:
    """A client of the scheduler, or of processes on this machine (on the loopback interface, without a dashboard)."""
    import distributed

    if scheduler is None:
        import joblib

        from coterie.distributed.cluster import local

        with local(workers or joblib.cpu_count()) as cluster, distributed.Client(cluster) as client:
            yield client
        return
    try:
        client = distributed.Client(scheduler, timeout=CONNECT_SECONDS)
    except (OSError, ValueError, distributed.TimeoutError) as error:  # in Python 3.10 not the one of Python
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise SettingError(
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
        raise SettingError(
            f"The scheduler {scheduler} has no workers: start some with `dask worker {scheduler}`"
        ) from None
    try:
        client.run(importlib.import_module, "coterie.distributed")
    except ModuleNotFoundError:
        raise SettingError(
            "coterie is not installed on the workers: install it there, with pip install 'coterie[dask]'."
        ) from None


def _scaled(rows: Any, X: Any, known: Any, scale: bool) -> tuple[Any, Any]:
    """The encoding of the columns, and the rows as the estimator sees them."""
    if not scale:
        return Encoding.affine(rows.names), X
    deviation = np.sqrt(known.spread.var_D)
    deviation = np.where(deviation > 0, deviation, 1.0)
    return Encoding.affine(rows.names, known.spread.mean_D, deviation), ((X - known.spread.mean_D) / deviation).astype(
        rows.dtype
    )


def _scale_notes(estimator: Any, known: Any, names: Sequence[str]) -> tuple[str, ...]:
    """A note if the scales of the columns decide."""
    from coterie.explain.cautions import about_scales
    from coterie.selection import uneven_spreads

    uneven = uneven_spreads(estimator, np.sqrt(known.spread.var_D), np.flatnonzero(known.spread.var_D))
    return () if uneven is None else (about_scales(uneven, names).text,)


def _summaries(estimator: Any, encoding: Any, known: Any, counts: Any) -> list[Any]:
    """Summaries from the statistics of all blocks; the mean of the outliers is not known."""
    from coterie.explain.facts import summary

    centers = dict(enumerate(encoding.original(np.asarray(estimator.cluster_centers_, dtype=np.float64))))
    sizes = np.zeros(len(centers) + 1, np.int64)
    sizes[: len(counts)] = counts  # the outliers first
    if sizes[0]:
        centers[-1] = np.full(len(encoding.names), np.nan)
    deviation = np.sqrt(known.spread.var_D)
    total = int(sizes.sum())
    return [
        summary(label, int(sizes[label + 1]), total, center, encoding.names, known.spread.mean_D, deviation)
        for label, center in centers.items()
    ]
