"""MNIST and Fashion-MNIST as tables with one image per row."""

import gzip
import os
from pathlib import Path

import numpy as np

_SETS = ("mnist", "fashion")
_PARTS = ("train", "t10k")


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Images and labels of "mnist" or "fashion": the 60,000 training images, then the 10,000 test images.

    The idx files are in the subfolder of that name in the folder given by the environment variable ``COTERIE_DATA``.

    Returns
    -------
    images : uint8 array of shape (70000, 784)
    labels : uint8 array of shape (70000,)
    """
    if name not in _SETS:
        raise ValueError(f"name must be one of {_SETS}; got {name!r}.")
    root = os.environ.get("COTERIE_DATA")
    folder = Path(root) / name if root else None
    if folder is not None and folder.is_dir():
        images = [_read_idx(folder / f"{part}-images-idx3-ubyte.gz") for part in _PARTS]
        labels = [_read_idx(folder / f"{part}-labels-idx1-ubyte.gz") for part in _PARTS]
        return np.concatenate(images).reshape(-1, 784), np.concatenate(labels)
    where = f"the folder {folder}" if folder is not None else "COTERIE_DATA, which is not set"
    raise FileNotFoundError(
        f"The images of {name!r} are not in {where}: set COTERIE_DATA to the folder that holds "
        f"{name}/train-images-idx3-ubyte.gz and the other three files."
    )


def _read_idx(path: Path) -> np.ndarray:
    """Read an idx file: two zero bytes, the type (8 = unsigned byte), the number of axes, their lengths, the values."""
    with gzip.open(path, "rb") as file:
        content = file.read()
    if content[:3] != b"\x00\x00\x08":
        raise ValueError(f"{path} is not an idx file of unsigned bytes.")
    n_axes = content[3]
    shape = np.frombuffer(content, dtype=">i4", count=n_axes, offset=4)
    values = np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * n_axes)
    if values.size != np.prod(shape):
        raise ValueError(f"{path} holds {values.size} values, but its header says {'×'.join(map(str, shape))}.")
    return values.reshape(shape)
