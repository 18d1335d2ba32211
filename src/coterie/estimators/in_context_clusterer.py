"""Clustering by one pass of a pretrained transformer that reads the data as its context."""

from numbers import Integral
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin, _fit_context
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from coterie import starts
from coterie.estimators.persistence import SaveMixin
from coterie.estimators.validation import check_context, check_enough_rows, check_rows

MAX_CLUSTERS = 10
MAX_DIMS = 16
MAX_CONTEXT = 2_000
ROWS_PER_BLOCK = 4_096


class InContextClusterer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, SaveMixin, BaseEstimator):
    """A pretrained network that refines the best of several k-means starts into posteriors (after document 001).

    The network is one for all data: it was trained on Gaussian mixtures of 1 to 16 dimensions, 2 to 10 clusters of
    equal or unequal size and 50 to 400 points, and asked for the labels. It started out as EM. On overlapping
    clusters of equal size its labels are better than those of k-means and about as good as EM's, with better
    probabilities; for many clusters of unequal size :class:`~coterie.KMeans` can be better (results/RESULTS.md).

    Limits of the shipped weights: at most 10 clusters (more are refused); at most 16 dimensions (further columns are
    reduced by PCA inside ``fit``); a context of at most 2,000 rows (of more, a random part is read, and every row is
    then labelled on its own against that context).

    Parameters
    ----------
    n_clusters : int, default=8
        From 1 to 10.
    n_init : int, default=10
        Starts, half spectral and half k-means++; each gets ten Lloyd steps, the one of least inertia is refined.
    max_context : int, default=2000
        Rows that the network reads at most.
    weights : str, default="incontext"
        Name of the shipped network (``coterie models`` lists them).
    random_state : int, RandomState or None, default=None
        Draws the starts, and the context of a large table.

    Attributes
    ----------
    labels_ : int32 array of shape (n_samples,)
    cluster_centers_ : array of shape (n_clusters, n_features)
        Means of the context's rows, weighted by the posteriors.
    weights_ : array of shape (n_clusters,)
        Share of every cluster in the context.
    mean_, components_ : arrays of shape (n_features,) and (n_dims, n_features)
        What the network reads of a row is ``components_ @ (row - mean_)``.
    start_centers_, layer_centers_, layer_vars_, layer_tokens_, scale_ : arrays
        The context as the network remembers it: what the clusters were before and in each layer.
    n_features_in_ : int

    Examples
    --------
    >>> from coterie import InContextClusterer
    >>> from sklearn.datasets import make_blobs
    >>> X, _ = make_blobs(300, centers=4, cluster_std=2, random_state=0)
    >>> InContextClusterer(4, random_state=0).fit(X).predict_proba(X).shape
    (300, 4)
    """

    _parameter_constraints: ClassVar[dict] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_context": [Interval(Integral, 2, MAX_CONTEXT, closed="both")],
        "weights": [str],
        "random_state": ["random_state"],
    }

    def __init__(self, n_clusters=8, *, n_init=10, max_context=2000, weights="incontext", random_state=None):
        self.n_clusters = n_clusters
        self.n_init = n_init
        self.max_context = max_context
        self.weights = weights
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Read X as the context, and label its rows.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        import torch

        X = check_rows(self, X, reset=True)
        if self.n_clusters > MAX_CLUSTERS:
            raise ValueError(
                f"InContextClusterer's weights were trained for at most {MAX_CLUSTERS} clusters, got "
                f"n_clusters={self.n_clusters}: use coterie.KMeans, which has no such limit."
            )
        check_enough_rows(len(X), self.n_clusters)
        check_context(self.max_context, self.n_clusters)
        random = check_random_state(self.random_state)
        context = X
        if len(X) > self.max_context:
            context = X[np.sort(random.choice(len(X), self.max_context, replace=False))]
        context = context.astype(np.float64)
        self.mean_, self.components_ = _directions(context, MAX_DIMS)
        read = np.ascontiguousarray((context - self.mean_) @ self.components_.T)
        start = self._start(read, random)
        with torch.no_grad():
            found, log_p_1NK = _network(self.weights).read(torch.from_numpy(read)[None], start)
        self._remember(found)
        p = log_p_1NK[0].exp().numpy()
        self.weights_ = p.mean(axis=0)
        self.cluster_centers_ = ((p / p.sum(axis=0)).T @ context).astype(X.dtype)
        self.labels_ = self._log_posterior(X).argmax(axis=1).astype(np.int32)
        self._n_features_out = self.n_clusters
        return self

    def _start(self, read: np.ndarray, random):
        import torch

        from coterie.starts.batched import least_inertia, lloyd

        kinds = ["spectral" if number % 2 else "k-means++" for number in range(self.n_init)]
        chosen = np.stack([starts.choose(read, self.n_clusters, kind, random) for kind in kinds])
        x_SND = torch.from_numpy(read).expand(len(chosen), -1, -1)
        centers_SKD = lloyd(x_SND, torch.from_numpy(chosen), n_iter=10)
        return least_inertia(x_SND, centers_SKD, self.n_init)

    def _remember(self, context) -> None:
        self.scale_ = float(context.scale_B[0])
        # what the network subtracts is rounding only: the rows are centred already
        self.mean_ = self.mean_ + context.mean_B1D[0, 0].numpy() @ self.components_
        self.start_centers_ = context.start.centers_BKMD[0, :, 0].numpy()
        summaries = (context.start, *context.layers)
        self.layer_centers_ = np.stack([summary.centers_BKMD[0].numpy() for summary in context.layers])
        self.layer_vars_ = np.array([float(summary.var_B[0]) for summary in summaries])
        self.layer_tokens_ = np.stack([summary.token_BKE[0].numpy() for summary in summaries])

    def _recall(self):
        import torch

        from coterie.incontext.pair_transformer import Context, Summary

        def batched(array) -> torch.Tensor:
            return torch.as_tensor(np.asarray(array, dtype=np.float64))[None]

        centers = [self.start_centers_[:, None], *self.layer_centers_]
        summaries = [
            Summary(batched(place), batched(var), batched(token))
            for place, var, token in zip(centers, self.layer_vars_, self.layer_tokens_)
        ]
        origin = torch.zeros(1, 1, len(self.components_), dtype=torch.float64)
        return Context(origin, batched(self.scale_), summaries[0], tuple(summaries[1:]))

    def _log_posterior(self, X) -> np.ndarray:
        import torch

        network, context = _network(self.weights), self._recall()
        parts = []
        with torch.no_grad():
            for first in range(0, len(X), ROWS_PER_BLOCK):
                block = X[first : first + ROWS_PER_BLOCK].astype(np.float64)
                # one sum a value, in the order of the columns: a matrix product may round by the number of rows
                read = np.stack([((block - self.mean_) * row).sum(axis=1) for row in self.components_], axis=1)
                parts.append(network.label(torch.from_numpy(read)[None], context)[0].numpy())
        return np.concatenate(parts)

    def _new_log_posterior(self, X) -> np.ndarray:
        check_is_fitted(self)
        return self._log_posterior(check_rows(self, X, reset=False))

    def predict(self, X):
        """Most likely cluster of every row, int32; each row on its own, against the fitted context."""
        return self._new_log_posterior(X).argmax(axis=1).astype(np.int32)

    def predict_proba(self, X):
        """The network's posterior, shape (n_samples, n_clusters)."""
        return np.exp(self._new_log_posterior(X))

    def transform(self, X):
        """Distance of every row to every centre, shape (n_samples, n_clusters)."""
        check_is_fitted(self)
        X = check_rows(self, X, reset=False)
        return euclidean_distances(X, self.cluster_centers_)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _network(name: str):
    import torch

    from coterie import checkpoints

    # float64: a row's answer must not depend on how many rows are asked together
    return checkpoints.load(name, kind="incontext", dtype=torch.float64)


def _directions(X: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and the directions to read: the columns themselves, or the first principal ones if there are too many."""
    mean = X.mean(axis=0)
    if X.shape[1] <= most:
        return mean, np.eye(X.shape[1])
    _, _, directions = np.linalg.svd(X - mean, full_matrices=False)
    kept = directions[:most]
    signs = np.sign(kept[np.arange(len(kept)), np.abs(kept).argmax(axis=1)])
    return mean, kept * signs[:, None]
