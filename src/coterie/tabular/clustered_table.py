"""A table and its clusters: the value that the command line, the studio, the report and pictures read."""

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.preprocessing import normalize
from sklearn.utils.validation import check_is_fitted

from coterie.estimators.capabilities import (
    encodes_tables,
    fitted_inside,
    has_parameter,
    is_edited,
    on_sphere,
    start_was_given,
)
from coterie.living import LivingClusterer
from coterie.living.moments import remember
from coterie.living.rows import given_to
from coterie.tables.columns import holds_dates
from coterie.tables.encoding import Encoded, Encoding
from coterie.tables.table import Table
from coterie.tables.texts import TextCluster
from coterie.tabular.encoded_table import EncodedTable
from coterie.tabular.model import TableModel
from coterie.wording import cluster_name

if TYPE_CHECKING:
    from coterie.explain.facts import Facts
    from coterie.explain.quality import Silhouettes
    from coterie.explain.report import Report
    from coterie.explain.verdict import Verdict
    from coterie.living.granularity import Granularity
    from coterie.plot.columns import Column
    from coterie.selection import Choice

MAX_CELLS = 50_000_000
FORGOTTEN = "These are other clusters than those that were named: the names are not kept."


@dataclass(frozen=True)
class Run:
    """How the clusters were made, where that is known."""

    algorithm: str
    seed: int | None = None
    choice: "Choice | None" = None
    notes: tuple[str, ...] = ()  # about the columns, and warnings of the estimator
    seconds: float | None = None
    source: str | None = None  # name of the file


