"""Saving a fitted estimator as one safetensors file: arrays as tensors, everything else as JSON in the metadata.

Pickle is not used, so loading a file runs no code from it. The format:

* The metadata entry ``coterie`` is ``{"format": 1, "version", "class", "params", "attributes", "network"}``.
* A fitted attribute or parameter that is an array is the tensor ``attribute.NAME`` or ``param.NAME``.
* Lists of names and plain numbers are in the JSON.
* ``network`` is the name of a pretrained network and the SHA-256 of its weights, for estimators that use one.

The same fitted estimator always gives the same bytes. :mod:`coterie.estimators.schema` says what a file may contain.
"""

import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

from coterie.checkpoints.json_shapes import SCALAR, check
from coterie.distributed import is_dask
from coterie.estimators.notebook import NotebookMixin
from coterie.files import check_writable, replacing

if TYPE_CHECKING:
    from coterie.living import LivingClusterer
    from coterie.living.checking import Check
    from coterie.living.granularity import Granularity

FORMAT = 1
ENTRY = "coterie"
HEADER = {"format": int, "version": SCALAR, "class": str, "network?": (None, {"name": str, "sha256": str})}
STORED = (*SCALAR, [SCALAR], {"tensor": str}, {"names": [str]})  # a parameter or an attribute
TABLE_ENTRY = "coterie-table"  # of an estimator that saw what was made of the columns of a table


class EditMixin:
    """Adds the changes of :class:`coterie.LivingClusterer` to a fitted estimator. Each returns a new model."""

    def _living(self) -> "LivingClusterer":
        from coterie.living import LivingClusterer

        return LivingClusterer.of(self)

    def merge(self, labels: Sequence[int]) -> "LivingClusterer":
        """Join clusters; see :meth:`coterie.LivingClusterer.merge`."""
        return self._living().merge(labels)

    def split(self, label: int, n_clusters: int | None = None, *, X: Any = None) -> "LivingClusterer":
        """Divide a cluster; see :meth:`coterie.LivingClusterer.split`."""
        return self._living().split(label, n_clusters, X=X)

    def rename(self, label: int, name: str) -> "LivingClusterer":
        """Name a cluster; see :meth:`coterie.LivingClusterer.rename`."""
        return self._living().rename(label, name)

    def pin(self, rows: Sequence[int], label: int, *, X: Any) -> "LivingClusterer":
        """Put single rows into a cluster; see :meth:`coterie.LivingClusterer.pin`."""
        return self._living().pin(rows, label, X=X)

    def granularity(self, X: Any = None, most: int = 20) -> "Granularity":
        """What 1, 2, ... clusters are worth; see :func:`coterie.living.granularity.granularity`."""
        from coterie.living.granularity import granularity

        return granularity(self, X, most)

    def check(self, X: Any, reference: Any = None) -> "Check":
        """Whether the clusters still describe new rows; see :meth:`coterie.LivingClusterer.check`.

        ``reference`` are the rows of the fit, which an estimator that was fitted by itself does not remember.
        """
        return self._living().check(X, reference)


class SaveMixin(NotebookMixin, EditMixin):
    """Adds ``save`` and edits of the clusters to an estimator, and its clusters to what notebooks show of it."""

    def save(self, path: str | os.PathLike) -> None:
        """Save the fitted estimator to a file, which :func:`coterie.load` reads.

        Parameters
        ----------
        path : str or path-like
            The safetensors file to write. An existing file is replaced atomically.
        """
        tensors, entry = packed(self)
        write(path, tensors, {ENTRY: entry})


