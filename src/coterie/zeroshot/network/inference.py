"""Run the network on a sample and extend its output to other rows."""

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from coterie import threads
from coterie.geometry.neighbours import nearest_among
from coterie.zeroshot.network.interface import Network

NEIGHBOURS = 5  # of the context, from which a new row takes its values
# Few different rows that occur often
OFTEN = 5
MOSTLY = 0.9  # share of the rows that occur so often
APART = 0.02  # of the distance to the nearest different row: standard deviation by which they are moved
UNLIKE = 0.9  # share of the differences between two of them that are unlike each other
DIGITS = 9  # of coordinates relative to the largest: what differs by less is equal


class Reading(NamedTuple):
    """The network's output for a set of rows, as probabilities."""

    affinity_NN: np.ndarray  # two points share a cluster; ones on the diagonal
    noise_N: np.ndarray
    clusters_K: np.ndarray  # the set has 1 ... K clusters


def read_set(network: Network, x_ND: np.ndarray, rng: np.random.Generator) -> Reading:
    """The output of the network for one set after its last pass."""
    answer = network.answer([network.describe(x_ND)], rng)
    affinity_NN = expit(answer.natural_BNN[0])
    np.fill_diagonal(affinity_NN, 1.0)
    return Reading(affinity_NN, expit(answer.noise_BN[0]), network.clusters_proba(answer)[0])


def read_contexts(network: Network, contexts: list[np.ndarray], rng: np.random.Generator) -> Reading:
    """Average predictions over contexts, matching rows by nearest neighbour."""
    first = contexts[0]
    readings = [read_set(network, coincident_rows_apart(first, rng), rng)]
    for other in contexts[1:]:
        reading = read_set(network, coincident_rows_apart(other, rng), rng)
        if other is first:
            readings.append(reading)
            continue
        nearest_N = nearest_among(first, other, 1)[0][:, 0]
        there = np.ix_(nearest_N, nearest_N)
        readings.append(Reading(reading.affinity_NN[there], reading.noise_N[nearest_N], reading.clusters_K))
    if len(readings) > 1:
        mean = (np.stack(part).mean(axis=0, dtype=np.float64).astype(np.float32) for part in zip(*readings))
        return same_for_equal_rows(first, Reading(*mean))
    return same_for_equal_rows(first, readings[0])


def same_for_equal_rows(x_ND: np.ndarray, reading: Reading) -> Reading:
    """Equal rows share a cluster and have the mean of their values, which random features make a little different.

    Without this a cluster could consist of some of several equal rows, and no row would be labelled with it.
    """
    different_MD, which_N, count_M = np.unique(x_ND, axis=0, return_inverse=True, return_counts=True)
    which_N = which_N.reshape(-1)
    if len(different_MD) == len(x_ND):
        return reading
    order = np.argsort(which_N, kind="stable")
    first_M = np.cumsum(count_M) - count_M
    sum_MN = np.add.reduceat(reading.affinity_NN[order].astype(np.float64), first_M, axis=0)
    mean_MM = np.add.reduceat(sum_MN[:, order], first_M, axis=1) / np.outer(count_M, count_M)
    np.fill_diagonal(mean_MM, 1.0)
    noise_M = np.add.reduceat(reading.noise_N[order].astype(np.float64), first_M) / count_M
    affinity_NN = np.minimum((mean_MM + mean_MM.T) / 2, 1.0).astype(np.float32)[which_N[:, None], which_N]
    return Reading(affinity_NN, noise_M[which_N].astype(np.float32), reading.clusters_K)


def coincident_rows_apart(x_ND: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Move rows that coincide a little apart, if a few different ones occur often; other sets stay as they are.

    Networks are trained on points that hardly ever coincide. Of rows that do, they are not sure what to make. Steps of
    a scale and combinations of categories are no clusters, however often each of them occurs.
    """
    size = float(np.abs(x_ND).max()) or 1.0
    rounded_ND = (x_ND / size).round(DIGITS) + 0.0  # without negative zeros
    different_MD, which_N, count_M = np.unique(rounded_ND, axis=0, return_inverse=True, return_counts=True)
    which_N = which_N.reshape(-1)
    if len(different_MD) < 2 or (count_M[which_N] >= OFTEN).mean() < MOSTLY or _is_lattice(different_MD):
        return x_ND
    nearest_M = size * np.sqrt(nearest_among(different_MD, different_MD, 2)[1][:, 1])
    std_N = APART * nearest_M[which_N] / np.sqrt(x_ND.shape[1])
    return x_ND + std_N[:, None] * rng.normal(size=x_ND.shape)


def _is_lattice(x_MD: np.ndarray) -> bool:
    """Whether many pairs of points differ alike, as combinations of a few values do, in whatever coordinates."""
    one, other = np.triu_indices(len(x_MD), 1)
    difference_PD = x_MD[one] - x_MD[other]
    first_P = (np.abs(difference_PD) > 10.0**-DIGITS).argmax(axis=1)  # coordinate by which the sign is chosen
    sign_P = np.sign(difference_PD[np.arange(len(first_P)), first_P])
    unlike_PD = np.unique((difference_PD * sign_P[:, None]).round(DIGITS - 2) + 0.0, axis=0)
    return len(unlike_PD) < UNLIKE * len(difference_PD)


def neighbours_mean(
    rows_ND: np.ndarray, context_MD: np.ndarray, values_MK: np.ndarray, n_threads: int | None = None
) -> np.ndarray:
    """For every row the mean of its neighbours' values, the nearer the heavier; a row of the context gets its own."""
    index_NQ, sq_NQ = nearest_among(rows_ND, context_MD, NEIGHBOURS, threads.count(n_threads))
    least_N1 = sq_NQ[:, :1]
    # 1/d⁴, relative to the nearest; where that is the row itself, only rows equal to it count
    ratio_NQ = np.divide(least_N1, sq_NQ, out=np.ones_like(sq_NQ), where=(sq_NQ > 0) & np.isfinite(sq_NQ))
    weight_NQ = ratio_NQ**2
    weight_NQ /= weight_NQ.sum(axis=1, keepdims=True)
    mean_NK = np.zeros((len(rows_ND), values_MK.shape[1]))
    for q in range(index_NQ.shape[1]):
        mean_NK += weight_NQ[:, q, None] * values_MK[index_NQ[:, q]]
    return mean_NK
