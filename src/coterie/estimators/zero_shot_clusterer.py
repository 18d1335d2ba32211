"""Clustering by a pretrained network that needs no number of clusters and no tuning."""

import copy
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import _fit_context
from sklearn.metrics import adjusted_rand_score
from sklearn.utils import check_random_state, check_scalar
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from coterie import threads
from coterie.constraints import Constraints
from coterie.estimators.clusterer import Clusterer
from coterie.estimators.in_blocks import InBlocks, answers_in, checked_rows_in, drawn, per_row, rows_in
from coterie.estimators.validation import (
    check_context,
    check_device,
    check_enough_rows,
    is_nearest,
    limit_of_share,
    refuse_equal_names,
)
from coterie.starts.row_order import has_distinct_rows, require_distinct_rows
from coterie.tables.columns import Column
from coterie.tables.encoding import Encoded, Encoding, different_rows
from coterie.tables.table import Table

MAX_CONTEXT = 1_024
SAMPLE = 100_000  # rows that columns are read from
CONTEXTS = (1, 2, 4, 8)  # samples that are read until two answers agree by STABLE (adjusted Rand index)
STABLE = 0.95
MAX_CLUSTERS = 100


class ZeroShotClusterer(Clusterer):
    """Cluster any table with a pretrained network: no number of clusters, no scaling, no encoding, no tuning.

    The network reads up to 1,024 rows at once. It estimates for every two of them the probability that they share a
    cluster, for every row the probability that it is noise, and the probability of each number of clusters. A
    hierarchy of those affinities is cut at the number of clusters whose adjusted Rand index with the true clusters is
    expected to be largest (Fritsch and Ickstadt 2009). For up to 16 clusters, the network compares this partition with
    two others, from average linkage of the affinities and from Genie's hierarchy of the rows, and keeps the one that it
    expects to be best. Rows that were not read take the labels of the nearest rows that were.

    The network was trained on synthetic data only. Numbers are scaled and missing values are filled. The columns of a
    DataFrame are read by their kind: texts, codes and yes/no are categories, which are encoded by what they share with
    other columns; identifiers, row numbers and free text are ignored with a warning. The columns of an array are
    numbers. Neither the order of the rows nor that of the columns changes the clusters.

    Many columns that share a scale, as those of embeddings, principal components, pixels and cells do, are not read by
    the network: with 16 columns and 200 rows or more, their graph of nearest neighbours is divided into communities at
    many resolutions, and the number of clusters is that at which the divisions of graphs with randomly changed weights
    agree best. There may be thousands of clusters, and no row is an outlier unless ``outliers`` is a
    share. Of more than 20,000 rows, a random sample
    makes the graph, and others take the label of the nearest of these. Where labels or pairs are given, the network
    reads such rows, too.

    The network finds up to 100 clusters. Of more than 100,000 rows, the kinds and scales of the columns and the rows
    that are read come from a random sample of 100,000. The rows that the network reads hold those of small groups that
    stand apart; a small cluster that touches a larger one is missed if only a few of its rows are read. Tables of a few
    binary columns are split into too many clusters; give ``n_clusters`` for these.

    Parameters
    ----------
    n_clusters : int or None, default=None
        The number of clusters; None lets the network choose.
    n_contexts : int or "auto", default=1
        How many samples of ``max_context`` rows the network reads. Affinities are averaged over them. A table with
        fewer rows is read that many times with different random features. "auto" reads 1, 2, 4 and at most 8 samples,
        until two answers agree by an adjusted Rand index of 0.95, and warns if none do.
    max_context : int, default=1024
        The largest number of rows that the network reads at once.
    scale : {"auto", "common", "cosine", "counts"} or bool, default="auto"
        How columns are made comparable. True scales every column to the same spread, which is right for measurements
        in different units. "common" scales all columns alike: for principal components, pixels and embeddings.
        "cosine" gives every row length one before. "counts" takes the logarithm of counts relative to the total of
        their row, as is usual for gene expression. False changes nothing. "auto" is True, unless the columns are
        recognised as one of these; the attribute ``scale_`` says what was chosen.
    kinds : dict or None, default=None
        Kinds of columns of a DataFrame that are not guessed, for example ``{"year": "category", "account": "id"}``. A
        kind is "number", "count", "ordinal", "category", "date", "id" or "text"; the last two are ignored.
    outliers : "auto", float in [0, 1) or None, default="auto"
        How many rows stay outside all clusters, with the label -1. "auto": those whose probability of being noise is
        above 0.35. A share: at most that share of the rows of ``fit``, those with the highest probability. None: no
        row.
    network : str or path, default="zeroshot-3"
        Name of a network (``coterie models`` lists them) or path of its ``.safetensors`` file. The package
        coterie-research has earlier ones: "zeroshot-2", trained on synthetic tables alone, and "zeroshot", that of
        version 0.1.0, on shapes alone.
    device : str, torch.device or None, default=None
        Where the network is evaluated; None is the CPU.
    n_jobs : int or None, default=None
        Number of threads: -1 uses all processors, None the current settings of numpy and torch.
    random_state : int, RandomState or None, default=None
        Seed of the samples and of the network's random features. An int makes the result reproducible.

    Attributes
    ----------
    labels_ : int32 array of shape (n_samples,)
        Cluster of every row, from 0 to ``n_clusters_`` - 1; -1 for outliers. ``predict_proba`` says to which cluster
        an outlier is nearest.
    outliers_ : bool array of shape (n_samples,)
        Whether a row is an outlier: its probability of being noise is above ``outlier_limit_``. At least one row of
        every cluster is not, and neither are rows whose label was given.
    outlier_limit_ : float
        The probability of being noise above which a row is an outlier; 1 if ``outliers`` is None.
    noise_ : array of shape (n_samples,)
        The probability that a row is noise, which belongs to no cluster.
    certainty_ : array of shape (n_samples,)
        The probability that a row truly shares a cluster with another row of its cluster, drawn at random; of an
        outlier, the probability that it is noise.
    n_clusters_ : int
        Number of clusters that were found or given.
    n_clusters_proba_ : array of shape (n_numbers,)
        Probability of 1, 2, ... clusters: up to 100, or as many as there are communities at the finest resolution.
    expected_ari_ : float
        The adjusted Rand index between the labels and the true clusters that the network expects. It counts the chance
        that there is one cluster only: an index of 0 for several clusters, of 1 for one.
    affinity_ : float32 array of shape (n_context, n_context)
        Probability that two of the rows that were read share a cluster. Only where the network read them.
    communities_ : int32 array of shape (n_context, n_divisions)
        Communities of the rows in five divisions of every resolution, the coarsest first. Only where the neighbour
        graph was divided; ``context_certainty_`` is then the certainty of these rows.
    children_ : int array of shape (n_context - 1, 2)
        Ward's hierarchy of the affinities of the rows that were read, or the hierarchy of the finest communities, as in
        :class:`sklearn.cluster.AgglomerativeClustering`. ``cut`` gives the labels for any number of clusters.
    cluster_centers_ : array of shape (n_clusters_, n_features)
        Mean of the rows of every cluster, without outliers; NaN for columns that are not numbers. Of more than 100,000
        rows, the mean of the sample.
    context_ : array of shape (n_context, n_encoded)
        The rows that were read, scaled and encoded.
    context_indices_ : int array of shape (n_context,)
        Their places in X.
    context_proba_ : array of shape (n_context, n_clusters_)
        Their probability of each cluster.
    context_noise_ : array of shape (n_context,)
        Their probability of being noise.
    head_ : float32 array of shape (n_weights,)
        Weights of the head of the network that compares partitions, so that ``cut`` does not need the network; empty if
        the network has no such head.
    scale_ : str
        How columns were scaled: "each" or one of the names above, "auto" apart.
    encoding_ : str
        How columns are scaled and encoded, as JSON.
    <n_features_in_, feature_names_in_>

    Notes
    -----
    There is no ``sample_weight``: the network reads every row of its sample once.

    Examples
    --------
    >>> from coterie import ZeroShotClusterer
    >>> from sklearn.datasets import make_blobs
    >>> X, _ = make_blobs(200, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    >>> ZeroShotClusterer(random_state=0).fit(X).n_clusters_
    3
    """

    _encodes_tables: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict] = {
        **Clusterer._common_constraints,
        "n_clusters": [None, Interval(Integral, 1, None, closed="left")],
        "n_contexts": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "max_context": [Interval(Integral, 2, MAX_CONTEXT, closed="both")],
        "scale": ["boolean", StrOptions({"auto", "common", "cosine", "counts"})],
        "kinds": [None, dict],
        "outliers": [None, StrOptions({"auto"}), Interval(Real, 0, 1, closed="left")],
        "network": [str, os.PathLike],
    }

    def __init__(
        self,
        n_clusters=None,
        *,
        n_contexts=1,
        max_context=1024,
        scale="auto",
        kinds=None,
        outliers="auto",
        network="zeroshot-3",
        device=None,
        n_jobs=None,
        random_state=None,
    ):
        self.n_clusters = n_clusters
        self.n_contexts = n_contexts
        self.max_context = max_context
        self.scale = scale
        self.kinds = kinds
        self.outliers = outliers
        self.network = network
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state

    context_indices_: np.ndarray

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, *, must_link=None, cannot_link=None):
        """Read X, or a sample of it, and label its rows.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features), Dask array or DataFrame, path, or ``Chunks``
            Missing values are allowed; columns of a DataFrame may hold text, categories or dates. Rows that
            :class:`coterie.tables.encoding.Encoding` encoded are taken as they are; ``scale`` then has no effect.
        y : int array of shape (n_samples,), default=None
            Labels 0, 1, ... of the rows whose cluster is known, and -1 or NaN for all others. These rows keep their
            labels, and the others follow: clusters are divided or joined if that predicts the given labels better. A y
            without -1 is ignored, like the targets that a pipeline passes on.
        must_link : array of shape (n_pairs, 2), default=None
            Pairs of rows, as positions in X, that share a cluster.
        cannot_link : array of shape (n_pairs, 2), default=None
            Pairs of rows that do not share a cluster.

        Returns
        -------
        self
        """
        from coterie.zeroshot import communities

        rows = rows_in(X, self)
        for name in ("affinity_", "communities_", "context_certainty_"):  # only one of the two ways has them
            self.__dict__.pop(name, None)
        known_by_place = y is not None or must_link is not None or cannot_link is not None
        if isinstance(rows, InBlocks):
            checked_rows_in(self, rows, y=y, must_link=must_link, cannot_link=cannot_link)
        with _reproducible(self.n_jobs):
            random = check_random_state(self.random_state)
            sample, places = (rows, None) if known_by_place else self._sample(rows, random)
            encoded = self._encoded(sample, reset=True)
            n, points = len(encoded), encoded.points
            self._check_size(n)
            rng = np.random.default_rng(random.randint(2**31))
            known = Constraints.of(n, y, must_link, cannot_link)
            if known is None and communities.suit(encoded.encoding.scale, points.shape):
                found = self._divide(points, rng)
                self._label(encoded, self.n_clusters or found, known)
            else:
                self._read_until_stable(encoded, known, rng)
            if places is not None:
                self.context_indices_ = places[self.context_indices_]
                self._label_all(rows)
        return self

    def _divide(self, points: np.ndarray, rng: np.random.Generator) -> int:
        """Read rows as a neighbour graph; returns the number of clusters."""
        from coterie.zeroshot import communities

        order = self._order(points)
        if self.n_clusters is not None:
            require_distinct_rows(points[order], self.n_clusters)
        if len(order) > communities.MOST_ROWS:
            order = order[np.sort(rng.choice(len(order), communities.MOST_ROWS, replace=False))]
        self.context_indices_, self.context_ = order, points[order]
        n_threads = threads.count(self.n_jobs)
        self.communities_ = communities.divisions(self.context_, rng, n_threads, self.n_clusters or 0)
        read = communities.Communities(self.communities_)
        found, self.n_clusters_proba_ = read.number_of_clusters()
        self.children_, self.head_ = read.hierarchy(), np.zeros(0)
        return found

    def _read_until_stable(self, encoded: Encoded, known: Constraints | None, rng: np.random.Generator) -> None:
        """Read so many samples as were asked for, or more and more until the labels no longer depend on them."""
        counts: tuple = (self.n_contexts,) if self.n_contexts != "auto" else CONTEXTS
        before, agreed = None, 1.0
        for count in counts if len(encoded) > self.max_context else counts[:1]:
            found = self._read_contexts(encoded.points, known, rng, count)
            self._label(encoded, self.n_clusters or found, known)
            agreed = 1.0 if before is None else adjusted_rand_score(before, self.labels_)
            if before is not None and agreed >= STABLE:
                return
            before = self.labels_
        if agreed < STABLE:
            warnings.warn(
                f"The clusters depend on the rows that are read: the answers to {counts[-2]} and {counts[-1]} samples "
                f"agree by {agreed:.2f} (adjusted Rand index).",
                stacklevel=2,
            )

    def _read_contexts(
        self, points: np.ndarray, known: Constraints | None, rng: np.random.Generator, count: int
    ) -> int:
        """Let the network read so many samples of rows; returns the number of clusters."""
        from coterie.zeroshot.network import loading
        from coterie.zeroshot.network.inference import read_contexts
        from coterie.zeroshot.partitions.number_of_clusters import Hierarchical

        self._check_number()
        contexts = self._contexts(points, rng, count)
        if known is not None and len(points) > self.max_context:
            contexts = [known.included(each, self.max_context) for each in contexts]
        contexts = [self._with_enough_rows(points, each) for each in contexts]
        self.context_indices_ = contexts[0]
        self.context_ = points[self.context_indices_]
        network = loading.load(self.network, check_device(self.device))
        read = [points[each] if each is not contexts[0] else self.context_ for each in contexts]
        reading = read_contexts(network, read, rng)
        if known is not None:
            reading.noise_N[known.group[self.context_indices_] >= 0] = 0.0  # they belong to a cluster
        found = Hierarchical(reading, network.config.choice, network.config.single)
        self.affinity_, self.context_noise_ = reading.affinity_NN, reading.noise_N
        self.children_ = np.column_stack([found.tree.left, found.tree.right])
        self.n_clusters_proba_ = found.clusters_proba
        self.head_ = network.head
        return found.best

    def _sample(self, rows, random) -> tuple[Any, np.ndarray | None]:
        """The rows themselves, or some of them and their places, if there are many or if they are in blocks."""
        if not isinstance(rows, InBlocks) and (not hasattr(rows, "__len__") or len(rows) <= SAMPLE):
            return rows, None
        return drawn(rows, SAMPLE, random)

    def _label_all(self, rows) -> None:
        """Label all rows of which those that are labelled are a sample."""
        facts = answers_in(self, "_row_facts", rows)
        self.labels_, self.noise_, self.certainty_ = facts[:, 0].astype(np.int32), facts[:, 1], facts[:, 2]

    def _row_facts(self, X) -> np.ndarray:
        """Label, probability of being noise and certainty of every row, (n_samples, 3)."""
        labels, noise, certainty = self._answer(X, "describe")
        return np.column_stack([labels, noise, certainty])

    @property
    def scale_(self):
        """How columns were made comparable."""
        return Encoding.from_json(self.encoding_).scale

    @property
    def outliers_(self):
        """Whether each row of ``fit`` is an outlier."""
        return self.labels_ == -1

    def _label(self, encoded: Encoded, n_clusters: int, known: Constraints | None = None) -> None:
        """Divide the rows that were read into clusters, and label all rows beside them."""
        from coterie.zeroshot.partitions.cuts import OUTLIER_PROBABILITY

        there = None if known is None else known.take(self.context_indices_)
        made = self._partition(n_clusters, there)
        self.outlier_limit_ = OUTLIER_PROBABILITY if self.outliers == "auto" else 1.0
        if self.outliers not in (None, "auto"):
            self.outlier_limit_ = limit_of_share(made.describe(encoded.points, self.n_jobs).noise_N, self.outliers)
        made = replace(made, limit=self.outlier_limit_)
        labels, noise, certainty = made.describe(encoded.points, self.n_jobs)
        if known is not None and there is not None:
            bound = there.group >= 0
            labels[self.context_indices_[bound]] = made.labels_N[bound]
            given = known.given >= 0
            labels[given], noise[given] = known.given[given], 0.0
        self.n_clusters_ = self._n_features_out = made.proba_NK.shape[1]
        self.context_proba_, self.expected_ari_ = made.proba_NK, made.expected_ari
        self.labels_, self.noise_, self.certainty_ = labels, noise, certainty
        self.cluster_centers_ = self._centers(encoded)

    def _partition(self, n_clusters: int, known: Constraints | None):
        """The rows that were read in so many clusters."""
        from coterie.zeroshot.communities import Communities
        from coterie.zeroshot.partitions.partition import partition_under

        if hasattr(self, "communities_"):
            read, one = Communities(self.communities_), float(self.n_clusters_proba_[0])
            made = read.partition(self.context_, self.children_, n_clusters, one)
            self.context_certainty_, self.context_noise_ = made.own_N, made.noise_N
            return made
        return partition_under(self._evidence(), n_clusters, known, self.n_clusters)

    def _order(self, points: np.ndarray) -> np.ndarray:
        """Indices of the different rows, in an order that depends neither on that of the rows nor of the columns."""
        kept = different_rows(points)
        points = points[kept] if len(kept) < len(points) else points
        return kept[np.lexsort([points.sum(axis=1), (points**3).sum(axis=1), (points**2).sum(axis=1).round(9)])]

    def _contexts(self, points: np.ndarray, rng: np.random.Generator, count: int) -> list[np.ndarray]:
        """Indices of the rows of so many samples."""
        from coterie.zeroshot.rare_groups import with_rare_groups

        order = self._order(points)
        points = points[order]
        if len(order) <= self.max_context:
            return [order] * count
        places = [np.sort(rng.choice(len(order), self.max_context, replace=False)) for _ in range(count)]
        apart = rng.spawn(count)  # their draws leave those of the network as they are
        n_threads = threads.count(self.n_jobs)
        return [order[with_rare_groups(points, each, own, n_threads)] for each, own in zip(places, apart)]

    def _with_enough_rows(self, points: np.ndarray, context: np.ndarray) -> np.ndarray:
        """The context, or one that has as many different rows as clusters are asked for, if the table has them."""
        k = self.n_clusters
        if k is None or has_distinct_rows(points[context], k):
            return context
        require_distinct_rows(points, k)
        different = np.unique(points, axis=0, return_index=True)[1][:k]
        others = context[~np.isin(context, different)]
        return np.concatenate([different, others])[: self.max_context]

    def _check_size(self, n: int) -> None:
        if n < 2:
            raise ValueError(f"ZeroShotClusterer needs at least 2 rows, got n_samples={n}.")
        if self.n_clusters is None:
            return
        check_enough_rows(n, self.n_clusters)

    def _check_number(self) -> None:
        """Raise an error if the network cannot find so many clusters."""
        if self.n_clusters is None:
            return
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
        table = self._table(X, reset=reset)
        if reset:
            self._check_size(len(table))
            read = self._used(table)
            encoding = Encoding.learn(read, scale=self.scale)
            self.encoding_ = encoding.to_json()
            columns = [column.values for column in read]
        else:
            encoding = Encoding.from_json(self.encoding_)
            columns = table.columns_for(encoding)
        for column, values in zip(encoding.columns, columns):
            if values.dtype != object and np.isinf(values).any():
                raise ValueError(
                    f"Input X contains infinity (column {column.name}): remove such rows, or set them to NaN."
                )
        return encoding.encode(columns)

    def _table(self, X, *, reset: bool) -> Table:
        if hasattr(X, "columns") and hasattr(X, "dtypes"):
            refuse_equal_names(X)
            validate_data(self, X, reset=reset, skip_check_array=True)
            if not len(X.columns):
                raise ValueError("Found array with 0 feature(s) while a minimum of 1 is required.")
            if not hasattr(self, "feature_names_in_"):  # fitted to an array: columns are found by their place
                X = X.set_axis([f"x{i}" for i in range(X.shape[1])], axis=1)
            return Table.of(X)
        X = validate_data(self, X, reset=reset, dtype=np.float64, ensure_all_finite=False)
        names = getattr(self, "feature_names_in_", None)
        return Table([f"x{i}" for i in range(X.shape[1])] if names is None else names, array=X)

    def _used(self, table: Table) -> list[Column]:
        """The columns to compare. Those that are ignored are named in a warning."""
        if not table.is_frame:
            return [replace(column, used=True) for column in table.read_columns()]
        read = table.read_columns(kinds=self.kinds)
        used, ignored = ([column for column in read if column.used is wanted] for wanted in (True, False))
        why = "; ".join(f"{column.name!r} ({column.why})" for column in ignored)
        if not used:
            raise ValueError(f"No column can be compared: {why}. Correct this with kinds={{column: kind}}.")
        if ignored:
            warnings.warn(f"These columns are ignored: {why}. Correct this with kinds={{column: kind}}.", stacklevel=5)
        return used

    def _centers(self, encoded: Encoded) -> np.ndarray:
        members = (self.labels_[:, None] == np.arange(self.n_clusters_)).astype(np.float64)
        means = members.T @ encoded.numbers / np.maximum(members.sum(axis=0), 1)[:, None]
        if self.n_features_in_ == means.shape[1]:
            return means
        place = {str(name): number for number, name in enumerate(self.feature_names_in_)}
        centers = np.full((self.n_clusters_, self.n_features_in_), np.nan)
        for column, mean in zip(encoded.encoding.columns, means.T):
            if len(column.sources) == 1:
                centers[:, place[column.sources[0]]] = mean
        return centers

    def _answer(self, X, question: str, assign=None):
        from coterie.zeroshot.partitions.partition import Partition

        check_is_fitted(self)
        made = Partition(
            self.context_, getattr(self, "affinity_", np.zeros((0, 0))), self.context_noise_, self.context_proba_,
            self.expected_ari_, getattr(self, "context_certainty_", None),
        )  # fmt: skip
        made = replace(made, limit=1.0 if is_nearest(assign) else vars(self).get("outlier_limit_", made.limit))
        with _reproducible(self.n_jobs):
            return getattr(made, question)(self._encoded(X, reset=False).points, self.n_jobs)

    @per_row
    def predict(self, X, *, assign=None):
        """Label rows by the nearest rows that the network read, independently of the other rows of X.

        <assign>
        Returns
        -------
        labels : int32 array of shape (n_samples,)
            From 0 to ``n_clusters_`` - 1; -1 for outliers.
        """
        return self._answer(X, "label", assign)[0]

    @per_row
    def predict_proba(self, X):
        """Compute the probability of every cluster for every row, including outliers.

        Returns
        -------
        probability : array of shape (n_samples, n_clusters_)
        """
        return self._answer(X, "label")[1]

    @per_row
    def predict_certainty(self, X):
        """Compute how certain the label of every row is, as ``certainty_`` is for the rows of ``fit``.

        Returns
        -------
        certainty : array of shape (n_samples,)
        """
        return self._answer(X, "describe").certainty_N

    def transform(self, X):
        """The same probabilities as features for the next step of a pipeline."""
        return self.predict_proba(X)

    def cut(self, X, n_clusters):
        """Labels of X for another number of clusters, without another pass of the network.

        For the rows of ``fit`` these are the labels that ``n_clusters`` would have given there.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
            The rows to label, for example those of ``fit``.
        n_clusters : int
            The number of clusters, at most the number of rows that were read.

        Returns
        -------
        labels : int32 array of shape (n_samples,)
            From 0 to ``n_clusters`` - 1; -1 for outliers.
        """
        return self.recut(X, n_clusters).labels_

    def recut(self, X, n_clusters):
        """A copy of the fitted estimator with another number of clusters, without another pass of the network.

        Labels and pairs that were given to ``fit`` are not kept: fit again with that ``n_clusters`` to keep them.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
            The rows to label, for example those of ``fit``.
        n_clusters : int
            The number of clusters, at most the number of rows that were read.

        Returns
        -------
        estimator : ZeroShotClusterer
            Its fitted attributes are those of X and of this number of clusters.
        """
        check_is_fitted(self)
        check_scalar(n_clusters, "n_clusters", Integral)
        if not 1 <= n_clusters <= len(self.context_):
            raise ValueError(
                f"n_clusters must be between 1 and {len(self.context_)}, the number of rows that were read; "
                f"got {n_clusters}."
            )
        other = copy.copy(self)
        other.n_clusters = n_clusters
        rows = rows_in(X, self)
        with _reproducible(self.n_jobs):
            sample, places = self._sample(rows, check_random_state(self.random_state))
            other._label(self._encoded(sample, reset=False), n_clusters)
            if places is not None:
                other._label_all(rows)
        return other

    def _read(self) -> Encoded:
        """The rows that were read; their values in the units of the table are not known any more."""
        encoding = Encoding.from_json(self.encoding_)
        return Encoded(encoding, np.full((len(self.context_), len(encoding.value_names)), np.nan), self.context_)

    def _within(self, rows):
        """This fit on some of the rows that were read, whose hierarchy divides one cluster into parts."""
        other = copy.copy(self)
        other.context_, other.context_noise_ = self.context_[rows], self.context_noise_[rows]
        other.context_indices_ = np.arange(len(rows))
        if hasattr(self, "communities_"):
            other.communities_ = self.communities_[rows]
        else:
            other.affinity_ = self.affinity_[np.ix_(rows, rows)]
        other.children_ = restricted(self.children_, rows)
        other.head_ = np.zeros(0)
        return other

    def _levels(self, rows, most):
        """Labels of some of the rows that were read and the expected index, for 1, 2, ... clusters of their own
        hierarchy."""
        from coterie.zeroshot.communities import Communities
        from coterie.zeroshot.features.description import row_distances
        from coterie.zeroshot.features.hierarchies import ward

        own = self._within(rows)
        if hasattr(self, "communities_"):
            read, one = Communities(own.communities_), float(own.n_clusters_proba_[0])
            for k in range(1, most + 1):
                made = read.partition(own.context_, own.children_, k, one)
                yield made.labels_N, made.expected_ari
            return
        tree = ward(row_distances(self.affinity_[np.ix_(rows, rows)].astype(np.float64)))
        own.children_, own.head_ = np.column_stack([tree.left, tree.right]), self.head_
        for k in range(1, most + 1):
            made = own._partition(k, None)
            yield made.labels_N, made.expected_ari

    def _evidence(self):
        """What the network found in the rows that it read."""
        from coterie.zeroshot.partitions.partition import Evidence

        head = getattr(self, "head_", np.zeros(0))  # models of earlier versions have none
        return Evidence(
            self.context_, self.affinity_, self.context_noise_, self.children_, self.n_clusters_proba_, head
        )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags


def restricted(children: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """(len(rows) - 1, 2) the merges of a hierarchy between some of its rows."""
    n = len(children) + 1
    place = np.full(2 * n - 1, -1)
    place[rows] = np.arange(len(rows))
    merges: list[tuple[int, int]] = []
    for node, (left, right) in enumerate(np.asarray(children).tolist(), n):
        one, other = int(place[left]), int(place[right])
        place[node] = max(one, other)
        if min(one, other) >= 0:
            place[node] = len(rows) + len(merges)
            merges.append((one, other))
    return np.array(merges, dtype=np.int64).reshape(-1, 2)


@contextmanager
def _reproducible(n_jobs: int | None) -> Iterator[None]:
    """Own threads as asked for, but none inside BLAS, whose sums depend on their number. Ties would show it."""
    with threads.limited(n_jobs), threads.blas_threads(1):
        yield
