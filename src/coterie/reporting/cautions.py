"""What a person should know before believing the clusters, each with what to do about it."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from coterie.reporting.quality import OtherCounts, Stability, Sureness
from coterie.reporting.subject import Subject
from coterie.selection import uneven_columns, varying_columns

TINY_SHARE = 0.01
TINY_ROWS = 5
TWINS = 0.98
ALWAYS_TO_THE_LIMIT = ("KMedoids",)  # it samples for max_iter rounds, whatever it finds


class Caution(NamedTuple):
    what: str
    advice: str


def cautions(
    subject: Subject,
    sure: Sureness | None,
    stable: Stability | str,
    counts: OtherCounts | None,
    choice: Any = None,
    notes: Sequence[str] = (),
) -> list[Caution]:
    """In the order of how much they may spoil."""
    found = [*_columns(subject), *_sizes(subject), *_count(subject, sure, stable, counts, choice), *_run(subject)]
    return found + [Caution(note, "") for note in notes]


def _columns(subject: Subject) -> list[Caution]:
    found = []
    scale = "The columns are not on one scale: "
    X, names = subject.X, subject.names
    varying = varying_columns(X)
    uneven = uneven_columns(subject.estimator, X)
    if uneven is not None and uneven.decides_alone:
        text = f"{scale}{names[uneven.widest]} holds {uneven.shown_share} of all variance and decides nearly alone."
        found.append(
            Caution(text, "Scale the columns (--scale, or StandardScaler) unless their units are truly the same.")
        )
    elif uneven is not None:
        text = f"{scale}{names[uneven.widest]} spreads {uneven.ratio:,.0f} times as wide as {names[uneven.narrowest]}."
        found.append(Caution(text, "Narrow columns hardly count. Scale (--scale, or StandardScaler) if they should."))
    if len(varying) < len(names):
        constant = [names[i] for i in sorted(set(range(len(names))) - set(varying.tolist()))]
        found.append(
            Caution(f"{_listed(constant)} {_has(constant)} the same value in every row.", "Leave out: nothing is lost.")
        )
    found += _twins(subject, varying)
    return found


def _twins(subject: Subject, varying: np.ndarray) -> list[Caution]:
    if not 2 <= len(varying) <= 200 or subject.n < 10:
        return []
    rows = np.linspace(0, subject.n - 1, min(subject.n, 5_000)).astype(int)
    part = subject.X[np.ix_(rows, varying)].astype(np.float64)
    alive = part.std(axis=0) > 0
    part, varying = part[:, alive], varying[alive]
    if len(varying) < 2:
        return []
    close = np.argwhere(np.triu(np.abs(np.corrcoef(part.T)) >= TWINS, 1))
    if len(close) == 0:
        return []
    pairs = [f"{subject.names[varying[i]]} and {subject.names[varying[j]]}" for i, j in close[:3]]
    more = f", and {len(close) - 3} more pairs" if len(close) > 3 else ""
    return [
        Caution(
            f"Columns that say nearly the same: {'; '.join(pairs)}{more}.",
            "Together they count twice: keep one of each pair.",
        )
    ]


def _sizes(subject: Subject) -> list[Caution]:
    found = []
    sizes, n = subject.sizes, subject.n
    tiny = [j for j, size in enumerate(sizes) if 0 < size < max(TINY_ROWS, TINY_SHARE * n)]
    if tiny and len(sizes) > 1:
        words = _listed([f"cluster {j} ({sizes[j]:,} {'row' if sizes[j] == 1 else 'rows'})" for j in tiny])
        text = f"Very small: {words}."
        found.append(
            Caution(text, "They may be outliers rather than groups: look at their rows, or use trimmed k-means.")
        )
    empty = [str(j) for j, size in enumerate(sizes) if size == 0]
    if empty:
        found.append(
            Caution(
                f"No row belongs to {'cluster' if len(empty) == 1 else 'clusters'} {_listed(empty)}.",
                "Use fewer clusters.",
            )
        )
    if len(sizes) > 1 and sizes.max() > 0.9 * n:
        text = f"Cluster {int(sizes.argmax())} holds {sizes.max() / n:.0%} of the rows."
        found.append(Caution(text, "The others may be outliers: try scaling, or trimmed k-means."))
    out = len(subject.outliers)
    if out > 0.1 * n:
        text = f"{out:,} rows ({out / n:.0%}) are outliers."
        found.append(Caution(text, "That is many: lower the share that is trimmed, or use more clusters."))
    return found


def _count(
    subject: Subject, sure: Sureness | None, stable: Stability | str, counts: OtherCounts | None, choice: Any
) -> list[Caution]:
    found = []
    if choice is not None and choice.at_edge:
        text = f"{choice.k} is the largest number of clusters that was tried."
        found.append(Caution(text, "A wider range may hold a better one."))
    if choice is None and counts is not None:
        scores = dict(zip(counts.ks, counts.scores))
        if scores[counts.best] > scores[counts.chosen] + 0.02:
            text = (
                f"The number of clusters is doubtful: {counts.best} have a higher silhouette "
                f"({scores[counts.best]:.2f}) than {counts.chosen} ({scores[counts.chosen]:.2f})."
            )
            found.append(Caution(text, f"Compare with {counts.best} clusters before deciding."))
    if sure is not None and sure.mean < 0.25:
        text = f"The clusters overlap: the mean silhouette is {sure.mean:.2f}."
        found.append(
            Caution(text, "Many rows could as well belong elsewhere. Treat borders as a convention, not as a finding.")
        )
    if isinstance(stable, Stability) and stable.mean < 0.8:
        text = f"Other seeds give other clusters: they agree to {stable.mean:.2f} only (1 is the same)."
        found.append(
            Caution(text, "Use more starts (n_init), fewer clusters, or tell only of the clusters that come back.")
        )
    if subject.k > 1 and subject.n < 10 * subject.k:
        text = f"There are {subject.n} rows for {subject.k} clusters."
        found.append(Caution(text, "Fewer than ten rows a cluster on average: do not build much on a single one."))
    return found


def _run(subject: Subject) -> list[Caution]:
    estimator = subject.estimator
    ran, limit = getattr(estimator, "n_iter_", None), getattr(estimator, "max_iter", None)
    stopped = isinstance(ran, int | np.integer) and ran == limit and limit > 1
    if not stopped or getattr(estimator, "converged_", False) or type(estimator).__name__ in ALWAYS_TO_THE_LIMIT:
        return []
    return [
        Caution(f"The fit stopped at its limit of {limit} iterations.", "Raise max_iter: the clusters still changed.")
    ]


def _listed(names: list[str], limit: int = 5) -> str:
    if len(names) > limit:
        names = [*names[:limit], f"{len(names) - limit} more"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _has(names: list[str]) -> str:
    return "has" if len(names) == 1 else "have"
