"""A mixture of variational autoencoders: clusters that can be sampled from."""

from dataclasses import replace
from numbers import Integral, Real
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
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
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from coterie import starts, threads
from coterie.estimators.persistence import SaveMixin
from coterie.estimators.progress import CallbackSupportMixin, watching
from coterie.estimators.validation import check_device, check_enough_rows, check_rows
from coterie.generative.fitting import RestartPlan, fit
from coterie.generative.mixture import EMSettings, screened_bounds
from coterie.generative.vaes import VAEConfig, VAEs

_UNIT_INTERVAL = ("bernoulli", "continuous_bernoulli")
_ROWS_PER_BLOCK = 1024
_SIGNAL = 105.0  # the rows' total variance over that of the likelihood, where "auto" chooses the precision


class VAEMixture(
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    DensityMixin,
    ClusterMixin,
    CallbackSupportMixin,
    SaveMixin,
    BaseEstimator,
):
    """One variational autoencoder (VAE) a cluster, trained by EM (document 004).

    A row belongs to the clusters whose VAEs explain it: responsibilities are the softmax of their bounds on its
    log-likelihood. Every cluster has two VAEs, each trained on one half of the rows and judging the other, because a
    network that learned a row by heart would claim it for ever.

    Parameters
    ----------
    n_clusters : int, default=8
    likelihood : {"auto", "bernoulli", "continuous_bernoulli", "gaussian"}, default="auto"
        What the decoders say about a value. "auto": Gaussian if any value is outside [0, 1], else Bernoulli, whose
        bound is the usual score of grey images. For the Gaussian, columns are standardised within ``fit``; a constant
        column stays as it is and decides nothing.
    hidden_size : int or "auto", default="auto"
        Units of the one hidden layer of encoder and decoder; "auto": twice the columns, within 64 and 128.
    latent_size : int or "auto", default="auto"
        "auto": as many as there are columns, up to 8.
    init : {"neighbour graph", "k-means", "random", "uniform"} or array, default="neighbour graph"
        Where the responsibilities begin. "neighbour graph" joins each row to its 15 nearest and merges the graph's
        communities (its time grows with the square of the rows); "random" deals rows out; "uniform" leaves all
        to chance in the networks. An array of shape (n_samples, n_clusters) holds the responsibilities themselves.
    n_init : int, default=1
        So many starts run for four iterations; the one with the best held-out bound goes on.
    max_iter : int, default=6
        EM iterations at most. One is 2 passes over the rows (20 the first time) and a judgement of every row, with 10
        samples where clusters compete. EM ends before that when fewer than 1 row in 1000 changes its cluster.
    checkpoint : path or None, default=None
        A folder in which every iteration is kept. A fit that was killed goes on from there when called again and ends
        as if it had not been; the files are removed at the end. Needs an integer ``random_state``.
    device : str, torch.device or None, default=None
        None is the CPU.
    dtype : {"float32", "bfloat16"}, default="float32"
        Precision of the products in ``fit``.
    random_state : int, RandomState or None, default=None
    verbose : int, default=0
        1 shows a bar with bound, entropy and time left, 2 a line an iteration.

    Attributes
    ----------
    labels_ : int32 array of shape (n_samples,)
    cluster_centers_ : array of shape (n_clusters, n_features)
        Means of the clusters' rows; of all rows for a cluster without any.
    weights_ : array of shape (n_clusters,)
        The clusters' shares.
    bound_ : float
        Mean bound on the log-density of the rows, each judged by networks that were not trained on it.
    bounds_ : array of shape (n_init,)
        The same for each of the short runs, if there were several.
    start_labels_ : int32 array of shape (n_samples,)
        Where the rows began.
    likelihood_, hidden_size_, latent_size_
        What "auto" chose.
    n_iter_ : int
    converged_ : bool
    network_weights_ : float32 array
        All weights of all networks, in the order of :class:`coterie.generative.vaes.VAEs`.
    offset_, scale_ : arrays of shape (n_features,)
        The networks see (X - offset_) / scale_.
    n_features_in_ : int

    Notes
    -----
    Started by ``torchrun`` with a process group (gloo on CPUs), the processes share the work of one fit; each must
    hold the same rows and an integer ``random_state``. Predictions use fixed samples, and all but the labels are made
    in float64, so that those of a row do not depend on the rows beside it.

    Examples
    --------
    >>> from coterie import VAEMixture
    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().data / 16
    >>> mixture = VAEMixture(n_clusters=10, random_state=0).fit(X)  # doctest: +SKIP
    >>> images, labels = mixture.sample(5, cluster=3)  # doctest: +SKIP
    """

    _parameter_constraints: ClassVar[dict] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "likelihood": [StrOptions({"auto", *_UNIT_INTERVAL, "gaussian"})],
        "hidden_size": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "latent_size": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "precision": [StrOptions({"auto", "learned"}), Interval(Real, 0, None, closed="neither")],
        "init": [StrOptions({"graph", "random"}), "array-like"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "checkpoint": [None, str, Path],
        "device": [None, str, torch.device],
        "dtype": [StrOptions({"float32", "bfloat16"})],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_clusters=8,
        *,
        likelihood="auto",
        hidden_size="auto",
        latent_size="auto",
        precision="auto",
        init="graph",
        n_init=1,
        max_iter="auto",
        checkpoint=None,
        device=None,
        dtype="float32",
        random_state=None,
        verbose=0,
    ):
        self.n_clusters = n_clusters
        self.likelihood = likelihood
        self.hidden_size = hidden_size
        self.latent_size = latent_size
        self.precision = precision
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.checkpoint = checkpoint
        self.device = device
        self.dtype = dtype
        self.random_state = random_state
        self.verbose = verbose

    # --- fitting --------------------------------------------------------------------------------------------

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Find the clusters and train their networks.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        X = check_rows(self, X, reset=True)
        check_enough_rows(len(X), self.n_clusters)
        device = check_device(self.device)
        if self.checkpoint is not None and not isinstance(self.random_state, Integral):
            raise ValueError(
                f"A fit with a checkpoint can only be resumed with the same seed: give an integer random_state, not "
                f"{self.random_state!r}."
            )
        self._choose_sizes(X)
        rows = self._on_domain(X).astype(np.float32)
        random_state = check_random_state(self.random_state)
        from_random = self._is_random()
        max_iter = self.max_iter
        if max_iter == "auto":
            max_iter = 300 if from_random else 6
        settings = (EMSettings.from_random if from_random else EMSettings)(
            self.n_clusters,
            least_steps=min(200, max(2, len(X) // 4)),  # a small table needs more passes than a large one
            revive_until=max_iter // 2,
            bfloat16=self.dtype == "bfloat16",
            seed=int(random_state.randint(2**31 - 1)),
        )
        self.networks_per_cluster_ = settings.folds
        config = replace(self._config(), dropout=0.2 if from_random else 0.0)
        plan = RestartPlan(max_iter, self.n_init)
        with watching(self, X, plan.n_runs, max_iter) as watch:
            found = fit(
                torch.as_tensor(rows, device=device),
                lambda number: torch.as_tensor(self._start(rows, random_state)),
                lambda generator: VAEs(settings.folds * self.n_clusters, config, generator),
                settings,
                plan,
                checkpoint=None if self.checkpoint is None else Path(self.checkpoint),
                run=watch.run,
            )
            self._keep(found, rows)
            watch.close(vars(self))
        return self

    def _is_random(self) -> bool:
        return isinstance(self.init, str) and self.init == "random"

    def _config(self) -> VAEConfig:
        return VAEConfig(
            self.n_features_in_, self.hidden_size_, self.latent_size_, self.likelihood_, self.precision_
        )

    def _choose_sizes(self, X) -> None:
        inside, informed = X.min() >= 0 and X.max() <= 1, not self._is_random()
        self.likelihood_ = self.likelihood
        if self.likelihood == "auto":
            self.likelihood_ = "bernoulli" if inside and informed else "gaussian"
        n_features = X.shape[1]
        self.hidden_size_ = min(128, max(64, 2 * n_features)) if self.hidden_size == "auto" else self.hidden_size
        self.latent_size_ = min(8, n_features) if self.latent_size == "auto" else self.latent_size
        self.offset_, self.scale_ = np.zeros(n_features), np.ones(n_features)
        self.precision_ = None
        if self.likelihood_ == "gaussian" and not (self.precision == "learned" or (self.precision == "auto" and informed)):
            self.precision_ = self.precision
            if self.precision == "auto":
                total = X.var(axis=0, dtype=np.float64).sum() if inside else n_features
                self.precision_ = _SIGNAL / max(float(total), 1e-12)
        if self.likelihood_ == "gaussian" and not (self.precision_ and inside):
            self.offset_, scale = X.mean(axis=0, dtype=np.float64), X.std(axis=0, dtype=np.float64)
            self.scale_ = np.where(scale > 1e-12 * np.abs(self.offset_), scale, 1.0)

    def _on_domain(self, X) -> np.ndarray:
        """X as the networks see it, in float64, or a ValueError if the likelihood cannot explain it."""
        if self.likelihood_ in _UNIT_INTERVAL and (X.min() < 0 or X.max() > 1):
            raise ValueError(
                f"likelihood={self.likelihood_!r} explains values in [0, 1], but X has values from {X.min():.3g} to "
                f"{X.max():.3g}: scale X (pixels: divide by 255), or fit with likelihood='gaussian'."
            )
        return (X.astype(np.float64) - self.offset_) / self.scale_

    def _start(self, rows, random_state) -> np.ndarray:
        """Responsibilities (n_samples, n_clusters)."""
        n, k = len(rows), self.n_clusters
        if not isinstance(self.init, str):
            return _checked_responsibilities(self.init, n, k)
        if self.init == "random":
            drawn = random_state.uniform(size=(n, k)).astype(np.float32)
            return drawn / drawn.sum(1, keepdims=True)
        labels = starts.by_neighbours(rows, k, random_state, threads.count())
        return np.eye(k, dtype=np.float32)[labels]

    def _keep(self, found, rows) -> None:
        self.weights_ = found.state.log_shares_K.double().exp().cpu().numpy()
        self.network_weights_ = parameters_to_vector(found.state.networks.parameters()).detach().cpu().numpy()
        log_scale = np.log(self.scale_).sum()
        self.bound_, self.bounds_ = found.expectation.objective - log_scale, np.array(found.bounds) - log_scale
        self.n_iter_, self.converged_ = found.n_iter, found.converged
        self.start_labels_ = found.start_labels.cpu().numpy().astype(np.int32)
        self._n_features_out = self.latent_size_
        self.labels_ = self._labels(rows)
        members = [rows[self.labels_ == cluster] for cluster in range(self.n_clusters)]
        means = np.array([(own if len(own) else rows).mean(axis=0, dtype=np.float64) for own in members])
        self.cluster_centers_ = means * self.scale_ + self.offset_

    def _attributes_during_fit(self, iteration) -> dict:
        """What a callback needs to rebuild the estimator as it stands after an iteration."""
        state = iteration.state
        return {
            "weights_": state.log_shares_K.double().exp().cpu().numpy(),
            "network_weights_": parameters_to_vector(state.networks.parameters()).detach().cpu().numpy(),
            "n_iter_": iteration.number,
            "_n_features_out": self.latent_size_,
        }

    # --- predicting -----------------------------------------------------------------------------------------

    def _networks(self, dtype: torch.dtype = torch.float64) -> VAEs:
        """In the order of the folds, within a fold in that of the clusters."""
        n_networks = self.networks_per_cluster_ * len(self.weights_)
        networks = VAEs(n_networks, self._config(), torch.Generator().manual_seed(0)).to(dtype)
        vector_to_parameters(torch.as_tensor(self.network_weights_, dtype=dtype), networks.parameters())
        return networks.requires_grad_(False).to(check_device(self.device))

    def _log_joint(self, rows, dtype: torch.dtype = torch.float64) -> np.ndarray:
        """log share + bound, (n, n_clusters). The mean bound of a cluster's VAEs bounds the log of their mean."""
        networks, k = self._networks(dtype), len(self.weights_)
        device = networks.log_var_GD.device
        log_shares_K = torch.as_tensor(np.log(self.weights_), dtype=dtype, device=device)
        noise = torch.randn(EMSettings.n_samples, 1, 1, self.latent_size_, generator=torch.Generator().manual_seed(0))
        result = np.empty((len(rows), k))
        for first in range(0, len(rows), _ROWS_PER_BLOCK):
            block = torch.as_tensor(rows[first : first + _ROWS_PER_BLOCK], dtype=dtype, device=device)
            noise_S1BL = noise.to(block).expand(-1, -1, len(block), -1)
            bounds = [
                screened_bounds(networks, block, noise_S1BL, log_shares_K, range(f, f + k), EMSettings.screen_gap)
                for f in range(0, self.networks_per_cluster_ * k, k)
            ]
            bound_BK = torch.stack(bounds).mean(0).T
            result[first : first + len(block)] = (bound_BK + log_shares_K).cpu().numpy()
        return result - np.log(self.scale_).sum()

    def _checked_new(self, X) -> np.ndarray:
        check_is_fitted(self)
        return self._on_domain(check_rows(self, X, reset=False))

    def _labels(self, rows) -> np.ndarray:
        return self._log_joint(rows, torch.float32).argmax(1).astype(np.int32)

    def predict(self, X):
        """Most likely cluster of every row, int32."""
        return self._labels(self._checked_new(X))

    def predict_proba(self, X):
        """Responsibility of every cluster, shape (n_samples, n_clusters)."""
        log_joint = self._log_joint(self._checked_new(X))
        return np.exp(log_joint - np.logaddexp.reduce(log_joint, axis=1)[:, None])

    def score_samples(self, X):
        """Bound on the log-density of every row (for grey values and the Bernoulli: its usual score)."""
        return np.logaddexp.reduce(self._log_joint(self._checked_new(X)), axis=1)

    def score(self, X, y=None):
        """Mean bound on the log-density of the rows."""
        return float(self.score_samples(X).mean())

    def transform(self, X):
        """Latent means of every row in its own cluster's VAE, shape (n_samples, latent_size_)."""
        rows = self._checked_new(X)
        dtype = X.dtype if getattr(X, "dtype", None) in (np.float32, np.float64) else np.float64
        means = self._in_own_cluster(rows, self.latent_size_, lambda networks, x, own: networks.encode(x, own)[0])
        return means.astype(dtype)

    def reconstruct(self, X):
        """Every row as its own cluster's VAE gives it back from the latent means."""

        def through(networks, x, own):
            return networks.likelihood.mean(networks.decode(networks.encode(x, own)[0], own))

        return self._in_own_cluster(self._checked_new(X), self.n_features_in_, through) * self.scale_ + self.offset_

    def _in_own_cluster(self, rows, width: int, function) -> np.ndarray:
        """``function(networks, x_BD, network)``, (1, B, width), of every row with the first VAE of its cluster."""
        labels = self._labels(rows)
        networks, result = self._networks(), np.empty((len(rows), width))
        for cluster in np.unique(labels):
            own = np.flatnonzero(labels == cluster)
            x_BD = torch.as_tensor(rows[own], device=networks.log_var_GD.device)
            result[own] = function(networks, x_BD, slice(cluster, cluster + 1))[0].cpu().numpy()
        return result

    def sample(self, n_samples=1, cluster=None, *, noise=True):
        """Draw new rows.

        Parameters
        ----------
        n_samples : int, default=1
        cluster : int or None, default=None
            Of this cluster; None draws clusters by their shares.
        noise : bool, default=True
            False gives the decoder's mean, which is what one looks at for images, instead of a draw around it.

        Returns
        -------
        rows : array of shape (n_samples, n_features)
        labels : int32 array of shape (n_samples,)
        """
        check_is_fitted(self)
        k = len(self.weights_)
        if n_samples < 1:
            raise ValueError(f"n_samples={n_samples} should be at least 1.")
        if cluster is not None and not 0 <= cluster < k:
            raise ValueError(f"cluster={cluster} should be None or from 0 to {k - 1}.")
        random = check_random_state(self.random_state)
        shares = self.weights_ / self.weights_.sum()
        labels = random.choice(k, n_samples, p=shares) if cluster is None else np.full(n_samples, cluster)
        chosen = labels + k * random.randint(self.networks_per_cluster_, size=n_samples)
        networks, rows = self._networks(), np.empty((n_samples, self.n_features_in_))
        generator = torch.Generator().manual_seed(int(random.randint(2**31 - 1)))
        for network in np.unique(chosen):
            own, which = np.flatnonzero(chosen == network), slice(network, network + 1)
            z_GBL = torch.randn(1, len(own), self.latent_size_, generator=generator, dtype=torch.float64)
            output_GBD = networks.decode(z_GBL.to(networks.log_var_GD.device), which).cpu()
            drawn = networks.likelihood.mean(output_GBD)
            if noise:
                drawn = networks.likelihood.draw(output_GBD, networks.log_var_GD[which, None].cpu(), generator)
            rows[own] = drawn[0].numpy()
        return rows * self.scale_ + self.offset_, labels.astype(np.int32)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _checked_responsibilities(init, n: int, k: int) -> np.ndarray:
    init = np.asarray(init, dtype=np.float32)
    if init.shape != (n, k) or not np.isfinite(init).all() or (init < 0).any() or (init.sum(1) <= 0).any():
        raise ValueError(
            f"init must be one of the names, or responsibilities of shape (n_samples, n_clusters) = ({n}, {k}): not "
            f"negative, with a positive sum in every row; got an array of shape {init.shape}."
        )
    return init / init.sum(1, keepdims=True)
