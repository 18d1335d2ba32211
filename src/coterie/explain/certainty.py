"""What an estimator says about its own certainty: about the number of clusters, and about every row."""

from typing import Any

import numpy as np

from coterie.estimators.capabilities import finds_outliers
from coterie.tabular.clustered_table import ClusteredTable
from coterie.tabular.encoded_table import EncodedTable
from coterie.tabular.model import TableModel
from coterie.wording import cluster_name

RUNNERS_UP = 4  # numbers of clusters that are listed beside the chosen one
LEAST_SHARE = 0.01  # numbers of clusters that are less probable are not listed


def count_probabilities(clustered: ClusteredTable) -> dict[int, float]:
    """The probability of the number of clusters and of the next most probable ones, in decreasing order.

    It is empty if the estimator has no such probabilities.
    """
    proba = getattr(clustered.estimator, "n_clusters_proba_", None)
    if proba is None:
        return {}
    order = np.argsort(-proba, kind="stable").tolist()
    listed = [i + 1 for i in order[: RUNNERS_UP + 1] if proba[i] >= LEAST_SHARE]
    chosen = [clustered.k] if 1 <= clustered.k <= len(proba) and clustered.k not in listed else []
    return {k: float(proba[k - 1]) for k in (*listed, *chosen)}


def row_certainty(clustered: ClusteredTable) -> np.ndarray | None:
    """(N,) how certain the cluster of every row is, from 0 to 1; None if the estimator has no probabilities.

    For :class:`coterie.ZeroShotClusterer`, this is the probability that a row truly shares a cluster with another row
    of its cluster; for other estimators, the largest of the probabilities of the clusters.
    """
    known = getattr(clustered.estimator, "certainty_", None)
    if known is not None and len(known) == clustered.n:
        return np.asarray(known, dtype=np.float64)
    shares = clustered.probabilities(np.arange(clustered.n))
    return None if shares is None else shares.max(axis=1)


def outlier_rows(clustered: ClusteredTable) -> np.ndarray | None:
    """(N,) which rows are outliers, with the label -1; None if the estimator does not look for outliers."""
    return _outliers(clustered.estimator, clustered.labels)


def _outliers(estimator: Any, labels: np.ndarray) -> np.ndarray | None:
    found = labels < 0
    return found if found.any() or finds_outliers(estimator) else None


def row_facts(clustered: ClusteredTable) -> dict[str, np.ndarray]:
    """The columns beside the labels: ``name``, ``certainty`` and ``outlier``, each where it is known."""
    names = [clustered.name(label) for label in clustered.labels.tolist()] if clustered.names else None
    return _known(names, row_certainty(clustered), outlier_rows(clustered))


def predicted_facts(model: TableModel, rows: EncodedTable, labels: np.ndarray) -> dict[str, np.ndarray]:
    """The same columns for rows of another table, whose labels were predicted."""
    names = [cluster_name(label, model.names) for label in labels.tolist()] if model.names else None
    given = rows.input(model.estimator)
    certainty = None
    if hasattr(model.estimator, "predict_certainty"):
        certainty = model.estimator.predict_certainty(given)
    elif hasattr(model.estimator, "predict_proba"):
        certainty = np.asarray(model.estimator.predict_proba(given)).max(axis=1)
    return _known(names, certainty, _outliers(model.estimator, labels))


def _known(names: list[str] | None, certainty: np.ndarray | None, outlier: np.ndarray | None) -> dict[str, np.ndarray]:
    columns = {
        "name": None if names is None else np.array(names),
        "certainty": None if certainty is None else certainty.round(4),
        "outlier": outlier,
    }
    return {name: values for name, values in columns.items() if values is not None}
