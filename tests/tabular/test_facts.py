"""The facts of a clustering: differences, cautions and quality."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import coterie
from coterie.tabular import ClusteredTable, quality
from coterie.tabular.cautions import cautions
from coterie.tabular.clustered_table import stratified_sample
from coterie.tabular.differences import portraits
from tests.reporting.test_report import blobs, kmeans


def clustered(X=None, estimator=None, **settings):
    X = blobs() if X is None else X
    return ClusteredTable.of((estimator or kmeans()).fit(X), X, **settings)


def told(one, **parts):
    return " ".join(caution.what for caution in cautions(one, **parts))


def test_portraits_name_the_column_that_separates():
    one = clustered(pd.DataFrame(blobs(), columns=list("abcd")))
    for portrait in portraits(one):
        best = portrait.traits[0]
        assert best.column in "abc"
        assert best.above > 0.99
        assert portrait.in_words(1) == f"very high {best.column}"
        assert best.here == pytest.approx(one.values[one.labels == portrait.label, "abcd".index(best.column)].mean())
        assert (one.labels[portrait.typical] == portrait.label).all()


def test_share_of_pairs_is_the_area_under_the_curve():
    from sklearn.metrics import roc_auc_score

    X = np.round(np.random.default_rng(0).normal(size=(200, 3)), 1)  # with ties
    one = clustered(X)
    for portrait in portraits(one):
        for trait in portrait.traits:
            column = X[:, int(trait.column[1:])]
            assert trait.above == pytest.approx(roc_auc_score(one.labels == portrait.label, column))


def test_unscaled_constant_and_doubled_columns_are_told():
    X = blobs()
    assert told(clustered(X)) == ""
    assert "'x0' has 99" in told(clustered(X * [1000, 1, 1, 1]))
    assert "'x0' varies" in told(clustered(X * [30, 25, 1, 0.5]))
    assert "same value in every row" in told(clustered(np.column_stack([X, np.ones(120)])))
    assert "'x0' and 'x4'" in told(clustered(np.column_stack([X, X[:, 0] * 2])))
    directions = clustered(X * [1000, 1, 1, 1], coterie.SphericalKMeans(3, random_state=0))
    assert "variance" not in told(directions)


def test_small_clusters_many_outliers_and_limits_are_told():
    X = np.vstack([blobs(200), [[99, 99, 99, 99.0]]])
    assert "(1 row)" in told(clustered(X, kmeans(4, n_init=5)))
    assert "40 rows (20%) are outliers" in told(
        clustered(blobs(200), coterie.TrimmedKMeans(3, trim=0.2, n_init=5, random_state=0))
    )
    noise = np.random.default_rng(0).normal(size=(300, 4))
    assert "limit of 2 iterations" in told(clustered(noise, kmeans(8, max_iter=2)))
    assert "iterations" not in told(clustered(noise, coterie.KMedoids(8, max_iter=2, random_state=0)))
    assert "stay" not in told(clustered(noise))


def test_a_doubtful_number_of_clusters_is_told():
    one = clustered(blobs(150), kmeans(6))
    counts = quality.other_counts(one, seconds=60)
    assert counts.best == 3
    assert "3 clusters have a higher silhouette" in told(one, counts=counts)
    right = clustered(blobs(150), kmeans(3, n_init=5))
    assert quality.other_counts(right, seconds=60).best == 3
    assert told(right, counts=quality.other_counts(right, seconds=60)) == ""
    choice = SimpleNamespace(
        criterion="silhouette", k=3, at_edge=True,
        candidates=[SimpleNamespace(k=2, score=0.1), SimpleNamespace(k=3, score=0.2)],
    )  # fmt: skip
    assert "largest number of clusters that was tried" in told(
        clustered(blobs(150), kmeans(3, n_init=5), choice=choice)
    )
    assert quality.other_counts(right, choice).ks == [2, 3]


def test_silhouettes_of_a_sample_count_clusters_by_their_true_size():
    from sklearn.metrics import silhouette_score

    X = np.random.default_rng(0).normal(size=(300, 2))
    one = clustered(X)
    assert quality.silhouettes(one).mean == pytest.approx(silhouette_score(X, one.labels))
    assert quality.silhouettes(clustered(X, kmeans(1))) is None


def test_clear_clusters_are_stable_and_noise_is_not():
    clear = quality.stability(clustered(blobs(300), kmeans(3, n_init=5)), refits=2)
    assert clear.mean == 1.0
    assert set(clear.recovery.values()) == {1.0}
    noise = np.random.default_rng(0).normal(size=(300, 6))
    shaky = quality.stability(clustered(noise, kmeans(12)), refits=2)
    assert shaky.mean < 0.8
    assert shaky.matrix.shape == (3, 3)
    given = clustered(blobs(), coterie.KMeans(3, init=blobs()[:3], engine="fused"))
    assert "initial centres were given" in quality.stability(given)


def test_samples_keep_small_clusters():
    labels = np.zeros(50_000, dtype=int)
    labels[:15] = 1
    rows = stratified_sample(labels, 1_000)
    assert (labels[rows] == 1).sum() == 15
    assert len(rows) <= 1_020
    assert len(np.unique(rows)) == len(rows)
