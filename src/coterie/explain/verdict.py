"""One verdict on a clustering, in five steps: clear, probable, weak or no groups, or that nothing can be told.

Every front shows this verdict, so it is computed here and nowhere else, without another fit. A pretrained network that
estimates how well its labels agree with the true clusters is taken at its word, unless it expects little and rows
fill the space between its clusters, as in answers to items of one factor. Other estimators divide any table into
as many clusters as they are asked for; their clusters are judged by the silhouette and by the valley between
neighbouring clusters, the number of rows halfway between two centres relative to the number near the centres. Too few
rows, too few different rows, and one column that decides alone tell nothing about groups, whatever those numbers are.
"""

from dataclasses import dataclass

import numpy as np

from coterie.estimators.capabilities import given_count, has_parameter
from coterie.explain.cautions import tiny_clusters
from coterie.explain.hierarchy import merges_of
from coterie.selection import stratified_sample, uneven_columns
from coterie.tabular.clustered_table import ClusteredTable
from coterie.wording import joined, plural

CLEAR, PROBABLE, WEAK = "clear groups", "probable groups", "weak groups"
NONE, UNKNOWN = "no groups found", "cannot tell"
STEPS = (CLEAR, PROBABLE, WEAK)
# Adjusted Rand index with the true clusters that a network expects
CLEAR_AGREEMENT, PROBABLE_AGREEMENT, NO_AGREEMENT = 0.7, 0.4, 0.1
APART_AGREEMENT = 0.5  # the same as clear if few rows lie between the clusters; chosen on half of 47 labelled tables
ONE_IS_LIKELY = 0.5  # probability of one cluster
UNCERTAIN = 0.5  # share of rows whose cluster is uncertain, from which groups are weak
NEARLY_AS_LIKELY = 1.5  # probability of the number of clusters over that of another number, below which it is in doubt
FAR_LESS_LIKELY = 0.1  # than another number: said of a number that was given, too
# "Reasonable" and "weak" structure after Kaufman and Rousseeuw (1990), and what divisions of noise have
CLEAR_SILHOUETTE, WEAK_SILHOUETTE, LOW_SILHOUETTE = 0.5, 0.25, 0.1
CLEAR_VALLEY, SHALLOW_VALLEY, NO_VALLEY = 0.4, 0.75, 1.1  # chosen on single Gaussians, separated ones and real tables
NO_GAP = "there are at least as many rows between neighbouring clusters as near their centres"
WINDOW = 0.15  # of the distance between two centres, to either side
VALLEY_ROWS = 5_000
FEW_ROWS = 5  # per cluster
FEW_DIFFERENT = 3  # different rows per cluster


@dataclass(frozen=True)
class Verdict:
    """``words`` is one of the five verdicts, ``reason`` says why, and ``advice`` what to try, where that is known."""

    words: str
    reason: str
    advice: str = ""

    @property
    def text(self) -> str:
        return " ".join(
            part for part in (f"{self.words[0].upper()}{self.words[1:]}.", self.reason, self.advice) if part
        )


def verdict_of(clustered: ClusteredTable) -> Verdict:
    """How far the clusters can be trusted to be groups."""
    if int((clustered.sizes > 0).sum()) < 2:
        return _of_one_cluster(clustered)
    reason = _nothing_to_judge(clustered)
    if reason:
        return Verdict(UNKNOWN, reason)
    if getattr(clustered.estimator, "expected_ari_", None) is not None:
        return _of_network(clustered)
    return _of_geometry(clustered)


def _nothing_to_judge(clustered: ClusteredTable) -> str:
    """Why no division of this table tells anything about groups; empty if one can."""
    n, k = clustered.n, int((clustered.sizes > 0).sum())
    if n < FEW_ROWS * k:
        return f"{plural(n, 'row')} are too few to judge {k} clusters."
    tiny = tiny_clusters(clustered)
    if len(tiny) >= k - 1:
        few = plural(n - int(clustered.sizes.max()), "row")
        return f"All but {few} are in one cluster; the rest may be outliers."
    different = len(np.unique(clustered.points[:VALLEY_ROWS], axis=0))
    if different < FEW_DIFFERENT * k and different < n:
        return f"There are only {different} different rows, so the {k} clusters say little more than their values do."
    uneven = None if clustered.scaled else uneven_columns(clustered.estimator, clustered.points)
    if uneven is not None and uneven.decides_alone:
        name = clustered.point_names[uneven.widest]
        return f"Column {name!r} has {uneven.shown_share} of the variance, so its scale decides the clusters."
    return ""


