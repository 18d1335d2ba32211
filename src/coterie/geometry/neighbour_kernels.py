"""Compiled functions of :mod:`coterie.geometry.neighbours`."""

import numpy as np

from coterie.threads import kernel


@kernel()
def _sort_candidates(rows, context, candidates, indices, sq):
    """The nearest of the candidates by their exact distances; of equal ones, those of smallest index."""
    k = indices.shape[1]
    for i in range(len(rows)):
        filled = 0
        for j in np.sort(candidates[i]):
            distance = 0.0
            for d in range(rows.shape[1]):
                distance += (rows[i, d] - context[j, d]) ** 2
            if filled == k and not distance < sq[i, k - 1]:
                continue
            at = min(filled, k - 1)
            while at > 0 and sq[i, at - 1] > distance:
                sq[i, at] = sq[i, at - 1]
                indices[i, at] = indices[i, at - 1]
                at -= 1
            sq[i, at] = distance
            indices[i, at] = j
            filled = min(filled + 1, k)


@kernel()
def _select_smallest(products, half_sq, first, indices, scores):
    """The k smallest of half_sq[j] - products[i, j] over all j except the row itself, for every row i, by insertion."""
    k = indices.shape[1]
    for i in range(products.shape[0]):
        scores[i] = np.inf
        worst = np.float32(np.inf)
        for j in range(products.shape[1]):
            score = half_sq[j] - products[i, j]
            if score < worst and j != first + i:
                at = k - 1
                while at > 0 and scores[i, at - 1] > score:
                    scores[i, at] = scores[i, at - 1]
                    indices[i, at] = indices[i, at - 1]
                    at -= 1
                scores[i, at] = score
                indices[i, at] = j
                worst = scores[i, k - 1]


@kernel()
def move(indptr, indices, data, penalty, strength, labels, order):
    """Move nodes until no move gains; a node is visited again when one of its neighbours has left its community."""
    n = len(labels)
    mass, weight = strength.copy(), np.zeros(n)
    seen = np.empty(n, np.int64)
    queue, waiting = order.copy(), np.ones(n, np.bool_)
    head, length = 0, n
    while length > 0:
        i = queue[head]
        head, length = (head + 1) % n, length - 1
        waiting[i] = False
        own, n_seen = labels[i], 0
        for p in range(indptr[i], indptr[i + 1]):
            there = labels[indices[p]]
            if indices[p] != i and data[p] > 0:
                if weight[there] == 0.0:
                    seen[n_seen] = there
                    n_seen += 1
                weight[there] += data[p]
        mass[own] -= strength[i]
        best, gain = own, weight[own] - penalty[i] * mass[own]
        for s in range(n_seen):
            candidate = weight[seen[s]] - penalty[i] * mass[seen[s]]
            if candidate > gain + 1e-10:
                best, gain = seen[s], candidate
        for s in range(n_seen):
            weight[seen[s]] = 0.0
        mass[best] += strength[i]
        if best != own:
            labels[i] = best
            for p in range(indptr[i], indptr[i + 1]):
                j = indices[p]
                if labels[j] != best and not waiting[j]:
                    queue[(head + length) % n] = j
                    length += 1
                    waiting[j] = True
