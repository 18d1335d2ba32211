"""Clustering by a pretrained transformer that reads the data as its context."""

import os
from numbers import Integral
from typing import ClassVar

import numpy as np
from sklearn.base import _fit_context
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

from coterie import starts, threads
from coterie.estimators.clusterer import Clusterer
from coterie.estimators.in_blocks import answers_in, checked_rows_in, drawn, per_row
from coterie.estimators.validation import check_context, check_device, check_enough_rows
from coterie.geometry.spread import principal_axes

MAX_CLUSTERS = 20
MAX_DIMS = 16
MAX_CONTEXT = 2_000
MAX_MODES = 4
PAIRS = 32_000  # (row, cluster) pairs that are read for more than one mode, so that 1,000 rows take less than a second
ROWS_PER_BLOCK = 4_096
RISE = 1e-3  # of the mean log-likelihood in the last step of EM: below it EM counts as converged


class InContextClusterer(Clusterer):
    """Clusterer for overlapping groups: a pretrained network that approximates the posterior of a Gaussian mixture.

    Mixtures of spherical Gaussians with one variance, of equal or estimated sizes, are fitted by EM from several
    starts. The network, a transformer whose untrained layers are EM steps (after He et al., 2025, "Transformers versus
    the EM Algorithm in Multi-class Clustering", arXiv 2502.06007), refines those that reached different optima. It was
    trained to give the Bayesian posterior, in which centres, sizes and variance of the clusters are uncertain. The
    refined solutions are weighted by their evidence. Labels maximise the expected adjusted Rand index under the
    resulting co-assignments (Fritsch and Ickstadt, 2009), so a label need not be the cluster of largest probability
    where clusters overlap much.

    The network is the same for all data. It was trained on Gaussian mixtures of 1 to 16 dimensions, 2 to 20 clusters of
    equal or unequal size and 50 to 400 points. Clusters of very different spread or of elongated shape are outside of
    what it has seen.

    Limits of the shipped network: at most 20 clusters (more raise an error); at most 16 dimensions (further columns are
    reduced by PCA inside ``fit``); a context of at most 2,000 rows (of more rows a random sample is read, and every row
    is then labelled on its own against that context).

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters to find, from 1 to 20.
    n_init : int, default=10
        Number of starts, alternately greedy k-means++ and spectral. Each gets five steps of Lloyd's algorithm and is
        then fitted by thirty steps of EM twice, with equal and with estimated sizes of the clusters; up to four of the
        optima, those of the largest evidence, are refined by the network.
    max_context : int, default=2000
        Largest number of rows that the network reads, from 2 to 2,000.
    network : str or path, default="incontext"
        Name of a network (``coterie models`` lists them) or path of its ``.safetensors`` file.
    <device, n_jobs>
    random_state : int, RandomState instance or None, default=None
        Seed of the starts, and of the sample that is read of a large table. Pass an int for reproducible results.

    Attributes
    ----------
    <labels_>
    cluster_centers_ : array of shape (n_clusters, n_features)
        Means of the rows of the context, weighted by their probabilities.
    weights_ : array of shape (n_clusters,)
        Mean probability of every cluster in the context; adds up to one.
    n_clusters_ : int
        Number of clusters.
    n_modes_ : int
        Number of different optima of EM that the network refined.
    mode_weights_ : array of shape (n_modes_,)
        Their weights; add up to one.
    converged_ : bool
        Whether EM had converged for the likeliest start: the mean log-likelihood of a row rose by less than 0.001 in
        the last step. The network has a fixed number of layers and refines the solution in either case.
    mean_ : array of shape (n_features,)
        Mean of the columns.
    components_ : array of shape (n_dims, n_features)
        The network reads ``components_ @ (row - mean_)`` of a row.
    mode_centers_, layer_centers_, layer_shares_, layer_vars_, layer_tokens_, scale_ : arrays
        The context as the network remembers it: the clusters at the start and in each layer, for every mode.
    renaming_, coassignment_sums_, coassignment_sizes_, coassignment_level_ : arrays and float
        How the modes' posteriors are combined into labels and probabilities.
    <n_features_in_, feature_names_in_>

    Notes
    -----
    There is no ``sample_weight``: the network reads every row of its context once.

    See Also
    --------
    SoftKMeans : EM without a network and without limits; with ``refine="posterior"`` the posterior by Gibbs sampling.

    Examples
    --------
    >>> from coterie import InContextClusterer
    >>> from sklearn.datasets import make_blobs
    >>> X, _ = make_blobs(300, centers=4, cluster_std=2, random_state=0)
    >>> InContextClusterer(4, random_state=0).fit(X).predict_proba(X).shape
    (300, 4)
    """

    _parameter_constraints: ClassVar[dict] = {
        **Clusterer._common_constraints,
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_context": [Interval(Integral, 2, MAX_CONTEXT, closed="both")],
        "network": [str, os.PathLike],
    }

    def __init__(
        self,
        n_clusters=8,
        *,
        n_init=10,
        max_context=2000,
        network="incontext",
        device=None,
        n_jobs=None,
        random_state=None,
    ):
        self.n_clusters = n_clusters
        self.n_init = n_init
        self.max_context = max_context
        self.network = network
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Read X as the context, and label its rows.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features), Dask array or DataFrame, path, or ``Chunks``
            The rows to cluster; finite numbers. Of rows in files or on Dask, the context is read in one pass.
        y : ignored
            Present for compatibility with scikit-learn.

        Returns
        -------
        self
        """
        X = checked_rows_in(self, X)
        if self.n_clusters > MAX_CLUSTERS:
            raise ValueError(
                f"InContextClusterer's network was trained for at most {MAX_CLUSTERS} clusters, got "
                f"n_clusters={self.n_clusters}: use coterie.KMeans, which has no such limit."
            )
        check_enough_rows(len(X), self.n_clusters)
        check_context(self.max_context, self.n_clusters)
        random = check_random_state(self.random_state)
        context = drawn(X, self.max_context, random)[0]
        dtype, context = context.dtype, context.astype(np.float64)
        self.mean_, self.components_ = context.mean(axis=0), np.eye(context.shape[1])
        if context.shape[1] > MAX_DIMS:
            self.components_ = principal_axes(context - self.mean_)[0][:MAX_DIMS]
        with threads.torch_threads(self.n_jobs):
            reading, log_p_SNK = self._read(np.ascontiguousarray((context - self.mean_) @ self.components_.T), random)
            self._remember(reading)
            p = reading.probabilities(log_p_SNK)
            self.weights_ = p.mean(axis=0)
            self.cluster_centers_ = ((p / p.sum(axis=0)).T @ context).astype(dtype)
            self.labels_ = answers_in(self, "_labels", X)
        self.n_clusters_ = self._n_features_out = self.n_clusters
        return self

    def _read(self, rows: np.ndarray, random):
        import torch

        from coterie.incontext.inference import read

        kinds = ["spectral" if number % 2 else "k-means++" for number in range(self.n_init)]
        chosen = np.stack([starts.choose(rows, self.n_clusters, kind, random) for kind in kinds])
        device = check_device(self.device)
        modes = max(1, min(MAX_MODES, PAIRS // (len(rows) * self.n_clusters)))
        x, centers = (torch.from_numpy(array).to(device) for array in (rows, chosen))
        return read(_network(self.network, device), x, centers, modes)

    def _remember(self, reading) -> None:
        context, summaries = reading.context, (reading.context.start, *reading.context.layers)
        self.scale_ = float(context.scale_B[0])
        # what the network subtracts is rounding only: the rows are centred already
        self.mean_ = self.mean_ + context.mean_B1D[0, 0].cpu().numpy() @ self.components_
        self.mode_weights_ = reading.weights_S
        self.n_modes_ = len(reading.weights_S)
        self.converged_ = bool(reading.start.last_rise_B[0] < RISE)
        self.mode_centers_ = context.start.centers_BKMD.cpu().numpy()
        self.layer_centers_ = np.stack([summary.centers_BKMD.cpu().numpy() for summary in context.layers])
        self.layer_shares_, self.layer_vars_, self.layer_tokens_ = (
            np.stack([getattr(summary, name).cpu().numpy() for summary in summaries])
            for name in ("shares_BK", "var_B", "token_BKE")
        )
        self.renaming_ = reading.renaming_SKK
        self.coassignment_sums_ = reading.rule.sums_KF
        self.coassignment_sizes_ = reading.rule.counts_K
        self.coassignment_level_ = reading.rule.level

    def _recall(self, device):
        """The context and the rule that ``_remember`` stored."""
        import torch

        from coterie.incontext.consensus import Rule
        from coterie.incontext.inference import Reading
        from coterie.incontext.pair_transformer import Context, Summary

        def tensor(array) -> torch.Tensor:
            return torch.as_tensor(np.asarray(array, dtype=np.float64), device=device)

        centers = [self.mode_centers_, *self.layer_centers_]
        summaries = [
            Summary(*(tensor(array) for array in parts))
            for parts in zip(centers, self.layer_shares_, self.layer_vars_, self.layer_tokens_)
        ]
        origin = torch.zeros(self.n_modes_, 1, len(self.components_), dtype=torch.float64, device=device)
        scale = tensor(np.full(self.n_modes_, self.scale_))
        context = Context(origin, scale, summaries[0], tuple(summaries[1:]))
        rule = Rule(self.coassignment_sums_, self.coassignment_sizes_, self.coassignment_level_)
        return Reading(context, self.mode_weights_, self.renaming_, rule, None)

    def _blocks(self, X):
        """The recalled reading with the log posteriors (S, N, K) of one block of rows after another."""
        import torch

        device = check_device(self.device)
        network, reading = _network(self.network, device), self._recall(device)
        with torch.no_grad():
            for first in range(0, len(X), ROWS_PER_BLOCK):
                block = X[first : first + ROWS_PER_BLOCK].astype(np.float64)
                # one sum per value, in the order of the columns: a matrix product may round by the number of rows
                rows = np.stack([((block - self.mean_) * row).sum(axis=1) for row in self.components_], axis=1)
                x = torch.from_numpy(rows).to(device).expand(self.n_modes_, -1, -1)
                yield reading, network.label(x, reading.context)

    def _labels(self, X) -> np.ndarray:
        return np.concatenate([reading.labels(log_p) for reading, log_p in self._blocks(X)]).astype(np.int32)

    @per_row
    def predict(self, X):
        """Cluster of every row, given the fitted context; a row's label does not depend on the other rows of X.

        Returns
        -------
        labels : int32 array of shape (n_samples,)
        """
        X = self._checked_new(X)
        with threads.torch_threads(self.n_jobs):
            return self._labels(X)

    @per_row
    def predict_proba(self, X):
        """Posterior probability of every cluster for every row.

        The modes' posteriors are averaged after their clusters have been matched with those of the labels. The cluster
        of largest probability can differ from the label, which maximises the expected adjusted Rand index instead.

        Returns
        -------
        probabilities : array of shape (n_samples, n_clusters)
            Rows add up to one.
        """
        X = self._checked_new(X)
        with threads.torch_threads(self.n_jobs):
            return np.concatenate([reading.probabilities(log_p) for reading, log_p in self._blocks(X)])

    @per_row
    def transform(self, X):
        """Euclidean distance of every row to every centre.

        Returns
        -------
        distances : array of shape (n_samples, n_clusters)
        """
        X = self._checked_new(X)
        return euclidean_distances(X, self.cluster_centers_)


def _network(name, device):
    import torch

    from coterie import checkpoints

    # float64: a row's answer must not depend on how many rows are asked together
    return checkpoints.load(name, kind="incontext", dtype=torch.float64, device=device)
