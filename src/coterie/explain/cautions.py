"""Reasons to be careful with a clustering, each with advice."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from coterie.estimators.capabilities import (
    finds_count,
    finds_outliers,
    has_parameter,
    iteration_limit_reached,
    of_center_family,
)
from coterie.explain.certainty import outlier_rows
from coterie.explain.quality import OtherCounts, Stability
from coterie.selection import Choice, Uneven, uneven_columns, varying_columns
from coterie.tables.columns import Column
from coterie.tabular.clustered_table import ClusteredTable
from coterie.wording import joined, plural, quoted
from coterie.zeroshot.communities import MOST_ROWS

TINY_SHARE = 0.01
TINY_ROWS = 5
MISSING_SHARE = 0.02  # of the rows from which missing values can be what a cluster has in common
FOLLOWED = 0.5  # share of the variance of being missing that the clusters explain
CORRELATION = 0.98  # from which two columns count as the same
LISTED = 5
FEW_READ = 10  # rows of a cluster among those that a network read; with fewer it may miss the cluster


class Caution(NamedTuple):
    what: str
    advice: str

    @property
    def text(self) -> str:
        return f"{self.what} {self.advice}".strip()


def cautions(
    clustered: ClusteredTable, stability: Stability | str = "", counts: OtherCounts | None = None
) -> list[Caution]:
    """The most serious ones first. Those that need further fits are found where these are given."""
    found = [*_about_limits(clustered), *_about_columns(clustered), *_about_sizes(clustered)]
    found += _about_count(clustered.run.choice, counts)
    found += _about_trust(clustered, stability)
    limit = iteration_limit_reached(clustered.estimator)
    if limit is not None and not any("did not converge" in note for note in clustered.run.notes):  # it warned itself
        what = f"The fit stopped at its limit of {limit} iterations before it converged."
        found.append(Caution(what, "Increase max_iter."))
    return found


def _about_limits(clustered: ClusteredTable) -> list[Caution]:
    """Limits of a pretrained network that this table reached."""
    found = []
    read, proba = (getattr(clustered.estimator, name, None) for name in ("context_indices_", "n_clusters_proba_"))
    most = getattr(clustered.estimator, "max_context", 0)  # fewer are read if all others are copies of them
    graph = hasattr(clustered.estimator, "communities_")
    if read is not None and (MOST_ROWS if graph else most) <= len(read) < clustered.n:
        smallest = FEW_READ * clustered.n / len(read)
        who = "The neighbour graph has" if graph else "The network read"
        what = f"{who} {len(read):,} of the {clustered.n:,} rows; the others have the cluster of the nearest."
        advice = f"Clusters with fewer than about {smallest:,.0f} rows may be missed"
        samples = has_parameter(clustered.estimator, "n_contexts") and not graph
        more = ": fit such rows separately, or read more samples (n_contexts; --contexts)."
        found.append(Caution(what, advice + (more if samples else ".")))
    if proba is not None and not graph and clustered.k >= len(proba) > 1 and finds_count(clustered.estimator):
        what = f"{clustered.k} is the largest number of clusters that the network can find here."
        found.append(Caution(what, "There may be more: give a larger number of clusters to kmeans."))
    return found


def about_scales(uneven: Uneven, names: Sequence[str]) -> Caution:
    widest, narrowest = repr(names[uneven.widest]), repr(names[uneven.narrowest])
    if uneven.decides_alone:
        what = (
            f"Column {widest} has {uneven.shown_share} of the total variance and determines the clusters almost alone."
        )
        return Caution(what, "Scale the columns (--scale, or StandardScaler) unless they have the same unit.")
    what = f"Column {widest} varies {uneven.ratio:,.0f} times as much as {narrowest}, which has little influence."
    return Caution(what, "Scale the columns (--scale, or StandardScaler) if all of them should count.")


def _about_columns(clustered: ClusteredTable) -> list[Caution]:
    found = []
    X, names = clustered.points, clustered.point_names
    varying = varying_columns(X)
    uneven = None if clustered.encoding is not None and clustered.scaled else uneven_columns(clustered.estimator, X)
    if uneven is not None:
        found.append(about_scales(uneven, names))
    if len(varying) < len(names):
        constant = [names[i] for i in sorted(set(range(len(names))) - set(varying.tolist()))]
        one = len(constant) == 1
        what = f"{'Column' if one else 'Columns'} {quoted(constant, limit=LISTED)} {'has' if one else 'have'}"
        advice = f"Exclude {'it' if one else 'them'}: a constant column cannot separate clusters."
        found.append(Caution(f"{what} the same value in every row.", advice))
    return [*found, *_about_missing(clustered), *_about_correlation(clustered, varying)]


def _about_missing(clustered: ClusteredTable) -> list[Caution]:
    """Columns whose missing values the clusters follow."""
    encoding, k = clustered.encoding, len(clustered.sizes)
    if encoding is None or encoding.complete or clustered.texts or k < 2:
        return []
    rows = np.linspace(0, clustered.n - 1, min(clustered.n, 5_000)).astype(int)
    own_NK = np.eye(k + 1)[clustered.labels[rows]][:, :k]
    share_K = own_NK.mean(axis=0)
    found = []
    for column, values in zip(encoding.columns, clustered.table.take(rows).columns_for(encoding)):
        gone = Column(column.name, column.kind, values).missing
        if column.is_box or not MISSING_SHARE <= gone.mean() <= 1 - MISSING_SHARE:
            continue
        gone_K = np.divide(gone @ own_NK / len(rows), share_K, out=np.zeros(k), where=share_K > 0)
        if share_K @ (gone_K - gone.mean()) ** 2 > FOLLOWED * gone.var():
            most, least = int(gone_K.argmax()), int(gone_K.argmin())
            found.append(
                f"{column.name!r} is missing in {gone_K[most]:.0%} of cluster {most} and in {gone_K[least]:.0%} of "
                f"cluster {least}"
            )
    if not found:
        return []
    what = f"The clusters follow missing values: {joined(found, limit=3)}."
    return [Caution(what, "Exclude such columns if a gap says nothing about a row.")]


def _about_correlation(clustered: ClusteredTable, varying: np.ndarray) -> list[Caution]:
    if clustered.encoding is not None:  # not the axes of categories, and of circles
        own = set(clustered.encoding.names)
        varying = np.array([i for i in varying if clustered.point_names[i] in own], dtype=int)
    if not 2 <= len(varying) <= 200 or clustered.n < 10:
        return []
    rows = np.linspace(0, clustered.n - 1, min(clustered.n, 5_000)).astype(int)
    columns = clustered.points[np.ix_(rows, varying)].T
    part = np.column_stack(
        [np.unique(one, return_inverse=True)[1] for one in columns]
    )  # a row of totals is no relation
    alive = part.std(axis=0) > 0
    part, varying = part[:, alive], varying[alive]
    if len(varying) < 2:
        return []
    close = np.argwhere(np.triu(np.abs(np.corrcoef(part.T)) >= CORRELATION, 1))
    if len(close) == 0:
        return []
    pairs = [f"{clustered.point_names[varying[i]]!r} and {clustered.point_names[varying[j]]!r}" for i, j in close[:3]]
    more = f", and {len(close) - 3} more pairs" if len(close) > 3 else ""
    what = f"Some columns contain almost the same information: {'; '.join(pairs)}{more}."
    return [Caution(what, "Together they count twice: keep one of each pair.")]


def tiny_clusters(clustered: ClusteredTable) -> list[int]:
    """Clusters of so few rows that these may be outliers."""
    few = max(TINY_ROWS, TINY_SHARE * clustered.n)
    return [j for j, size in enumerate(clustered.sizes.tolist()) if 0 < size < few]


def _about_sizes(clustered: ClusteredTable) -> list[Caution]:
    found = []
    sizes, n = clustered.sizes, clustered.n
    family = of_center_family(type(clustered.estimator))
    trim = " or use trimmed k-means (TrimmedKMeans)" if family and not finds_outliers(clustered.estimator) else ""
    tiny = tiny_clusters(clustered)
    if tiny and (sizes > 0).sum() > 1:
        listed = joined([f"cluster {j} ({plural(int(sizes[j]), 'row')})" for j in tiny], limit=LISTED)
        what = f"{'One cluster is' if len(tiny) == 1 else 'Some clusters are'} very small: {listed}."
        advice = f"Their rows may be outliers rather than groups: check them{',' if trim else ''}{trim}."
        found.append(Caution(what, advice if len(tiny) > 1 else advice.replace("Their", "Its", 1)))
    empty = [str(j) for j in clustered.ids if sizes[j] == 0]
    if empty:
        which = f"{'cluster' if len(empty) == 1 else 'clusters'} {joined(empty, limit=LISTED)}"
        found.append(Caution(f"No row belongs to {which}.", "Use fewer clusters."))
    if (sizes > 0).sum() > 1 and sizes.max() > 0.9 * n:
        what = f"Cluster {int(sizes.argmax())} contains {sizes.max() / n:.0%} of the rows."
        scale = "" if clustered.scaled else " scale the columns,"
        todo = f":{scale}{trim}".removesuffix(",") if scale or trim else ""
        found.append(Caution(what, f"The others may be outliers{todo}."))
    out = int(outliers.sum()) if (outliers := outlier_rows(clustered)) is not None else 0
    if out > 0.1 * n:
        what = f"{out:,} rows ({out / n:.0%}) are outliers."
        found.append(Caution(what, "Check their rows, or let fewer stay outside (outliers)."))
    if clustered.k > 1 and n < 10 * clustered.k:
        what = f"There are only {n} rows for {clustered.k} clusters."
        found.append(Caution(what, "With fewer than ten rows per cluster, single clusters are unreliable."))
    return found


def _about_count(choice: Choice | None, counts: OtherCounts | None) -> list[Caution]:
    if choice is not None and choice.at_edge:
        what = f"{choice.k} is the largest number of clusters that was tried."
        return [Caution(what, "A larger number may be better: try a wider range.")]
    if choice is not None or counts is None:
        return []
    scores = dict(zip(counts.ks, counts.scores))
    if scores[counts.best] <= scores[counts.chosen] + 0.02:
        return []
    what = (
        f"The number of clusters is uncertain: {counts.best} clusters have a higher silhouette "
        f"({scores[counts.best]:.2f}) than {counts.chosen} ({scores[counts.chosen]:.2f})."
    )
    return [Caution(what, f"Compare with {counts.best} clusters.")]


def _about_trust(clustered: ClusteredTable, stability: Stability | str) -> list[Caution]:
    found = []
    certainty = getattr(clustered.estimator, "certainty_", None)
    if certainty is not None:  # a network that clusters any shape, about which silhouettes say little
        doubtful = float((np.asarray(certainty) < 0.5).mean())
        if doubtful > 0.2 and clustered.k > 1:
            what = f"The cluster of {doubtful:.0%} of the rows is uncertain (certainty below 0.5)."
            found.append(Caution(what, "Rely on rows of high certainty only."))
    elif clustered.silhouettes is not None and clustered.silhouettes.mean < 0.25:
        what = f"The clusters overlap: the mean silhouette is {clustered.silhouettes.mean:.2f}."
        found.append(Caution(what, "Many rows could equally well belong to another cluster."))
    if isinstance(stability, Stability) and stability.mean < 0.8:
        what = (
            "Fits to 80% of the rows give other clusters: their mean agreement with these is "
            f"{stability.mean:.2f} (1 is identical)."
        )
        options = ["more starts (n_init)"] if has_parameter(clustered.estimator, "n_init") else []
        options += ["fewer clusters"] if has_parameter(clustered.estimator, "n_clusters") else []
        use = f"Use {' or '.join(options)}, or rely" if options else "Rely"
        found.append(Caution(what, f"{use} only on clusters that recur."))
    return found
