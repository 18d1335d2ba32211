"""Clusters of rows in many columns of one scale: communities of their neighbour graph, where they are stable.

In many columns it is the nearest neighbours that tell which rows belong together. Louvain's method divides their graph
into few or many communities, by its resolution. Here the resolution is not a setting: at each of many, several graphs
whose edges are weighted anew at random are divided, too, and that resolution is taken at which these divisions agree
best. All of them together say how often two rows share a community, from which every other number of clusters follows.

Weights of edges are multiples of a power of two, so that sums of them are exact and no order of summation, no
instruction set and no number of threads changes a division.

Shapes: N rows, P partitions, R resolutions, K clusters.
"""

from collections.abc import Iterator
from functools import cached_property, partial
from itertools import combinations

import numpy as np
from scipy import sparse
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform
from scipy.special import expit, softmax
from sklearn.metrics import adjusted_rand_score

from coterie import threads
from coterie.geometry.neighbours import N_NEIGHBOURS, communities, fuzzy_graph, nearest_among
from coterie.tables.common_scale import EACH
from coterie.zeroshot.features.hierarchies import cut
from coterie.zeroshot.partitions.cuts import OUTLIER_PROBABILITY
from coterie.zeroshot.partitions.partition import Partition

COLUMNS, ROWS = 16, 200  # from which a table is divided in this way
MOST_ROWS = 20_000  # of the graph; others take the label of the nearest of them
RESOLUTIONS = 2.0 ** np.arange(-5, 14, 0.5)
AT_ONCE = 4  # resolutions after which it is asked whether they are fine enough
DIVISIONS = 5  # of every resolution: of the graph itself, and of graphs with other weights
LEAST_ROWS = 6  # of a community on average, at the finest resolution
EXACT = 2.0**20  # weights are multiples of its inverse
# How the number of clusters follows from the stability s of every resolution: -1 / s, plus a part of the logarithm of
# the number, less a part of the squared distance to resolution 1/2. Chosen on problems made of some classes of the sets
# of `coterie bench embeddings`; a wide range of both parts is about as good.
FINER, UNUSUAL, USUAL = 0.2, 0.015, 0.5
LEAST_STABLE = 0.05
TEMPERATURE = 0.05  # of the probability of each number
# Less stable divisions into four clusters are those of a single cloud; into more, MORE of it per e times as many.
SINGLE, MORE, WIDTH = 0.5, 0.05, 0.03
EXPECTED = 2.2  # power of the stability that is nearest to the adjusted Rand index that was reached


def suit(scale: str, shape: tuple[int, ...]) -> bool:
    """Whether rows are divided by their neighbour graph, and not by the network, which is for tables of other kinds."""
    return scale != EACH and shape[0] >= ROWS and shape[1] >= COLUMNS


def divisions(points_ND: np.ndarray, rng: np.random.Generator, n_threads: int, least: int = 0) -> np.ndarray:
    """(N, P) communities of the rows at every resolution, DIVISIONS columns each, the coarsest first.

    They end where communities are small, and number at least ``least``.
    """
    graph = _graph(points_ND, n_threads)
    n = len(points_ND)
    orders = [rng.permutation(n) for _ in range(DIVISIONS)]
    graphs = [graph, *(_weighted_anew(graph, rng) for _ in range(DIVISIONS - 1))]
    labels_NP = np.empty((n, len(RESOLUTIONS) * DIVISIONS), np.int32)

    def divide(first: int, task: int) -> None:
        place, graph = divmod(first + task, DIVISIONS)
        labels_NP[:, first + task] = communities(graphs[graph], RESOLUTIONS[place], orders[graph])

    for first in range(0, labels_NP.shape[1], AT_ONCE * DIVISIONS):
        last = min(first + AT_ONCE * DIVISIONS, labels_NP.shape[1])
        threads.run(partial(divide, first), last - first, n_threads)
        if labels_NP[:, last - DIVISIONS].max() + 1 >= max(n / LEAST_ROWS, least):
            break
    return np.ascontiguousarray(labels_NP[:, :last])


def _graph(points_ND: np.ndarray, n_threads: int) -> sparse.csr_matrix:
    index_NQ, sq_NQ = nearest_among(points_ND, points_ND, min(N_NEIGHBOURS + 1, len(points_ND)), n_threads)
    own = index_NQ == np.arange(len(points_ND))[:, None]
    own[~own.any(axis=1), -1] = True  # of many equal rows
    shape = len(points_ND), index_NQ.shape[1] - 1
    graph = fuzzy_graph(index_NQ[~own].reshape(shape), np.sqrt(sq_NQ[~own].reshape(shape)))
    graph.data = np.ceil(graph.data * EXACT) / EXACT
    return graph


def _weighted_anew(graph: sparse.csr_matrix, rng: np.random.Generator) -> sparse.csr_matrix:
    """The same edges, of random weights whose expectation is that of the graph."""
    upper = sparse.triu(graph, 1).tocsr()
    upper.data = np.ceil(upper.data * rng.exponential(size=len(upper.data)) * EXACT) / EXACT
    both = (upper + upper.T).tocsr()
    both.sort_indices()
    return both


