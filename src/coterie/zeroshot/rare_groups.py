"""Rows of small groups of which a random sample of a large table holds too few to be seen as clusters."""

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from coterie.geometry.neighbours import nearest_among

SEARCHED = 30_000  # rows of the table among which groups are looked for
NEIGHBOURS = 10
SPARSE = 1.5  # times the median distance to the tenth neighbour in the sample
MOST_CANDIDATES = 6_000
LEAST_ROWS = 20  # of a group, among the rows that are searched
MOST_OUTSIDE = 0.05  # share of the neighbours of its rows that are not of the group
ENOUGH = 32  # rows of a group in the sample
MOST_ADDED = 0.5  # share of the sample that such rows may have


def with_rare_groups(points_ND: np.ndarray, sample: np.ndarray, rng: np.random.Generator, n_threads: int) -> np.ndarray:
    """The sample (sorted indices), in which rows of small groups stand for others; as it was if there are no groups.

    Where the sample is sparse, the table is looked at more closely: rows whose nearest neighbours are nearly all
    among themselves are a group. The tail of a cluster is none, since its rows have neighbours farther inside.
    """
    groups = _groups(points_ND, sample, rng, n_threads)
    held = [np.intersect1d(group, sample) for group in groups]
    added: list[np.ndarray] = []
    for group, there in zip(groups, held):
        others = np.setdiff1d(group, there)
        added.append(rng.choice(others, min(max(ENOUGH - len(there), 0), len(others)), replace=False))
    more = np.concatenate([np.empty(0, np.intp), *added])[: int(MOST_ADDED * len(sample))]
    if not len(more):
        return sample
    replaceable = np.setdiff1d(sample, np.concatenate(held))
    kept = rng.choice(replaceable, len(replaceable) - len(more), replace=False)
    return np.sort(np.concatenate([kept, *held, more]))


def _groups(points_ND: np.ndarray, sample: np.ndarray, rng: np.random.Generator, n_threads: int) -> list[np.ndarray]:
    """Small groups of rows whose neighbours are nearly all of the group, the largest first."""
    context_MD = points_ND[sample]
    sq_reach_M = nearest_among(context_MD, context_MD, NEIGHBOURS + 1, n_threads)[1][:, -1]
    sparse_M = sq_reach_M > SPARSE**2 * np.median(sq_reach_M)
    if not sparse_M.any():
        return []
    n = len(points_ND)
    rows = np.arange(n) if n <= SEARCHED else np.sort(rng.choice(n, SEARCHED, replace=False))
    rows = rows[np.sort(np.unique(points_ND[rows], axis=0, return_index=True)[1])]  # equal rows are no group
    near = sparse_M[nearest_among(points_ND[rows], context_MD, 1, n_threads)[0][:, 0]]
    candidates = np.flatnonzero(near)
    if not LEAST_ROWS <= len(candidates) <= MOST_CANDIDATES:
        return []
    index_PQ = nearest_among(points_ND[rows[candidates]], points_ND[rows], NEIGHBOURS + 1, n_threads)[0]
    place = np.full(len(rows), -1)
    place[candidates] = np.arange(len(candidates))
    near_PQ = place[index_PQ[:, 1:]]  # -1 for rows that are no candidates
    one = np.repeat(np.arange(len(candidates)), near_PQ.shape[1])[near_PQ.ravel() >= 0]
    other = near_PQ[near_PQ >= 0]
    links = coo_array((np.ones(len(one)), (one, other)), (len(candidates), len(candidates))).tocsr()
    which_P = connected_components(links.multiply(links.T), directed=False)[1]  # of rows that are mutual neighbours
    outside_P = (np.where(near_PQ >= 0, which_P[near_PQ], -1) != which_P[:, None]).mean(axis=1)
    size_G = np.bincount(which_P)
    is_group_G = (size_G >= LEAST_ROWS) & (np.bincount(which_P, outside_P) < MOST_OUTSIDE * size_G)
    largest_first = sorted(np.flatnonzero(is_group_G), key=lambda group: -size_G[group])
    return [rows[candidates[which_P == group]] for group in largest_first]
