"""Checks of what enters compiled code, which reads and writes memory without checking shapes and indices itself.

They run once per call and read all centres, but not all rows: a row with NaN shows in the sum of the costs.
"""

import numpy as np


class NotFiniteError(ValueError):
    """Raised if rows or centres contain NaN or infinity."""


def check_centers(X: np.ndarray, centers: np.ndarray) -> None:
    """Raise ValueError unless centres (k, d) can be compared with the rows X (n, d) by a kernel."""
    if X.ndim != 2 or X.dtype not in (np.float32, np.float64) or not X.flags.c_contiguous:
        raise ValueError(
            f"The rows must be a C-contiguous array (n, d) of float32 or float64, got {X.dtype} of shape {X.shape}."
        )
    if centers.ndim != 2 or not len(centers) or centers.shape[1] != X.shape[1]:
        raise ValueError(
            f"The centres must have the shape (k, {X.shape[1]}), as many columns as the rows; got {centers.shape}."
        )
    if not np.isfinite(centers).all():
        raise NotFiniteError("The centres contain NaN or infinity: start a new fit, without the damaged centres.")


def check_lengths(n: int, **arrays: np.ndarray | None) -> None:
    """Raise ValueError unless every array that is given has one value per row."""
    for name, array in arrays.items():
        if array is not None and array.shape != (n,):
            raise ValueError(f"{name} must have one value for each of the {n} rows, got the shape {array.shape}.")


def check_labels(labels: np.ndarray, n_clusters: int) -> None:
    """Raise ValueError unless every label is the index of a centre."""
    if labels.size and not (labels.min() >= 0 and labels.max() < n_clusters):
        raise ValueError(
            f"Labels must be between 0 and {n_clusters - 1}, got {int(labels.min())} to {int(labels.max())}."
        )


def check_cost(cost: float) -> None:
    """Raise NotFiniteError if a sum of costs shows that a row contains NaN or infinity."""
    if not np.isfinite(cost):
        raise NotFiniteError("The rows contain NaN or infinity, or their squares overflow: remove or scale such rows.")