class Communities:
    """What divisions of the rows that were read say of the number of clusters, and of any number of them."""

    def __init__(self, labels_NP: np.ndarray):
        self.labels_RNP = np.stack(np.split(labels_NP, labels_NP.shape[1] // DIVISIONS, axis=1))
        self.number_R = np.array([len(np.unique(each[:, 0])) for each in self.labels_RNP])

    def number_of_clusters(self) -> tuple[int, np.ndarray]:
        """The number of clusters, and the probabilities of 1, 2, ... of them."""
        stable_R = self._stability
        several_R = self.number_R > 1
        proba_K = np.zeros(self.number_R.max())
        one = 1.0
        if several_R.any():
            log_number_R = np.log(self.number_R)
            one = expit((SINGLE - (stable_R + MORE * (log_number_R - np.log(4)))[several_R].max()) / WIDTH)
            unusual_R = np.log2(RESOLUTIONS[: len(stable_R)] / USUAL) ** 2
            score_R = -1 / np.maximum(stable_R, LEAST_STABLE) + FINER * log_number_R - UNUSUAL * unusual_R
            score_R = np.where(several_R, score_R, -np.inf)
            np.add.at(proba_K, self.number_R - 1, (1 - one) * softmax(score_R / TEMPERATURE))
        proba_K[0] = one
        return 1 if one > 0.5 else int(self.number_R[score_R.argmax()]), proba_K

    def partition(self, points_ND: np.ndarray, children: np.ndarray, n_clusters: int, one: float) -> Partition:
        """Any number of clusters: of the coarsest resolution that has as many, the most alike communities join.

        ``one`` is the probability that there is a single cluster. A partition that is not that of a resolution is
        worth what that of the resolution is, times how well the two agree.
        """
        n, enough_R = len(points_ND), self.number_R >= n_clusters
        place = int(enough_R.argmax()) if enough_R.any() else len(self.number_R) - 1
        labels_NP = self.labels_RNP[place]
        labels_N = divided_N = np.unique(labels_NP[:, 0], return_inverse=True)[1].reshape(-1)
        if not enough_R.any():
            labels_N = cut(children[:, 0], children[:, 1], n_clusters)
        elif self.number_R[place] > n_clusters:
            merges = _average_linkage(np.concatenate(self.labels_RNP, axis=1), labels_N)
            labels_N = cut(merges[:, 0], merges[:, 1], n_clusters)[labels_N]
        proba_NK = _shares(labels_NP, labels_N)
        own = np.arange(n), labels_N
        own_N = proba_NK[own] ** 2  # two divisions put the row there
        proba_NK[own] = np.maximum(proba_NK[own], (1 + 1e-6) * proba_NK.max(axis=1))
        proba_NK /= proba_NK.sum(axis=1, keepdims=True)
        reached = float(np.clip(self._stability[place], 0, 1)) ** EXPECTED
        agreed = max(0.0, float(adjusted_rand_score(divided_N, labels_N)))
        index = one if n_clusters == 1 else (1 - one) * reached * agreed
        noise_N = OUTLIER_PROBABILITY * (1 - own_N.astype(np.float64))  # never above it, but least for certain rows
        return Partition(points_ND, np.zeros((0, 0)), noise_N, proba_NK, index, own_N=own_N)

    def hierarchy(self) -> np.ndarray:
        """(N - 1, 2) merges: first the rows of every finest community one by one, then the most alike communities."""
        labels_N = np.unique(self.labels_RNP[-1][:, 0], return_inverse=True)[1].reshape(-1)
        n, k = len(labels_N), int(labels_N.max()) + 1
        node_K, merges = np.full(k, -1), []
        for row, community in enumerate(labels_N.tolist()):
            if node_K[community] >= 0:
                merges.append((node_K[community], row))
                row = n + len(merges) - 1
            node_K[community] = row
        if k > 1:
            above = _average_linkage(np.concatenate(self.labels_RNP, axis=1), labels_N)
            node_K = np.append(node_K, n + len(merges) + np.arange(k - 1))
            merges += [tuple(pair) for pair in node_K[above].tolist()]
        return np.array(merges, dtype=np.int64).reshape(-1, 2)

    @cached_property
    def _stability(self) -> np.ndarray:
        """(R,) how well the divisions of each resolution agree, with those beside it."""
        own = [np.mean([adjusted_rand_score(*pair) for pair in combinations(each.T, 2)]) for each in self.labels_RNP]
        return np.convolve(np.pad(own, 1, "edge"), [0.25, 0.5, 0.25], "valid")


def _shares(labels_NP: np.ndarray, labels_N: np.ndarray) -> np.ndarray:
    """(N, K) float32: the share of a cluster that is in the community of a row, on average over the divisions."""
    mean_NK = np.zeros((len(labels_N), int(labels_N.max()) + 1), np.float32)
    for shared_CK, own_N in _contingencies(labels_NP, labels_N):
        mean_NK += shared_CK[own_N]
    return mean_NK / np.float32(labels_NP.shape[1])


def _average_linkage(labels_NP: np.ndarray, labels_N: np.ndarray) -> np.ndarray:
    """(K - 1, 2) merges of clusters, first those of whose rows most divisions put most into one community."""
    k = int(labels_N.max()) + 1
    together_KK = np.zeros((k, k))
    for shared_CK, _ in _contingencies(labels_NP, labels_N):
        together_KK += shared_CK.T @ shared_CK
    apart_KK = 1 - (together_KK + together_KK.T) / (2 * labels_NP.shape[1])
    np.fill_diagonal(apart_KK, 0.0)
    return linkage(squareform(apart_KK, checks=False), "average")[:, :2].astype(np.int64)


def _contingencies(labels_NP: np.ndarray, labels_N: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """For every division the share (C, K) of each cluster in each community, and the communities of the rows."""
    share_N = 1 / np.bincount(labels_N)[labels_N]
    for own_N in labels_NP.T:
        shape = int(own_N.max()) + 1, int(labels_N.max()) + 1
        yield sparse.csr_matrix((share_N, (own_N, labels_N)), shape).toarray().astype(np.float32), own_N
