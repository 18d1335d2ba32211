"""What a network says of a set, averaged over several samples, and rows placed beside a set that was read."""

from typing import NamedTuple

import numpy as np
import torch

from coterie import threads
from coterie.threads import kernel
from coterie.zeroshot.answers import Network

NEIGHBOURS = 5  # of the context, from which a new row takes its values


class Reading(NamedTuple):
    """What a network says of a set, as probabilities."""

    affinity_NN: np.ndarray  # two points share a cluster; ones on the diagonal
    noise_N: np.ndarray
    clusters_K: np.ndarray  # the set has 1 ... K clusters


def read_set(network: Network, x_ND: np.ndarray, rng: np.random.Generator) -> Reading:
    """What the network says of one set after its last pass."""
    with torch.no_grad():
        answer = network([network.describe(x_ND)], rng)[-1]
        affinity_NN = answer.natural_BNN[0].sigmoid().cpu().numpy()
        np.fill_diagonal(affinity_NN, 1.0)
        noise_N = answer.noise_BN[0].sigmoid().cpu().numpy()
        return Reading(affinity_NN, noise_N, network.clusters_proba(answer)[0].cpu().numpy())


def read_contexts(network: Network, contexts: list[np.ndarray], rng: np.random.Generator) -> Reading:
    """The mean reading of the first context; a point of it stands, in another context, where its nearest is there."""
    first = contexts[0]
    readings = [read_set(network, first, rng)]
    for other in contexts[1:]:
        reading = read_set(network, other, rng)
        if other is first:
            readings.append(reading)
            continue
        nearest_N = nearest(first, other, 1)[0][:, 0]
        there = np.ix_(nearest_N, nearest_N)
        readings.append(Reading(reading.affinity_NN[there], reading.noise_N[nearest_N], reading.clusters_K))
    if len(readings) == 1:
        return readings[0]
    return Reading(*(np.stack(part).mean(axis=0, dtype=np.float64).astype(np.float32) for part in zip(*readings)))


def nearest(
    rows_ND: np.ndarray, context_MD: np.ndarray, count: int, n_threads: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Indices and squared distances (N, count) of every row's nearest in the context, each row on its own."""
    count = min(count, len(context_MD))
    index = np.empty((len(rows_ND), count), dtype=np.int64)
    sq = np.empty((len(rows_ND), count))
    rows_ND, context_MD = np.ascontiguousarray(rows_ND), np.ascontiguousarray(context_MD)
    parts = [slice(*ends) for ends in threads.blocks(len(rows_ND), 512)]
    threads.run(
        lambda t: _nearest(rows_ND[parts[t]], context_MD, index[parts[t]], sq[parts[t]]),
        len(parts),
        threads.count(n_threads),
    )
    return index, sq


@kernel()
def _nearest(rows, context, index, sq):
    count = index.shape[1]
    for i in range(len(rows)):
        filled = 0
        for j in range(len(context)):
            worst = sq[i, count - 1] if filled == count else np.inf
            distance = 0.0
            for d in range(rows.shape[1]):
                distance += (rows[i, d] - context[j, d]) ** 2
                if distance >= worst:
                    break
            if distance < worst:
                place = filled if filled < count else count - 1
                while place > 0 and sq[i, place - 1] > distance:
                    sq[i, place] = sq[i, place - 1]
                    index[i, place] = index[i, place - 1]
                    place -= 1
                sq[i, place] = distance
                index[i, place] = j
                filled = min(filled + 1, count)


def neighbours_mean(
    rows_ND: np.ndarray, context_MD: np.ndarray, values_MK: np.ndarray, n_threads: int | None = None
) -> np.ndarray:
    """For every row the mean of its neighbours' values, the nearer the heavier; a row of the context gets its own."""
    index_NQ, sq_NQ = nearest(rows_ND, context_MD, NEIGHBOURS, n_threads)
    least_N1 = sq_NQ[:, :1]
    # 1/d⁴, relative to the nearest; where that is the row itself, only rows equal to it count
    ratio_NQ = np.divide(least_N1, sq_NQ, out=np.ones_like(sq_NQ), where=sq_NQ > 0)
    weight_NQ = ratio_NQ**2
    weight_NQ /= weight_NQ.sum(axis=1, keepdims=True)
    mean_NK = np.zeros((len(rows_ND), values_MK.shape[1]))
    for q in range(index_NQ.shape[1]):
        mean_NK += weight_NQ[:, q, None] * values_MK[index_NQ[:, q]]
    return mean_NK