@dataclass(frozen=True)
class ClusteredTable:
    """A table, its rows as values and points, the estimator and its labels, and what is known about them.

    ``values`` (N, D) are the rows in the units of the table, ``points`` (N, E) the same rows as the estimator saw them.
    The table may have further columns. ``encoding`` leads from the table to values and points; it is None if the caller
    prepared the points.
    """

    table: Table
    values: np.ndarray
    value_names: list[str]
    points: np.ndarray
    point_names: list[str]
    estimator: Any
    labels: np.ndarray
    run: Run
    encoding: Encoding | None = None
    pipeline: Any = None
    places: np.ndarray | None = None  # of the rows in the table that was read, if not all of them took part
    encoded: Encoded | None = None  # the rows for an estimator that encodes tables itself
    names: Mapping[int, str] = field(default_factory=dict)  # of clusters, where they were given
    texts: Mapping[int, TextCluster] = field(default_factory=dict)  # what clusters of texts are about

    @classmethod
    def fitted(cls, rows: EncodedTable, estimator: Any, run: Run) -> "ClusteredTable":
        """From an encoded table and the estimator that was fitted to it."""
        encoding = rows.encoding
        labels = np.asarray(estimator.labels_).astype(np.int64)
        return cls(
            rows.table, rows.rows.values, encoding.value_names, rows.rows.points, encoding.point_names, estimator,
            labels, run, encoding, places=rows.places, encoded=rows.rows if encodes_tables(estimator) else None,
            names=estimator.names_ if is_edited(estimator) else {},
        )  # fmt: skip

    @classmethod
    def of(
        cls, estimator: Any, X: Any, table: Any = None, columns: Sequence[Any] | None = None, **run: Any
    ) -> "ClusteredTable":
        """From any fitted estimator and the rows that it was fitted to.

        ``table`` holds the same rows in their own units, and ``columns`` names those of its columns from which X was
        made. ``run`` are fields of :class:`Run`.
        """
        details = Run(**{"algorithm": type(estimator).__name__, **run})
        if isinstance(X, EncodedTable):
            return cls.fitted(X, estimator, details)
        if isinstance(X, str | os.PathLike):  # estimators of the k-means family fit files
            X = Table.read(X).matrix()
        pipeline, given = None, X
        if hasattr(estimator, "steps"):
            pipeline, estimator = estimator, estimator[-1]
            X = pipeline[:-1].transform(X) if len(pipeline.steps) > 1 else X
        check_is_fitted(estimator)
        encoded = _encoded_by(estimator, X)
        points = _matrix(X) if encoded is None else encoded.points
        labels = np.asarray(getattr(estimator, "labels_", ())).reshape(-1).astype(np.int64)
        if len(labels) != len(points):
            raise ValueError(
                f"X has {len(points):,} rows, but the estimator was fitted to {len(labels):,}: pass the rows to which "
                "it was fitted, or fit it to these."
            )
        expected = getattr(estimator, "n_features_in_", points.shape[1])
        if encoded is None and points.shape[1] != expected:
            raise ValueError(
                f"X has {points.shape[1]} columns, but the estimator was fitted to {expected}: pass the columns to "
                "which it was fitted."
            )
        made = cls(
            Table([]), points, [], points, _point_names(X, estimator, encoded, points.shape[1]), estimator, labels,
            details, pipeline=pipeline, encoded=encoded,
        )  # fmt: skip
        source = table if table is not None else given
        return made._described(source, columns, prepared=source is not X)

    def _described(self, source: Any, columns: Sequence[Any] | None, *, prepared: bool) -> "ClusteredTable":
        """With the table, and with values in its units. ``prepared``: whether the points were made from ``source``."""
        frame = source if hasattr(source, "iloc") else None
        if frame is not None and len(frame) != len(self.points):
            raise ValueError(
                f"table has {len(frame):,} rows and X has {len(self.points):,}: pass the same rows in the same order."
            )
        values, names, encoding = self.points, self.point_names, None
        if self.encoded is not None and not prepared:
            values, encoding = self.encoded.values, self.encoded.encoding
            names = [name or f"x{i}" for i, name in enumerate(encoding.value_names)]
        elif frame is not None:
            found = _own_columns(frame, self.point_names, columns, prepared=self.pipeline is not None)
            if found:
                values, names = frame[found].to_numpy(dtype=np.float64), [str(name) for name in found]
        elif prepared:
            values = _matrix(source)
            names = [str(name) for name in columns or range(values.shape[1])]
        table = Table(names, array=values) if frame is None else Table.of(frame)
        same = values.shape[1] == self.points.shape[1] and self.pipeline is None and encoding is None
        points = names if same else self.point_names
        return replace(self, table=table, values=values, value_names=names, point_names=points, encoding=encoding)

    @property
    def n(self) -> int:
        return len(self.points)

    @cached_property
    def ids(self) -> list[int]:
        """The labels of the clusters. Those of an edited model need not be consecutive."""
        return list(self.estimator.ids_) if is_edited(self.estimator) else list(range(len(self.centers)))

    @property
    def k(self) -> int:
        """The number of clusters."""
        return len(self.ids)

    @property
    def model(self) -> TableModel:
        """What ``coterie predict`` needs."""
        assert self.encoding is not None
        return TableModel(self.estimator, self.encoding, self.names)

    @property
    def living(self) -> "LivingClusterer":
        """The estimator as one whose clusters can be edited, continued and checked."""
        return self.model.living if self.encoding is not None else LivingClusterer.of(self.estimator, self.names)

    @property
    def rows(self) -> Any:
        """The rows in a form that an edit takes."""
        return self.points if self.encoding is None else Encoded(self.encoding, self.values, self.points)

    @property
    def history(self) -> list[str]:
        """What was done to the clusters since the fit, in words."""
        return self.living.history

    def edited(self, living: "LivingClusterer") -> "ClusteredTable":
        """The same table with the clusters of an edited model."""
        labels = living.labels_.astype(np.int64)
        texts = self.texts if np.array_equal(labels, self.labels) else {}
        return replace(self, estimator=living, labels=labels, names=living.names_, texts=texts)

    def merge(self, labels: Sequence[int]) -> "ClusteredTable":
        """Join clusters; see :meth:`coterie.LivingClusterer.merge`."""
        return self.edited(self.living.merge(labels))

    def split(self, label: int, n_clusters: int | None = None) -> "ClusteredTable":
        """Divide a cluster; see :meth:`coterie.LivingClusterer.split`."""
        return self.edited(self.living.split(label, n_clusters, X=self.rows))

    def rename(self, label: int, name: str) -> "ClusteredTable":
        """Name a cluster; see :meth:`coterie.LivingClusterer.rename`."""
        return self.edited(self.living.rename(label, name))

    def pin(self, rows: Sequence[int], label: int) -> "ClusteredTable":
        """Put single rows into a cluster; see :meth:`coterie.LivingClusterer.pin`."""
        return self.edited(self.living.pin(rows, label, X=self.rows))

    def recut(self, n_clusters: int) -> "ClusteredTable":
        """The same rows in another number of clusters: cut along the hierarchy if there is one, else fitted again."""
        base = fitted_inside(self.estimator)
        if hasattr(base, "recut"):
            made = base.recut(self.encoded, n_clusters)
        elif has_parameter(base, "n_clusters"):
            start = {"init": "k-means++"} if start_was_given(base) else {}
            made = clone(base).set_params(n_clusters=n_clusters, **start).fit(given_to(base, self.rows))
        else:
            raise ValueError(f"{type(base).__name__} determines the number of clusters itself.")
        remember(made, self.rows)
        notes = (*self.run.notes, *([FORGOTTEN] if self.names and FORGOTTEN not in self.run.notes else []))
        labels = np.asarray(made.labels_).astype(np.int64)
        return replace(self, estimator=made, labels=labels, names={}, run=replace(self.run, notes=notes))

    def undo(self) -> "ClusteredTable":
        """The clusters before the last change."""
        return self.edited(self.living.undo())

    def granularity(self, most: int = 20) -> "Granularity":
        """What 1, 2, ... clusters are worth; see :func:`coterie.living.granularity.granularity`."""
        return self.living.granularity(self.rows, most)

    def named(self, names: Mapping[int, str]) -> "ClusteredTable":
        """The same with names of clusters."""
        from coterie.tabular.partial_labels import checked_names

        names = checked_names(names, self.ids)
        return self.edited(self.living.with_names(names)) if is_edited(self.estimator) else replace(self, names=names)

    def name_clusters(self, name: Callable[[TextCluster], str]) -> "ClusteredTable":
        """Clusters of texts named by a function of their words and typical texts, such as a language model.

        Parameters
        ----------
        name : callable
            Takes a :class:`coterie.tables.texts.TextCluster`, with ``words`` and ``typical``, and returns a name.
        """
        return self.named({label: name(one) for label, one in self.texts.items()})

    def name(self, label: int) -> str:
        """What a cluster is called: its name if it has one, else its number."""
        return cluster_name(label, self.names)

    @cached_property
    def facts(self) -> "Facts":
        """What there is to say about the clusters."""
        from coterie.explain.facts import facts_of

        return facts_of(self)

    @cached_property
    def fields(self) -> "list[Column]":
        """The columns of the user that were clustered, each with its way of being written."""
        from coterie.plot.columns import columns_of

        if self.encoding is not None and len(self.encoding.value_names) == len(self.value_names):
            return columns_of(Encoded(self.encoding, self.values, self.points))
        known = self.table.names if self.table.is_frame else ()
        dated = [name in known and holds_dates(self.table.frame[name]) for name in self.value_names]
        read = columns_of(self.values, self.value_names)
        return [replace(one, dates=dates, first=place) for place, (one, dates) in enumerate(zip(read, dated))]

    @cached_property
    def silhouettes(self) -> "Silhouettes | None":
        """Silhouettes of a sample of the rows; None if there are fewer than two clusters."""
        from coterie.explain.quality import silhouettes

        return silhouettes(self)

    @cached_property
    def verdict(self) -> "Verdict":
        """How far the clusters can be trusted to be groups."""
        from coterie.explain.verdict import verdict_of

        return verdict_of(self)

    def report(self, path: str | os.PathLike | None = None, **how: Any) -> "Report":
        """A web page that explains the clusters. ``how`` are arguments of :func:`coterie.explain.report.report_on`."""
        from coterie.explain.report import report_on

        return report_on(self, path, **how)

    def save_picture(self, path: str | os.PathLike, title: str = "", view: Any = "auto") -> Path:
        """Write a PNG or SVG file.

        Columns are shown in the units of the table, principal axes and UMAP as the estimator saw the rows.
        """
        from coterie.plot import save_clusters

        rows, centers, names = self.map_rows(view)
        return save_clusters(path, rows, self.labels, centers, names, title, view, self.names)

    def input(self, rows: np.ndarray) -> Any:
        """Some rows in the form in which the estimator takes them."""
        return self.points[rows] if self.encoded is None else self.encoded.take(rows)

    def probabilities(self, rows: np.ndarray) -> np.ndarray | None:
        """(len(rows), k) the probability of each cluster for some rows, if the estimator has ``predict_proba``."""
        ask = getattr(self.estimator, "predict_proba", None)
        if ask is None:
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the array has no column names
            return np.asarray(ask(self.input(rows)))

    @cached_property
    def spherical(self) -> bool:
        return on_sphere(self.estimator)

    @cached_property
    def space(self) -> np.ndarray:
        """The rows where distances are measured: on the unit sphere if the estimator compares directions."""
        return normalize(self.points) if self.spherical else self.points

    @cached_property
    def centers(self) -> np.ndarray:
        """The centres of the estimator, or the means of its clusters, among the points: one row per label.

        A label that is not used any more has the mean of all rows.
        """
        centers = getattr(self.estimator, "cluster_centers_", None)
        if centers is not None and self.encoded is None:
            return np.asarray(centers, dtype=np.float64)
        if is_edited(self.estimator):
            whole, own = self.space.mean(axis=0), [self.labels == j for j in range(max(self.ids, default=-1) + 1)]
            return np.array([self.space[one].mean(axis=0) if one.any() else whole for one in own], dtype=np.float64)
        count = int(self.labels.max(initial=-1)) + 1
        means = [self.space[self.labels == j].mean(axis=0) for j in range(count) if (self.labels == j).any()]
        return np.array(means, dtype=np.float64).reshape(-1, self.points.shape[1])

    @cached_property
    def value_centers(self) -> np.ndarray:
        """(k, D) the centres in the units of the table, or the means of the clusters if centres have no such units."""
        if (own := self._in_own_units(self.centers)) is not None:
            return own
        everywhere = self.values.mean(axis=0, dtype=np.float64)
        members = [self.labels == j for j in range(len(self.centers))]
        return np.array(
            [self.values[own].mean(axis=0, dtype=np.float64) if own.any() else everywhere for own in members]
        )

    def _in_own_units(self, points: np.ndarray) -> np.ndarray | None:
        """Points in the units of the table, if each value is a linear function of one coordinate."""
        if not self.same_columns or self.spherical:
            return None
        if self.encoding is not None:
            linear = self.encoding.is_invertible and not self.encoding.log_names
            return self.encoding.original(points) if linear else None
        seen = slice(0, 5_000)
        X, values = self.points[seen].astype(np.float64), self.values[seen].astype(np.float64)
        spread = X.std(axis=0)
        factor = np.where(spread > 0, values.std(axis=0) / np.where(spread > 0, spread, 1.0), 1.0)
        shift = values.mean(axis=0) - factor * X.mean(axis=0)
        near = np.abs(X * factor + shift - values).max(initial=0.0) <= 1e-3 * np.abs(values).max(initial=1e-12)
        return points * factor + shift if near else None

    def map_rows(self, view: Any = "auto") -> tuple[np.ndarray, np.ndarray, list[str]]:
        """Rows, centres and names of the axes for a map: in the units of the table where columns are the axes.

        Principal axes and UMAP show the points as the estimator saw them.
        """
        named = not isinstance(view, str)
        few = view in ("auto", "columns") and self.points.shape[1] <= 2 and self.same_columns and not self.spherical
        if named or few:
            return self.values, self._of_ids(self.value_centers), self.value_names
        return self.space, self._of_ids(self.centers), self.point_names

    def _of_ids(self, centers: np.ndarray) -> np.ndarray:
        """Centres with NaN for labels that are not used."""
        unused = np.setdiff1d(np.arange(len(centers)), self.ids)
        centers = centers.astype(np.float64)
        centers[unused] = np.nan
        return centers

    @cached_property
    def sizes(self) -> np.ndarray:
        """(k,) the number of rows of every cluster."""
        return np.bincount(self.labels[self.labels >= 0], minlength=len(self.centers))

    @property
    def outliers(self) -> np.ndarray:
        """Numbers of the rows that belong to no cluster."""
        return np.flatnonzero(self.labels < 0)

    @property
    def scaled(self) -> bool:
        """Whether the estimator saw other numbers than those of the table."""
        if self.encoding is not None:
            return not self.encoding.is_identity
        if self.pipeline is not None or np.shares_memory(self.points, self.values):
            return self.pipeline is not None
        return not (self.same_columns and np.allclose(self.points[:100], self.values[:100], rtol=1e-5))

    @property
    def same_columns(self) -> bool:
        """Whether the estimator saw one coordinate per value, and no factors of categories."""
        factors = self.encoding is not None and self.encoding.has_categories
        return self.points.shape == self.values.shape and not factors

    def distances(self, rows: np.ndarray | None = None) -> np.ndarray:
        """The distance of every row (or of some) to the centre of its cluster; of outliers, to the nearest centre."""
        rows = np.arange(self.n) if rows is None else rows
        result = np.empty(len(rows))
        labels = self.labels[rows]
        for j in range(len(self.centers)):
            own = labels == j
            result[own] = np.linalg.norm(self.space[rows[own]] - self.centers[j], axis=1)
        far = np.flatnonzero(labels < 0)
        if len(far):
            space = self.space[rows[far]]
            each = [np.linalg.norm(space - self.centers[j], axis=1) for j in self.ids]
            result[far] = np.min(each, axis=0) if each else 0.0
        return result

    def nearest_rows(self, label: int) -> np.ndarray:
        """The rows of a cluster, the one nearest to its centre first; of the outliers, the farthest one first."""
        own = np.flatnonzero(self.labels == label)
        distance = self.distances(own)
        return own[np.argsort(distance if label >= 0 else -distance, kind="stable")]

    @property
    def columns(self) -> list[str]:
        """The columns of the table that were clustered."""
        return self.value_names if self.encoding is None or not all(self.encoding.names) else self.encoding.names

    @property
    def unused_columns(self) -> list[str]:
        """The other columns of the table."""
        used = {*self.value_names, *self.columns, *(() if self.encoding is None else self.encoding.sources)}
        return [name for name in self.table.names if name not in used]

    def row_name(self, row: int) -> str:
        return str(self.table.frame.index[row])


