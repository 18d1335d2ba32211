"""Whether the clusters of a model still describe new rows."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import stats

from coterie.living.moments import Moments, expected_outside, remember
from coterie.living.rows import encoded_by, values_of
from coterie.tables.encoding import Encoded
from coterie.wording import cluster_name, joined, plural, quoted

LEVEL = 0.05  # probability that any test of unchanged rows raises an alarm
LEAST_SHARE = 0.01  # a smaller change of a share does not count, however certain it is
LEAST_DRIFT = 0.1  # nor does a smaller drift, in standard deviations
FEW_ROWS = 5
EMPTY_ROWS = 50  # fewer rows may lack every value of a column by chance


@dataclass(frozen=True)
class Share:
    """The share of a cluster in the fit and in the new rows, and the interval in which it would be by chance."""

    label: int
    before: float
    now: float
    low: float
    high: float
    rows: int

    @property
    def changed(self) -> bool:
        return not self.low <= self.now <= self.high and abs(self.now - self.before) >= LEAST_SHARE


@dataclass(frozen=True)
class Drift:
    """The mean of a column in a cluster at the fit and now; ``away`` is in standard deviations of the cluster."""

    label: int
    column: str
    before: float
    now: float
    away: float
    p: float  # corrected for the number of tests

    @property
    def changed(self) -> bool:
        return self.p <= LEVEL and abs(self.away) >= LEAST_DRIFT


@dataclass(frozen=True)
class Check:
    """What has changed since the fit.

    ``outside`` is the share of rows that fit no cluster, ``outside_before`` that of the fit, and ``outside_limit`` what
    is still within chance. ``shares`` has one entry per cluster (the outliers as -1), ``drifts`` one per cluster and
    column, the most certain first. Shares count all rows as ``predict`` labels them; drift leaves out the rows that fit
    no cluster, if these are more than at the fit. ``empty`` names columns of the new rows that hold no value.
    """

    rows: int
    outside: float | None
    outside_before: float
    outside_limit: float
    shares: tuple[Share, ...]
    drifts: tuple[Drift, ...]
    names: Mapping[int, str] = field(default_factory=dict)
    empty: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether anything differs by more than chance."""
        empty = bool(self.empty) and self.rows >= EMPTY_ROWS
        return (
            empty
            or self._more_outside
            or any(one.changed for one in self.shares)
            or any(one.changed for one in self.drifts)
        )

    @property
    def _more_outside(self) -> bool:
        return self.outside is not None and self.outside > max(self.outside_limit, self.outside_before + LEAST_SHARE)

    @property
    def verdict(self) -> str:
        """One sentence, or two."""
        filled = [f"{quoted(self.empty)} {'has' if len(self.empty) == 1 else 'have'} no values"] if self.empty else []
        if not self.changed:
            differ = "differs" if self.rows == 1 else "differ"
            told = f"As before: {plural(self.rows, 'row')} {differ} from those of the fit by no more than chance."
            return f"{told} But {filled[0]}." if filled else told
        parts = filled
        if self._more_outside:
            parts.append(f"{self.outside:.1%} of the rows fit no cluster ({self.outside_before:.1%} at the fit)")
        parts += [
            f"{one.column} of {cluster_name(one.label, self.names)} is {abs(one.away):.2g} standard deviations "
            f"{'higher' if one.away > 0 else 'lower'}"
            for one in self.drifts
            if one.changed
        ]
        parts += [
            f"{cluster_name(one.label, self.names)} has {one.now:.1%} of the rows ({one.before:.1%} at the fit)"
            for one in self.shares
            if one.changed
        ]
        return f"Changed: {joined(parts, limit=4)}."

    def document(self) -> dict[str, Any]:
        """The same as JSON."""
        return {
            "changed": self.changed,
            "verdict": self.verdict,
            "rows": self.rows,
            "empty": list(self.empty),
            "outside": {"now": self.outside, "before": self.outside_before, "limit": self.outside_limit},
            "shares": [{**vars(one), "name": self.names.get(one.label), "changed": one.changed} for one in self.shares],
            "drifts": [{**vars(one), "name": self.names.get(one.label), "changed": one.changed} for one in self.drifts],
        }


