"""Soft k-means."""

from numbers import Real
from typing import ClassVar

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from coterie.estimators.base import CenterClusterer
from coterie.estimators.in_blocks import drawn, per_row
from coterie.kmeans.algorithm import Algorithm
from coterie.kmeans.family import TABLE
from coterie.kmeans.scaling import exponent_of, scaled

MAX_CONTEXT = 2_000  # rows from which the rule for labels is made
MEMBERS_PER_BLOCK = 2**22  # numbers: 32 MB
EQUAL_SIZES = (1000.0,)  # concentration of the mixing weights if they are not estimated


class SoftKMeans(CenterClusterer):
    """Soft k-means: every point belongs to every cluster with a share.

    The shares of a point are softmax(-gamma ‖x - c‖²) (Clarkson et al. 2025, Algorithm 2). With
    ``mixing_weights=True`` the weights of the clusters are estimated as well and their logarithms are added to the
    scores; this is EM for a mixture of spherical Gaussians with the known variance 1/(2 gamma).

    Where clusters overlap, one fitted mixture says little about how certain its centres are. With
    ``refine="posterior"``, the fit is followed by Gibbs sampling of the Bayesian posterior of centres, weights and the
    common variance, with three tempered replicas and 60 draws. Shares are averages over
    the draws. Labels maximise the expected adjusted Rand index under the co-assignments (Fritsch and Ickstadt, 2009): a
    label need not be the cluster of the largest share. The refinement takes as long as about 1,200 iterations of EM.

    Parameters
    ----------
    <n_clusters>
    gamma : float or "scale", default="scale"
        Inverse temperature. "scale" is n_features/2 over the mean squared distance of the points to the nearest
        starting centre, which is the value for a spherical Gaussian of that size; scaling X scales the centres.
    mixing_weights : bool, default=False
        Whether the weights of the clusters are estimated. Otherwise all clusters have the same weight.
    refine : {"posterior"} or None, default=None
        What follows the fit. None keeps the fit as it is. "posterior" samples the posterior of the mixture and starts
        from the fit. The variance is sampled too, whatever ``gamma`` is, and clusters have nearly the same weight
        unless ``mixing_weights=True``. It needs all rows in memory and does not support ``sample_weight``.
    <init, n_init, max_iter, tol, device, n_jobs, random_state, verbose>

    Attributes
    ----------
    cluster_centers_ : array of shape (n_clusters, n_features)
        The centres, the means of the points weighted by their shares.
    weights_ : array of shape (n_clusters,)
        The mixing weights of the clusters; all equal unless ``mixing_weights``. With ``refine="posterior"``, the mean
        shares.
    gamma_ : float
        The inverse temperature that was used. With ``refine="posterior"``, that of the mean variance of the draws.
    labels_ : int32 array of shape (n_samples,)
        The cluster in which each row has the largest share. With ``refine="posterior"``, the labels with the largest
        expected adjusted Rand index.
    inertia_ : float
        Sum of squared distances to all centres, weighted by the shares.
    <n_iter_, converged_, n_clusters_>
    posterior_centers_, posterior_weights_, posterior_vars_, posterior_origin_ : arrays
        The draws, only with ``refine="posterior"``: centres relative to the origin, of shape (n_draws, n_clusters,
        n_features), mixing weights and variances. Clusters may exchange their places from one draw to the next.
    posterior_names_ : array of shape (n_draws, n_clusters)
        The cluster of each draw that is matched to each cluster of ``labels_``.
    coassignment_sums_, coassignment_sizes_, coassignment_level_ : arrays and float
        How the draws are combined into labels.
    <n_features_in_, feature_names_in_>

    See Also
    --------
    InContextClusterer : A pretrained network that approximates the same posterior, in less time.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import SoftKMeans
    >>> X = np.array([[0.0], [0.1], [0.2], [1.0], [1.1], [1.2]])
    >>> SoftKMeans(n_clusters=2, random_state=0).fit(X).predict_proba([[0.6]]).round(2)
    array([[0.5, 0.5]])
    """

    _parameter_constraints: ClassVar[dict] = {
        **CenterClusterer._parameter_constraints,
        "gamma": [StrOptions({"scale"}), Interval(Real, 0, None, closed="neither")],
        "mixing_weights": ["boolean"],
        "refine": [StrOptions({"posterior"}), None],
    }

    def __init__(
        self,
        n_clusters=8,
        *,
        gamma="scale",
        mixing_weights=False,
        refine=None,
        init="k-means++",
        n_init="auto",
        max_iter=300,
        tol=1e-4,
        device=None,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self._set(n_clusters, init, n_init, max_iter, tol, device, n_jobs, random_state, verbose)
        self.gamma = gamma
        self.mixing_weights = mixing_weights
        self.refine = refine

    def _algorithm(self) -> Algorithm:
        gamma = None if self.gamma == "scale" else float(self.gamma)
        return Algorithm(TABLE["soft"], gamma=gamma, mixing_weights=self.mixing_weights)

    def fit(self, X, y=None, sample_weight=None):
        """Fit the centres to the data, and refine the fit if ``refine`` says so.

        Parameters
        ----------
        X : array, DataFrame, Dask array or DataFrame, path, or ``coterie.distributed.chunks.Chunks``
            Rows to cluster, of shape (n_samples, n_features). With ``refine="posterior"`` an array or DataFrame.
        y : ignored
            Present for API consistency.
        sample_weight : array of shape (n_samples,), default=None
            How often each row counts; None gives all rows the weight 1. Not supported for files and chunks and with
            ``refine="posterior"``.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        if self.refine is not None and sample_weight is not None:
            raise ValueError("refine='posterior' does not support sample_weight: repeat the rows, or use refine=None.")
        super().fit(X, sample_weight=sample_weight)
        if self.refine is not None:
            self._sample_posterior(self._checked_new(X))
        return self

    def _require_plain_fit(self, what: str) -> None:
        super()._require_plain_fit(what)
        if self.refine is not None:
            raise ValueError(f"{what} cannot be refined: pass an array or a sample of the rows, or use refine=None.")

    def _forget(self) -> None:
        super()._forget()
        for name in [name for name in vars(self) if name.startswith(("posterior_", "coassignment_"))]:
            del self.__dict__[name]

    def _sample_posterior(self, X) -> None:
        from coterie.incontext import consensus
        from coterie.mixtures import spherical_sampler

        random = check_random_state(self.random_state)
        exponent = exponent_of(X, self.cluster_centers_)
        rows = scaled(X, -exponent).astype(np.float64)
        assert self.gamma_ is not None
        draws = spherical_sampler.sample(
            rows,
            scaled(self.cluster_centers_, -exponent),
            np.random.default_rng(random.randint(2**31 - 1)),
            spherical_sampler.SWEEPS,
            shares_K=self.weights_,
            var=float(np.ldexp(0.5 / self.gamma_, -2 * exponent)),
            inverse_temperatures=spherical_sampler.temperatures(spherical_sampler.REPLICAS),
            concentrations=spherical_sampler.CONCENTRATIONS if self.mixing_weights else EQUAL_SIZES,
        )
        self.posterior_origin_ = np.ldexp(draws.origin_D, exponent)
        self.posterior_centers_ = np.ldexp(draws.centers_JKD, exponent)
        self.posterior_weights_ = draws.weights_JK
        self.posterior_vars_ = np.ldexp(draws.var_J, 2 * exponent)
        members = np.concatenate(list(self._members(drawn(X, MAX_CONTEXT, random)[0])), axis=1)
        labels = consensus.best_partition(members)
        mean = consensus.aligned_mean(members, first=np.eye(self.n_clusters)[labels])
        self.posterior_names_ = consensus.renamings(members, mean)
        rule = consensus.Rule.of(consensus.features(members), labels, self.n_clusters)
        self.coassignment_sums_, self.coassignment_sizes_ = rule.sums_KF, rule.counts_K
        self.coassignment_level_ = rule.level
        # labels, weights, centres and inertia of the refined shares
        self.labels_ = self._labels(X)
        self.n_clusters_ = len(np.unique(self.labels_))
        shares = self._mean_members(X)
        self.weights_ = shares.mean(axis=0)
        centers = (shares / np.maximum(shares.sum(axis=0), np.finfo(float).tiny)).T @ rows
        self.inertia_ = float(
            np.ldexp(sum(share @ ((rows - c) ** 2).sum(axis=1) for share, c in zip(shares.T, centers)), 2 * exponent)
        )
        self.cluster_centers_ = np.ldexp(centers, exponent).astype(X.dtype)
        self.gamma_ = float(0.5 / self.posterior_vars_.mean())

    def _members(self, X):
        """The membership probabilities (n_draws, rows, n_clusters) of one block of rows after another."""
        from coterie.mixtures import spherical_sampler

        exponent = exponent_of(X, self.cluster_centers_)
        draws = spherical_sampler.Draws(
            np.ldexp(self.posterior_origin_, -exponent),
            np.ldexp(self.posterior_centers_, -exponent),
            self.posterior_weights_,
            np.ldexp(self.posterior_vars_, -2 * exponent),
        )
        size = max(1, MEMBERS_PER_BLOCK // self.posterior_weights_.size)
        for first in range(0, len(X), size):
            yield draws.members(scaled(X[first : first + size], -exponent).astype(np.float64))

    def _mean_members(self, X) -> np.ndarray:
        names = self.posterior_names_[:, None]
        parts = [np.take_along_axis(members, names, axis=2).mean(axis=0) for members in self._members(X)]
        return np.concatenate(parts)

    def _labels(self, X, largest: float | None = None, *, nearest: bool = False) -> np.ndarray:
        if not hasattr(self, "coassignment_level_"):
            return super()._labels(X, largest)
        from coterie.incontext import consensus

        rule = consensus.Rule(self.coassignment_sums_, self.coassignment_sizes_, self.coassignment_level_)
        parts = [rule.labels(consensus.features(members)) for members in self._members(X)]
        return np.concatenate(parts).astype(np.int32)

    @per_row
    def predict_proba(self, X):
        """Compute the share of every row in every cluster.

        Returns
        -------
        shares : array of shape (n_samples, n_clusters)
            Rows sum to one.
        """
        from coterie.kmeans import engines

        X = self._checked_new(X)
        if hasattr(self, "posterior_names_"):
            return self._mean_members(X).astype(X.dtype)
        X, centers, algorithm, _ = self._at_ordinary_size(X)
        shares = engines.shares(X, centers, self.weights_, algorithm, self._device(), self._n_threads())
        return shares.astype(X.dtype, copy=False)
