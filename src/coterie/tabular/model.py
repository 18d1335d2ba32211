"""A fitted estimator with the encoding of its columns, saved as one file."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coterie.data.columns import TableError
from coterie.data.encoding import Encoding
from coterie.tabular.encoded_table import EncodedTable

ENCODING = "encoding"  # of the table, in the metadata of the file


@dataclass(frozen=True)
class TableModel:
    """A fitted estimator together with the encoding of the table that it was fitted to."""

    estimator: Any
    encoding: Encoding

    def predict(self, table: Any) -> np.ndarray:
        """The cluster of every row of another table, whose columns are found by name."""
        return self.predict_encoded(EncodedTable.apply(self.encoding, table))

    def predict_encoded(self, rows: EncodedTable) -> np.ndarray:
        return self.estimator.predict(rows.input(self.estimator))

    def save(self, path: str | os.PathLike) -> Path:
        """Write one safetensors file: the estimator, and the encoding as JSON in the metadata.

        If columns are used as they are, ``coterie.load`` can read the file too. Otherwise the estimator alone would
        mistake raw columns for encoded ones: its entry then has another name, and only :meth:`load` reads it.
        """
        from coterie.estimators import persistence

        tensors, entry = persistence.packed(self.estimator)
        name = persistence.ENTRY if self.encoding.is_identity else persistence.TABLE_ENTRY
        persistence.write(path, tensors, {name: entry, ENCODING: self.encoding.to_json()})
        return Path(path)

    @classmethod
    def load(cls, path: str | os.PathLike) -> "TableModel":
        """Read a file that :meth:`save` wrote, or an estimator that was saved after it was fitted to a DataFrame."""
        from coterie.estimators import persistence

        path = Path(path)
        if not path.is_file():
            raise TableError(f"There is no model {path}: save one with coterie cluster FILE --save {path}")
        again = f"save one with coterie cluster FILE --save {path}"
        try:
            tensors, metadata = persistence.read(path)
        except (ValueError, OSError) as error:
            raise TableError(f"{path} is not a saved model: {again}") from error
        entry = metadata.get(persistence.ENTRY) or metadata.get(persistence.TABLE_ENTRY)
        if entry is None:
            raise TableError(f"{path} is a safetensors file, but not a saved model: {again}")
        estimator = persistence.unpacked(tensors, entry, path)
        if ENCODING in metadata:
            return cls(estimator, Encoding.from_json(metadata[ENCODING]))
        names = getattr(estimator, "feature_names_in_", None)
        if names is None:
            raise TableError(
                f"{path} does not contain column names: fit to a DataFrame, or use coterie cluster --save."
            )
        if hasattr(estimator, "encoding_"):
            return cls(estimator, Encoding.from_json(estimator.encoding_))
        return cls(estimator, Encoding.affine([str(name) for name in names]))