def check(model: Any, X: Any, reference: Any = None) -> Check:
    """Compare new rows with those of the fit.

    Three things are tested: the share of rows that fit no cluster, the share of every cluster, and the mean of every
    column in every cluster. The limits are such that unchanged rows raise an alarm in 5% of all checks, whatever the
    number of clusters and columns (Bonferroni), and differences of less than .01 of the rows or .1 standard
    deviations are ignored.

    Parameters
    ----------
    model : LivingClusterer
    X : array or DataFrame
        New rows.
    reference : array or DataFrame, default=None
        The rows of the fit, which estimators that were fitted by themselves do not remember. Models of
        :func:`coterie.cluster_table`, of :class:`coterie.LivingClusterer` and of the command line do.

    Returns
    -------
    Check
        ``changed``, ``verdict``, ``outside``, ``shares``, ``drifts`` and ``document()``.
    """
    if reference is not None:
        model = copy.copy(model)
        model.estimator_ = remember(copy.copy(model.estimator_), reference)
    base = model.estimator_
    before = model._moments()
    if not before:
        raise ValueError(
            "The model does not remember the rows of its fit: pass them as reference, or fit a LivingClusterer."
        )
    X = encoded_by(base, X)
    labels, far = model._predicted(X)
    values, names = values_of(base, X)
    ids = [label for label in (*model.ids_, -1) if before.get(label) is not None]
    total = sum(one.rows for one in Moments.of_estimator(base).values())  # also of parts of which nothing is known
    tests = len(ids) * (1 + values.shape[1]) + 1
    inside = labels >= 0
    expected, n = expected_outside(base), max(1, int(inside.sum()))
    limit = expected + stats.norm.isf(LEVEL / tests) * np.sqrt(expected * (1 - expected) * (1 / n + 1 / max(total, 1)))
    share = None if far is None else float(far[inside].sum() / n)
    shares = _shares(before, labels, ids, total, LEVEL / tests)
    if far is not None and share is not None and share > max(limit, expected + LEAST_SHARE):
        labels, values = labels[~far], values[~far]  # these are no rows of the clusters
    now = Moments.by_label(values, labels)
    pairs = drift_pairs(before, now, [label for label in ids if label >= 0])
    drifts = drifts_of(pairs, names, tests)
    empty = X.empty if isinstance(X, Encoded) else ()
    return Check(len(inside), share, expected, float(limit), shares, drifts, model.names_, empty)


def _shares(
    before: Mapping[int, Moments], labels: np.ndarray, ids: list[int], total: float, level: float
) -> tuple[Share, ...]:
    found, n, z = [], len(labels), stats.norm.isf(level / 2)
    for label in ids:
        old = before[label].rows / max(total, 1)
        count = int((labels == label).sum())
        pooled = (before[label].rows + count + 1) / (total + n + 2)
        half = z * np.sqrt(pooled * (1 - pooled) * (1 / n + 1 / max(total, 1)))
        found.append(Share(label, old, count / n, max(0.0, old - half), min(1.0, old + half), count))
    return tuple(one for one in found if one.label >= 0 or one.before > 0 or one.now > 0)


def drift_pairs(
    before: Mapping[int, Moments], now: Mapping[int, Moments], ids: list[int]
) -> list[tuple[int, Moments, Moments]]:
    """The clusters whose columns can be compared: those with enough rows at both times."""
    enough = [label for label in ids if label in now and min(before[label].rows, now[label].rows) >= FEW_ROWS]
    return [(label, before[label], now[label]) for label in enough]


def drifts_of(pairs: list[tuple[int, Moments, Moments]], names: list[str], tests: int) -> tuple[Drift, ...]:
    """Welch's test for every column of every cluster, the most certain first."""
    found = []
    whole = sum(old.rows for _, old, _ in pairs)
    floor = sum(old.rows * old.variance for _, old, _ in pairs) / max(whole, 1) if pairs else np.zeros(0)
    for label, old, new in pairs:
        # A share of few rows is never known to be exactly none: the variance is at least that of one row in a cluster.
        of_old, of_new = (np.maximum(one.variance, floor / one.rows) / (one.rows - 1) for one in (old, new))
        error = np.sqrt(of_old + of_new)
        difference = new.mean - old.mean
        z = np.divide(difference, error, out=np.zeros_like(error), where=error > 0)
        freedom = (of_old + of_new) ** 2 / np.maximum(of_old**2 / (old.rows - 1) + of_new**2 / (new.rows - 1), 1e-300)
        p = np.minimum(1.0, 2 * stats.t.sf(np.abs(z), np.maximum(freedom, 1)) * tests)
        spread = np.sqrt(np.maximum(old.variance, floor / old.rows))
        away = np.divide(difference, spread, out=np.zeros_like(spread), where=spread > 0)
        found += [Drift(label, name, *map(float, each)) for name, *each in zip(names, old.mean, new.mean, away, p)]
    return tuple(sorted(found, key=lambda one: (one.p, -abs(one.away))))
