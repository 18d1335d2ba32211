"""A clustering of a table: which columns, on what scale, by which estimator. Saved as one file."""

import difflib
import json
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from coterie.data.encoding import Column, Encoding, columns_of, holds_moments, is_empty, tells_rows_apart, values_of
from coterie.data.tables import TableError, column_names, listed, numeric_matrix, refuse_holes
from coterie.selection import Choice, check_criterion, choose_k, on_sphere

ALGORITHMS = {
    "kmeans": "KMeans",
    "soft": "SoftKMeans",
    "spherical": "SphericalKMeans",
    "trimmed": "TrimmedKMeans",
    "robust": "RobustKMeans",
    "medoids": "KMedoids",
    "incontext": "InContextClusterer",
    "flow": "FlowMixture",
    "zeroshot": "ZeroShotClusterer",
    "vae": "VAEMixture",
}


class SettingError(ValueError):
    """An algorithm or a setting that does not exist. The message says what does."""


def check_algorithm(algorithm: str) -> None:
    """Refuse a name that no algorithm has."""
    if algorithm not in ALGORITHMS:
        near = difflib.get_close_matches(algorithm.lower(), ALGORITHMS, n=1, cutoff=0.5)
        hint = f"Did you mean {near[0]!r}? " if near else ""
        raise SettingError(f"There is no algorithm {algorithm!r}. {hint}Known are {', '.join(ALGORITHMS)}.")


def make_estimator(algorithm: str, usual: Mapping[str, Any] | None = None, **settings: Any) -> Any:
    """The estimator of a short name. Settings that are None are left at their defaults.

    A setting that the algorithm does not have is refused. ``usual`` are settings of the k-means family, for its
    members that have them; what other algorithms call by the same name has its own default.
    """
    import coterie
    from coterie.estimators.base import CenterClusterer

    check_algorithm(algorithm)
    kind = getattr(coterie, ALGORITHMS[algorithm])
    given = {name: value for name, value in settings.items() if value is not None}
    known = kind().get_params()
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise SettingError(
            f"The algorithm {algorithm!r} has no setting {unknown[0].replace('_', '-')!r}: leave it out."
        )
    if issubclass(kind, CenterClusterer):
        given = {name: value for name, value in (usual or {}).items() if name in known} | given
    return kind(**given)


def finds_count(estimator: Any) -> bool:
    """Whether the estimator finds the number of clusters itself."""
    return estimator.get_params().get("n_clusters") is None


