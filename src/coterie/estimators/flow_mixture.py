"""A Gaussian mixture found by the pretrained measure flow."""

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
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from coterie.estimators.persistence import SaveMixin
from coterie.estimators.validation import check_rows


class FlowMixture(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, DensityMixin, ClusterMixin, SaveMixin, BaseEstimator
):
    """A mixture of spherical Gaussians with one variance, found by a pretrained transformer (document 003).

    No number of clusters is needed. The network moves every row towards the centre it came from; how far it lets
    them flow depends on the signal-to-noise ratio (SNR): the variance of the centres over that of the noise. Rows that
    end up together are one cluster. A low SNR reads the data as few wide clusters, a high one as many tight ones.

    Parameters
    ----------
    snr_db : float or None, default=None
        10 log10 of the SNR. None chooses it by penalised likelihood (BIC) among the values in ``snr_path_``.
    n_layers : int or None, default=None
        Steps of the flow; None takes as many as in training.
    regime : {"uniform", "unit", "none"} or None, default=None
        How flow time becomes step sizes; None takes the training's.
    refine : {"em", "posterior", None}, default="em"
        "em": EM steps with the variance that the SNR implies follow the flow, and clusters that the likelihood does not
        need are dropped. "posterior" also averages the mixing measure over its posterior, into ``atoms_``: the estimate
        of least expected Wasserstein distance, which is better than the clusters where these overlap.
    max_context : int, default=1024
        The network looks at no more than this many rows, drawn at random; EM and labels use all.
    weights : str, default="auto"
        Name of the shipped network (``coterie models`` lists them); "auto" takes the one for the number of columns.
        More columns than it knows are reduced by PCA for the flow.
    random_state : int, RandomState or None, default=None
        Draws the context, and the samples of ``sample``.

    Attributes
    ----------
    cluster_centers_ : array of shape (n_clusters, n_features), heaviest first
    weights_ : array of shape (n_clusters,)
    var_ : float
        Variance of the noise per dimension.
    labels_ : int32 array of shape (n_samples,)
    n_clusters_ : int
    atoms_ : array of shape (n_atoms, n_features)
        The flow's centres before EM. With ``refine="posterior"``: the averaged measure, one atom for each row of the
        context, all of equal weight.
    flow_time_ : float
    snr_db_ : float
    snr_path_, bic_path_, n_clusters_path_ : arrays
        What each SNR gave, if it was estimated; else empty.
    n_features_in_ : int

    Examples
    --------
    >>> from coterie import FlowMixture
    >>> from sklearn.datasets import make_blobs
    >>> X, _ = make_blobs(300, centers=4, cluster_std=0.3, random_state=0)
    >>> FlowMixture(random_state=0).fit(X).n_clusters_  # doctest: +SKIP
    4
    """

    _parameter_constraints: ClassVar[dict] = {
        "snr_db": [None, Interval(Real, -20, 60, closed="both")],
        "n_layers": [None, Interval(Integral, 1, None, closed="left")],
        "regime": [None, StrOptions({"uniform", "unit", "none"})],
        "refine": [None, StrOptions({"em", "posterior"})],
        "max_context": [Interval(Integral, 2, None, closed="left")],
        "weights": [str],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        snr_db=None,
        n_layers=None,
        regime=None,
        refine="em",
        max_context=1024,
        weights="auto",
        random_state=None,
    ):
        self.snr_db = snr_db
        self.n_layers = n_layers
        self.regime = regime
        self.refine = refine
        self.max_context = max_context
        self.weights = weights
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Find centres, weights and variance.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        from coterie import checkpoints
        from coterie.flow.fitting import fit_mixture

        X = check_rows(self, X, reset=True)
        if len(X) < 2:
            raise ValueError(f"FlowMixture needs at least 2 rows, got n_samples={len(X)}.")
        context = np.arange(len(X))
        if len(X) > self.max_context:
            context = np.sort(check_random_state(self.random_state).choice(len(X), self.max_context, replace=False))
        network = checkpoints.load(self._network_name(X.shape[1]), kind="flow")
        found = fit_mixture(
            network,
            X,
            self.snr_db,
            context=context,
            n_layers=self.n_layers,
            regime=self.regime,
            em=self.refine is not None,
            average=self.refine == "posterior",
        )
        self.cluster_centers_ = found.centers_KD
        self.weights_ = found.weights_K
        self.var_ = found.var
        self.snr_db_ = found.snr_db
        self.flow_time_ = found.flow_time
        self.atoms_ = found.atoms_AD
        self.snr_path_ = np.array([candidate.snr_db for candidate in found.path])
        self.bic_path_ = np.array([candidate.bic for candidate in found.path])
        self.n_clusters_path_ = np.array([candidate.n_clusters for candidate in found.path], dtype=int)
        self.n_clusters_ = self._n_features_out = len(found.weights_K)
        self.labels_ = self._log_joint(X).argmax(1).astype(np.int32)
        return self

    def _network_name(self, n_features: int) -> str:
        if self.weights != "auto":
            return self.weights
        return "flow-d2" if n_features == 2 else "flow-d8"

    def _log_joint(self, X) -> np.ndarray:
        """log of weight times density for every row and component."""
        n_features = X.shape[1]
        result = np.empty((len(X), self.n_clusters_))
        constant = -0.5 * n_features * np.log(2 * np.pi * self.var_)
        for k, (center, weight) in enumerate(zip(self.cluster_centers_, self.weights_)):
            difference = X - center
            sq_distance = np.einsum("nd,nd->n", difference, difference)
            result[:, k] = constant + np.log(weight) - sq_distance / (2 * self.var_)
        return result

    def _new_log_joint(self, X) -> np.ndarray:
        check_is_fitted(self)
        return self._log_joint(check_rows(self, X, reset=False))

    def predict(self, X):
        """Most likely component of every row, int32."""
        return self._new_log_joint(X).argmax(1).astype(np.int32)

    def predict_proba(self, X):
        """Posterior probability of every component, shape (n_samples, n_clusters)."""
        log_joint = self._new_log_joint(X)
        return np.exp(log_joint - logsumexp(log_joint, axis=1, keepdims=True))

    def transform(self, X):
        """Distance of every row to every centre, shape (n_samples, n_clusters)."""
        check_is_fitted(self)
        X = check_rows(self, X, reset=False)
        return cdist(X, self.cluster_centers_).astype(X.dtype)

    def score_samples(self, X):
        """Log-density of every row."""
        return logsumexp(self._new_log_joint(X), axis=1)

    def score(self, X, y=None):
        """Mean log-density of the rows."""
        return float(self.score_samples(X).mean())

    def bic(self, X):
        """Bayesian information criterion on X: the lower, the better."""
        n_parameters = self.n_clusters_ * (self.n_features_in_ + 1)
        return -2 * float(self.score_samples(X).sum()) + n_parameters * float(np.log(len(X)))

    def sample(self, n_samples=1):
        """Draw from the fitted mixture: rows and the components they came from."""
        check_is_fitted(self)
        random = check_random_state(self.random_state)
        labels = random.choice(self.n_clusters_, size=n_samples, p=self.weights_)
        noise = random.normal(scale=np.sqrt(self.var_), size=(n_samples, self.n_features_in_))
        return self.cluster_centers_[labels] + noise, labels.astype(np.int32)

    @property
    def covariance_(self):
        """The covariance matrix that all components share."""
        check_is_fitted(self)
        return self.var_ * np.eye(self.n_features_in_)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
