"""What an estimator says about its own certainty: about the number of clusters, and about every row."""

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
    found = clustered.labels < 0
    return found if found.any() or finds_outliers(clustered.estimator) else None


def row_facts(clustered: ClusteredTable) -> dict[str, np.ndarray]:
    """The columns beside the labels: ``name``, ``certainty`` and ``outlier``, each where it is known."""
    return _known(clustered, clustered.labels, row_certainty(clustered))


def predicted_facts(model: TableModel, rows: EncodedTable, labels: np.ndarray) -> dict[str, np.ndarray]:
    """The same columns for rows of another table, whose labels were predicted."""
    given = rows.input(model.estimator)
    certainty = None
    if hasattr(model.estimator, "predict_certainty"):
        certainty = model.estimator.predict_certainty(given)
    elif hasattr(model.estimator, "predict_proba"):
        certainty = np.asarray(model.estimator.predict_proba(given)).max(axis=1)
    return _known(model, labels, certainty)


def _known(
    made: ClusteredTable | TableModel, labels: np.ndarray, certainty: np.ndarray | None
) -> dict[str, np.ndarray]:
    known = {}
    if made.names:
        known["name"] = np.array([cluster_name(label, made.names) for label in labels.tolist()])
    if certainty is not None:
        known["certainty"] = certainty.round(4)
    if (labels < 0).any() or finds_outliers(made.estimator):
        known["outlier"] = labels < 0
    return known
