"""What a notebook shows of an estimator: nothing more before the fit, sizes and a map after it."""

import numpy as np

from coterie import KMeans, SoftKMeans, TrimmedKMeans
from coterie.estimators.notebook import summary_html


def test_sizes_and_a_map_are_shown_after_the_fit():
    X = np.random.default_rng(0).normal(size=(60, 3)) + 9 * np.eye(3)[np.arange(60) % 3]
    for estimator in (KMeans(3, random_state=0), SoftKMeans(3, random_state=0)):
        assert "coterie-clusters" not in estimator._repr_html_()
        shown = estimator.fit(X)._repr_html_()
        assert shown.count("<circle") == 3
        assert shown.count(">20</td>") == 3
        assert estimator._repr_mimebundle_()["text/html"].count("coterie-clusters") == 1
    outliers = summary_html(TrimmedKMeans(3, outliers=0.1, random_state=0).fit(X))
    assert "outliers" in outliers


def test_one_cluster_one_column_and_many_clusters_are_shown_too():
    X = np.arange(40.0)[:, None]
    assert "<svg" not in summary_html(KMeans(1).fit(X))
    assert summary_html(KMeans(2, random_state=0).fit(X)).count("<circle") == 2
    assert "8 more" in summary_html(KMeans(20, random_state=0).fit(X))
