"""A fitted clustering with the changes that were made to it."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.utils.validation import check_is_fitted

from coterie.estimators.capabilities import encodes_tables, has_parameter
from coterie.estimators.persistence import SaveMixin
from coterie.estimators.validation import is_nearest
from coterie.living.checking import Check, check
from coterie.living.matching import continued
from coterie.living.moments import Moments, count_of, outside, remember
from coterie.living.rows import encoded_by, given_to, points_of, take
from coterie.living.splitting import divided
from coterie.living.steps import Clusters, Continue, Merge, Name, Pin, Split, Step

OF_NETWORKS = ("certainty_", "noise_", "n_clusters_proba_", "expected_ari_")


class LivingClusterer(ClusterMixin, SaveMixin, BaseEstimator):
    """Clusters with ids that stay: they can be edited by hand, continued by later fits, and checked against new rows.

    It wraps another clusterer. ``fit`` fits a copy of it; with ``previous``, the clusters that continue an earlier one
    keep its id and name, and others get ids that were never used. Every change (``merge``, ``split``, ``rename``,
    ``pin``) returns a new fitted model and leaves this one as it is. ``predict`` asks the fitted estimator and then
    applies the steps in their order.

    Parameters
    ----------
    estimator : clusterer, default=None
        An estimator of coterie or scikit-learn with ``fit``, ``labels_`` and ``predict``. None is
        :class:`coterie.ZeroShotClusterer`, which needs no number of clusters. Only estimators of coterie can be saved.

    Attributes
    ----------
    estimator_ : clusterer
        The fitted estimator.
    labels_ : int array of shape (n_samples,)
        The id of the cluster of every row of the fit; -1 for outliers.
    ids_ : list of int
        The ids of the clusters. They need not be consecutive: ids of merged and ended clusters are not used again.
    names_ : dict of int to str
        Names of clusters.
    history : list of str
        What was done since the fit, in words.
    n_clusters_ : int
        Number of clusters.
    n_features_in_ : int
        Number of columns of X.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import KMeans, LivingClusterer
    >>> X = np.array([[0.0], [1.0], [10.0], [11.0], [50.0], [51.0]])
    >>> found = LivingClusterer(KMeans(3, init=X[::2])).fit(X)
    >>> joined = found.merge([0, 1]).rename(2, "far")
    >>> joined.labels_.tolist(), joined.names_
    ([0, 0, 0, 0, 2, 2], {2: 'far'})
    >>> joined.history
    ['Merged 0 and 1 into 0.', "Named 2 'far'."]
    >>> joined.undo().undo().labels_.tolist()
    [0, 0, 1, 1, 2, 2]
    """

    def __init__(self, estimator=None):
        self.estimator = estimator

    def fit(self, X, y=None, *, previous=None):
        """Cluster the rows.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
            Rows in a form that the estimator takes.
        y : ignored
            Present for API consistency.
        previous : fitted estimator, default=None
            A model of earlier rows with the same columns. Clusters of this fit that continue one of its clusters get
            its id and name; see :meth:`continuing`.

        Returns
        -------
        self : object
        """
        from coterie.estimators import ZeroShotClusterer

        base = ZeroShotClusterer() if self.estimator is None else clone(self.estimator)
        base = remember(base.fit(given_to(base, X)), X)
        self._take_over(base, ())
        if previous is not None:
            self._take_over(base, self.continuing(previous, X)._steps)
        return self

    @classmethod
    def of(cls, estimator: Any, names: Mapping[int, str] | None = None) -> "LivingClusterer":
        """A fitted estimator as a model that can be edited; ``names`` are those that its clusters have already."""
        if isinstance(estimator, LivingClusterer):
            return estimator.with_names({**estimator.names_, **(names or {})})
        check_is_fitted(estimator)
        made = cls(clone(estimator, safe=False) if hasattr(estimator, "get_params") else estimator)
        return made._take_over(estimator, ()).with_names(names or {})

    def with_names(self, names: Mapping[int, str]) -> "LivingClusterer":
        """This model with exactly these names of clusters."""
        before = self.names_
        gone = [Name(label, "") for label in before if label not in names]
        return self._with(*gone, *(Name(label, name) for label, name in names.items() if before.get(label) != name))

    def _take_over(self, base: Any, steps: tuple[Step, ...]) -> "LivingClusterer":
        self.estimator_, self._steps = base, steps
        for name in ("n_features_in_", "feature_names_in_", "encoding_"):
            if hasattr(base, name):
                setattr(self, name, getattr(base, name))
        return self

    def _with(self, *steps: Step) -> "LivingClusterer":
        made = copy.copy(self)
        made._steps = (*self._steps, *steps)
        made._clusters()  # says what is wrong with a step
        return made

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")

    @property
    def _encodes_tables(self) -> bool:
        return encodes_tables(self.estimator_ if hasattr(self, "estimator_") else self.estimator)

    def _encoded(self, X: Any, *, reset: bool) -> Any:
        return self.estimator_._encoded(X, reset=reset)

    def _clusters(self) -> Clusters:
        check_is_fitted(self)
        count = count_of(self.estimator_)
        found = Clusters(tuple(range(count)), count)
        for step in self._steps:
            found = step.after(found)
        return found

    def _moments(self) -> dict[int, Moments]:
        """What the fit remembers of the clusters, by id; the outliers are -1."""
        known = Moments.of_estimator(self.estimator_)
        for step in self._steps:
            known = step.moments(known)
        return known

    def __getattr__(self, name: str) -> Any:
        """What a network says of its clusters, as long as they are those that it found, whatever their ids."""
        if name in OF_NETWORKS and all(isinstance(step, Name | Continue) and not _merged(step) for step in self._steps):
            return getattr(self.estimator_, name)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    @property
    def ids_(self) -> list[int]:
        return list(self._clusters().ids)

    @property
    def names_(self) -> dict[int, str]:
        return dict(self._clusters().names)

    @property
    def n_clusters_(self) -> int:
        return len(self._clusters().ids)

    @property
    def history(self) -> list[str]:
        """What was done since the fit, in words."""
        check_is_fitted(self)
        return [step.told for step in self._steps]

    @property
    def labels_(self) -> np.ndarray:
        if not hasattr(self, "estimator_"):
            raise AttributeError("labels_ is set by fit.")
        labels = np.asarray(self.estimator_.labels_)
        for step in self._steps:
            labels = step.of_fit(labels)
        return labels

    def predict(self, X, *, assign=None):
        """Assign every row to its cluster.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
            New rows.
        assign : "nearest" or None, default=None
            What happens to outliers: None labels them -1, "nearest" gives them the cluster that they would belong to.

        Returns
        -------
        labels : int array of shape (n_samples,)
            The id of the cluster of every row, or -1 for an outlier.
        """
        return self._predicted(X, assign)[0]

    def _predicted(self, X: Any, assign: str | None = None) -> tuple[np.ndarray, np.ndarray | None]:
        """The ids of the rows, and which rows fit none of the clusters if that is known."""
        check_is_fitted(self)
        X = encoded_by(self.estimator_, X)
        how = {"assign": assign} if is_nearest(assign) and has_parameter(self.estimator_, "outliers") else {}
        found = labels = np.asarray(self.estimator_.predict(given_to(self.estimator_, X), **how))
        for step in self._steps:
            labels = step.of_rows(labels, X, self.estimator_)
        return labels, outside(self.estimator_, X, found)

    def merge(self, labels: Sequence[int]) -> "LivingClusterer":
        """Join clusters. The result has the id of the first of them.

        Parameters
        ----------
        labels : sequence of int
            At least two different ids.

        Returns
        -------
        model : LivingClusterer
        """
        labels = tuple(int(one) for one in labels)
        if len(labels) < 2 or len(set(labels)) < len(labels):
            raise ValueError(f"merge needs at least two different clusters; got {list(labels)}.")
        return self._with(Merge(labels))

    def split(self, label: int, n_clusters: int | None = None, *, X: Any = None) -> "LivingClusterer":
        """Divide a cluster: along its hierarchy if the estimator has one, else by a fit of the same estimator to it.

        The largest part keeps the id.

        Parameters
        ----------
        label : int
            The id of the cluster.
        n_clusters : int or None, default=None
            The number of parts; None chooses it by the silhouette, from 2 to 6.
        X : array or DataFrame, default=None
            The rows of the fit. Models with a hierarchy (:class:`coterie.ZeroShotClusterer`) can be split without
            them, and then have no ``labels_``.

        Returns
        -------
        model : LivingClusterer
        """
        clusters = self._clusters()
        clusters.require(label)
        if X is not None:
            X = encoded_by(self.estimator_, X)
            own = np.flatnonzero(self._labels_of_fit(X) == label)
            X = take(X, own)
        part, sizes = divided(self, label, n_clusters, X)
        order = np.argsort(-sizes, kind="stable")
        parts = np.empty(len(order), dtype=int)
        parts[order] = [label, *range(clusters.next_id, clusters.next_id + len(order) - 1)]
        return self._with(Split(int(label), tuple(parts.tolist()), part))

    def rename(self, label: int, name: str) -> "LivingClusterer":
        """Give a cluster a name, which label files, reports and later fits then have. An empty name removes it.

        Returns
        -------
        model : LivingClusterer
        """
        return self._with(Name(int(label), " ".join(str(name).split())))

    def pin(self, rows: Sequence[int], label: int, *, X: Any) -> "LivingClusterer":
        """Put single rows into a cluster, whatever the estimator says. Rows with the same values follow.

        Parameters
        ----------
        rows : sequence of int
            Positions in X.
        label : int
            The id of the cluster.
        X : array or DataFrame
            The rows of the fit.

        Returns
        -------
        model : LivingClusterer
        """
        n, places = len(self._labels_of_fit(X)), np.unique(np.asarray(rows))
        if not len(places) or places.dtype.kind not in "iu" or places[0] < 0 or places[-1] >= n:
            raise ValueError(f"rows must be positions, whole numbers from 0 to {n - 1}; got {list(rows)[:5]}.")
        points = points_of(self.estimator_, take(encoded_by(self.estimator_, X), places))
        model = self._with(Pin(int(label), places, points))
        same = np.flatnonzero(model.predict(X) != model.labels_)  # copies of the rows
        return model if not len(same) else self._with(Pin(int(label), np.union1d(places, same), points))

    def undo(self) -> "LivingClusterer":
        """The model before the last change.

        Returns
        -------
        model : LivingClusterer
        """
        if not self._steps:
            raise ValueError("There is nothing to undo: the model is as it was fitted.")
        made = copy.copy(self)
        made._steps = self._steps[:-1]
        return made

    def continuing(self, previous: Any, X: Any, before: np.ndarray | None = None) -> "LivingClusterer":
        """This model with the ids and names of the clusters of an earlier one.

        The earlier model says to which of its clusters each row of X belongs, if it fits any. Pairs of a new and an
        earlier cluster are chosen so that the shares of rows they have in common are largest in sum; a pair needs a
        Jaccard index of .3. New clusters without a partner get ids that were never used. Of clusters that were merged
        by hand, the parts stay together.

        Parameters
        ----------
        previous : fitted estimator
            The earlier model.
        X : array or DataFrame
            The rows of this fit.
        before : int array, default=None
            The clusters of these rows by the earlier model, -1 for rows that fit none, if X is not in the form that it
            takes.

        Returns
        -------
        model : LivingClusterer
        """
        earlier = LivingClusterer.of(previous)
        if before is None:
            before = earlier.places(X)
        known = earlier._clusters()
        joined = {label for step in earlier._steps for label in _merged(step)}
        labels = np.asarray(self.estimator_.labels_)
        ids = continued(before, labels, known, count_of(self.estimator_), joined)
        made = copy.copy(self)
        return made._take_over(self.estimator_, (Continue(ids, known.ids, known.next_id, dict(known.names)),))

    def places(self, X: Any) -> np.ndarray:
        """The id of the cluster of every row as ``predict`` gives it, but -1 for rows that fit no cluster.

        Such a row is farther from the mean of its cluster, in standard deviations, than 99% of the rows of the fit.
        """
        labels, far = self._predicted(X)
        return labels if far is None else np.where(far, -1, labels)

    def check(self, X: Any, reference: Any = None) -> Check:
        """Whether the clusters still describe new rows: what fits none, sizes, and drift of columns.

        Parameters
        ----------
        X : array or DataFrame
            New rows.
        reference : array or DataFrame, default=None
            The rows of the fit, if the model does not remember them.

        Returns
        -------
        check : Check
            ``changed``, ``verdict`` (one sentence), ``outside``, ``shares``, ``drifts`` and ``document()`` (JSON).
        """
        return check(self, X, reference)

    def _labels_of_fit(self, X: Any) -> np.ndarray:
        """``labels_``, if X has as many rows."""
        labels = getattr(self, "labels_", None)
        if labels is None:
            raise ValueError("A cluster was split without the rows of the fit: undo that, and split it with X.")
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        if len(labels) != n:
            raise ValueError(
                f"X has {n:,} rows, but the model was fitted to {len(labels):,}: pass the rows to which it was fitted."
            )
        return labels

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        base = getattr(self, "estimator_", self.estimator)
        if base is not None:
            tags.input_tags = base.__sklearn_tags__().input_tags
        return tags

    def _packed(self) -> tuple[dict[str, np.ndarray], str]:
        from coterie.living.saving import packed

        return packed(self)


def _merged(step: Step) -> set[int]:
    """Ids that several clusters of the fit have since then."""
    if isinstance(step, Merge):
        return {step.labels[0]}
    ids = step.ids if isinstance(step, Continue) else ()
    return {one for one in ids if ids.count(one) > 1}
