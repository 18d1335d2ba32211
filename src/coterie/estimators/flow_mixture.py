"""Gaussian mixtures with an unknown number of clusters, started by the pretrained measure flow."""

import os
import sys
import warnings
from dataclasses import replace
from numbers import Integral, Real
from typing import ClassVar

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import logsumexp
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from coterie import threads
from coterie.estimators.clusterer import DensityClusterer
from coterie.estimators.in_blocks import InBlocks, answers_in, checked_rows_in, drawn, per_row
from coterie.estimators.validation import check_device, check_weights, is_nearest, limit_of_share
from coterie.geometry.spread import Extent
from coterie.mixtures.gaussians import KINDS, Gaussians, log_volume, shares_of, within
from coterie.mixtures.search import Search

VANISHING = 1e-150
MANY_COLUMNS = 9  # from which "auto" says that it could not try every type
# attributes of refine="posterior"
DRAWN = ("n_clusters_proba_", "center_covariances_", "center_intervals_", "label_draws_", "draw_indices_")


class FlowMixture(DensityClusterer):
    """A Gaussian mixture with an unknown number of clusters, found by a pretrained transformer (Zimin et al., 2025).

    The network moves every row towards the centre of the cluster that it came from, and rows that end in the same place
    form a first set of clusters. EM refines these clusters, merges those that belong together, and selects their number
    by the Bayesian information criterion (BIC). Optionally a uniform component models
    outliers, and a sampler gives the posterior distribution of the clusters and of their number.

    The network was trained on round clusters of equal variance. It therefore runs twice: once on standardised columns,
    and once on rows whitened by the covariance within the clusters that were found first. The better start is used.
    Then it runs on the rows of each cluster that can be several, and divides it if the BIC falls: a distant row or
    cluster thus does not hide the others. Each time it sees at most 256 rows and gives at most 24 clusters.

    Parameters
    ----------
    covariance_type : {"auto", "full", "tied", "diag", "spherical", "tied-spherical"}, default="auto"
        The covariances of the clusters, as in :class:`sklearn.mixture.GaussianMixture`: a covariance matrix for each
        cluster ("full"), one matrix for all clusters ("tied"), one variance for each cluster and column ("diag"), one
        variance for each cluster ("spherical"), or one variance for all clusters ("tied-spherical", the model of Zimin
        et al. that the network was trained for). "auto" selects the type of the smallest BIC, in which the parameters
        of a cluster count with the logarithm of the number of its own rows.
    outliers : "auto", float in [0, 1) or None, default=None
        How many rows stay outside all clusters, with the label -1. "auto": if that lowers the BIC, the mixture has a
        uniform component on the bounding box of the data, whose rows are outliers. A share: the mixture has this
        component, and at most that share of the rows, those of the lowest density, are outliers. None: no row.
    refine : {"em", "posterior", None}, default="em"
        What follows the flow. "em" refines the clusters by EM and merges those that do not lower the BIC. "posterior"
        additionally draws mixtures from the posterior distribution given up to ``max_context`` rows: the clusters are
        averages over these draws, and ``n_clusters_proba_``, ``center_intervals_`` and ``co_assignment`` tell how
        certain they are. None keeps the clusters of the flow, at the signal-to-noise ratio of the smallest BIC;
        "auto" then finds no outliers.
    max_iter : int, default=100
        Maximum number of iterations of EM, after the number of clusters has been determined.
    tol : float, default=1e-3
        EM stops when the mean log-likelihood of the rows rises by less than this.
    max_context : int, default=1024
        Maximum number of rows from which the number and kind of clusters is found. If there are more, a random sample
        is used. The last iterations of EM and the labels use all rows.
    network : str or path, default="auto"
        Name of a network (``coterie models`` lists them) or path of its ``.safetensors`` file. "auto" is "flow-d2" for
        data with two columns, "flow-d8" for up to eight, and otherwise "flow-d16", which was trained on stretched
        clusters of unequal variances. If the data have more columns than the network, it sees their
        first principal components. EM uses all columns.
    <device, n_jobs>
    random_state : int, RandomState or None, default=None
        Determines which rows the network sees, the samples from the posterior, and the result of ``sample``. Pass an
        int for reproducible results.
    verbose : int, default=0
        1 prints a line on standard error for every step of the search.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters_, n_features)
        Centres of the clusters, in order of decreasing weight.
    weights_ : ndarray of shape (n_clusters_,)
        Share of each cluster. With ``noise_weight_`` they sum to 1.
    covariances_ : float or ndarray
        The covariances, of shape (n_clusters_, n_features, n_features), (n_features, n_features), (n_clusters_,
        n_features) and (n_clusters_,) for the types "full", "tied", "diag" and "spherical", and a float for
        "tied-spherical". A variance is at least a millionth of that of the column, or of its squared interquartile
        range if this is smaller.
    covariance_type_ : str
        The covariance type, as given or as selected; "tied-spherical" if it is "auto" and all rows are equal.
    var_ : float
        Variance within the clusters, averaged over clusters and columns.
    noise_weight_ : float
        Share of the uniform component; 0 if there is none.
    box_ : ndarray of shape (2, n_features)
        Lower and upper bounds of the columns, between which the density of the uniform component is constant.
    labels_ : int32 ndarray of shape (n_samples,)
        The most likely cluster of each row; -1 for outliers.
    outliers_ : bool ndarray of shape (n_samples,)
        Whether a row belongs to the uniform component.
    certainty_ : ndarray of shape (n_samples,)
        The probability of the label of each row. With ``refine="posterior"`` and at most ``max_context`` rows it is the
        share of the draws in which the row has this label; otherwise the clusters are taken as known.
    n_clusters_ : int
        Number of clusters found.
    n_clusters_proba_ : ndarray of shape (n_max,)
        Posterior probability of 1, 2, ... clusters. Only with ``refine="posterior"``, as the next four attributes.
    center_covariances_ : ndarray of shape (n_clusters_, n_features, n_features)
        Posterior covariance of each centre, from the draws with ``n_clusters_`` clusters.
    center_intervals_ : ndarray of shape (2, n_clusters_, n_features)
        Lower and upper bounds of the central 95% of each coordinate of each centre in these draws.
    label_draws_ : int16 ndarray of shape (n_draws, n_context)
        Labels of the rows ``draw_indices_`` in each draw; the label ``n_clusters_`` is any further cluster.
    draw_indices_ : ndarray of shape (n_context,)
        The rows that were given to the sampler.
    n_iter_ : int
        Number of iterations of EM, after the number of clusters had been determined.
    converged_ : bool
        Whether EM converged within ``max_iter`` iterations.
    atoms_ : ndarray of shape (n_atoms, n_features)
        The clusters found by the flow, before EM: the means of the rows that are nearest to its atoms.
    flow_time_ : float
        Total flow time that the network chose for the SNR.
    snr_db_ : float
        The signal-to-noise ratio (SNR) in decibels: 10 log10 of the variance of the centres divided by the variance
        within the clusters.
    <n_features_in_, feature_names_in_>

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
        **DensityClusterer._common_constraints,
        "covariance_type": [StrOptions({"auto", *KINDS})],
        "outliers": [None, StrOptions({"auto"}), Interval(Real, 0, 1, closed="left")],
        "refine": [None, StrOptions({"em", "posterior"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_context": [Interval(Integral, 2, None, closed="left")],
        "network": [str, os.PathLike],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        covariance_type="auto",
        outliers=None,
        refine="em",
        max_iter=100,
        tol=1e-3,
        max_context=1024,
        network="auto",
        device=None,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.covariance_type = covariance_type
        self.outliers = outliers
        self.refine = refine
        self.max_iter = max_iter
        self.tol = tol
        self.max_context = max_context
        self.network = network
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Find the clusters of X.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features), Dask array or DataFrame, path, or ``Chunks``
            The network and the search see a sample of at most ``max_context`` rows; EM then runs on all rows, which are
            read once per iteration if they are in files or on Dask.
        y : ignored
        sample_weight : array of shape (n_samples,) or None, default=None
            How many times each row counts: a row of weight 2 has the same effect as two equal rows, and a row of weight
            0 is only labelled. None counts every row once.

        Returns
        -------
        self
        """
        rows = checked_rows_in(self, X, sample_weight=sample_weight)
        weight = None if sample_weight is None else check_weights(rows, sample_weight)
        if weight is not None and 0 < weight.sum() < 2:
            raise ValueError(
                f"sample_weight sums to {weight.sum():.3g}, but a weight says how many rows a row stands for: multiply "
                "the weights, for example by the number of rows."
            )
        for name in DRAWN:  # by an earlier fit
            if hasattr(self, name):
                delattr(self, name)
        if weight is None:
            self._find(rows, None)
        else:
            self._find(rows[weight > 0], weight[weight > 0])
        if weight is not None and self.refine == "posterior":
            self.draw_indices_ = np.flatnonzero(weight)[self.draw_indices_]
        self._label(rows)
        if not self.converged_:
            warnings.warn(
                f"EM did not converge in {self.max_iter} iterations: increase max_iter or tol.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    draw_indices_: np.ndarray
    converged_: bool

    def _find(self, rows, weight):
        """Set the attributes that describe the mixture."""
        from coterie import checkpoints
        from coterie.kmeans.block_statistics import ChunkPasses
        from coterie.mixtures.fitting import fit_gaussians, posterior
        from coterie.mixtures.moments import Unit

        n = len(rows)
        if n < 2:
            raise ValueError(f"FlowMixture needs at least 2 rows with a positive weight, got n_samples={n}.")
        random = check_random_state(self.random_state)
        if weight is None:
            context, places = drawn(rows, self.max_context, random)
        else:
            places = self._by_weight(weight, random)
            context = rows[places]
        blocks = rows if isinstance(rows, InBlocks) else ChunkPasses([rows], weight)
        extent, is_flat = _without_flat(blocks.total(Extent.of_block, None), context.dtype)
        origin, self.box_ = extent.mean_D, np.stack([extent.low_D, extent.high_D])
        context = Unit(origin, np.where(is_flat, 0.0, 1.0))(context)
        name = self.network
        if name == "auto":
            name = "flow-d2" if len(origin) == 2 else "flow-d8" if len(origin) <= 8 else "flow-d16"
        network = checkpoints.load(name, kind="flow", device=check_device(self.device))
        kinds = KINDS if self.covariance_type == "auto" else (self.covariance_type,)
        search = Search(
            kinds,
            (False, True) if self.outliers == "auto" else (self.outliers is not None,),
            0 if self.refine is None else self.max_iter,
            self.tol,
            self._tell,
        )
        with threads.torch_threads(self.n_jobs):
            others = blocks if weight is not None or len(places) < n else None
            found = fit_gaussians(network, context, search, extent, others)
            mixture = found.mixture
            if self.refine == "posterior":
                self._tell(f"draws from the posterior given {len(places):,} rows")
                rng = np.random.default_rng(random.randint(2**31))
                draws = posterior(context, mixture, rng)
                mixture, self.draw_indices_ = draws.mixture, places
                self.n_clusters_proba_, self.label_draws_ = draws.n_clusters_proba, draws.labels_JN
                gap = draws.centers_JKD - draws.centers_JKD.mean(0)
                self.center_covariances_ = np.einsum("jki,jkl->kil", gap, gap) / len(gap)
                self.center_intervals_ = np.quantile(draws.centers_JKD, [0.025, 0.975], axis=0) + origin
        self._warn_of_many_columns(found, len(places), len(origin))
        self.cluster_centers_, self.weights_ = mixture.centers_KD + origin, mixture.weights_K
        self.covariance_type_ = mixture.kind
        self.covariances_ = float(mixture.covariances) if mixture.kind == "tied-spherical" else mixture.covariances
        self.noise_weight_, self.var_ = mixture.noise, float(np.trace(within(mixture))) / len(origin)
        self.snr_db_, self.flow_time_, self.atoms_ = found.snr_db, found.flow_time, found.atoms_AD + origin
        self.n_iter_, self.converged_ = found.n_iter, found.converged
        self.n_clusters_ = self._n_features_out = mixture.n_clusters

    def _tell(self, text: str) -> None:
        if self.verbose:
            print(f"FlowMixture: {text}", file=sys.stderr, flush=True)

    def _warn_of_many_columns(self, found, n_context: int, n_columns: int) -> None:
        """If there is one cluster because the rows cannot say more about that many columns."""
        untried = [kind for kind in found.undetermined if found.mixture.n_clusters == 1]
        if not untried or (self.covariance_type == "auto" and n_columns < MANY_COLUMNS):
            return
        warnings.warn(
            f"One cluster was found, but {n_context:,} rows of {n_columns} columns do not determine several clusters "
            f"with covariances of the type {', '.join(untried)}: reduce the columns (for example by PCA), raise "
            "max_context, or give a covariance_type with fewer parameters.",
            UserWarning,
            stacklevel=4,
        )

    def _label(self, rows) -> None:
        """Set the attributes that describe the rows of ``fit``."""
        self.__dict__.pop("outlier_limit_", None)
        if self.outliers not in (None, "auto"):
            self.outlier_limit_ = limit_of_share(np.asarray(answers_in(self, "_strangeness", rows)), self.outliers)
        facts = answers_in(self, "_row_facts", rows)
        self.labels_, self.certainty_ = facts[:, 0].astype(np.int32), facts[:, 1]
        self.outliers_ = self.labels_ < 0
        if self.refine == "posterior" and len(self.draw_indices_) == len(rows):
            self.certainty_ = (self.label_draws_ == np.asarray(self.labels_)).mean(0)

    def _row_facts(self, X) -> np.ndarray:
        """The label and the certainty of every row, (n_samples, 2)."""
        log_joint = self._log_joint(X)
        return np.column_stack([self._labels(log_joint), shares_of(log_joint)[0].max(1)])

    def _strangeness(self, X) -> np.ndarray:
        """(n_samples,) the negative logarithm of weight times density of the most likely cluster of each row."""
        return -self._log_joint(X)[:, : self.n_clusters_].max(1)

    def _labels(self, log_joint, *, nearest: bool = False) -> np.ndarray:
        """The most likely cluster of each row; -1 for outliers."""
        of_clusters = log_joint[:, : self.n_clusters_]
        labels, best = of_clusters.argmax(1).astype(np.int32), of_clusters.max(1)
        limit = vars(self).get("outlier_limit_")
        outside = best < (log_joint.max(1) if limit is None else -limit)
        return labels if nearest else np.where(outside, np.int32(-1), labels)

    def _by_weight(self, weight: np.ndarray, random) -> np.ndarray:
        """The rows that the network sees, each repeated in proportion to its weight."""
        total = weight.sum()
        size = int(min(self.max_context, max(2, round(total))))
        offset = random.uniform() if total > self.max_context else 0.5
        return np.searchsorted(weight.cumsum(), (np.arange(size) + offset) * (total / size), side="right")

    def _mixture(self):
        given = vars(self)
        return Gaussians(
            self.cluster_centers_,
            self.weights_,
            np.asarray(given.get("covariances_", self.var_)),  # version 0.1.0 saved the variance alone
            given.get("covariance_type_", "tied-spherical"),
            given.get("noise_weight_", 0.0),
            log_volume(self.box_) if "box_" in given else 0.0,
        )

    def _log_joint(self, X) -> np.ndarray:
        """Logarithm of weight times density of every row and cluster, and of the uniform component if there is one."""
        mixture, origin = self._mixture(), self.cluster_centers_.mean(0)
        centered = replace(mixture, centers_KD=mixture.centers_KD - origin)  # squares of large numbers are not exact
        return centered.log_joint(X.astype(np.float64, copy=False) - origin)

    @per_row
    def predict(self, X, *, assign=None):
        """Predict the most likely cluster of each row; -1 for outliers.

        <assign>
        Returns
        -------
        labels : int32 ndarray of shape (n_samples,)
        """
        return self._labels(self._log_joint(self._checked_new(X)), nearest=is_nearest(assign))

    @per_row
    def predict_proba(self, X):
        """Compute the posterior probability of each cluster for each row.

        Returns
        -------
        probability : ndarray of shape (n_samples, n_clusters_)
            If the mixture has a uniform component, a row sums to the probability that it is not an outlier.
        """
        return shares_of(self._log_joint(self._checked_new(X)))[0][:, : self.n_clusters_]

    @per_row
    def predict_certainty(self, X):
        """Compute the probability of the label of each row, also if it is that of an outlier.

        The clusters are taken as known, as in ``certainty_`` without ``refine="posterior"``.

        Returns
        -------
        certainty : ndarray of shape (n_samples,)
        """
        return shares_of(self._log_joint(self._checked_new(X)))[0].max(1)

    @per_row
    def transform(self, X):
        """Compute the Euclidean distance of each row to each centre.

        Returns
        -------
        distance : ndarray of shape (n_samples, n_clusters_)
        """
        X = self._checked_new(X)
        return cdist(X, self.cluster_centers_).astype(X.dtype)

    @per_row
    def score_samples(self, X):
        """Compute the log-density of each row.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
        """
        return logsumexp(self._log_joint(self._checked_new(X)), axis=1)

    def bic(self, X):
        """Compute the Bayesian information criterion on X; lower is better.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)

        Returns
        -------
        bic : float
        """
        total, n_rows = self._total_score(X)
        return -2 * total + self._mixture().n_parameters * float(np.log(n_rows))

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
        if n_samples < 1:
            raise ValueError(f"n_samples={n_samples} should be at least 1.")
        random = check_random_state(self.random_state)
        mixture = self._mixture()
        shares = np.append(self.weights_, mixture.noise)
        labels = random.choice(self.n_clusters_ + 1, size=n_samples, p=shares / shares.sum())
        rows = random.normal(size=(n_samples, self.n_features_in_))
        for cluster in range(self.n_clusters_):
            mine = labels == cluster
            rows[mine] = self.cluster_centers_[cluster] + mixture.scaled(rows[mine], cluster)
        lost = labels == self.n_clusters_
        if lost.any():
            rows[lost] = random.uniform(*self.box_, size=(int(lost.sum()), self.n_features_in_))
        return rows, np.where(lost, -1, labels).astype(np.int32)

    def co_assignment(self):
        """Compute the posterior probability that two rows share a cluster.

        It needs ``refine="posterior"``, and is computed from ``label_draws_`` at every call.

        Returns
        -------
        probability : ndarray of shape (n_context, n_context)
            The rows and columns are the rows ``draw_indices_`` of the data. Outliers share a cluster with no row.
        """
        check_is_fitted(self)
        if not hasattr(self, "label_draws_"):
            raise ValueError(
                f"co_assignment needs draws from the posterior, but refine={self.refine!r}: "
                "set refine='posterior' and fit again."
            )
        total = np.zeros((self.label_draws_.shape[1],) * 2)
        for labels in self.label_draws_:
            total += (labels[:, None] == labels) & (labels >= 0)
        np.fill_diagonal(total, len(self.label_draws_))
        return total / len(self.label_draws_)

    @property
    def covariance_(self):
        """The covariance matrix within clusters, averaged over clusters, shape (n_features, n_features)."""
        check_is_fitted(self)
        return within(self._mixture())


def _without_flat(extent: Extent, dtype) -> tuple[Extent, np.ndarray]:
    """The extent with one value for columns that have no other but for rounding, and which these are.

    The squares of a column may also vanish beside those of others.
    """
    low, high = extent.low_D, extent.high_D
    mean = np.clip(extent.mean_D, low, high)  # exact where all values are equal
    widest = np.maximum(high - mean, mean - low)
    is_flat = widest <= np.maximum(8 * np.finfo(dtype).eps * np.abs(mean), VANISHING * widest.max())
    low, high, var = np.where(is_flat, mean, low), np.where(is_flat, mean, high), np.where(is_flat, 0.0, extent.var_D)
    return replace(extent, mean_D=mean, low_D=low, high_D=high, var_D=var), is_flat