def _encoded_by(estimator: Any, X: Any) -> Encoded | None:
    """Rows as the estimator itself encoded them, if it does so."""
    if not encodes_tables(estimator):
        return None
    if isinstance(X, Encoded):
        return X
    encoding = Encoding.from_json(estimator.encoding_)
    if hasattr(X, "columns"):
        return encoding.encode(Table.of(X).columns_for(encoding))
    return encoding.encode(Table(encoding.names, array=np.asarray(X)).columns_for(encoding))


def _matrix(X: Any) -> np.ndarray:
    if sparse.issparse(X):
        if X.shape[0] * X.shape[1] > MAX_CELLS:
            raise ValueError(
                f"{X.shape[0]:,} sparse rows with {X.shape[1]:,} columns do not fit into memory: use a sample of the "
                "rows, or reduce the columns first (sklearn.decomposition.TruncatedSVD)."
            )
        X = X.toarray()
    matrix = np.asarray(X)
    if matrix.ndim != 2:
        raise ValueError(f"X must have rows and columns; got an array of shape {matrix.shape}.")
    try:
        matrix = matrix if matrix.dtype in (np.float32, np.float64) else matrix.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"X must contain numbers only ({error}): exclude other columns.") from error
    if np.isnan(matrix).any():
        raise ValueError("X has missing values: fill them, or remove the rows that have them.")
    return matrix


def _point_names(X: Any, estimator: Any, encoded: Encoded | None, count: int) -> list[str]:
    if encoded is not None:
        return [name or f"x{i}" for i, name in enumerate(encoded.encoding.point_names)]
    names = getattr(X, "columns", getattr(estimator, "feature_names_in_", None))
    return [f"x{i}" for i in range(count)] if names is None else [str(name) for name in names]


def _own_columns(frame: Any, names: list[str], columns: Sequence[Any] | None, *, prepared: bool) -> list[Any]:
    """The numeric columns of a table from which the points were made, as far as that can be known."""
    import pandas as pd

    wanted = list(columns or ()) or [name for name in names if name in frame.columns] or list(frame.columns)
    found = [name for name in wanted if name in frame.columns and pd.api.types.is_numeric_dtype(frame[name])]
    return found if columns is not None or prepared or len(found) == len(names) else []
