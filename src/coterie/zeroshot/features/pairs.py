"""Features of pairs of points: numbers of their own, and those of the merges that join them in hierarchies.

A hierarchy of N points has N - 1 merges, and each joins many pairs. So a pair has the number of its merge only, and the
features are those of merges. A linear map is applied to the merges first, then every pair takes its row of the result:
the same as mapping the features of every pair, but for a few bytes a pair.

Shapes: B data sets, N points, F numbers, T hierarchies, G features of a merge, M merges, P channels, R of the N rows.
"""

import functools
from typing import Any, NamedTuple

import numpy as np

from coterie.threads import interpreted_first

MERGE_FEATURES = 6
# The order of the features in the weights of networks: a number, or the features of the merge in one hierarchy
NUMBER, MERGE = "n", "m"
LAYOUT = (
    *(NUMBER, *5 * MERGE),  # distance, five hierarchies: all that the network of 0.1.0 reads
    *(NUMBER, *2 * MERGE),  # the same in whitened space, with two hierarchies
    *6 * NUMBER,  # which fits of k-means and mixtures put them together
    *2 * NUMBER,  # affinities of the first pass
    *(MERGE, NUMBER, NUMBER, *2 * MERGE),  # their hierarchy, and two geometries that follow from them
)
KERNELS = "coterie.zeroshot.features.pair_kernels"


class Pairs(NamedTuple):
    """Features of the pairs of one set, or of several with a first axis B."""

    numbers_FNN: Any
    merge_TNN: Any  # uint16
    merges_TGM: Any  # features of every merge

    def reduced(self, n_features: int) -> "Pairs":
        """The first ``n_features``, without copying."""
        numbers, merges = columns(n_features)
        F, T = len(numbers), len(merges)
        return Pairs(self.numbers_FNN[..., :F, :, :], self.merge_TNN[..., :T, :, :], self.merges_TGM[..., :T, :, :])

    def expanded(self) -> np.ndarray:
        """All features of every pair of one set as numbers, in the order of the weights: (features, N, N)."""
        F, T = len(self.numbers_FNN), len(self.merge_TNN)
        each = {NUMBER: iter(self.numbers_FNN[:, None]), MERGE: iter(range(T))}
        parts = []
        for kind in LAYOUT[: F + T]:
            part = next(each[kind])
            parts.append(part if kind == NUMBER else self.merges_TGM[part][:, self.merge_TNN[part]])
        return np.concatenate(parts)


def room(n_features: int, n_points: int) -> Pairs:
    """Pairs of one set whose features are to be filled in."""
    numbers, merges = columns(n_features)
    return Pairs(
        np.empty((len(numbers), n_points, n_points), dtype=np.float32),
        np.empty((len(merges), n_points, n_points), dtype=np.uint16),
        np.empty((len(merges), MERGE_FEATURES, n_points - 1), dtype=np.float32),
    )


@functools.cache
def columns(n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns of the first ``n_features`` in the weights of a network: of numbers (F,), and of merges (T, G)."""
    numbers, merges, first = [], [], 0
    for kind in LAYOUT:
        if first >= n_features:
            break
        if kind == NUMBER:
            numbers.append(first)
        else:
            merges.append(range(first, first + MERGE_FEATURES))
        first += 1 if kind == NUMBER else MERGE_FEATURES
    if first != n_features:
        raise ValueError(f"{n_features} features of pairs end within the features of a merge, or exceed the layout")
    return np.array(numbers, dtype=np.int64), np.array(merges, dtype=np.int64).reshape(-1, MERGE_FEATURES)


def tables(merges_BTGM: Any, weight_PF: Any) -> Any:
    """(B, T, M, P) the part of ``weight @ features`` that merges contribute, for arrays or tensors."""
    weight_PTG = weight_PF[:, columns(weight_PF.shape[1])[1]]
    return merges_BTGM.swapaxes(2, 3) @ weight_PTG.swapaxes(0, 1).swapaxes(1, 2)


@interpreted_first(KERNELS)
def gather_channels(merge_TNN, first: int, table_TMP, looker_RP, other_NP, hidden_RNP) -> None:
    """Add the channels of its two points and its row of each table to every pair, then apply the ReLU.

    The pairs are those of the rows from the ``first`` on. ``merge_TNN`` is contiguous.
    """
    hidden_RNP += looker_RP[:, None]
    hidden_RNP += other_NP
    for merge_NN, table_MP in zip(merge_TNN, table_TMP):
        hidden_RNP += table_MP[merge_NN[first : first + len(hidden_RNP)]]
    np.maximum(hidden_RNP, 0, out=hidden_RNP)


@interpreted_first(KERNELS)
def gather(merge_TNN, first: int, table_TM, out_RN) -> None:
    """Add to every pair its number in each table."""
    for merge_NN, table_M in zip(merge_TNN, table_TM):
        out_RN += table_M[merge_NN[first : first + len(out_RN)]]
