"""Starting centres for Dask data: k-means‖ (Bahmani et al., 2012) and random rows.

Both draw rows without replacement by an exponential race: a row of mass m has the time -log(u) / m, and the rows with
the smallest times are drawn. The race of two blocks is decided by the rows that won within each block. The number u of
a row is a hash of its values, relative to the largest value of the data, and the seed. A draw therefore depends neither
on the division into blocks, nor on the workers, nor on a power of two as the unit, and a block that is computed again
gives the same rows.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

from coterie import starts
from coterie.distributed.passes import Passes
from coterie.distributed.survey import Survey
from coterie.kmeans import lazy, single_pass
from coterie.kmeans.block_statistics import Block

ROUNDS = 5
OVERSAMPLING = 2  # candidates of a round, in units of n_clusters
_RACE_ROWS = 2**21  # with more rows than this and 512 a cluster, the race is run by a part of them


@dataclass(frozen=True)
class Race:
    """The rows with the smallest times, in order. Equal rows are treated as one."""

    times: np.ndarray  # (m,)
    hashes: np.ndarray  # (m,)
    rows: np.ndarray  # (m, d)
    wanted: int

    def __add__(self, other: "Race") -> "Race":
        hashes = np.concatenate([self.hashes, other.hashes])
        times = np.concatenate([self.times, other.times])
        rows = np.concatenate([self.rows, other.rows])
        return Race(times, hashes, rows, self.wanted).first()

    def first(self) -> "Race":
        order = np.lexsort((self.hashes, self.times))
        _, firsts = np.unique(self.hashes[order], return_index=True)
        order = order[np.sort(firsts)][: self.wanted]
        return Race(self.times[order], self.hashes[order], self.rows[order], self.wanted)


@dataclass(frozen=True)
class Heat:
    """The settings of one race: which rows take part, relative to which centres, and how many are drawn."""

    seed: int
    wanted: int
    largest: float  # absolute value of the data, which hashes are relative to
    share: float = 1.0  # of the distinct rows that run
    candidates: np.ndarray | None = None  # a row's mass is its weight times its squared distance to the nearest


def race(block: Block, heat: Heat) -> Race:
    hashes, X, weight = _runners(block, heat)
    mass = np.ones(len(X)) if weight is None else weight
    if heat.candidates is not None and len(X):
        labels = single_pass.assign(X, heat.candidates, n_threads=1)
        difference = X - heat.candidates[labels]
        mass = mass * np.einsum("nd,nd->n", difference, difference, dtype=np.float64)
    running = np.flatnonzero(mass > 0)
    times = -np.log(uniform(hashes[running], heat.seed)) / mass[running]
    if len(times) > 4 * heat.wanted:  # equal rows may take several of the first places; they are looked for only then
        near = np.argpartition(times, 4 * heat.wanted)[: 4 * heat.wanted]
        first = Race(times[near], hashes[running[near]], X[running[near]], heat.wanted).first()
        if len(first.times) == heat.wanted:
            return first
    return Race(times, hashes[running], X[running], heat.wanted).first()


def population(block: Block, heat: Heat) -> np.ndarray:
    """For each candidate, the total weight (candidates,) of the rows that are nearest to it."""
    assert heat.candidates is not None
    _, X, weight = _runners(block, heat)
    if not len(X):
        return np.zeros(len(heat.candidates))
    return single_pass.statistics(X, heat.candidates, weight, n_threads=1).counts


def _runners(block: Block, heat: Heat):
    hashes = starts.relative(starts.hash_rows(block.X, 1), heat.largest)
    if heat.share >= 1:
        return hashes, block.X, block.weight
    chosen = uniform(hashes, seed=0) < heat.share
    return hashes[chosen], block.X[chosen], None if block.weight is None else block.weight[chosen]


def uniform(hashes: np.ndarray, seed: int) -> np.ndarray:
    """A number in (0, 1] for every hash, which depends on the seed."""
    z = hashes + np.uint64((seed * 0x9E3779B97F4A7C15 + 0xD1B54A32D192ED03) % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
    z ^= z >> np.uint64(31)
    return ((z >> np.uint64(11)).astype(np.float64) + 1.0) * 2.0**-53


def random_rows(passes: Passes, n_clusters: int, rng, known: Survey) -> np.ndarray:
    """Draw distinct rows by weight."""
    return passes.total(race, Heat(_seed(rng), n_clusters, known.largest)).rows


def parallel(passes: Passes, n_clusters: int, rng, known: Survey, trim: float = 0.0) -> np.ndarray:
    """k-means‖: draw 2 k rows in each of a few rounds by their distance to the rows drawn before.

    Greedy k-means++ and Lloyd's algorithm then choose the centres among the drawn rows, each weighted by the rows
    nearest to it.
    """
    share = min(1.0, max(_RACE_ROWS, 512 * n_clusters) / known.rows)
    heat = partial(Heat, largest=known.largest, share=share)
    candidates = passes.total(race, heat(_seed(rng), 1)).rows
    rounds = 0
    while rounds < ROUNDS or len(candidates) < n_clusters:
        drawn = passes.total(race, heat(_seed(rng), OVERSAMPLING * n_clusters, candidates=candidates))
        candidates = np.concatenate([candidates, drawn.rows])
        rounds += 1
        if not len(drawn.rows):
            if len(candidates) >= n_clusters or share >= 1:
                break
            share = 1.0  # few distinct rows, many times each
            heat = partial(Heat, largest=known.largest, share=share)
    weight = passes.total(population, heat(0, 0, candidates=candidates))
    candidates, weight = np.ascontiguousarray(candidates[weight > 0]), weight[weight > 0]
    centers = starts.choose(candidates, n_clusters, "k-means++", rng, weight, trim=trim)
    if trim == 0:
        centers = lazy.run(candidates, centers, sample_weight=weight, max_iter=20).centers
    return centers


def _seed(rng) -> int:
    return int(rng.randint(1, 2**31 - 1))
