"""Saving a fitted estimator as one safetensors file: arrays as tensors, everything else as JSON in the metadata.

Pickle is not used, so loading a file runs no code from it. The format:

* The metadata entry ``coterie`` is ``{"format": 1, "version", "class", "params", "attributes"}``.
* A fitted attribute or parameter that is an array is the tensor ``attribute.NAME`` or ``param.NAME``.
* Lists of names and plain numbers are in the JSON.
"""

import json
import os
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

from coterie.distributed import is_dask
from coterie.files import check_writable, replacing

FORMAT = 1
ENTRY = "coterie"
TABLE_ENTRY = "coterie-table"  # of an estimator that saw what was made of the columns of a table


class SaveMixin:
    """Adds the method ``save`` to an estimator."""

    def save(self, path: str | os.PathLike) -> None:
        """Save the fitted estimator to a file, which :func:`coterie.load` reads.

        Parameters
        ----------
        path : str or path-like
            The safetensors file to write. An existing file is replaced atomically.
        """
        save(self, path)


def save(estimator, path: str | os.PathLike) -> None:
    """Save a fitted estimator. The docstring of this module describes the format."""
    tensors, entry = packed(estimator)
    write(path, tensors, {ENTRY: entry})


def load(path: str | os.PathLike) -> Any:
    """Load an estimator that was saved with its method ``save``.

    Loading runs no code from the file.

    Parameters
    ----------
    path : str or path-like
        The file to read.

    Returns
    -------
    estimator : object
        The fitted estimator.
    """
    tensors, metadata = read(path)
    if TABLE_ENTRY in metadata:
        raise ValueError(
            f"{path} contains an estimator and the encoding of its columns: load it with "
            "coterie.tabular.TableModel.load, or use it with `coterie predict`."
        )
    if ENTRY not in metadata:
        raise ValueError(f"{path} is a safetensors file, but it was not saved by coterie.")
    return unpacked(tensors, metadata[ENTRY], path)


def write(path: str | os.PathLike, tensors: dict[str, np.ndarray], metadata: dict[str, str]) -> None:
    """Write a safetensors file atomically."""
    with replacing(check_writable(path)) as file:
        file.write_bytes(to_bytes(tensors, metadata=metadata))


def read(path: str | os.PathLike) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Read the tensors and metadata of a safetensors file."""
    if os.path.isdir(path):
        raise IsADirectoryError(f"{path} is a folder: give the file that save wrote.")
    try:
        with safe_open(os.fspath(path), framework="numpy") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, dict(file.metadata() or {})  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(f"{path} is not a saved coterie model ({error}).") from error


def packed(estimator) -> tuple[dict[str, np.ndarray], str]:
    """The tensors of a fitted estimator, and its entry in the metadata."""
    from sklearn.utils.validation import check_is_fitted

    import coterie

    check_is_fitted(estimator)
    tensors: dict[str, np.ndarray] = {}
    fitted = {name: value for name, value in vars(estimator).items() if name.endswith("_") or name == "_n_features_out"}
    header = {
        "format": FORMAT,
        "version": coterie.__version__,
        "class": type(estimator).__name__,
        "params": _pack(estimator.get_params(deep=False), "param", tensors),
        "attributes": _pack(fitted, "attribute", tensors),
    }
    return tensors, json.dumps(header)


def unpacked(tensors: dict[str, np.ndarray], entry: str, path: str | os.PathLike) -> Any:
    """The estimator of the tensors and entry of ``packed``. ``path`` is used in messages."""
    from coterie import estimators

    header = json.loads(entry)
    if header["format"] > FORMAT:
        raise ValueError(
            f"{path} was saved by coterie {header['version']} in a newer format: update coterie to read it."
        )
    if header["class"] not in estimators.__all__:
        raise ValueError(f"{path} contains a {header['class']}, which this version of coterie does not have.")
    kind = getattr(estimators, header["class"])
    estimator = kind(**_unpack(header["params"], "param", tensors))
    for name, value in _unpack(header["attributes"], "attribute", tensors).items():
        setattr(estimator, name, value)
    return estimator


def _pack(values: dict[str, Any], prefix: str, tensors: dict[str, np.ndarray]) -> dict[str, Any]:
    packed: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, np.ndarray) and value.dtype != object:
            tensors[f"{prefix}.{name}"] = np.ascontiguousarray(value)
            packed[name] = {"tensor": f"{prefix}.{name}"}
        elif isinstance(value, np.ndarray):  # column names
            packed[name] = {"names": [str(item) for item in value]}
        elif isinstance(value, np.generic):
            packed[name] = value.item()
        elif _is_json(value) or (isinstance(value, list) and all(map(_is_json, value))):
            packed[name] = value
        elif isinstance(value, os.PathLike) or type(value).__module__ == "torch":  # a path, or a torch.device
            packed[name] = str(value)
        elif isinstance(value, list | tuple) and np.asarray(value).dtype.kind in "biuf":
            packed.update(_pack({name: np.asarray(value)}, prefix, tensors))
        elif isinstance(value, np.random.RandomState) or callable(value):
            packed[name] = None  # needed to fit again, not to predict
        elif name == "trajectory_" or is_dask(value):  # lazy labels: predict gives them again
            continue
        else:
            raise TypeError(
                f"{name} is a {type(value).__name__}, which cannot be saved: pass an array, a number or a string."
            )
    return packed


def _is_json(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def _unpack(packed: dict[str, Any], prefix: str, tensors: dict[str, np.ndarray]) -> dict[str, Any]:
    values = {}
    for name, value in packed.items():
        if isinstance(value, dict):
            value = tensors[value["tensor"]] if "tensor" in value else np.array(value["names"], dtype=object)
        values[name] = value
    return values
