"""The one value that every engine returns."""

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Result:
    """What a clustering run found.

    ``labels`` belong to the *final* centres: one more assignment is made after the last update whenever the loop
    stopped before the assignments did, so that ``fit(X).labels_`` equals ``fit(X).predict(X)``.
    """

    centers: np.ndarray  # (k, d)
    labels: np.ndarray  # (n,) int32, -1 for a trimmed point
    inertia: float
    n_iter: int
    converged: bool = True
    weights: np.ndarray | None = None  # (k,) mixing weights, where they are estimated
    medoids: np.ndarray | None = None  # (k,) which rows the centres are, where they are rows
    limits: np.ndarray | None = None  # (k,) the largest cost that trimming kept
    trajectory: list = field(default_factory=list)  # (centers, assignments) layer by layer, where an engine keeps it
