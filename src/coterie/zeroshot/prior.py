"""An endless source of clustering problems whose labels are known by construction.

A problem is an arrangement of clusters (mixtures, scattered shapes, nested shells, interleaved curves, tiles of a
space), then what happens to real tables: warping, further columns, rounding, skew, background noise. Scales and shifts
of columns are not drawn: the estimator removes them, and :func:`scaled` does the same here.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from coterie.threads import kernel
from coterie.zeroshot.arrangements import ARRANGEMENTS
from coterie.zeroshot.shapes import log_uniform, rotation

NOISE = -1
SOLVABLE = 0.8  # share of points whose nearest neighbour is of their own cluster; what has less is drawn again
ATTEMPTS = 10


class Problem(NamedTuple):
    points_ND: np.ndarray
    labels_N: np.ndarray  # 0 ... K - 1, or NOISE
    n_clusters: int
    kind: str


@dataclass(frozen=True)
class Prior:
    """What problems are drawn, and how often."""

    clusters: tuple[int, int] = (1, 16)
    single: float = 0.08  # share of sets without clusters
    dims: tuple[int, int] = (1, 16)
    flat: float = 0.5  # share of sets in at most three dimensions
    noise: float = 0.2  # share of sets with background noise

    def draw(self, rng: np.random.Generator, n_points: int) -> Problem:
        n_clusters = self._clusters(rng, n_points)
        for _ in range(ATTEMPTS):
            problem = self._attempt(rng, n_points, n_clusters)
            inside = problem.labels_N != NOISE
            if _neighbours_agree(problem.points_ND[inside], problem.labels_N[inside]) >= SOLVABLE:
                break
        return problem

    def _attempt(self, rng: np.random.Generator, n_points: int, n_clusters: int) -> Problem:
        kind = str(rng.choice(list(ARRANGEMENTS), p=[weight for _, weight in ARRANGEMENTS.values()]))
        dims = self._dims(rng, kind)
        n_noise = int(n_points * log_uniform(rng, 0.01, 0.2)) if rng.random() < self.noise else 0
        counts = _counts(rng, n_points - n_noise, n_clusters)
        points = _hardened(rng, np.concatenate(ARRANGEMENTS[kind][0](rng, counts, dims)))
        labels = np.repeat(np.arange(n_clusters), counts)
        if n_noise:
            points = np.concatenate([points, _background(rng, points, n_noise)])
            labels = np.concatenate([labels, np.full(n_noise, NOISE)])
        order = rng.permutation(n_points)
        return Problem(scaled(points[order]), labels[order], n_clusters, kind)

    def _clusters(self, rng: np.random.Generator, n_points: int) -> int:
        low, high = self.clusters
        if low == 1 and rng.random() < self.single:
            return 1
        most = max(2, min(high, n_points // 10))
        low = min(max(2, low), most)
        weights = 1 / (3.0 + np.arange(low, most + 1))
        return int(rng.choice(np.arange(low, most + 1), p=weights / weights.sum()))

    def _dims(self, rng: np.random.Generator, kind: str) -> int:
        low, high = self.dims
        if rng.random() < self.flat or kind in ("interleaved", "nested"):
            low, high = max(low, 2), min(high, 3)
            return low if rng.random() < 0.75 else high
        low = 2 if kind == "scattered" else low
        return round(log_uniform(rng, low - 0.49, high + 0.49))


def scaled(points_ND: np.ndarray) -> np.ndarray:
    """Every column about zero with spread one; single far values do not count for the spread."""
    low, middle, high = np.percentile(points_ND, (25, 50, 75), axis=0)
    reach = np.where(high > low, 3 * (high - low), np.inf)
    near = np.clip(points_ND, low - reach, high + reach)
    spread = near.std(axis=0)
    return (points_ND - middle) / np.where(spread > 0, spread, 1.0)


def _counts(rng: np.random.Generator, n_points: int, n_clusters: int) -> np.ndarray:
    """Sizes of the clusters, from nearly equal to very unequal, none below a few points."""
    least = min(max(4, n_points // 50), n_points // n_clusters)
    shares = rng.dirichlet(np.full(n_clusters, log_uniform(rng, 0.8, 30)))
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


def _hardened(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    x = (x - x.mean(axis=0)) / (x.std() or 1.0)
    if rng.random() < 0.25:
        x = _warped(rng, x)
    if rng.random() < 0.08 and x.shape[1] > 1:
        x = _widened(rng, x)
    elif rng.random() < 0.5 and x.shape[1] > 1:
        x = x @ rotation(rng, x.shape[1])
    if rng.random() < 0.15:
        x = _with_columns(rng, x)
    if rng.random() < 0.08:  # skewed columns, as amounts and durations are
        skewed = rng.random(x.shape[1]) < 0.5
        x = np.where(skewed, np.exp(rng.uniform(0.2, 0.7) * x / (x.std(axis=0) + 1e-9)), x)
    if rng.random() < 0.08:  # rounded columns, with ties, down to two values
        step = x.std(axis=0) * log_uniform(rng, 0.03, 2.0) + 1e-9
        x = np.where(rng.random(x.shape[1]) < 0.6, np.round(x / step) * step, x)
    return x


def _warped(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    """Bend the space by a random network of one hidden layer."""
    dims, width = x.shape[1], 8
    inner = rng.normal(size=(dims, width)) * rng.uniform(0.5, 1.5) / np.sqrt(dims)
    outer = rng.normal(size=(width, dims)) / np.sqrt(width)
    return x + rng.uniform(0.2, 0.8) * np.tanh(x @ inner + rng.normal(size=width)) @ outer


def _widened(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    """Many columns, each a bent and noisy reading of the few that matter."""
    width = int(log_uniform(rng, 2 * x.shape[1], 64)) if x.shape[1] < 32 else x.shape[1]
    read = x @ rng.normal(size=(x.shape[1], width)) / np.sqrt(x.shape[1]) * rng.uniform(0.3, 1.0)
    return np.tanh(read + 0.5 * rng.normal(size=width)) + rng.uniform(0.02, 0.3) * rng.normal(size=read.shape)


def _with_columns(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    """Columns that say nothing, and columns that repeat others with an error; columns in any order."""
    n, dims = x.shape
    more = int(rng.integers(1, max(2, dims // 2 + 1)))
    if rng.random() < 0.5:
        new = rng.normal(size=(n, more)) if rng.random() < 0.5 else rng.uniform(-1.7, 1.7, size=(n, more))
        new *= x.std(axis=0).mean()
    else:
        new = x @ rng.normal(size=(dims, more)) / np.sqrt(dims)
        new += new.std(axis=0) * rng.uniform(0, 0.5) * rng.normal(size=new.shape)
    return np.concatenate([x, new], axis=1)[:, rng.permutation(dims + more)]


def _background(rng: np.random.Generator, x: np.ndarray, count: int) -> np.ndarray:
    low, high = x.min(axis=0), x.max(axis=0)
    margin = rng.uniform(0, 0.3) * (high - low)
    return rng.uniform(low - margin, high + margin, size=(count, x.shape[1]))
