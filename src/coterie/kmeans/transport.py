"""Bounds on the sizes of clusters: attention that is normalised over rows and over centres.

A softmax over the centres gives every row the total weight one, and a centre whatever comes. Here a centre receives
between ``low`` and ``high`` rows in total as well. Among the weights P (n, k) that satisfy both, the rule takes

    argmax ⟨P, scores⟩ + H(P) / gamma

which is an optimal transport between rows and centres; H is the entropy. Setting the derivative of the Lagrangian to
zero shows what it computes: with a multiplier p_j per centre, its price, a row of P is the softmax of gamma (score_j
- p_j). The price is positive only where the centre is full, and negative only where it has no more rows than it needs
(Cuturi 2013; Chizat et al. 2018). For gamma → ∞, a row chooses the highest score - price, and P is 0 or 1, because the
constraints are those of a flow, whose vertices are whole numbers. So k prices carry all that rows must know of each
other, and new rows can be assigned one by one.
"""

from collections.abc import Callable
from numbers import Integral
from typing import Literal, NamedTuple

import numpy as np

Sizes = Literal["balanced"] | tuple[int | None, int | None]

MOST_VALUES = 2**25  # costs in memory (256 MB): with more, only rows near an edge are planned together
ONE_LEVEL = 8_192  # rows whose plan starts without the prices of a sample
DEPTH = 64  # rows that are listed per edge, with fewer if there are many clusters
LISTED = 2**24


def bounds(sizes: Sizes, n: int, k: int) -> tuple[int, int]:
    """The fewest and the most rows of a cluster. A ValueError says what is impossible for n rows and k clusters."""
    if isinstance(sizes, str):
        return n // k, -(-n // k)
    whole = [one is None or (isinstance(one, Integral) and one >= 0) for one in sizes]
    if len(whole) != 2 or not all(whole):
        raise ValueError(f"sizes must be 'balanced' or (min, max) in numbers of rows; got {sizes!r}.")
    low, high = (0 if sizes[0] is None else int(sizes[0])), (n if sizes[1] is None else int(sizes[1]))
    if low > high:
        raise ValueError(f"The smallest size of a cluster, {low}, is larger than the largest, {high}: exchange them.")
    if low * k > n:
        raise ValueError(
            f"{k} clusters of at least {low} rows need {low * k:,} rows, but there are {n:,}: lower the smallest size "
            f"to {n // k}" + (f" or the number of clusters to {n // low}." if low <= n else ".")
        )
    if high * k < n:
        raise ValueError(
            f"{k} clusters of at most {high} rows hold {high * k:,} rows, but there are {n:,}: raise the largest size "
            f"to {-(-n // k)}" + (f" or the number of clusters to {-(-n // high)}." if high else ".")
        )
    return low, high


def n_kept(n: int, outliers: float) -> int:
    """The rows that are left in clusters, if a share of all may stay outside."""
    return int(np.ceil(n * (1.0 - outliers) * (1 - 4 * np.finfo(float).eps)))


class Plan(NamedTuple):
    labels: np.ndarray  # (n,) int32
    prices: np.ndarray  # (k,)


def plan(cost_NK: np.ndarray, low_K: np.ndarray, high_K: np.ndarray, prices_K=None, *, final: bool = True) -> Plan:
    """The labels of least total cost with from ``low`` to ``high`` rows per cluster. The bounds must be possible.

    ``prices`` are where the search begins. They are those of every fourth row if none are given, and then few rows
    have to move. With ``final``, the prices that are returned separate the rows of different clusters as well as
    possible: rows choose their labels by cost + price unless equal rows have different labels.
    """
    found = _settled(cost_NK, low_K, high_K, prices_K, final)
    assert found is not None
    return found


