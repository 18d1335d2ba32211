"""From a table to its clusters, in one pass: read, encode, fit, describe. The command line and the studio call this."""

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from coterie.catalogue import algorithms
from coterie.estimators.capabilities import (
    encodes_tables,
    finds_count,
    fitted_inside,
    given_count,
    has_parameter,
    parameter,
    parameters,
    takes_labels,
)
from coterie.living import LivingClusterer
from coterie.living.moments import remember
from coterie.selection import Candidate, Choice, check_criterion, choose_k
from coterie.tables.columns import TableError
from coterie.tables.file_reading import source_name
from coterie.tables.table import Table
from coterie.tables.texts import describe_texts, embed, names_in_words
from coterie.tabular.clustered_table import FORGOTTEN, ClusteredTable, Run
from coterie.tabular.encoded_table import EncodedTable
from coterie.tabular.make_estimator import SettingError, algorithms_with, check_algorithm, make_estimator
from coterie.tabular.model import TableModel
from coterie.tabular.out_of_core import Blocks, cluster_files
from coterie.tabular.partial_labels import KnownLabels, without
from coterie.wording import joined, plural

MANY_ROWS = 100_000  # from here on one start instead of ten
MOST_CLUSTERS = 10  # that are tried if no number is given
CRITERION = "silhouette"
NOT_AGAIN = ("n_clusters", "random_state", "verbose", "checkpoint")  # parameters of a fit that another one sets itself