@dataclass(frozen=True)
class Columns:
    """The columns that take part, and how rows are brought to where the estimator sees them.

    ``names`` are those of the numbers that tell of a row: the table's own columns or, with an ``encoding``, what it
    makes of those named in ``source``. Their units are called the table's own.
    """

    names: tuple[str, ...]
    mean: np.ndarray | None = None
    scale: np.ndarray | None = None
    encoding: Encoding | None = None
    source: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        frame: pd.DataFrame,
        names: Sequence[str] | None = None,
        *,
        scale: bool = False,
        encode: bool = False,
    ) -> "Columns":
        """All columns or the named ones; with ``scale``, each brought to mean 0 and standard deviation 1.

        ``encode`` scales too, and reads mixed tables: text as categories, moments as days, gaps filled; empty columns
        and text that names each row are left out (:mod:`coterie.data.encoding`).
        """
        frame = _named(frame)
        chosen = column_names(frame, names)
        if encode:
            return cls._encoded(frame, chosen)
        matrix, _ = numeric_matrix(frame, chosen)
        if not scale:
            return cls(tuple(chosen))
        deviation = matrix.std(axis=0, dtype=np.float64)
        return cls(tuple(chosen), matrix.mean(axis=0, dtype=np.float64), np.where(deviation > 0, deviation, 1.0))

    @classmethod
    def _encoded(cls, frame: pd.DataFrame, chosen: list[str]) -> "Columns":
        columns = dict(zip(chosen, columns_of(frame[chosen])))
        used = {name: values for name, values in columns.items() if not (is_empty(values) or tells_rows_apart(values))}
        if not used:
            raise TableError(
                "Every chosen column is empty or holds other text in most rows: there is nothing to compare."
            )
        for name, values in used.items():
            if values.dtype != object:
                refuse_holes(np.nan_to_num(values, nan=0.0, posinf=np.inf, neginf=-np.inf)[:, None], [name])
        encoding = Encoding.of(list(used.values()))
        made = encoding.names(list(used))
        if not encoding.place_names(list(used)):
            raise TableError("All rows are alike in the chosen columns: there is nothing to compare.")
        if len(set(made)) < len(made):
            doubled = next(name for i, name in enumerate(made) if name in made[:i])
            raise TableError(f"A column is called {doubled!r}, as is a value of another: rename it.")
        return cls(tuple(made), encoding=encoding, source=tuple(used))

    @property
    def raw(self) -> bool:
        """Whether the estimator sees the table's columns as they are."""
        return self.scale is None and self.encoding is None

    @property
    def place_names(self) -> list[str]:
        """Names of the estimator's own columns."""
        return list(self.names) if self.encoding is None else self.encoding.place_names(self.source)

    @property
    def has_categories(self) -> bool:
        return self.encoding is not None and self.encoding.factors is not None

    def numbers(self, frame: pd.DataFrame) -> np.ndarray:
        """The rows in the table's own units, values of categories as 0 and 1."""
        frame = _named(frame)
        if self.encoding is None:
            return numeric_matrix(frame, self.names)[0]
        source = column_names(frame, self.source)
        try:
            matrix = self.encoding.numbers(columns_of(frame[source]), source)
        except ValueError as error:
            raise TableError(str(error)) from error
        refuse_holes(matrix, self.names)
        return matrix

    def table(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The table with its encoded columns in place of those that they were made from."""
        if self.encoding is None:
            return frame
        frame = _named(frame)
        numbers = pd.DataFrame(self.numbers(frame), columns=list(self.names), index=frame.index)
        taken = {*self.source, *self.names}
        return pd.concat([numbers, frame[[name for name in frame.columns if name not in taken]]], axis=1)

    def notes(self, frame: pd.DataFrame, wanted: Sequence[str] | None = None) -> list[str]:
        """What encoding did to the ``wanted`` columns, for people."""
        if self.encoding is None:
            return []
        told, frame = [], _named(frame)
        left_out = [name for name in column_names(frame, wanted) if name not in self.source]
        empty = [name for name in left_out if is_empty(values_of(frame[name]))]
        texts = [name for name in left_out if name not in empty]
        categories = [name for name, column in self._read if column.levels is not None]
        days = [name for name in self.source if holds_moments(frame[name])]
        if empty:
            told.append(f"left out, being empty: {listed(empty)}")
        if texts:
            told.append(f"left out, with other text in most rows: {listed(texts)}")
        if categories:
            count = 0 if self.encoding.factors is None else self.encoding.factors.shape[1]
            how = "which count by what they share with other columns" if count else "which go with no other column"
            told.append(f"taken as categories, {how}{'' if count else ' and count nothing'}: {listed(categories)}")
        if days:
            told.append(f"taken as numbers of days: {listed(days)}")
        return told + self.gap_notes(frame)

    def gap_notes(self, frame: pd.DataFrame) -> list[str]:
        """Which gaps are filled, and which values were not there when the model was fitted."""
        filled, unknown, frame = [], [], _named(frame)
        for name, column in self._read:
            values = values_of(frame[name])
            if column.levels is None and values.dtype != object and (gaps := int(np.isnan(values).sum())):
                filled.append(f"{name!r} ({gaps:,})")
            if column.levels is not None and not column.rest and values.dtype == object:
                count = sum(value is not None and value not in column.levels for value in values)
                unknown += [f"{name!r} ({count:,})"] if count else []
        alike = self.encoding is not None and self.encoding.donors is not None
        how = "from the row most like theirs" if alike else "by the median"
        told = [f"missing values, filled {how}: {_some(filled)}"] if filled else []
        return told + ([f"values that the model has not seen: {_some(unknown)}"] if unknown else [])

    @property
    def _read(self) -> list[tuple[str, Column]]:
        return [] if self.encoding is None else list(zip(self.source, self.encoding.columns))

    def matrix(self, frame: pd.DataFrame) -> np.ndarray:
        """The rows as the estimator sees them."""
        return self.scaled(self.numbers(frame))

    def scaled(self, rows: np.ndarray) -> np.ndarray:
        """Rows in the table's own units as the estimator sees them."""
        if self.encoding is not None:
            return self.encoding.placed(rows)
        if self.mean is None or self.scale is None:
            return rows
        return ((rows - self.mean) / self.scale).astype(rows.dtype)

    def original(self, rows: np.ndarray) -> np.ndarray:
        """Rows of the estimator's space in the table's own units; not where there are categories."""
        if self.encoding is not None:
            return self.encoding.original(rows)
        return rows if self.mean is None or self.scale is None else rows * self.scale + self.mean


def _named(frame: pd.DataFrame) -> pd.DataFrame:
    """Names of columns as text, as they are in files."""
    return frame if all(isinstance(name, str) for name in frame.columns) else frame.rename(columns=str)


def _some(entries: list[str]) -> str:
    return ", ".join(entries[:8]) + (f" and {len(entries) - 8} more columns" if len(entries) > 8 else "")


@dataclass(frozen=True)
class TableModel:
    """A fitted estimator together with its columns."""

    estimator: Any
    columns: Columns

    @classmethod
    def of(
        cls, columns: Columns, algorithm: str, usual: Mapping[str, Any] | None = None, **settings: Any
    ) -> "TableModel":
        """Not fitted yet; ``usual`` and ``settings`` are those of :func:`make_estimator`."""
        estimator = make_estimator(algorithm, usual, **settings)
        if columns.encoding is not None and "scale" in estimator.get_params():
            estimator.set_params(scale=False)  # its columns come scaled, and their distances mean something
        return cls(estimator, columns)

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        return self.estimator.predict(self.input(frame))

    def input(self, frame: pd.DataFrame) -> Any:
        """Columns in their own units keep their names: the estimator then checks them."""
        columns, matrix = self.columns, self.columns.matrix(frame)
        if columns.encoding is not None:
            return pd.DataFrame(matrix, columns=columns.place_names)
        return pd.DataFrame(matrix, columns=list(columns.names)) if columns.raw else matrix

    def save(self, path: str | os.PathLike) -> Path:
        """One safetensors file: the estimator's own, and the columns as JSON under ``table`` in its metadata.

        Without scaling and encoding, ``coterie.load`` reads the file too. With them, the estimator alone would take
        raw columns for what was made of them: its entry has another name, and only ``TableModel.load`` reads it.
        """
        from coterie.estimators import persistence

        columns = self.columns
        table = {
            "columns": columns.names,
            "mean": None if columns.mean is None else columns.mean.tolist(),
            "scale": None if columns.scale is None else columns.scale.tolist(),
            "encoding": None if columns.encoding is None else columns.encoding.to_json(),
            "source": columns.source,
        }
        tensors, entry = persistence.packed(self.estimator)
        name = persistence.ENTRY if columns.raw else persistence.TABLE_ENTRY
        persistence.write(path, tensors, {name: entry, "table": json.dumps(table)})
        return Path(path)

    @classmethod
    def load(cls, path: str | os.PathLike) -> "TableModel":
        """Read what ``save`` wrote, or an estimator that was saved after a fit on a DataFrame."""
        from coterie.estimators import persistence

        path = Path(path)
        if not path.is_file():
            raise TableError(f"There is no model {path}: save one with coterie cluster FILE -k 5 --save {path}")
        again = f"save one with coterie cluster ... --save {path}"
        try:
            tensors, metadata = persistence.read(path)
        except (ValueError, OSError) as error:
            raise TableError(f"{path} is not a saved model: {again}") from error
        entry = metadata.get(persistence.ENTRY) or metadata.get(persistence.TABLE_ENTRY)
        if entry is None:
            raise TableError(f"{path} is a safetensors file, but not a model: {again}")
        estimator = persistence.unpacked(tensors, entry, path)
        if "table" not in metadata:
            names = getattr(estimator, "feature_names_in_", None)
            if names is None:
                raise TableError(f"{path} does not name its columns: save it with coterie cluster, or fit a DataFrame.")
            return cls(estimator, Columns(tuple(map(str, names))))
        table = json.loads(metadata["table"])
        mean, scale = (None if table[key] is None else np.array(table[key]) for key in ("mean", "scale"))
        encoding = None if table.get("encoding") is None else Encoding.from_json(table["encoding"])
        return cls(estimator, Columns(tuple(table["columns"]), mean, scale, encoding, tuple(table.get("source", ()))))


@dataclass(frozen=True)
class ClusterSummary:
    """One cluster for people: its centre in the table's units, and how far that lies from the mean of each column.

    ``center`` is the estimator's own centre, or for clusters of directions or of encoded rows the mean of their rows.
    ``deviation`` is in standard deviations of the column. The outliers are the summary with the label -1; their centre
    is their mean.
    """

    label: int
    size: int
    share: float
    center: dict[str, float]
    deviation: dict[str, float]

    def distinctive(self, count: int = 3) -> list[str]:
        """The columns in which the cluster is farthest from the average."""
        return sorted(self.deviation, key=lambda name: -abs(self.deviation[name]))[:count]


@dataclass(frozen=True)
class FittedTable:
    """What a fit gave: the model, every row's label, the choice of K if there was one, and the estimators' warnings."""

    model: TableModel
    labels: np.ndarray
    choice: Choice | None
    warnings: tuple[str, ...]


def fit_table(
    model: TableModel,
    frame: pd.DataFrame,
    ks: Sequence[int],
    *,
    criterion: str = "silhouette",
    seed: int = 0,
    verbose: bool = False,
    on_candidate: Callable[[], Any] = lambda: None,
) -> FittedTable:
    """Fit the model with one number of clusters, with the best of several or, if none is given, as it finds them."""
    choice = None
    check_criterion(criterion)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if len(ks) <= 1:
            estimator = model.estimator.set_params(**({"n_clusters": ks[0]} if ks else {}))
            speaks = "verbose" in estimator.get_params()
            estimator.set_params(**({"verbose": int(verbose)} if speaks else {}))
            estimator.fit(model.input(frame)).set_params(**({"verbose": 0} if speaks else {}))
        else:
            choice = choose_k(
                model.estimator,
                model.input(frame),
                ks,
                criterion=criterion,
                random_state=seed,
                on_candidate=lambda _: on_candidate(),
            )
            estimator = choice.estimator
    told = {" ".join(str(one.message).split()) for one in caught if issubclass(one.category, UserWarning)}
    return FittedTable(TableModel(estimator, model.columns), estimator.labels_, choice, tuple(sorted(told)))


def draw(
    path: str | os.PathLike,
    model: TableModel,
    frame: pd.DataFrame,
    labels: np.ndarray,
    title: str,
    view: str | Sequence[str] = "auto",
) -> Path:
    """A picture: columns in their own units, principal axes and UMAP as the estimator sees the rows."""
    from coterie.plot import save_clusters

    columns = model.columns
    names, matrix = list(columns.names), columns.numbers(frame)
    summaries = [one for one in summarise(model, frame, labels) if one.label >= 0]
    centers = np.array([list(one.center.values()) for one in summaries])
    if view in ("pca", "umap") or (view == "auto" and (len(names) > 2 or columns.has_categories)):
        matrix, centers = columns.scaled(matrix), columns.scaled(centers)
        names = columns.place_names
    return save_clusters(path, matrix, labels, centers, names, title, view)


def summarise(model: TableModel, frame: pd.DataFrame, labels: np.ndarray) -> list[ClusterSummary]:
    """Every cluster of the model, the empty ones too, then the outliers if there are any."""
    names = list(model.columns.names)
    matrix = model.columns.numbers(frame)
    mean = matrix.mean(axis=0, dtype=np.float64)
    deviation = matrix.std(axis=0, dtype=np.float64)
    deviation = np.where(deviation > 0, deviation, 1.0)
    by_mean = on_sphere(model.estimator) or model.columns.has_categories
    centers = np.asarray(model.estimator.cluster_centers_, dtype=np.float64)
    centers = np.tile(mean, (len(centers), 1)) if by_mean else model.columns.original(centers)
    summaries = []
    for label in [*range(len(centers)), *([-1] if (labels < 0).any() else [])]:
        members = labels == label
        size = int(members.sum())
        own_mean = (label < 0 or by_mean) and size > 0
        center = matrix[members].mean(axis=0, dtype=np.float64) if own_mean else centers[label]
        summaries.append(
            ClusterSummary(
                label,
                size,
                size / len(labels),
                dict(zip(names, center.tolist())),
                dict(zip(names, ((center - mean) / deviation).tolist())),
            )
        )
    return summaries
