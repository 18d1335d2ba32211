"""A fitted estimator with the encoding of its columns, saved as one file."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.checkpoints.json_shapes import check
from coterie.estimators.capabilities import encodes_tables, finds_outliers
from coterie.estimators.validation import is_nearest
from coterie.tables.columns import TableError
from coterie.tables.encoding import Encoding
from coterie.tabular.encoded_table import EncodedTable

if TYPE_CHECKING:
    from coterie.living import LivingClusterer
    from coterie.living.checking import Check

ENCODING = "encoding"  # of the table, in the metadata of the file
NAMES = "names"  # of the clusters


@dataclass(frozen=True)
class TableModel:
    """A fitted estimator together with the encoding of the table that it was fitted to.

    Parameters
    ----------
    estimator : fitted estimator
    encoding : :class:`coterie.tables.encoding.Encoding`
        How the columns of a table become the points that the estimator sees.
    names : mapping of int to str
        Names of clusters, where they were given.

    Examples
    --------
    >>> from coterie.tabular import TableModel
    >>> TableModel.load("customers.model").predict(table)  # doctest: +SKIP
    """

    estimator: Any
    encoding: Encoding
    names: Mapping[int, str] = field(default_factory=dict)  # of clusters

    def predict(self, table: Any, *, assign: str | None = None) -> np.ndarray:
        """The cluster of every row of another table, whose columns are found by name.

        Outliers are -1; with ``assign="nearest"`` they get the cluster that they would belong to.
        """
        return self.predict_encoded(EncodedTable.apply(self.encoding, table), assign)

    def predict_encoded(self, rows: EncodedTable, assign: str | None = None) -> np.ndarray:
        """The cluster of every row of a table that was encoded by :attr:`encoding`."""
        how = {"assign": assign} if is_nearest(assign) and finds_outliers(self.estimator) else {}
        return self.estimator.predict(rows.input(self.estimator), **how)

    @property
    def living(self) -> "LivingClusterer":
        """The estimator as one whose clusters can be edited, continued and checked."""
        from coterie.living import LivingClusterer

        return LivingClusterer.of(self.estimator, self.names)

    @property
    def ids(self) -> list[int]:
        """The labels of the clusters."""
        return self.living.ids_

    def with_living(self, living: "LivingClusterer") -> "TableModel":
        """The same table with other clusters."""
        return replace(self, estimator=living, names=living.names_)

    def check(self, table: Any) -> "Check":
        """Whether the clusters still describe the rows of another table; see :func:`coterie.living.checking.check`."""
        return self.living.check(EncodedTable.apply(self.encoding, table).rows)

    def save(self, path: str | os.PathLike) -> Path:
        """Write one safetensors file: the estimator, and the encoding as JSON in the metadata.

        If columns are used as they are, ``coterie.load`` can read the file too. Otherwise the estimator alone would
        mistake raw columns for encoded ones: its entry then has another name, and only :meth:`load` reads it.
        """
        from coterie.estimators import persistence

        tensors, entry = persistence.packed(self.estimator)
        name = persistence.ENTRY if self.encoding.is_identity else persistence.TABLE_ENTRY
        named = {NAMES: json.dumps({str(label): text for label, text in self.names.items()})} if self.names else {}
        persistence.write(path, tensors, {name: entry, ENCODING: self.encoding.to_json(), **named})
        return Path(path)

    @classmethod
    def load(cls, path: str | os.PathLike, *, network: str | os.PathLike | None = None) -> "TableModel":
        """Read a file that :meth:`save` wrote, or an estimator that was saved after it was fitted to a DataFrame.

        ``network`` is the pretrained network of an estimator that was fitted with one of your own, as in
        :func:`coterie.load`. A file that is damaged or was altered raises a :class:`TableError`.
        """
        from coterie.estimators import persistence

        path = Path(path)
        if not path.is_file():
            raise TableError(f"There is no model {path}: save one with coterie cluster FILE --save {path}")
        again = "save one with coterie cluster FILE --save NAME.model"
        try:
            tensors, metadata = persistence.read(path)
        except (ValueError, OSError) as error:
            raise TableError(f"{path} is not a saved model: {again}") from error
        entry = metadata.get(persistence.ENTRY) or metadata.get(persistence.TABLE_ENTRY)
        if entry is None:
            raise TableError(f"{path} is a safetensors file, but not a saved model: {again}")
        try:
            estimator = persistence.unpacked(tensors, entry, path, network)
            encoding = _encoding(estimator, metadata.get(ENCODING))
            named = _names(metadata.get(NAMES, "{}"))
        except ValueError as error:
            raise TableError(str(error) if str(path) in str(error) else f"{path} is damaged: {error}") from error
        if encoding is None:
            raise TableError(
                f"{path} does not contain column names: fit to a DataFrame, or use coterie cluster --save."
            )
        return cls(estimator, encoding, named)


def _names(saved: str) -> dict[int, str]:
    """Names of clusters, by their numbers."""
    names = json.loads(saved)
    check([*names.values()] if isinstance(names, dict) else names, [str], "names")
    return {int(label): name for label, name in names.items()}


def _encoding(estimator: Any, saved: str | None) -> Encoding | None:
    """The encoding of the columns that an estimator was fitted to; None if their names are not known."""
    names = getattr(estimator, "feature_names_in_", None)
    saved = saved if saved is not None or names is None else getattr(estimator, "encoding_", None)
    if saved is None:
        return None if names is None else Encoding.affine([str(name) for name in names])
    encoding = Encoding.from_json(saved)
    width = len(encoding.columns if encodes_tables(estimator) else encoding.point_names)
    if width != estimator.n_features_in_:
        raise ValueError(f"the encoding gives {width} values per row, the estimator needs {estimator.n_features_in_}.")
    return encoding