def load(path: str | os.PathLike, *, network: str | os.PathLike | None = None) -> Any:
    """Load an estimator that was saved with its method ``save``.

    Loading runs no code from the file. The content is checked: a file that is damaged, or that was altered so that its
    arrays do not fit together, raises a ValueError.

    Parameters
    ----------
    path : str or path-like
        The file to read.
    network : str, path-like or None, default=None
        The pretrained network of an estimator that was fitted with a network of your own: its name, or the path of its
        ``.safetensors`` file. By default the network is looked up by the name that is saved in the file; a path inside
        the file is never followed. The hash of the weights must be the one that was saved.

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
    return unpacked(tensors, metadata[ENTRY], path, network)


def write(path: str | os.PathLike, tensors: dict[str, np.ndarray], metadata: dict[str, str]) -> None:
    """Write a safetensors file atomically."""
    content = to_bytes(tensors, metadata=metadata)
    # safetensors writes the metadata in random order: the header is written again with sorted keys.
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.dumps(json.loads(content[8:start]), sort_keys=True, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    with replacing(check_writable(path)) as file:
        file.write_bytes(len(header).to_bytes(8, "little") + header + content[start:])


def read(path: str | os.PathLike) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Read the tensors and metadata of a safetensors file."""
    if os.path.isdir(path):
        raise IsADirectoryError(f"{path} is a folder: give the file that save wrote.")
    try:
        with safe_open(os.fspath(path), framework="numpy") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, dict(file.metadata() or {})  # noqa: SIM118
    except (SafetensorError, TypeError, ValueError, AttributeError) as error:  # the latter: types that numpy lacks
        raise ValueError(
            f"{path} is not a saved coterie model ({error}): give a file that the method save of an estimator wrote."
        ) from error


def packed(estimator) -> tuple[dict[str, np.ndarray], str]:
    """The tensors of a fitted estimator, and its entry in the metadata."""
    from sklearn.utils.validation import check_is_fitted

    import coterie
    from coterie import checkpoints
    from coterie.estimators import schema

    check_is_fitted(estimator)
    if hasattr(estimator, "_packed"):
        return estimator._packed()
    tensors: dict[str, np.ndarray] = {}
    fitted = {name: value for name, value in vars(estimator).items() if name.endswith("_") or name == "_n_features_out"}
    params = schema.unfolded(type(estimator), estimator.get_params(deep=False))
    header: dict[str, Any] = {"format": FORMAT, "version": coterie.__version__, "class": type(estimator).__name__}
    if "network" in params:
        # the bare name and the hash: a path would mean nothing on another machine
        card = None if params["network"] == "auto" else checkpoints.card(params["network"])
        params["network"] = "auto" if card is None else card["name"]
        header["network"] = card and {"name": card["name"], "sha256": card["sha256"]}
    if "checkpoint" in params:
        params["checkpoint"] = None  # a path on this machine, used by fit only
    header["params"] = _pack(params, "param", tensors)
    header["attributes"] = _pack(fitted, "attribute", tensors)
    try:
        schema.check_attributes(type(estimator), _unpack(header["attributes"], "attribute", tensors))
    except ValueError as error:
        raise ValueError(f"This {type(estimator).__name__} cannot be saved: {error}.") from error
    return tensors, json.dumps(header, sort_keys=True)


def unpacked(
    tensors: dict[str, np.ndarray],
    entry: str,
    path: str | os.PathLike,
    network: str | os.PathLike | None = None,
) -> Any:
    """The estimator of the tensors and entry of ``packed``. ``path`` is used in messages."""
    from coterie.catalogue import CATALOGUE

    try:
        header = json.loads(entry)
        check(header, HEADER, "header")
        number, version, name = header["format"], str(header["version"]), header["class"]
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged: its header cannot be read. Save the model again.") from error
    if number > FORMAT:
        raise ValueError(f"{path} was saved by coterie {version:.40} in a newer format: update coterie to read it.")
    if name == "LivingClusterer":
        from coterie.living.saving import unpacked as living

        return living(tensors, header, path, network)
    if name not in CATALOGUE:
        raise ValueError(f"{path} contains a {name:.40}, which this version of coterie does not have.")
    try:
        return _checked(header, tensors, path, network)
    except _NetworkError as error:
        raise ValueError(str(error)) from error
    except ValueError as error:
        raise ValueError(f"{path} is damaged or was altered: {error}. Save the model again.") from error


