"""The graph of nearest neighbours, and its partition into a given number of clusters.

Every row is connected to its nearest neighbours, with the edge weights of UMAP's fuzzy graph, which make dense and
sparse regions comparable. Louvain's method finds many small communities. Pairs of them are then merged, in each step
the pair whose union lowers the modularity least, until the requested number is left. Clusters may have any shape.
"""

import numpy as np
from scipy import sparse

from coterie import threads
from coterie.threads import interpreted_first

N_NEIGHBOURS = 15
_ROWS_PER_BLOCK = 512
_FAR = 1e15  # farther rows are as near to one row as to another
_SPARE = 3  # candidates beyond those that are asked for, as single precision may confuse nearly equal distances
_LINKED = 0.005  # least share of the smaller cluster's weight that connects it to the other cluster


def graph_of(X: np.ndarray, n_threads: int = 1) -> sparse.csr_matrix:
    """The fuzzy graph of the rows of ``X``, a dense array of shape (n, d). The time grows with n²."""
    return fuzzy_graph(*nearest(X, min(N_NEIGHBOURS, len(X) - 1), n_threads))


def partition(graph: sparse.csr_matrix, n_clusters: int, rng: np.random.RandomState) -> np.ndarray:
    """The cluster of every node, 0 to ``n_clusters - 1``; there must be at least ``n_clusters`` nodes."""
    order, resolution = rng.permutation(graph.shape[0]), 1.0
    labels = communities(graph, resolution, order)
    while labels.max() + 1 < n_clusters:
        resolution *= 2
        labels = communities(graph, resolution, order)
    return merged(graph, labels, n_clusters)


