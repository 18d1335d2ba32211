"""A Gaussian mixture found by the pretrained measure flow."""

import os
import warnings
from numbers import Integral, Real
from typing import ClassVar

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import logsumexp
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    DensityMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, Options, StrOptions
from sklearn.utils.validation import check_is_fitted

from coterie import threads
from coterie.estimators.persistence import SaveMixin
from coterie.estimators.validation import check_device, check_rows, check_weights


class FlowMixture(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, DensityMixin, ClusterMixin, SaveMixin, BaseEstimator
):
    """A mixture of spherical Gaussians with a common variance, found by a pretrained transformer (Zimin et al., 2025).

    The number of clusters is not needed. The network moves every row towards the centre of the cluster that it came
    from, and rows that end in the same place form a cluster. How far the rows move depends on the signal-to-noise ratio
    (SNR), which is the variance of the centres divided by the variance within the clusters. With a low SNR the data are
    described by few wide clusters, with a high SNR by many narrow ones. EM on all rows then refines the clusters.

    Parameters
    ----------
    snr_db : float or None, default=None
        The SNR in decibels, that is, 10 log10 of the ratio, between -20 and 60. If None, it is estimated: the values of
        ``snr_path_`` are tried, and the Bayesian information criterion (BIC) chooses among them.
    n_layers : int or None, default=None
        Number of layers of the network, which are steps of the flow. If None, the number used in training.
    regime : {"uniform", "unit", "none"} or None, default=None
        How the total flow time is divided into step sizes. "uniform" divides it equally among the layers, "unit" takes
        steps of size 1 until the time is used up, and "none" takes a step of size 1 in every layer regardless of the
        SNR. If None, the regime used in training.
    refine : {"em", "posterior", None}, default="em"
        What follows the flow. "em" refines the clusters by EM and removes those that do not lower the BIC. "posterior"
        additionally averages the mixing measure over its posterior distribution and stores the result in ``atoms_``. It
        has the smallest expected Wasserstein distance to the true measure, and is better than the clusters where they
        overlap. None keeps the clusters of the flow.
    max_iter : int, default=100
        Maximum number of iterations of EM, after the number of clusters has been determined.
    tol : float, default=1e-3
        EM stops when the mean log-likelihood of the rows rises by less than this.
    max_context : int, default=1024
        Maximum number of rows that the network sees. If there are more, it sees a random sample. EM and the labels use
        all rows.
    network : str or path, default="auto"
        Name of a network (``coterie models`` lists them) or path of its ``.safetensors`` file. "auto" is "flow-d2" for
        data with two columns and otherwise "flow-d8". If the data have more columns than the network, it sees their
        first principal components. EM uses all columns.
    device : str, torch.device or None, default=None
        Where the network runs; None is the CPU.
    n_jobs : int or None, default=None
        Number of threads of the network and of EM: -1 uses all processors, None the current setting of torch.
    random_state : int, RandomState or None, default=None
        Determines which rows the network sees, the samples from the posterior, and the result of ``sample``. Pass an
        int for reproducible results.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters_, n_features)
        Centres of the clusters, in order of decreasing weight.
    weights_ : ndarray of shape (n_clusters_,)
        Share of each cluster.
    var_ : float
        Variance within the clusters, per dimension. An estimate is at least a millionth of the total variance.
    labels_ : int32 ndarray of shape (n_samples,)
        The most likely cluster of each row.
    n_clusters_ : int
        Number of clusters found.
    n_iter_ : int
        Number of iterations of EM, after the number of clusters had been determined.
    converged_ : bool
        Whether EM converged within ``max_iter`` iterations.
    atoms_ : ndarray of shape (n_atoms, n_features)
        The centres found by the flow, before EM. With ``refine="posterior"`` the average over the posterior: one atom
        for each row that the network has seen, all of equal weight.
    flow_time_ : float
        Total flow time that the network chose for the SNR.
    snr_db_ : float
        The SNR in decibels, as given or as estimated.
    snr_path_, bic_path_, n_clusters_path_ : ndarray of shape (n_tried,)
        The values of the SNR that were tried, and the BIC and the number of clusters for each. They are empty if
        ``snr_db`` is given.
    n_features_in_ : int
        Number of columns seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns seen in ``fit``, if X has names that are all strings.

    References
    ----------
    A. Zimin, A. Kutakh, Y. Polyanskiy and P. Rigollet (2025). "Learning Gaussian Mixture Models via Transformer Measure
    Flows". Workshop on Methods and Opportunities at Small Scale (MOSS), ICML 2025.

    Examples
    --------
    >>> from coterie import FlowMixture
    >>> from sklearn.datasets import make_blobs
    >>> X, _ = make_blobs(300, centers=4, cluster_std=0.3, random_state=0)
    >>> FlowMixture(random_state=0).fit(X).n_clusters_
    4
    """

    _parameter_constraints: ClassVar[dict] = {
        "snr_db": [None, Interval(Real, -20, 60, closed="both")],
        "n_layers": [None, Interval(Integral, 1, None, closed="left")],
        "regime": [None, StrOptions({"uniform", "unit", "none"})],
        "refine": [None, StrOptions({"em", "posterior"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_context": [Interval(Integral, 2, None, closed="left")],
        "network": [str, os.PathLike],
        "device": "no_validation",
        "n_jobs": [None, Interval(Integral, 1, None, closed="left"), Options(Integral, {-1})],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        snr_db=None,
        n_layers=None,
        regime=None,
        refine="em",
        max_iter=100,
        tol=1e-3,
        max_context=1024,
        network="auto",
        device=None,
        n_jobs=None,
        random_state=None,
    ):
        self.snr_db = snr_db
        self.n_layers = n_layers
        self.regime = regime
        self.refine = refine
        self.max_iter = max_iter
        self.tol = tol
        self.max_context = max_context
        self.network = network
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Find the clusters of X.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
        y : ignored
        sample_weight : array of shape (n_samples,) or None, default=None
            How many times each row counts: a row of weight 2 has the same effect as two equal rows, and a row of weight
            0 is only labelled. None counts every row once.

        Returns
        -------
        self
        """
        X = check_rows(self, X, reset=True)
        weight = check_weights(X, sample_weight)
        used = slice(None) if weight is None else weight > 0
        found = self._estimate(X[used], None if weight is None else weight[used])
        self.cluster_centers_ = found.centers_KD
        self.weights_ = found.weights_K
        self.var_ = found.var
        self.snr_db_ = found.snr_db
        self.flow_time_ = found.flow_time
        self.atoms_ = found.atoms_AD
        self.n_iter_ = found.n_iter
        self.converged_ = found.converged
        path = found.path
        self.snr_path_ = np.array(path.tried_db if path else ())
        self.bic_path_ = np.array(path.bic if path else ())
        self.n_clusters_path_ = np.array(path.n_clusters if path else (), dtype=int)
        self.n_clusters_ = self._n_features_out = len(found.weights_K)
        self.labels_ = self._log_joint(X).argmax(1).astype(np.int32)
        if not self.converged_:
            warnings.warn(
                f"EM did not converge in {self.max_iter} iterations: increase max_iter or tol.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _estimate(self, X, weight):
        import torch

        from coterie import checkpoints
        from coterie.flow.inference import FlowOptions, fit_mixture

        if len(X) < 2:
            raise ValueError(f"FlowMixture needs at least 2 rows with a positive weight, got n_samples={len(X)}.")
        random = check_random_state(self.random_state)
        context = self._context(len(X), weight, random)
        name = self.network
        if name == "auto":
            name = "flow-d2" if X.shape[1] == 2 else "flow-d8"
        options = FlowOptions(self.n_layers, self.regime, self.refine, self.max_iter, self.tol)
        with threads.torch_threads(self.n_jobs):
            return fit_mixture(
                checkpoints.load(name, kind="flow", device=check_device(self.device)),
                X,
                self.snr_db,
                context=context,
                generator=torch.Generator().manual_seed(int(random.randint(2**31))),
                counts_N=weight,
                options=options,
            )

    def _context(self, n_rows: int, weight: np.ndarray | None, random) -> np.ndarray:
        """The rows that the network sees. Of weighted rows, each is repeated in proportion to its weight."""
        if weight is None:
            if n_rows <= self.max_context:
                return np.arange(n_rows)
            return np.sort(random.choice(n_rows, self.max_context, replace=False))
        total = weight.sum()
        size = int(min(self.max_context, max(2, round(total))))
        offset = random.uniform() if total > self.max_context else 0.5
        return np.searchsorted(weight.cumsum(), (np.arange(size) + offset) * (total / size), side="right")

    def _log_joint(self, X) -> np.ndarray:
        """Logarithm of weight times density of every row and cluster, shape (n_samples, n_clusters_)."""
        constant = np.log(self.weights_) - 0.5 * self.n_features_in_ * np.log(2 * np.pi * self.var_)
        return constant - cdist(X, self.cluster_centers_, "sqeuclidean") / (2 * self.var_)

    def _new_log_joint(self, X) -> np.ndarray:
        check_is_fitted(self)
        return self._log_joint(check_rows(self, X, reset=False))

    def predict(self, X):
        """Predict the most likely cluster of each row.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)

        Returns
        -------
        labels : int32 ndarray of shape (n_samples,)
        """
        return self._new_log_joint(X).argmax(1).astype(np.int32)

    def predict_proba(self, X):
        """Compute the posterior probability of each cluster for each row.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)

        Returns
        -------
        probability : ndarray of shape (n_samples, n_clusters_)
        """
        log_joint = self._new_log_joint(X)
        return np.exp(log_joint - logsumexp(log_joint, axis=1, keepdims=True))

    def transform(self, X):
        """Compute the Euclidean distance of each row to each centre.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)

        Returns
        -------
        distance : ndarray of shape (n_samples, n_clusters_)
        """
        check_is_fitted(self)
        X = check_rows(self, X, reset=False)
        return cdist(X, self.cluster_centers_).astype(X.dtype)

    def score_samples(self, X):
        """Compute the log-density of each row.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
        """
        return logsumexp(self._new_log_joint(X), axis=1)

    def score(self, X, y=None):
        """Compute the mean log-density of the rows.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        log_density : float
        """
        return float(self.score_samples(X).mean())

    def bic(self, X):
        """Compute the Bayesian information criterion on X; lower is better.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)

        Returns
        -------
        bic : float
        """
        n_parameters = self.n_clusters_ * (self.n_features_in_ + 1)
        return -2 * float(self.score_samples(X).sum()) + n_parameters * float(np.log(len(X)))

    def sample(self, n_samples=1):
        """Draw rows from the fitted mixture.

        Parameters
        ----------
        n_samples : int, default=1

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        labels : int32 ndarray of shape (n_samples,)
            The clusters that the rows come from.
        """
        check_is_fitted(self)
        random = check_random_state(self.random_state)
        labels = random.choice(self.n_clusters_, size=n_samples, p=self.weights_)
        noise = random.normal(scale=np.sqrt(self.var_), size=(n_samples, self.n_features_in_))
        return self.cluster_centers_[labels] + noise, labels.astype(np.int32)

    @property
    def covariance_(self):
        """The covariance matrix of every cluster, shape (n_features, n_features)."""
        check_is_fitted(self)
        return self.var_ * np.eye(self.n_features_in_)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