def _of_one_cluster(clustered: ClusteredTable) -> Verdict:
    given = given_count(clustered.estimator)
    if given is not None:
        which = "One cluster was requested." if given == 1 else (
            f"All rows are in one of the {given} clusters that were requested."
        )  # fmt: skip
        return Verdict(NONE, which, _what_to_try(clustered))
    found = f"{type(clustered.estimator).__name__} found that all rows belong together"
    if getattr(clustered.estimator, "n_clusters_proba_", None) is None:
        return Verdict(NONE, f"{found}.", _what_to_try(clustered))
    one = float(clustered.estimator.n_clusters_proba_[0])
    if one < ONE_IS_LIKELY:
        reason = f"One cluster is the safest answer, but its probability is only {one:.2f}."
        return Verdict(UNKNOWN, reason + _other_number(clustered))
    return Verdict(NONE, f"{found} (probability {one:.2f}).", _what_to_try(clustered))


def _what_to_try(clustered: ClusteredTable) -> str:
    given = given_count(clustered.estimator)
    if given == 1:
        return "Request two or more clusters (-k)."
    can_ask = given is None and has_parameter(clustered.estimator, "n_clusters")
    more = "or give a number of clusters (-k)" if can_ask else "or more rows"
    return f"Try fewer columns, leaving out those that are unrelated to the groups you look for, {more}."


def _of_network(clustered: ClusteredTable) -> Verdict:
    estimator = clustered.estimator
    expected = float(estimator.expected_ari_)
    one = float(estimator.n_clusters_proba_[0])
    who = (
        "The stability of the neighbour graph suggests" if hasattr(estimator, "communities_") else "The network expects"
    )
    told = f"{who} an agreement of {expected:.2f} with the true clusters (adjusted Rand index)"
    if one > ONE_IS_LIKELY:
        reason = f"One cluster is more likely than several (probability {one:.2f})."
        return Verdict(NONE, reason, f"The {plural(clustered.k, 'cluster')} may be an arbitrary division of the rows.")
    if not np.isfinite(expected):
        return Verdict(UNKNOWN, "This number of clusters is beyond what the network estimates.")
    doubt = _other_number(clustered)
    if expected < NO_AGREEMENT and doubt and given_count(estimator) is not None:
        return Verdict(WEAK, f"{told}, which is low.{doubt}")
    if expected < NO_AGREEMENT:
        return Verdict(NONE, f"{told}, which is low.", _what_to_try(clustered))
    if expected < PROBABLE_AGREEMENT and valley(clustered) > NO_VALLEY:
        return Verdict(NONE, f"{told}, and {NO_GAP}.", _what_to_try(clustered))
    step = 0 if expected >= CLEAR_AGREEMENT else 1 if expected >= PROBABLE_AGREEMENT else 2
    if APART_AGREEMENT <= expected < CLEAR_AGREEMENT and valley(clustered) < CLEAR_VALLEY:
        step, told = 0, f"{told}, and few rows lie between the clusters"
    uncertain = float((np.asarray(getattr(estimator, "certainty_", 1.0)) < 0.5).mean())
    if uncertain > UNCERTAIN:
        return Verdict(WEAK, f"{told}, but the cluster of {uncertain:.0%} of the rows is uncertain.{doubt}")
    return Verdict(STEPS[min(step + bool(doubt), 2)], f"{told}.{doubt}")


