"""A partition of the rows that were read into any number of clusters, and what it says of other rows."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from coterie import threads
from coterie.constraints import Constraints
from coterie.zeroshot.network.inference import neighbours_mean
from coterie.zeroshot.partitions.candidates import best_candidate
from coterie.zeroshot.partitions.constrained import constrained
from coterie.zeroshot.partitions.cuts import (
    OUTLIER_PROBABILITY,
    agreement,
    cut_and_settled,
    mean_affinity,
    on_real_tables,
    proba,
)

MOST_CHOSEN = 16  # clusters for which other candidates than Ward's are compared: for more, that is the best of them
ROWS_AT_ONCE = 8_192  # that are described


class Evidence(NamedTuple):
    """What the network found in the rows that it read, from which any number of clusters can be made."""

    points_ND: np.ndarray
    affinity_NN: np.ndarray
    noise_N: np.ndarray
    children: np.ndarray  # (N - 1, 2) Ward's hierarchy of the affinities
    clusters_proba_K: np.ndarray
    head: np.ndarray  # weights of the head for partitions as one array; empty if there is none


class LabelledRows(NamedTuple):
    labels_N: np.ndarray  # int32, -1 for outliers
    noise_N: np.ndarray
    certainty_N: np.ndarray


@dataclass(frozen=True)
class Partition:
    """Clusters of the rows that were read. Every one of them has a row that is no outlier."""

    points_ND: np.ndarray
    affinity_NN: np.ndarray  # not read if there are values of ``own_N``
    noise_N: np.ndarray
    proba_NK: np.ndarray
    expected_ari: float  # with the true clusters
    own_N: np.ndarray | None = None  # certainty of the rows that were read
    limit: float = OUTLIER_PROBABILITY  # rows with a larger probability of being noise are outliers

    @property
    def labels_N(self) -> np.ndarray:
        return self.proba_NK.argmax(axis=1)

    def label(self, points_MD: np.ndarray, n_jobs: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Labels (int32, -1 for outliers) and probabilities of any rows.

        They are those of the nearest rows that were read, or its own for a row that is one of them.
        """
        return self._labelled(points_MD, n_jobs)[:2]

    def describe(self, points_MD: np.ndarray, n_jobs: int | None = None) -> LabelledRows:
        """The same with noise and certainty."""
        labels_N, own_N = self.labels_N, self.own_N
        if own_N is None:
            own_N = mean_affinity(self.affinity_NN.astype(np.float64), labels_N)[np.arange(len(labels_N)), labels_N]
        parts = []
        for first in range(0, max(len(points_MD), 1), ROWS_AT_ONCE):  # many rows × clusters need much memory
            rows = points_MD[first : first + ROWS_AT_ONCE]
            labels_M, _, more_M2 = self._labelled(rows, n_jobs, self.noise_N, own_N)
            noise_M, certainty_M = more_M2[:, 0], more_M2[:, 1]
            parts.append((labels_M, noise_M, np.where(labels_M < 0, noise_M, certainty_M)))
        return LabelledRows(*(np.concatenate(part) for part in zip(*parts)))

    def _labelled(
        self, points_MD: np.ndarray, n_jobs: int | None, *more: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        k = self.proba_NK.shape[1]
        values = np.column_stack([self.proba_NK, self._kept_noise(self.labels_N), *more])
        mean = neighbours_mean(points_MD, self.points_ND, values, threads.count(n_jobs))
        labels_M = np.where(mean[:, k] > self.limit, -1, mean[:, :k].argmax(axis=1)).astype(np.int32)
        return labels_M, mean[:, :k], mean[:, k + 1 :]

    def _kept_noise(self, labels_N: np.ndarray) -> np.ndarray:
        """Probability of noise, but of the least noisy rows of every cluster never that of an outlier."""
        least_K = np.full(labels_N.max() + 1, np.inf)
        np.minimum.at(least_K, labels_N, self.noise_N)
        is_least_N = self.noise_N == least_K[labels_N]
        return np.where(is_least_N, np.minimum(self.noise_N, self.limit), self.noise_N)


def partition(found: Evidence, n_clusters: int) -> Partition:
    """Ward's hierarchy cut into clusters; of a few, another candidate may be preferred.

    If there is one cluster, which has its probability, the index of several is 0.
    """
    left, right = np.ascontiguousarray(found.children.T)
    labels_N = _together(found.points_ND, cut_and_settled(found.affinity_NN, found.noise_N, left, right, n_clusters))
    one = float(found.clusters_proba_K[0])
    if n_clusters == 1:
        return _of_labels(found, labels_N, one)
    if len(found.head) and n_clusters <= min(MOST_CHOSEN, len(labels_N) - 1) and labels_N.max() > 0:
        read = found.points_ND, found.affinity_NN, found.noise_N
        labels_N, index = best_candidate(found.head, *read, found.clusters_proba_K, labels_N)
    else:
        index = agreement(found.affinity_NN, labels_N)
    return _of_labels(found, labels_N, on_real_tables((1 - one) * index, found.points_ND.shape[1]))


def partition_under(
    found: Evidence, n_clusters: int, known: Constraints | None, most_clusters: int | None
) -> Partition:
    """The partition that keeps what is known about the rows that were read."""
    free = partition(found, n_clusters)
    if known is None:
        return free
    labels_N, proba_NK = constrained(free.labels_N, found.affinity_NN, found.points_ND, known, most_clusters)
    index = on_real_tables(agreement(found.affinity_NN, labels_N), found.points_ND.shape[1])
    return Partition(found.points_ND, found.affinity_NN, found.noise_N, proba_NK, index)


def _of_labels(found: Evidence, labels_N: np.ndarray, expected_ari: float) -> Partition:
    proba_NK = proba(found.affinity_NN, labels_N)
    return Partition(found.points_ND, found.affinity_NN, found.noise_N, proba_NK, expected_ari)


def _together(points_ND: np.ndarray, labels_N: np.ndarray) -> np.ndarray:
    """Labels 0 ... K - 1 of which equal rows have the same: there may be more clusters than different rows."""
    first, which_N = np.unique(points_ND, axis=0, return_index=True, return_inverse=True)[1:]
    return np.unique(labels_N[first][which_N.reshape(-1)], return_inverse=True)[1].reshape(-1)
