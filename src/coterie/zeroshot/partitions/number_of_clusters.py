"""The number of clusters whose adjusted Rand index with the true clusters is expected to be best, or nearly."""

from collections.abc import Sequence

import numpy as np
from scipy.special import expit, logit, softmax

from coterie.zeroshot.features.description import row_distances
from coterie.zeroshot.features.hierarchies import Hierarchy, cut, ward
from coterie.zeroshot.network.inference import Reading
from coterie.zeroshot.partitions.cuts import OUTLIER_PROBABILITY, expected_ari

# The curve of the expected adjusted Rand index is flat near its top, where more clusters mostly split off a few rows
# and fewer join small ones. Of the numbers that lose less than this share of what one of K clusters is worth, which is
# about 1/K, the most probable is taken. Chosen on development sets and on a fold of real tables.
NEGLIGIBLE = 0.1


class Hierarchical:
    """A hierarchy of the rows that were read, and the evidence for each number of clusters.

    ``clusters_proba`` are the probabilities of 1, 2, ... clusters; ``expected_ari`` is the adjusted Rand index that the
    cut at each is expected to have if there are several. ``choice`` and ``single`` say how the evidence is weighed;
    they were fitted to fresh draws when the network was shipped.
    """

    def __init__(self, reading: Reading, choice: Sequence[float], single: Sequence[float]):
        self.affinity_NN, self.noise_N = reading.affinity_NN, reading.noise_N
        self.tree: Hierarchy = ward(row_distances(reading.affinity_NN.astype(np.float64)))
        most = min(len(reading.affinity_NN), len(reading.clusters_K))
        self.expected_ari = expected_ari(reading.affinity_NN, self.tree.left, self.tree.right, most)
        self.clusters_proba = clusters_proba(reading.clusters_K[:most], self.expected_ari, choice, single)
        self._exponent = single[2]

    @property
    def best(self) -> int:
        """The number of clusters whose adjusted Rand index is expected to be best, or nearly best and more probable.

        A single cluster has index 1 if it is one and 0 otherwise, and a cut into several has index 0 if it is one.
        (With exponent 0, the probability of a single cluster must exceed one half.) Clusters that consist of outliers
        alone are not counted.
        """
        more = self.expected_ari[1:]
        one = self.clusters_proba[0]
        if len(more) == 0 or one > (1 - one) * max(more.max(), 0.0) ** self._exponent:
            return 1
        nearly_best = more >= more.max() - NEGLIGIBLE / (2 + more.argmax())
        chosen = 2 + int(np.where(nearly_best, self.clusters_proba[1:], -1.0).argmax())
        inside_N = self.noise_N <= OUTLIER_PROBABILITY
        labels_N = cut(self.tree.left, self.tree.right, chosen)
        return len(np.unique(labels_N[inside_N])) if inside_N.any() else chosen


def clusters_proba(
    network_K: np.ndarray, expected_K: np.ndarray, choice: Sequence[float], single: Sequence[float]
) -> np.ndarray:
    """(K,) probabilities of 1, 2, ... clusters: of one by the network alone, of the others by all evidence for them."""
    if len(expected_K) == 1:
        return np.ones(1)
    one = expit(single[0] * logit(np.clip(float(network_K[0]), 1e-9, 1 - 1e-9)) + single[1])
    rest = softmax(choice_features(network_K, expected_K) @ np.asarray(choice))
    return np.concatenate([[one], (1 - one) * rest])


def choice_features(network_K: np.ndarray, expected_K: np.ndarray) -> np.ndarray:
    """(K - 1, 3) evidence for 2, 3, ... clusters: the network's distribution, the expected adjusted Rand index, and the
    number itself."""
    log_number = np.log(np.arange(2, len(expected_K) + 1))
    return np.column_stack([np.log(np.maximum(network_K[1:], 1e-4)), expected_K[1:], log_number])
