"""Clustering by a pretrained network that needs no number of clusters and no tuning."""

from functools import cache
from numbers import Integral
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin, _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, validate_data

from coterie import starts
from coterie.data.columns import columns_of
from coterie.data.encoding import Encoded, Encoding
from coterie.estimators.persistence import SaveMixin
from coterie.estimators.validation import check_context, check_enough_rows

MAX_CONTEXT = 1_024
MAX_CLUSTERS = 100
NOISE_LIMIT = 0.2  # on fresh draws half of the noise exceeds it, and four of five that exceed it are noise
MAX_ROWS = 1_000_000


class ZeroShotClusterer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, SaveMixin, BaseEstimator):
    """A pretrained network that clusters any table: no number of clusters, no scaling, no encoding, no tuning.

    The network reads up to 1,024 rows at once and says for every two of them how likely they share a cluster, for
    every row how likely it is noise, and how likely 1, 2, ... 16 clusters are. A hierarchy of those affinities, cut
    where they speak for, gives the labels. Every further row takes the labels of the rows beside it that were read.

    It was trained on synthetic sets alone: mixtures, curves, shells, tiles and nested shapes in 1 to 64 columns.
    Numbers are scaled, missing values filled, and categories (text columns of a DataFrame) counted by what they share
    with other columns.

    Limits: 1,000,000 rows in ``fit`` (``predict`` takes any number), 100 clusters if their number is given, 16 if it is
    not. Clusters with only a few of the 1,024 rows read are missed; in tables of a few binary columns, too many are
    found: give their number.

    Parameters
    ----------
    n_clusters : int or None, default=None
        None lets the network say.
    n_looks : int, default=2
        How often the network looks: at the same rows in other disguises or, of tables with more than ``max_context``
        rows, at other samples. Affinities are averaged.
    max_context : int, default=1024
        Rows that the network reads at most.
    scale : bool, default=True
        Whether to bring every column to the same spread; False for columns whose distances mean something as they are.
    weights : str, default="zeroshot"
        Name of the shipped network (``coterie models`` lists them).
    random_state : int, RandomState or None, default=0
        Draws the samples and disguises; the same number gives the same clusters.

    Attributes
    ----------
    labels_ : int32 array of shape (n_samples,)
        From 0 to ``n_clusters_`` - 1; rows taken for noise have the label of the cluster that is nearest.
    noise_ : bool array of shape (n_samples,)
        Rows that belong to no cluster.
    n_clusters_ : int
    n_clusters_proba_ : array of shape (min(16, rows read),)
        Probability of 1, 2, ... 16 clusters.
    cluster_centers_ : array of shape (n_clusters_, n_features)
        Means of the clusters' rows; NaN for columns that are not numbers.
    context_ : array of shape (n_context, n_encoded)
        The rows that were read, scaled and encoded.
    context_proba_ : array of shape (n_context, n_clusters_)
        Their probability of each cluster.
    context_noise_ : array of shape (n_context,)
    encoding_ : str
        How columns are scaled and encoded, as JSON.
    n_features_in_ : int

    Examples
    --------
    >>> from coterie import ZeroShotClusterer
    >>> from sklearn.datasets import make_blobs
    >>> X, _ = make_blobs(200, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    >>> ZeroShotClusterer().fit(X).n_clusters_
    3
    """

    _encodes_tables: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict] = {
        "n_clusters": [None, Interval(Integral, 1, None, closed="left")],
        "n_looks": [Interval(Integral, 1, None, closed="left")],
        "max_context": [Interval(Integral, 2, MAX_CONTEXT, closed="both")],
        "scale": ["boolean"],
        "weights": [str],
        "random_state": ["random_state"],
    }

    def __init__(self, n_clusters=None, *, n_looks=2, max_context=1024, scale=True, weights="zeroshot", random_state=0):
        self.n_clusters = n_clusters
        self.n_looks = n_looks
        self.max_context = max_context
        self.scale = scale
        self.weights = weights
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Read X, or a sample of it, and label its rows.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
            Missing values are allowed; columns of a DataFrame may hold text, categories or dates. Rows that
            :class:`coterie.data.encoding.Encoding` encoded are taken as they are; ``scale`` then has no effect.
        y : ignored

        Returns
        -------
        self
        """
        from coterie.zeroshot.inference import read_contexts
        from coterie.zeroshot.labels import partition

        rows = self._encoded(X, reset=True)
        n, points = len(rows), rows.points
        self._check_size(n)
        random = check_random_state(self.random_state)
        rng = np.random.default_rng(random.randint(2**31))
        contexts, looks = [points], self.n_looks
        if n > self.max_context:
            contexts = [points[np.sort(rng.choice(n, self.max_context, replace=False))] for _ in range(self.n_looks)]
            looks = 1
        if self.n_clusters is not None:
            starts.require_distinct_rows(contexts[0], self.n_clusters)
        network = _network(self.weights)
        reading = read_contexts(network, contexts, looks, rng)
        found = partition(reading, self.n_clusters, network.config.choice)
        self.n_clusters_ = self._n_features_out = found.n_clusters
        self.n_clusters_proba_ = found.clusters_proba
        self.context_ = contexts[0]
        self.context_proba_ = found.proba_NK
        self.context_noise_ = reading.noise_N
        self.labels_ = self._proba(points).argmax(axis=1).astype(np.int32)
        self.noise_ = self._beside(points, self.context_noise_[:, None])[:, 0] > NOISE_LIMIT
        self.cluster_centers_ = self._centers(rows.numbers)
        return self

    def _check_size(self, n: int) -> None:
        if n < 2:
            raise ValueError(f"ZeroShotClusterer needs at least 2 rows, got n_samples={n}.")
        if n > MAX_ROWS:
            raise ValueError(
                f"ZeroShotClusterer fits at most {MAX_ROWS:,} rows, got {n:,}: fit a random sample of them and call "
                "predict on all."
            )
        if self.n_clusters is None:
            return
        check_enough_rows(n, self.n_clusters)
        check_context(self.max_context, self.n_clusters)
        if self.n_clusters > MAX_CLUSTERS:
            raise ValueError(
                f"ZeroShotClusterer finds at most {MAX_CLUSTERS} clusters, got n_clusters={self.n_clusters}: "
                "use coterie.KMeans, which has no such limit."
            )

    def _encoded(self, X, *, reset: bool) -> Encoded:
        """Rows that are encoded already, as those of a clustered table are, stay as they are."""
        if isinstance(X, Encoded):
            if reset:
                self.n_features_in_ = len(X.encoding.columns)
                self.feature_names_in_ = np.array(X.encoding.names, dtype=object)
                self.encoding_ = X.encoding.to_json()
            return X
        columns = self._columns(X, reset=reset)
        if reset:
            self._check_size(len(columns[0]))
            encoding = Encoding.of(columns, getattr(self, "feature_names_in_", None), scale=self.scale)
            self.encoding_ = encoding.to_json()
        else:
            encoding = Encoding.from_json(self.encoding_)
        return encoding.encode(columns)

    def _columns(self, X, *, reset: bool) -> list[np.ndarray]:
        """The columns of what a user handed in, checked: numbers without infinities, or categories."""

        if hasattr(X, "columns") and hasattr(X, "dtypes"):
            validate_data(self, X, reset=reset, skip_check_array=True)
            columns = columns_of(X)
        else:
            columns = columns_of(validate_data(self, X, reset=reset, dtype=np.float64, ensure_all_finite=False))
        if not columns:
            raise ValueError("Found array with 0 feature(s) while a minimum of 1 is required.")
        for number, values in enumerate(columns):
            if values.dtype != object and np.isinf(values).any():
                raise ValueError(f"Input X contains infinity (column {number}): remove such rows, or set them to NaN.")
        return columns

    def _centers(self, rows: np.ndarray) -> np.ndarray:
        members = np.eye(self.n_clusters_)[self.labels_]
        return members.T @ rows / np.maximum(members.sum(axis=0), 1)[:, None]

    def _beside(self, points: np.ndarray, values: np.ndarray) -> np.ndarray:
        from coterie.zeroshot.inference import neighbours_mean

        return neighbours_mean(points, self.context_, values)

    def _proba(self, points: np.ndarray) -> np.ndarray:
        return self._beside(points, self.context_proba_)

    def _new_points(self, X) -> np.ndarray:
        check_is_fitted(self)
        return self._encoded(X, reset=False).points

    def predict(self, X):
        """Cluster of every row, int32: each row on its own, beside the rows that were read."""
        return self.predict_proba(X).argmax(axis=1).astype(np.int32)

    def predict_proba(self, X):
        """Probability of every cluster, shape (n_samples, n_clusters_)."""
        return self._proba(self._new_points(X))

    def transform(self, X):
        """The same probabilities as features for a next step of a pipeline."""
        return self.predict_proba(X)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


@cache
def _network(name: str):
    from coterie import checkpoints

    return checkpoints.load(name, kind="zeroshot")