def _checked(header: dict[str, Any], tensors: dict[str, np.ndarray], path, network) -> Any:
    from coterie import estimators
    from coterie.estimators import schema

    kind = getattr(estimators, header["class"])
    params = _unpack(header.get("params"), "param", tensors)
    attributes = schema.renewed(kind, _unpack(header.get("attributes"), "attribute", tensors))
    params.pop("checkpoint", None)
    if "network" in params:
        params["network"] = _found_network(header, params["network"], path, network)
    elif network is not None:
        raise _NetworkError(f"{path} contains a {kind.__name__}, which uses no network: remove network={network!r}.")
    estimator = schema.check_parameters(kind, params)
    schema.check_attributes(kind, attributes)
    for name, value in attributes.items():
        setattr(estimator, name, value)
    schema.check_predicts(estimator)
    return estimator


class _NetworkError(ValueError):
    """The model is in order, but its network is not there."""


def _found_network(header: dict[str, Any], name: Any, path, given: str | os.PathLike | None) -> str:
    """The network to use, whose hash must be that of the file if the estimator predicts with it."""
    from coterie import checkpoints
    from coterie.checkpoints.store import check_name
    from coterie.estimators.schema import PREDICTS_WITH_NETWORK

    if not isinstance(name, str):
        raise ValueError("network must be a name")
    if given is None:
        check_name(name)  # a path inside a file is never followed
    if given is None and header["class"] not in PREDICTS_WITH_NETWORK:
        return name
    again = f"pass the path of the network that it was fitted with: coterie.load({str(path)!r}, network=...)."
    try:
        found = checkpoints.card(name if given is None else given)["sha256"]
    except ValueError as error:
        raise _NetworkError(f"{path} needs the network {name!r}, which cannot be used: {again} ({error})") from error
    pin = header.get("network")
    if isinstance(pin, dict) and pin.get("sha256") != found:
        same = [each["name"] for each in checkpoints.available() if each["sha256"] == pin.get("sha256")]
        if given is None and same:  # the name has another network since the file was saved
            return same[0]
        raise _NetworkError(f"{path} was fitted with other weights of the network {name!r} than those found: {again}")
    return name if given is None else str(given)


def _pack(values: dict[str, Any], prefix: str, tensors: dict[str, np.ndarray]) -> dict[str, Any]:
    packed: dict[str, Any] = {}
    for name, value in values.items():
        if name == "trajectory_" or is_dask(value):  # made again by fit; labels of Dask data by predict
            continue
        if isinstance(value, np.ndarray) and value.dtype != object:
            tensors[f"{prefix}.{name}"] = np.ascontiguousarray(value)
            packed[name] = {"tensor": f"{prefix}.{name}"}
        elif isinstance(value, np.ndarray):  # column names
            packed[name] = {"names": [str(item) for item in value]}
        elif isinstance(value, np.generic):
            packed[name] = value.item()
        elif _is_json(value):
            packed[name] = value
        elif isinstance(value, list | tuple) and all(map(_is_json, value)):
            packed[name] = list(value)
        elif isinstance(value, os.PathLike) or type(value).__module__ == "torch":  # a path, or a torch.device
            packed[name] = str(value)
        elif isinstance(value, np.random.RandomState) or callable(value):
            packed[name] = None  # needed to fit again, not to predict
        else:
            try:
                array = np.asarray(value)
            except ValueError:  # lists of different lengths
                array = np.empty(0, dtype=object)
            if array.dtype.kind not in "biuf":
                kind = type(value).__name__
                raise TypeError(f"{name} is a {kind}, which cannot be saved: pass an array, a number or a string.")
            packed.update(_pack({name: array}, prefix, tensors))
    return packed


def _is_json(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def _unpack(packed: Any, prefix: str, tensors: dict[str, np.ndarray]) -> dict[str, Any]:
    if not isinstance(packed, dict):
        raise ValueError(f"the list of its {prefix}s is missing")
    values = {}
    for name, value in packed.items():
        check(value, STORED, f"{prefix}.{name}")
        if isinstance(value, dict):
            if value == {"tensor": f"{prefix}.{name}"} and value["tensor"] in tensors:
                value = tensors[value["tensor"]]
            elif list(value) == ["names"]:
                value = np.array(value["names"], dtype=object)
            else:
                raise ValueError(f"there is no array {name}")
        values[name] = value
    return values
