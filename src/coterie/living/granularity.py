"""How many clusters there could be: the quality and the stability of 1, 2, ... of them, and which splits into which."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import pairwise_distances
from sklearn.preprocessing import normalize
from sklearn.utils.validation import check_is_fitted

from coterie.estimators.capabilities import fitted_inside, of_center_family, on_sphere
from coterie.living.matching import counts_of, partners
from coterie.living.rows import given_to, points_of, take
from coterie.selection import SAMPLE_ROWS, score_of, stratified_sample
from coterie.starts.row_order import count_distinct_rows
from coterie.wording import joined, plural

SUBSAMPLES, SHARE = 6, 0.8
STABLE = 0.9  # from here on, a number of clusters can be part of a plateau
WORTH = 0.7  # if it has this share of the best quality of all,
ALIKE = 0.95  # and this share of the best quality of the plateau
CANDIDATES = 32  # rows, one of which is the next centre


@dataclass(frozen=True)
class Granularity:
    """What 1, 2, ... clusters are worth.

    ``measure`` is the name of the quality: "expected agreement", the adjusted Rand index with the true clusters that
    :class:`coterie.ZeroShotClusterer` expects, or "silhouette". A quality that is not defined, as that of one cluster
    by the silhouette, is NaN. ``stability`` says how well the clusters recur in samples of 80% of the rows: the best
    Jaccard index with one of the clusters of the sample, in the mean over the clusters and six samples. ``labels``
    (numbers, rows) are the clusters of the rows that were compared, whose places in the rows of the fit are
    ``indices``, in ascending order: all of them, or those of a sample. A part that splits off gets an id of its own,
    and where the model has as many clusters, the ids are its.
    """

    measure: str
    quality: np.ndarray
    stability: np.ndarray
    labels: np.ndarray
    indices: np.ndarray
    k: int  # of the model

    @property
    def plateaus(self) -> list[tuple[int, int]]:
        """The first and the last numbers of clusters around every peak of the quality that are stable and as good."""
        quality = np.nan_to_num(self.quality)
        free = (self.stability >= STABLE) & (quality >= WORTH * quality.max()) & (np.arange(len(quality)) > 0)
        found = []
        while free.any():
            top = int(np.where(free, quality, -1.0).argmax())
            as_good = free & (quality >= ALIKE * quality[top])
            first = last = top
            while as_good[first - 1]:  # not below 2: the first is not free
                first -= 1
            while last + 1 < len(quality) and as_good[last + 1]:
                last += 1
            free[first : last + 1] = False
            if max(quality[first - 1], ALIKE * quality[last + 1 : last + 2].max(initial=0.0)) <= quality[top]:
                found.append((first + 1, last + 1))
        return sorted(found)

    @property
    def parents(self) -> list[dict[int, int]]:
        """For 2, 3, ... clusters: the cluster of one number less from which most rows of each cluster come."""
        found = []
        for coarse, fine in pairwise(self.labels):
            old, new = np.unique(coarse), np.unique(fine)
            counts = counts_of(coarse, fine, old.tolist(), new.tolist())[:-1, :-1]
            found.append(dict(zip(new.tolist(), old[counts.argmax(axis=0)].tolist())))
        return found

    @property
    def verdict(self) -> str:
        """One sentence."""
        runs: list[list[int]] = []
        for first, last in self.plateaus:
            if runs and runs[-1][1] + 1 == first:
                runs[-1][1] = last
            else:
                runs.append([first, last])
        told = [str(a) if a == b else f"{a} to {b}" for a, b in runs]
        if told:
            return f"Good and stable numbers of clusters: {joined(told)}."
        one = self.quality[0] >= np.nanmax(self.quality)
        return "The rows form one group." if one else "No number of clusters is stable: the rows hardly form groups."

    def document(self) -> dict[str, Any]:
        """The same as JSON."""
        levels = []
        for place, (labels, parents) in enumerate(zip(self.labels, [{}, *self.parents])):
            ids, rows = np.unique(labels[labels >= 0], return_counts=True)
            clusters = [
                {"id": one, "rows": count, "part_of": parents.get(one)}
                for one, count in zip(ids.tolist(), rows.tolist())
            ]
            quality = float(self.quality[place])
            levels.append(
                {
                    "n_clusters": place + 1,
                    "quality": None if np.isnan(quality) else quality,
                    "stability": float(self.stability[place]),
                    "clusters": clusters,
                }
            )
        told = {"measure": self.measure, "n_clusters": self.k, "plateaus": self.plateaus, "verdict": self.verdict}
        return {**told, "levels": levels}


def granularity(model: Any, X: Any = None, most: int = 20) -> Granularity:
    """What 1, 2, ... clusters of an estimator are worth, so that a person can choose.

    A model with a hierarchy is cut, and read again without the network. Others are fitted once for every number, each
    time from the centres of the number before and one of 32 rows that lowers the objective most, and so are samples.

    Parameters
    ----------
    model : fitted estimator
        :class:`coterie.ZeroShotClusterer`, a member of the k-means family, or one of these whose clusters were edited.
    X : array or DataFrame, default=None
        The rows of the fit, of which at most 5,000 are compared. A model with a hierarchy needs none.
    most : int, default=20
        The largest number of clusters.

    Returns
    -------
    Granularity
        ``quality``, ``stability``, ``labels``, ``indices``, ``plateaus``, ``parents``, ``verdict`` and ``document()``;
        :func:`coterie.plot.save_granularity` draws it.
    """
    check_is_fitted(model)
    base = fitted_inside(model)
    if hasattr(base, "_levels"):
        measure, labels_of_fit = "expected agreement", model.predict(base._read())
        points, indices = base.context_, base.context_indices_

        def levels(rows: np.ndarray) -> Iterator[tuple[np.ndarray, float]]:
            return base._levels(rows, most)
    elif of_center_family(type(base)):
        if X is None:
            raise ValueError(f"{type(base).__name__} is fitted again for every number of clusters: pass the rows as X.")
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        indices = stratified_sample(np.zeros(n, dtype=int), SAMPLE_ROWS)
        X = take(X, indices)
        measure, labels_of_fit, points = "silhouette", model.predict(given_to(base, X)), points_of(base, X)

        def levels(rows: np.ndarray) -> Iterator[tuple[np.ndarray, float]]:
            return _fits(base, take(X, rows), most)
    else:
        raise ValueError(
            f"{type(base).__name__} has no hierarchy, and no centres to start from: use ZeroShotClusterer or KMeans."
        )
    n, different = len(labels_of_fit), count_distinct_rows(points)
    if min(most, different, int(SHARE * n)) < 2:
        raise ValueError(
            f"Compare at least 2 numbers of clusters, and at most 80% of the {plural(n, 'row')}, of which {different} "
            f"are different; got most={most}."
        )
    most = min(most, different, int(SHARE * n))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = list(levels(np.arange(n)))
        agreement, rng = np.ones((SUBSAMPLES, len(found))), np.random.default_rng(0)
        for own in agreement:
            rows = np.sort(rng.choice(n, int(SHARE * n), replace=False))
            for k, ((labels, _), (again, _)) in enumerate(zip(found, levels(rows))):
                own[k] = _recovery(labels[rows], again)
    quality, levels_of_fit = np.array([one for _, one in found]), [one for one, _ in found]
    ids, order = np.unique(labels_of_fit[labels_of_fit >= 0]), np.argsort(indices)
    labels = _aligned(levels_of_fit, labels_of_fit, len(ids))[:, order]
    return Granularity(measure, quality, agreement.mean(axis=0), labels, indices[order], len(ids))


def _fits(base: Any, X: Any, most: int) -> Iterator[tuple[np.ndarray, float]]:
    """Labels and silhouettes of 1, 2, ... clusters, as long as there are different rows."""
    rng, space, sphere = np.random.default_rng(0), points_of(base, X), on_sphere(base)
    space = normalize(space) if sphere else space
    start: Any = "k-means++"
    for k in range(1, most + 1):
        one = clone(base).set_params(n_clusters=k, init=start, n_init=1).fit(given_to(base, X))
        labels = np.asarray(one.labels_)
        yield labels, score_of("silhouette", space, labels, 0, sphere) if k > 1 else np.nan
        centers = np.asarray(one.cluster_centers_, dtype=np.float64)
        cost = pairwise_distances(space, normalize(centers) if sphere else centers).min(axis=1) ** 2 * (labels >= 0)
        if not cost.any():
            return
        drawn = rng.choice(len(space), min(CANDIDATES, int((cost > 0).sum())), replace=False, p=cost / cost.sum())
        left = np.minimum(cost[:, None], pairwise_distances(space, space[drawn]) ** 2).sum(axis=0)
        start = np.vstack([centers, space[drawn[left.argmin()]]])


def _recovery(labels: np.ndarray, again: np.ndarray) -> float:
    """The mean over the clusters of the best Jaccard index with one of the others (Hennig 2007)."""
    counts = counts_of(labels, again, *(np.unique(one[one >= 0]).tolist() for one in (labels, again)))
    union = counts[:-1].sum(axis=1)[:, None] + counts[:, :-1].sum(axis=0)[None] - counts[:-1, :-1]
    return float((counts[:-1, :-1] / union).max(axis=1).mean())


def _aligned(levels: list[np.ndarray], model: np.ndarray, k: int) -> np.ndarray:
    """The labels of all levels with ids, which clusters of two levels, or of a level and the model, share if alike.

    They are alike in the best sum of Jaccard indices. Other clusters get ids that no level has.
    """
    here = min(k, len(levels)) - 1
    found, following = [np.zeros(0, dtype=int)] * len(levels), int(model.max(initial=0)) + 1
    for place in (*range(here, len(levels)), *range(here - 1, -1, -1)):
        known = model if place == here else found[place - 1 if place > here else place + 1]
        old, new = np.unique(known[known >= 0]).tolist(), np.unique(levels[place][levels[place] >= 0]).tolist()
        chosen = partners(counts_of(known, levels[place], old, new), least=0)
        ids = {-1: -1}
        for j, label in enumerate(new):
            ids[label] = old[chosen[j]] if j in chosen else following
            following += j not in chosen
        found[place] = np.array([ids[label] for label in levels[place].tolist()])
    return np.array(found)