def nearest(X: np.ndarray, k: int, n_threads: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Indices and distances, (n, k) each, of the exact k nearest neighbours of every row, the nearest first."""
    X, exponent = _within_one(X)
    X, more = _within_one(X - X.mean(axis=0))  # centred: products then lose fewer digits
    X = np.ascontiguousarray(X, dtype=np.float32)
    n = len(X)
    half_sq = 0.5 * np.einsum("nd,nd->n", X, X)
    indices, scores = np.zeros((n, k), np.int32), np.empty((n, k), np.float32)
    cuts = [(first, min(first + _ROWS_PER_BLOCK, n)) for first in range(0, n, _ROWS_PER_BLOCK)]

    def task(b):
        first, last = cuts[b]
        _select_smallest(X[first:last] @ X.T, half_sq, first, indices[first:last], scores[first:last])

    threads.run(task, len(cuts), n_threads)
    sq = 2 * (scores + half_sq[:, None])
    return indices, np.ldexp(np.sqrt(np.maximum(sq, 0.0)).astype(np.float64), exponent + more)


def _within_one(X: np.ndarray) -> tuple[np.ndarray, int]:
    """X divided by a power of two, and its exponent. Single-precision squares overflow at 1e19, underflow at 1e-19."""
    largest = float(np.abs(X).max())
    if not np.isfinite(largest):
        raise ValueError("The rows contain NaN or infinity: remove such rows or fill the values first.")
    exponent = int(np.frexp(largest)[1])
    return np.ldexp(X, -exponent), exponent


def nearest_among(rows: np.ndarray, context: np.ndarray, k: int, n_threads: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Indices and squared distances, (n, k) each, of the nearest rows of ``context``, the nearest first.

    Candidates are found by products in single precision, in blocks of one size, so that those of a row do not depend on
    the other rows; their distances are then computed exactly.
    """
    if rows.shape[1:] != context.shape[1:]:
        raise ValueError(f"Rows have {rows.shape[1]} columns, the context has {context.shape[1]}.")
    k = min(k, len(context))
    rows = _within_reach(rows, float(np.abs(context).max()))
    middle = context.mean(axis=0)
    near = np.ascontiguousarray(context - middle, dtype=np.float32)
    half_sq = 0.5 * np.einsum("nd,nd->n", near, near)
    rows, context = np.ascontiguousarray(rows), np.ascontiguousarray(context)
    indices, sq = np.empty((len(rows), k), np.int64), np.empty((len(rows), k))

    def task(b):
        part = slice(b * _ROWS_PER_BLOCK, (b + 1) * _ROWS_PER_BLOCK)
        block = np.zeros((_ROWS_PER_BLOCK, rows.shape[1]), np.float32)
        block[: len(rows[part])] = np.clip(rows[part] - middle, -_FAR, _FAR)
        products = (block @ near.T)[: len(rows[part])]
        candidates = np.tile(np.arange(min(k + _SPARE, len(context)), dtype=np.int32), (len(products), 1))
        _select_smallest(products, half_sq, len(context), candidates, np.empty(candidates.shape, np.float32))
        _sort_candidates(rows[part], context, candidates, indices[part], sq[part])

    with threads.blas_threads(1):  # its own threads would wait beside ours
        threads.run(task, -(-len(rows) // _ROWS_PER_BLOCK), n_threads)
    return indices, sq


def _within_reach(rows: np.ndarray, size: float) -> np.ndarray:
    """Rows far outside of the context are moved towards the origin, because their squared distances would overflow."""
    limit = 20 + int(np.frexp(max(size, 1.0))[1])
    exponent = np.frexp(np.minimum(np.abs(rows).max(axis=1), 1e300))[1]
    far = exponent > limit
    if not far.any():
        return rows
    rows = np.array(rows)
    rows[far] = np.ldexp(np.clip(rows[far], -1e300, 1e300), (limit - exponent[far])[:, None])
    return rows


@interpreted_first("coterie.geometry.neighbour_kernels")
def _sort_candidates(rows, context, candidates, indices, sq):
    """The nearest of the candidates by their exact distances; of equal ones, those of smallest index."""
    candidates = np.sort(candidates, axis=1)
    distance = np.zeros(candidates.shape)
    for d in range(rows.shape[1]):  # summed in the order in which the kernel does
        distance += (rows[:, d, None] - context[candidates, d]) ** 2
    nearest = np.argsort(distance, axis=1, kind="stable")[:, : indices.shape[1]]
    indices[:] = np.take_along_axis(candidates, nearest, axis=1)
    sq[:] = np.take_along_axis(distance, nearest, axis=1)


@interpreted_first("coterie.geometry.neighbour_kernels")
def _select_smallest(products, half_sq, first, indices, scores):
    """The k smallest of half_sq[j] - products[i, j] over all j except the row itself, for every row i, in order."""
    score = half_sq - products
    own = np.arange(len(score))[: max(score.shape[1] - first, 0)]
    score[own, first + own] = np.inf
    every = np.arange(len(score))
    for place in range(indices.shape[1]):
        smallest = score.argmin(axis=1)  # of equal ones the first
        indices[:, place], scores[:, place] = smallest, score[every, smallest]
        score[every, smallest] = np.inf


def fuzzy_graph(indices: np.ndarray, distances: np.ndarray) -> sparse.csr_matrix:
    """UMAP's edge weights: exp(-(distance - nearest) / scale) with sum log2 k in every row, then their fuzzy union."""
    n, k = indices.shape
    excess, _ = _within_one((distances - distances[:, :1]).astype(np.float64))  # the weights have no unit
    low, high = np.zeros((n, 1)), np.full((n, 1), max(float(excess.max()), 1e-12) * 100)
    for _ in range(64):
        middle = (low + high) / 2
        above = np.exp(-excess / middle).sum(axis=1, keepdims=True) > np.log2(k)
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    directed = sparse.csr_matrix(
        (np.exp(-excess / high).ravel(), indices.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n)
    )
    graph = (directed + directed.T - directed.multiply(directed.T)).tocsr()
    graph.sort_indices()
    return graph


def communities(graph: sparse.csr_matrix, resolution: float, order: np.ndarray) -> np.ndarray:
    """Louvain's method: move nodes to the neighbouring community with the largest gain, contract the graph, repeat."""
    from coterie.geometry.neighbour_kernels import move

    labels, total = np.arange(graph.shape[0]), graph.sum()
    while True:
        n = graph.shape[0]
        strength = np.asarray(graph.sum(axis=1)).ravel()
        found = np.arange(n)
        move(graph.indptr, graph.indices, graph.data, strength * resolution / total, strength, found, order)
        names, found = np.unique(found, return_inverse=True)
        labels = found[labels]
        if len(names) == n:
            return labels
        graph = _contracted(graph, found)
        order = np.arange(len(names))


def merged(graph: sparse.csr_matrix, labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """Merge the connected pair whose union has the highest modularity until ``n_clusters`` are left."""
    between = _contracted(graph, labels).toarray()
    between /= between.sum()
    names = np.arange(len(between))
    alive = np.arange(len(between))
    while len(alive) > n_clusters:
        inner = between[np.ix_(alive, alive)]
        strength = inner.sum(axis=1)
        link = inner / np.minimum.outer(strength, strength)
        # Of unconnected pairs the smallest would lose least, wherever they are: such pairs come after all others.
        gain = np.where(link >= _LINKED, inner - np.outer(strength, strength), link - 2)
        np.fill_diagonal(gain, -np.inf)
        first, second = sorted(alive[list(divmod(int(gain.argmax()), len(alive)))])
        between[first] += between[second]
        between[:, first] += between[:, second]
        names[names == second] = first
        alive = alive[alive != second]
    return np.unique(names[labels], return_inverse=True)[1]


def _contracted(graph: sparse.csr_matrix, labels: np.ndarray) -> sparse.csr_matrix:
    """The graph whose nodes are the clusters."""
    n = len(labels)
    membership = sparse.csr_matrix((np.ones(n), labels, np.arange(n + 1)), shape=(n, labels.max() + 1))
    small = (membership.T @ graph @ membership).tocsr()
    small.sort_indices()
    return small