def _other_number(clustered: ClusteredTable) -> str:
    """A sentence on another number of clusters that is nearly as likely or likelier; far likelier than a given one."""
    proba = np.asarray(getattr(clustered.estimator, "n_clusters_proba_", ()))
    given = given_count(clustered.estimator) is not None
    if clustered.k > len(proba):
        return ""
    own = float(proba[clustered.k - 1])
    others = proba.copy()
    others[clustered.k - 1] = -1
    other, likely = int(others.argmax()) + 1, float(others.max())
    if own >= (FAR_LESS_LIKELY if given else NEARLY_AS_LIKELY) * likely:
        return ""
    difference = f"{_joined_in(clustered, other)}: compare with -k {other}."
    if clustered.k == 1 or likely < NEARLY_AS_LIKELY * own:
        how = "would be about as likely" if likely < NEARLY_AS_LIKELY * own else f"would be more likely ({likely:.2f})"
        return f" {plural(other, 'cluster')} {how}{difference}"
    less = "" if given else ", but less agreement is expected with the true clusters"
    return f" {plural(other, 'cluster')} would be more likely ({likely:.2f}){less}{difference}"


def _joined_in(clustered: ClusteredTable, other: int) -> str:
    """Which of the clusters are one in a division into fewer, along the hierarchy of the estimator."""
    parts = [[name] for name in map(clustered.name, range(clustered.k))]
    merges = [merge for merge in merges_of(clustered) if merge.remaining >= other]
    if not merges or other >= clustered.k:
        return ""
    for merge in merges:
        parts.append(parts[merge.left] + parts[merge.right])
    inside = {side for merge in merges for side in merge[:2]}
    one = [joined(sorted(parts[clustered.k + i])) for i in range(len(merges)) if clustered.k + i not in inside]
    return f", with {'; '.join(one)} as one"


def _of_geometry(clustered: ClusteredTable) -> Verdict:
    found = clustered.silhouettes
    if found is None:  # every row is a cluster of its own
        return Verdict(NONE, "Every cluster has a single row.", _what_to_try(clustered))
    mean, rows_between = round(found.mean, 2), valley(clustered)
    told = f"The mean silhouette is {mean:.2f}"
    if mean < LOW_SILHOUETTE or (mean < WEAK_SILHOUETTE and rows_between > SHALLOW_VALLEY):
        reason = f"{told}: rows are hardly closer to their own cluster than to the next one."
    elif rows_between > NO_VALLEY and mean < CLEAR_SILHOUETTE:
        reason = f"{NO_GAP.capitalize()}."
    elif rows_between < CLEAR_VALLEY and mean >= CLEAR_SILHOUETTE:
        return Verdict(CLEAR, f"{told}, and few rows lie between the clusters.")
    elif rows_between < SHALLOW_VALLEY and mean >= WEAK_SILHOUETTE:
        return Verdict(PROBABLE, f"{told}, and some rows lie between the clusters.")
    else:
        return Verdict(WEAK, f"{told}, and many rows lie between the clusters.")
    return Verdict(NONE, reason, "The clusters divide the rows, but may not be groups: compare with coterie cluster "
                   "without -k (ZeroShotClusterer), which can find that there are none.")  # fmt: skip


def valley(clustered: ClusteredTable) -> float:
    """The number of rows halfway to the nearest cluster relative to the rows near the centres, mean over all rows.

    Rows of two neighbouring clusters are projected onto the line through their centres. Between two Gaussian clusters
    whose means are d standard deviations apart, the ratio is above 1 for d = 2, about 0.6 for d = 3 and 0.3 for d = 4;
    halves of one Gaussian have a ratio above 1.
    """
    rows = stratified_sample(clustered.labels, VALLEY_ROWS)
    labels, space, centers = clustered.labels[rows], clustered.space[rows], clustered.centers
    apart = np.linalg.norm(centers[:, None] - centers[None], axis=2)
    apart[:, clustered.sizes == 0] = np.inf
    np.fill_diagonal(apart, np.inf)
    total = 0.0
    for j in np.flatnonzero(clustered.sizes).tolist():
        near = int(apart[j].argmin())
        axis = centers[near] - centers[j]
        length = float(axis @ axis)
        if not np.isfinite(apart[j, near]) or length == 0:
            continue
        along = (space[(labels == j) | (labels == near)] - centers[j]) @ axis / length
        at_own, halfway, at_other = (int((np.abs(along - place) < WINDOW).sum()) for place in (0.0, 0.5, 1.0))
        total += min(1.5, halfway / max(1, min(at_own, at_other))) * clustered.sizes[j]
    return total / max(1, int(clustered.sizes.sum()))