def _settled(cost_NK, low_K, high_K, prices_K, final: bool) -> Plan | None:
    from coterie.kmeans.transport_kernels import settle

    n, k = cost_NK.shape
    if prices_K is None:
        prices_K = np.zeros(k)
        if n > ONE_LEVEL:
            some = cost_NK[::4]
            share = len(some) / n
            prices_K = plan(some, np.floor(low_K * share), np.ceil(high_K * share), final=False).prices
    labels = (cost_NK + prices_K).argmin(axis=1).astype(np.int32)
    potential = np.append(-np.asarray(prices_K, dtype=np.float64), 0.0)
    depth = int(np.clip(LISTED // k**2, 4, DEPTH))
    low_K, high_K = low_K.astype(np.int64), high_K.astype(np.int64)
    done = settle(np.ascontiguousarray(cost_NK), labels, potential, low_K, high_K, depth, final)
    return Plan(labels, potential[-1] - potential[:-1]) if done else None


class Planner:
    """The plans of the same n rows for moving centres. Every plan begins with the prices of the one before.

    A share ``outliers`` of the rows may stay outside: they are the rows of one more centre, which costs nothing and
    takes exactly that many. Least total cost then is the objective of trimmed k-means.
    """

    def __init__(self, sizes: Sizes, n: int, k: int, outliers: float = 0.0):
        kept = n_kept(n, outliers)
        low, high = bounds(sizes, kept, k)
        self.n, self.k, self.outside = n, k, n - kept
        self.low_K, self.high_K = np.full(k, low), np.full(k, high)
        if self.outside:
            self.low_K, self.high_K = (np.append(each, self.outside) for each in (self.low_K, self.high_K))
        self.prices_K: np.ndarray | None = None

    @property
    def prices(self) -> np.ndarray:
        """(k,) the prices of the centres in the last plan."""
        assert self.prices_K is not None
        return self.prices_K[: self.k]

    @property
    def limits(self) -> np.ndarray:
        """(k,) the largest cost at each centre with which a row of the last plan is no outlier."""
        assert self.prices_K is not None
        return self.prices_K[-1] - self.prices

    def labels(self, cost_of: Callable[[slice], np.ndarray], blocks: list[slice], final: bool) -> np.ndarray:
        """The labels (n,) of the plan, -1 for outliers. ``cost_of`` gives the costs (b, k) of a block of rows."""

        def costs(block: slice) -> np.ndarray:
            cost = np.asarray(cost_of(block), dtype=np.float64)
            return np.column_stack([cost, np.zeros(len(cost))]) if self.outside else cost

        if self.n * len(self.low_K) <= MOST_VALUES:
            whole = np.concatenate([costs(block) for block in blocks])
            labels, self.prices_K = plan(whole, self.low_K, self.high_K, self.prices_K, final=final)
        else:
            labels = self._in_parts(costs, blocks, final)
        return np.where(labels == self.k, -1, labels).astype(np.int32) if self.outside else labels

    def _in_parts(self, costs, blocks: list[slice], final: bool) -> np.ndarray:
        """The plan of more rows than fit: prices come from a sample, and then only rows near an edge are planned.

        A row that is farther from an edge than the prices move afterwards could not gain, so it need not take part.
        """
        room = MOST_VALUES // len(self.low_K)
        if self.prices_K is None:
            step = -(-self.n // room)
            sample = np.concatenate([costs(block)[::step] for block in blocks])
            share = len(sample) / self.n
            self.prices_K = plan(sample, np.floor(self.low_K * share), np.ceil(self.high_K * share), final=False).prices
        labels, margin = np.empty(self.n, np.int32), np.empty(self.n)
        for block in blocks:
            priced = costs(block) + self.prices_K
            labels[block] = priced.argmin(axis=1)
            two = np.partition(priced, 1, axis=1)
            margin[block] = two[:, 1] - two[:, 0]
        while True:
            free = self._near_edges(labels, margin, room)
            fixed = np.bincount(labels, minlength=len(self.low_K)) - np.bincount(
                labels[free], minlength=len(self.low_K)
            )
            low, high = np.maximum(self.low_K - fixed, 0), self.high_K - fixed
            parts = [costs(block)[free[block]] for block in blocks]
            found = _settled(np.concatenate(parts), low, high, self.prices_K, final)
            if found is not None:
                labels[free], self.prices_K = found
                return labels
            room *= 2

    def _near_edges(self, labels: np.ndarray, margin: np.ndarray, room: int) -> np.ndarray:
        """(n,) whether a row takes part: those nearest to an edge, and of too large clusters as many as must leave."""
        order = np.lexsort((margin, labels))
        counts = np.bincount(labels, minlength=len(self.low_K))
        wanted = room // len(counts) + np.maximum(counts - self.high_K, 0)
        rank = np.arange(self.n) - np.repeat(np.cumsum(counts) - counts, counts)
        free = np.empty(self.n, np.bool_)
        free[order] = rank < np.repeat(wanted, counts)
        return free