@dataclass(frozen=True)
class Request:
    """What to cluster, and how. None leaves a decision to :func:`cluster_table`.

    Parameters
    ----------
    columns, exclude : names of columns to use, or of columns not to use
        A list, or a text with commas between the names.
    scale : bool, optional
        Scale every column to the same spread, or none. By default, columns that are encoded are scaled as suits them
        (:mod:`coterie.tables.common_scale`), and other numbers are used as they are.
    encode : bool or None
        Read text and dates, and fill missing values. None does so only if a chosen column needs it.
    drop_missing : bool
        Leave out rows with missing values in the chosen columns.
    kinds : str or mapping, optional
        Kinds of columns that are not guessed; see :func:`coterie.tables.column_reading.read_columns`.
    keep : names of columns to use even if they seem to be identifiers or of no use
        Identifiers that ``columns`` names are used as well.
    algorithm : str, optional
        A short name of :mod:`coterie.catalogue`. By default ``zeroshot`` if nothing else that shapes the
        clusters is given, and ``kmeans`` otherwise.
    clusters : int or sequence of int, optional
        One number of clusters, or several from which ``criterion`` chooses.
    most : int
        The largest number to try if ``clusters`` is None and the algorithm needs a number.
    criterion : str, optional
        One of :data:`coterie.selection.CRITERIA`.
    seed : int
    labels : str, optional
        Column with known labels, which are kept; empty means unknown. It is not used otherwise.
    names : mapping of int to str
        Names of clusters. Those of ``labels`` are named like their labels.
    settings : mapping
        Parameters of the estimator; one that it does not have raises an error.
    defaults : mapping
        Parameters for estimators of the k-means family, where they have them.
    text : str, optional
        Column of texts, which are compared by what they say, and no other column. Clusters are named by their words.
    embedder : str, path or callable
        How texts become numbers: see :func:`coterie.tables.texts.embed`.
    previous : :class:`coterie.tabular.TableModel` or path, optional
        A model of an earlier table. Clusters that continue one of its clusters keep its id and name. Columns, scaling
        and the algorithm with its settings are those of the model, where nothing else is asked for.
    """

    columns: str | Sequence[str] | None = None
    exclude: str | Sequence[str] | None = None
    scale: bool | None = None
    encode: bool | None = None
    drop_missing: bool = False
    kinds: str | Mapping[str, str] | None = None
    keep: str | Sequence[str] = ()
    algorithm: str | None = None
    clusters: int | Sequence[int] | None = None
    most: int = MOST_CLUSTERS
    criterion: str | None = None
    seed: int = 0
    labels: str | None = None
    names: Mapping[int, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    text: str | None = None
    embedder: "str | Path | Callable[[list[str]], Any]" = "auto"
    previous: "TableModel | str | Path | None" = None

    @property
    def ks(self) -> list[int]:
        """The numbers of clusters that were asked for."""
        return [self.clusters] if isinstance(self.clusters, int) else list(self.clusters or ())

    def suitable_algorithm(self) -> str:
        """The algorithm that was asked for, or the one that suits what was asked for."""
        if self.algorithm is not None:
            return self.algorithm
        given = {name for name, value in self.settings.items() if value is not None} - {"n_contexts"}
        if self.clusters is None and self.criterion is None and given <= {"outliers"}:
            return "zeroshot"
        able = algorithms_with(given) if given else []  # which imports all of them
        return next((name for name in able if name != "zeroshot"), "kmeans")

    def why_not_zeroshot(self, algorithm: str) -> list[str]:
        """A note if neither an algorithm nor a number of clusters was given, but zeroshot could not be the default."""
        if self.algorithm is not None or self.clusters is not None or algorithm == "zeroshot":
            return []
        given = ["criterion"] * (self.criterion is not None)
        given += [name.replace("_", "-") for name, value in self.settings.items() if value is not None]
        return [f"The algorithm is {algorithm}: zeroshot has no {joined(given)}."]


class Watcher:
    """Follows :func:`cluster_table` while it works. Subclasses override what they want to hear or show."""

    refits = False  # whether the fit that a criterion chose is fitted once more, to be followed

    def reading(self, name: str) -> AbstractContextManager[Any]:
        """Entered while the table is read and encoded."""
        return nullcontext()

    def on_encoded(self, rows: EncodedTable, estimator: Any) -> None:
        """Called before the first fit."""

    @contextmanager
    def choosing(self, ks: Sequence[int]) -> Iterator[Callable[[Candidate], Any]]:
        """Entered while several numbers of clusters are tried; what it yields is called after each."""
        yield lambda candidate: None

    def fitting(self, estimator: Any) -> AbstractContextManager[Any]:
        """Entered while the estimator is fitted."""
        return nullcontext()

    def writing(self, name: str) -> AbstractContextManager[Any]:
        """Entered while results of data in blocks are written."""
        return nullcontext()


def cluster_table(
    source: Any,
    request: Request | None = None,
    watcher: Watcher | None = None,
    *,
    header: bool | None = None,
    skip_rows: int = 0,
    query: str | None = None,
    cells: bool = False,
    blocks: Blocks | None = None,
    **wanted: Any,
) -> Any:
    """Cluster a table as it is: read it, encode its columns by their kinds, fit, and describe the clusters.

    Parameters
    ----------
    source : path, URL of a database, DataFrame, array or :class:`coterie.tables.table.Table`
        A folder or pattern of Parquet files, or a Parquet file larger than memory, is read in blocks (``blocks``).
    request : :class:`coterie.tabular.Request`, optional
        What to cluster, and how, as one value.
    watcher : :class:`coterie.tabular.Watcher`, optional
        Is told how far the work is.
    header : bool, optional
        Whether the first line of a text file contains column names; see :func:`coterie.tables.table.read_table`.
    skip_rows : int
        The number of lines of a text file to skip before that line.
    query : str, optional
        The query of a database, or the sheet of a workbook.
    cells : bool
        Keep the texts of the cells of a text file, so that they can be written as they were.
    blocks : :class:`coterie.tabular.Blocks`, optional
        Where data in blocks are read, and the folder for their labels.
    **wanted
        Fields of :class:`coterie.tabular.Request` instead of ``request``: ``columns``, ``clusters``, ``algorithm``,
        ``scale``, ``seed`` and so on. Without any, a pretrained network finds the clusters and their number.

    Returns
    -------
    ClusteredTable or ClusteredFiles
        The clusters of rows in memory, with ``labels``, ``facts``, ``verdict``, ``model``, ``report(path)`` and
        ``save_picture(path)``. For data in blocks: ``facts``, ``model`` and the folder with the
        labels, ``labels_folder``.

    Examples
    --------
    >>> from coterie import cluster_table
    >>> found = cluster_table("shop.csv", exclude=["habit"])  # doctest: +SKIP
    >>> print(found.verdict.text)  # doctest: +SKIP
    >>> found.report("shop.html")  # doctest: +SKIP
    """
    if request is not None and wanted:
        raise SettingError(f"Give a request or its fields ({', '.join(wanted)}), not both.")
    request, watcher, started = request or Request(**wanted), watcher or Watcher(), time.perf_counter()
    blocks = blocks or Blocks()
    if request.algorithm is not None:
        check_algorithm(request.algorithm)
    if blocks.are_needed(source):
        return cluster_files(source, request, watcher, blocks)
    name = source_name(source) if isinstance(source, str | Path) else None
    with watcher.reading(name or "the table"):
        how: dict[str, Any] = {"header": header, "skip_rows": skip_rows, "query": query, "cells": cells}
        whole = table = Table.of(source) if name is None else Table.read(source, **how)
        known = None
        if request.labels is not None:
            known, table = KnownLabels.of(table, request.labels), without(table, request.labels)
        texts = None
        if request.text is not None:
            texts, table = _texts(table, request)
        earlier = request.previous
        if earlier is not None:
            earlier = earlier if isinstance(earlier, TableModel) else TableModel.load(earlier)
            request = _completed(request, earlier)
        algorithm = request.suitable_algorithm()
        given = {name: value for name, value in request.defaults.items() if value is not None}
        defaults = {"n_init": 10 if len(table) <= MANY_ROWS else 1, "max_iter": 300, **given}
        estimator = make_estimator(algorithm, defaults, random_state=request.seed, **request.settings)
        scale = "auto" if request.scale is None else request.scale
        if encodes_tables(estimator):
            if request.encode is False:
                raise SettingError(f"{algorithm} encodes all tables: remove --no-encode, or choose another algorithm.")
            scale = parameter(estimator, "scale") if request.scale is None else scale
            estimator.set_params(scale=scale)
        encoded = EncodedTable.learn(
            table,
            request.columns,
            exclude=request.exclude,
            scale=scale,
            encode=True if encodes_tables(estimator) else request.encode,
            drop_missing=request.drop_missing,
            kinds=request.kinds,
            keep=request.keep,
        )
    watcher.on_encoded(encoded, estimator)
    y = None if known is None else _labels_for(estimator, algorithm, known, encoded)
    ks = _numbers_to_try(request, estimator, algorithm, len(encoded.table), known)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            estimator, choice = _fit(encoded, estimator, ks, request, watcher, y)
        except (TableError, SettingError):
            raise
        except ValueError as error:  # estimators say what is wrong with data and parameters
            raise SettingError(str(error)) from error
    warned = {" ".join(str(one.message).split()) for one in caught if issubclass(one.category, UserWarning)}
    notes = (*encoded.notes, *request.why_not_zeroshot(algorithm), *sorted(warned))
    remember(estimator, encoded.rows)
    if earlier is not None:  # clusters that continue one of its clusters have its id and name
        before = earlier.living.places(EncodedTable.apply(earlier.encoding, encoded.table).rows)
        estimator = LivingClusterer.of(estimator).continuing(earlier.living, encoded.rows, before)
        notes = (*notes, *estimator.history)
    seconds = time.perf_counter() - started
    made = ClusteredTable.fitted(encoded, estimator, Run(algorithm, request.seed, choice, notes, seconds, name))
    names = {**made.names, **({} if known is None else known.names), **request.names}
    if texts is not None:
        made = replace(made, texts=describe_texts(texts, made.labels))
        names = {**names_in_words(made.texts), **names}
    if known is not None or texts is not None:
        made = replace(made, table=whole if encoded.places is None else whole.take(encoded.places))
    return made.named(names) if names else made


def _completed(request: Request, model: TableModel) -> Request:
    """The request with the columns and the algorithm of an earlier model, where it leaves them open."""
    encoding, base = model.encoding, fitted_inside(model.estimator)
    if request.columns is None and request.exclude is None:
        request = replace(request, columns=list(encoding.sources))
    if not encoding.complete:
        request = replace(request, encode=True)
    elif not encoding.is_identity:
        request = replace(request, scale=True)
    short = next((name for name, kind in algorithms().items() if kind == type(base).__name__), None)
    if request.algorithm is not None or short is None:
        return request
    usual = type(base)().get_params()
    same = {
        name: value
        for name, value in parameters(base).items()
        if name not in NOT_AGAIN and not isinstance(value, np.ndarray) and value != usual[name]
    }
    given = {name: value for name, value in request.settings.items() if value is not None}
    open_count = request.clusters is None and request.criterion is None
    clusters = given_count(base) if open_count else request.clusters
    return replace(request, algorithm=short, clusters=clusters, settings={**same, **given})


def _texts(table: Table, request: Request) -> tuple[list[str], Table]:
    """The texts of a column, "" where they are missing, and a table of the numbers that they become."""
    if request.columns is not None or request.exclude is not None or request.previous is not None:
        raise SettingError("A column of texts is compared alone: remove columns, exclude and previous.")
    (column,) = table.choose([request.text or ""])
    values = table.frame[column]
    texts = ["" if gone else str(text) for text, gone in zip(values.tolist(), values.isna())]
    points, how = embed(texts, request.embedder)
    names = [f"{column} {place}" for place in range(1, points.shape[1] + 1)]
    told = f"Column {column!r} was read as {points.shape[1]} numbers per text, {how}."
    numbers = Table(names, array=points)
    numbers.notes = (*table.notes, told)
    return texts, numbers


def _labels_for(estimator: Any, algorithm: str, known: KnownLabels, rows: EncodedTable) -> np.ndarray:
    """The labels of the rows that take part."""
    if not takes_labels(estimator):
        raise SettingError(f"The algorithm {algorithm!r} cannot use given labels: use zeroshot or kmeans.")
    if known.complete:
        raise SettingError("Every row has a label, so there is nothing to find: leave some cells of the column empty.")
    return known.y if rows.places is None else known.y[rows.places]


def _numbers_to_try(
    request: Request, estimator: Any, algorithm: str, rows: int, known: KnownLabels | None = None
) -> list[int]:
    """The numbers of clusters to try; none if the estimator determines it."""
    criterion = request.criterion or CRITERION
    if request.criterion is not None:
        try:
            check_criterion(criterion)
        except ValueError as error:
            raise SettingError(str(error)) from error
    found = finds_count(estimator)
    ks = request.ks
    if found and (len(ks) > 1 or (ks and not has_parameter(estimator, "n_clusters"))):
        raise SettingError(
            f"The algorithm {algorithm!r} determines the number of clusters itself: do not give one (-k)."
        )
    if ks and ks[-1] > rows:
        raise SettingError(
            f"{ks[-1]} clusters were requested, but the table has {plural(rows, 'row')}: request at most {rows}."
        )
    if known is not None and not found and len(ks) != 1:
        if len(ks) > 1:
            raise SettingError("Given labels need one number of clusters, for example -k 5, and not a range.")
        return [len(known.names)]
    if request.clusters is None and not found:
        ks = [k for k in range(1 if criterion == "gap" else 2, request.most + 1) if k < rows]
        if not ks or rows < 3:
            raise SettingError(f"{rows} rows are too few to choose a number of clusters: give the number (-k).")
    if request.criterion is not None and (found or len(request.ks) == 1):
        raise SettingError("A criterion chooses from a range of numbers of clusters: give one, for example -k 2..12.")
    return ks


def _fit(
    rows: EncodedTable,
    estimator: Any,
    ks: Sequence[int],
    request: Request,
    watcher: Watcher,
    y: np.ndarray | None = None,
) -> tuple[Any, Choice | None]:
    """The fitted estimator: with one number of clusters, with the best of several, or with the one that it finds."""
    data, choice = rows.input(estimator), None
    if len(ks) > 1:
        criterion = request.criterion or CRITERION
        with watcher.choosing(ks) as on_candidate:
            choice = choose_k(
                estimator, data, ks, criterion=criterion, random_state=request.seed, on_candidate=on_candidate
            )
        estimator = choice.estimator
        if not watcher.refits:
            return estimator, choice
    elif ks:
        estimator.set_params(n_clusters=ks[0])
    with watcher.fitting(estimator):
        estimator.fit(data, y)
    return estimator, choice


def recut_table(source: Any, model: TableModel, n_clusters: int, **how: Any) -> ClusteredTable:
    """Cluster a table at another number of clusters of the hierarchy of a saved model, without fitting again.

    ``how`` a file is read are arguments of :meth:`Table.read`.
    """
    started = time.perf_counter()
    if not hasattr(model.estimator, "recut"):
        kind = type(model.estimator).__name__
        raise SettingError(f"The model is a {kind}, which has no hierarchy to cut: fit it again with -k {n_clusters}.")
    name = source_name(source) if isinstance(source, str | Path) else None
    table = Table.of(source) if name is None else Table.read(source, **how)
    rows = EncodedTable.apply(model.encoding, table)
    try:
        estimator = model.estimator.recut(rows.input(model.estimator), n_clusters)
    except ValueError as error:
        raise SettingError(str(error)) from error
    seed = parameter(estimator, "random_state")
    notes = (*rows.notes, *([FORGOTTEN] if model.names else []))
    run = Run("zeroshot", seed, None, notes, time.perf_counter() - started, name)
    return ClusteredTable.fitted(rows, estimator, run)
