"""A clustering of a table: which columns, on what scale, by which estimator. Saved as one file."""

import difflib
import json
import os
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from coterie.data.tables import TableError, numeric_matrix
from coterie.files import replacing
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


_PLAIN_ENTRY, _SCALED_ENTRY = "coterie", "coterie-scaled"


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
    """The columns that take part, and how each is brought to the scale that the estimator sees."""

    names: tuple[str, ...]
    mean: np.ndarray | None = None
    scale: np.ndarray | None = None

    @classmethod
    def of(cls, frame: pd.DataFrame, names: Sequence[str] | None = None, *, scale: bool = False) -> "Columns":
        """All columns or the named ones; with ``scale``, each brought to mean 0 and standard deviation 1."""
        matrix, chosen = numeric_matrix(frame, names)
        if not scale:
            return cls(tuple(chosen))
        deviation = matrix.std(axis=0, dtype=np.float64)
        return cls(tuple(chosen), matrix.mean(axis=0, dtype=np.float64), np.where(deviation > 0, deviation, 1.0))

    def matrix(self, frame: pd.DataFrame) -> np.ndarray:
        """The rows as the estimator sees them."""
        return self.scaled(numeric_matrix(frame, self.names)[0])

    def scaled(self, rows: np.ndarray) -> np.ndarray:
        """Rows in the table's own units as the estimator sees them."""
        if self.mean is None or self.scale is None:
            return rows
        return ((rows - self.mean) / self.scale).astype(rows.dtype)

    def original(self, rows: np.ndarray) -> np.ndarray:
        """Rows of the estimator's space in the table's own units."""
        return rows if self.mean is None or self.scale is None else rows * self.scale + self.mean


@dataclass(frozen=True)
class TableModel:
    """A fitted estimator together with its columns."""

    estimator: Any
    columns: Columns

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        return self.estimator.predict(self.input(frame))

    def input(self, frame: pd.DataFrame) -> Any:
        """Columns in their own units keep their names: the estimator then checks them."""
        matrix = self.columns.matrix(frame)
        return matrix if self.columns.mean is not None else pd.DataFrame(matrix, columns=list(self.columns.names))

    def save(self, path: str | os.PathLike) -> Path:
        """One safetensors file: the estimator's own, and the columns as JSON under ``table`` in its metadata.

        Without scaling, ``coterie.load`` reads the file too. With it, the estimator alone would take raw columns for
        scaled ones: its entry has another name, and only ``TableModel.load`` reads it.
        """
        table = {
            "columns": self.columns.names,
            "mean": None if self.columns.mean is None else self.columns.mean.tolist(),
            "scale": None if self.columns.scale is None else self.columns.scale.tolist(),
        }
        entry = _PLAIN_ENTRY if self.columns.scale is None else _SCALED_ENTRY
        with tempfile.TemporaryDirectory() as folder:
            plain = Path(folder) / "estimator"
            self.estimator.save(plain)
            tensors, metadata = _parts(plain)
        metadata[entry] = metadata.pop(_PLAIN_ENTRY)
        with replacing(path) as temporary:
            temporary.write_bytes(_file(tensors, {**metadata, "table": json.dumps(table)}))
        return Path(path)

    @classmethod
    def load(cls, path: str | os.PathLike) -> "TableModel":
        """Read what ``save`` wrote, or an estimator that was saved after a fit on a DataFrame."""
        import coterie

        path = Path(path)
        if not path.is_file():
            raise TableError(f"There is no model {path}: save one with coterie cluster FILE -k 5 --save {path}")
        tensors, metadata = _parts(path)
        if _SCALED_ENTRY in metadata:
            metadata[_PLAIN_ENTRY] = metadata.pop(_SCALED_ENTRY)
        with tempfile.TemporaryDirectory() as folder:
            plain = Path(folder) / path.name
            plain.write_bytes(_file(tensors, metadata))
            estimator = coterie.load(plain)
        if "table" not in metadata:
            names = getattr(estimator, "feature_names_in_", None)
            if names is None:
                raise TableError(f"{path} does not name its columns: save it with coterie cluster, or fit a DataFrame.")
            return cls(estimator, Columns(tuple(map(str, names))))
        table = json.loads(metadata["table"])
        mean, scale = (None if table[key] is None else np.array(table[key]) for key in ("mean", "scale"))
        return cls(estimator, Columns(tuple(table["columns"]), mean, scale))


def _parts(path: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Tensors and metadata of a model."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            metadata = dict(file.metadata() or {})
    except (SafetensorError, OSError) as error:
        raise TableError(f"{path} is not a saved model: save one with coterie cluster ... --save {path}") from error
    if not {_PLAIN_ENTRY, _SCALED_ENTRY} & set(metadata):
        raise TableError(
            f"{path} is a safetensors file, but not a model: save one with coterie cluster ... --save {path}"
        )
    return tensors, metadata


def _file(tensors: dict[str, np.ndarray], metadata: dict[str, str]) -> bytes:
    from safetensors.numpy import save

    return save(tensors, metadata)


@dataclass(frozen=True)
class ClusterSummary:
    """One cluster for people: its centre in the table's units, and how far that lies from the mean of each column.

    ``center`` is the estimator's own centre, or for clusters of directions the mean of their rows. ``deviation`` is in
    standard deviations of the column. The outliers are the summary with the label -1; their centre is their mean.
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

    names = list(model.columns.names)
    matrix, _ = numeric_matrix(frame, names)
    summaries = [one for one in summarise(model, frame, labels) if one.label >= 0]
    centers = np.array([list(one.center.values()) for one in summaries])
    if view in ("pca", "umap") or (view == "auto" and len(names) > 2):
        matrix, centers = model.columns.scaled(matrix), model.columns.scaled(centers)
    return save_clusters(path, matrix, labels, centers, names, title, view)


def summarise(model: TableModel, frame: pd.DataFrame, labels: np.ndarray) -> list[ClusterSummary]:
    """Every cluster of the model, the empty ones too, then the outliers if there are any."""
    names = list(model.columns.names)
    matrix, _ = numeric_matrix(frame, names)
    mean = matrix.mean(axis=0, dtype=np.float64)
    deviation = matrix.std(axis=0, dtype=np.float64)
    deviation = np.where(deviation > 0, deviation, 1.0)
    centers = model.columns.original(np.asarray(model.estimator.cluster_centers_, dtype=np.float64))
    directions = on_sphere(model.estimator)
    summaries = []
    for label in [*range(len(centers)), *([-1] if (labels < 0).any() else [])]:
        members = labels == label
        size = int(members.sum())
        own_mean = (label < 0 or directions) and size > 0
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
