"""An endless source of clustering problems whose labels are known by construction.

A problem is of one of four families: ``shapes`` (mixtures, scattered shapes, nested shells, interleaved curves, tiles
of a space), ``tables`` (latent factors behind overlapping clusters, see ``prior.latent_tables``), ``mixed``
(such tables with categories and missing values) and ``many`` (17 to 100 clusters). Background noise may be added.
A fifth, ``real``, draws from a folder of tables with known classes (``prior.real_tables``). Scales and shifts of
columns are not drawn: the estimator removes them, and :func:`scaled` does the same here.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from coterie.threads import kernel
from coterie_research.training.zeroshot.prior.arrangements import ARRANGEMENTS, mixture, scattered, uneven
from coterie_research.training.zeroshot.prior.latent_tables import mixed_table, table
from coterie_research.training.zeroshot.prior.real_tables import RealProblems, read_corpus
from coterie_research.training.zeroshot.prior.shapes import distorted, log_uniform

NOISE = -1
SOLVABLE = 0.8  # share of points whose nearest neighbour is of their own cluster; shapes with less are drawn again
AGREEMENT = 0.35  # the same share, corrected for chance, for the other families
DISTINCT = 3  # different rows per cluster that a problem has at least
ATTEMPTS = 20
FEWEST_OF_MANY = 17
MOST_OF_MANY = 100
POINTS_OF_A_CLUSTER = 6  # on average, where there are many clusters


class Problem(NamedTuple):
    points_ND: np.ndarray
    labels_N: np.ndarray  # 0 ... K - 1, or NOISE
    n_clusters: int
    kind: str


@dataclass(frozen=True)
class Prior:
    """What problems are drawn, and how often: shares of the families, then what holds within them."""

    shapes: float = 0.45
    tables: float = 0.35
    many: float = 0.1
    mixed: float = 0.1
    clusters: tuple[int, int] = (1, 16)
    single: float = 0.1  # share of sets that are one cluster
    dims: tuple[int, int] = (1, 16)  # of shapes
    flat: float = 0.5  # share of shapes in at most three dimensions
    noise: float = 0.2  # share of sets with background noise
    uneven: float = 0.0  # share of shapes and tables with wide clusters beside narrow ones
    real: float = 0.0  # share of problems from the tables of a corpus, beside the families above
    corpus: str = ""  # its folder (:mod:`coterie_research.training.zeroshot.prior.real_tables`)
    folds: tuple[int, ...] = ()  # of the corpus that are drawn from, 0 to 4; all if empty
    without: tuple[str, ...] = ()  # tables of the corpus that are not read

    def __post_init__(self) -> None:
        if self.real and not self.corpus:
            raise ValueError("The family real needs the folder of its tables: set corpus.")

    def draw(self, rng: np.random.Generator, n_points: int, family: str | None = None) -> Problem:
        """One problem; of a drawn family if none is named."""
        if family is None:
            names = (*FAMILIES, "real") if self.real else FAMILIES
            shares = np.array([getattr(self, name) for name in names], dtype=float)
            family = str(rng.choice(names, p=shares / shares.sum()))
        if family == "real":
            found = _real_problems(self.corpus, self.folds, self.without).draw(rng, n_points, self.single)
            if found is not None:
                return Problem(*found, int(found[1].max()) + 1, "real")
            family = "tables"
        if family == "many" and n_points < POINTS_OF_A_CLUSTER * FEWEST_OF_MANY:
            family = "shapes"
        n_clusters = self._clusters(rng, n_points, family)
        for _ in range(ATTEMPTS):
            problem = self._attempt(rng, n_points, n_clusters, family)
            if _is_solvable(problem, family):
                return problem
        return self._attempt(rng, n_points, n_clusters, "shapes")

    def _attempt(self, rng: np.random.Generator, n_points: int, n_clusters: int, family: str) -> Problem:
        noisy = family != "mixed" and rng.random() < self.noise
        n_noise = int(n_points * log_uniform(rng, 0.01, 0.2)) if noisy else 0
        counts = _counts(rng, n_points - n_noise, n_clusters)
        labels = np.repeat(np.arange(n_clusters), counts)
        points, kind = self._points(rng, labels, counts, family)
        if n_noise:
            points = np.concatenate([points, _background(rng, points, n_noise)])
            labels = np.concatenate([labels, np.full(n_noise, NOISE)])
        order = rng.permutation(n_points)
        points = points if family == "mixed" else scaled(points)
        return Problem(points[order], labels[order], n_clusters, kind)

    def _points(
        self, rng: np.random.Generator, labels: np.ndarray, counts: np.ndarray, family: str
    ) -> tuple[np.ndarray, str]:
        is_uneven = family != "many" and self.uneven > 0 and rng.random() < self.uneven
        if family == "mixed":
            return mixed_table(rng, labels, is_uneven), "mixed table"
        if family == "tables" or (family == "many" and rng.random() < 0.3):
            return table(rng, labels, is_uneven), "table"
        if is_uneven:
            return distorted(rng, np.concatenate(uneven(rng, counts, self._dims(rng, "uneven")))), "uneven"
        kind = str(rng.choice(list(ARRANGEMENTS), p=[share for _, share in ARRANGEMENTS.values()]))
        arrange = ARRANGEMENTS[kind][0]
        if family == "many":
            kind, arrange = ("mixture", mixture) if rng.random() < 0.75 else ("scattered", scattered)
        return distorted(rng, np.concatenate(arrange(rng, counts, self._dims(rng, kind)))), kind

    def _clusters(self, rng: np.random.Generator, n_points: int, family: str) -> int:
        if family == "many":
            return int(log_uniform(rng, FEWEST_OF_MANY, min(MOST_OF_MANY, n_points // POINTS_OF_A_CLUSTER) + 0.99))
        low, high = self.clusters
        if low == 1 and rng.random() < self.single:
            return 1
        most = max(2, min(high, n_points // 10))
        low = min(max(2, low), most)
        weights = 1 / (3.0 + np.arange(low, most + 1)) ** (1 if family == "shapes" else 2)
        return int(rng.choice(np.arange(low, most + 1), p=weights / weights.sum()))

    def _dims(self, rng: np.random.Generator, kind: str) -> int:
        low, high = self.dims
        if rng.random() < self.flat or kind in ("interleaved", "nested"):
            low, high = max(low, 2), min(high, 3)
            return low if rng.random() < 0.75 else high
        low = 2 if kind == "scattered" else low
        return round(log_uniform(rng, low - 0.49, high + 0.49))


FAMILIES = ("shapes", "tables", "many", "mixed")


@lru_cache(maxsize=4)
def _real_problems(corpus: str, folds: tuple[int, ...], without: tuple[str, ...]) -> RealProblems:
    return RealProblems(read_corpus(corpus, without), folds)


def _is_solvable(problem: Problem, family: str) -> bool:
    """Whether neighbours mostly share a cluster, and rounding has left more than a few different rows."""
    inside = problem.labels_N != NOISE
    if len(np.unique(problem.points_ND, axis=0)) < DISTINCT * problem.n_clusters:
        return False
    agree = _neighbours_agree(np.ascontiguousarray(problem.points_ND[inside]), problem.labels_N[inside])
    if family == "shapes":
        return agree >= SOLVABLE
    shares = np.bincount(problem.labels_N[inside]) / inside.sum()
    chance = float((shares**2).sum())
    return problem.n_clusters == 1 or agree - chance >= AGREEMENT * (1 - chance)


def scaled(points_ND: np.ndarray) -> np.ndarray:
    """Every column about zero with spread one; single far values do not count for the spread."""
    low, middle, high = np.percentile(points_ND, (25, 50, 75), axis=0)
    reach = np.where(high > low, 3 * (high - low), np.inf)
    near = np.clip(points_ND, low - reach, high + reach)
    spread = near.std(axis=0)
    return (points_ND - middle) / np.where(spread > 0, spread, 1.0)


def _counts(rng: np.random.Generator, n_points: int, n_clusters: int) -> np.ndarray:
    """Sizes of the clusters, from nearly equal to very unequal, none below a few points."""
    least = max(min(4, n_points // n_clusters), min(n_points // 100, n_points // (3 * n_clusters)))
    shares = rng.dirichlet(np.full(n_clusters, log_uniform(rng, 0.5, 30)))
    if rng.random() < 0.3:
        shares = np.full(n_clusters, 1 / n_clusters)
    counts = least + np.floor(shares * (n_points - least * n_clusters)).astype(np.int64)
    counts[: n_points - counts.sum()] += 1
    return rng.permutation(counts)


@kernel()
def _neighbours_agree(x, labels):
    """The share of points whose nearest neighbour has their label."""
    agree = 0
    for i in range(len(x)):
        nearest, least = i, np.inf
        for j in range(len(x)):
            if i != j:
                sq = 0.0
                for d in range(x.shape[1]):
                    sq += (x[i, d] - x[j, d]) ** 2
                    if sq >= least:
                        break
                if sq < least:
                    nearest, least = j, sq
        agree += labels[nearest] == labels[i]
    return agree / len(x)


def _background(rng: np.random.Generator, x: np.ndarray, count: int) -> np.ndarray:
    low, high = x.min(axis=0), x.max(axis=0)
    margin = rng.uniform(0, 0.3) * (high - low)
    return rng.uniform(low - margin, high + margin, size=(count, x.shape[1]))
