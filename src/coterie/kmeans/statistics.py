"""The statistics of a block of rows that an M-step needs, which can be added.

Batches, chunks, threads and Dask all sum the same three statistics per cluster, so they share one M-step.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse


@dataclass(frozen=True)
class Statistics:
    """Weighted sums, total weights and inertia of a block of assigned rows."""

    sums: np.ndarray  # (k, d) float64
    counts: np.ndarray  # (k,) float64, total weight per cluster
    inertia: float = 0.0

    @classmethod
    def zero(cls, n_clusters: int, n_features: int) -> "Statistics":
        return cls(np.zeros((n_clusters, n_features)), np.zeros(n_clusters))

    @classmethod
    def of(cls, X, labels, sq_distances, n_clusters: int, sample_weight=None) -> "Statistics":
        """The statistics of rows with the given assignments. Rows with a negative label are excluded."""
        labels = np.asarray(labels)
        n = labels.shape[0]
        weights = np.ones(n) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        rows = np.flatnonzero(labels >= 0)
        membership = sparse.csr_matrix((weights[rows], (labels[rows], rows)), shape=(n_clusters, n), dtype=np.float64)
        sums = membership @ X
        sums = sums.toarray() if sparse.issparse(sums) else np.asarray(sums, dtype=np.float64)
        counts = np.bincount(labels[rows], weights=weights[rows], minlength=n_clusters)
        inertia = float(np.dot(weights[rows], np.asarray(sq_distances, dtype=np.float64)[rows]))
        return cls(sums, counts, inertia)

    def __add__(self, other: "Statistics") -> "Statistics":
        return Statistics(self.sums + other.sums, self.counts + other.counts, self.inertia + other.inertia)

    def centers(self, previous: np.ndarray) -> np.ndarray:
        """The mean of every cluster, in the dtype of the previous centres. An empty cluster's centre does not move."""
        filled = self.counts > 0
        centers = np.array(previous)
        centers[filled] = self.sums[filled] / self.counts[filled, None]
        return centers
