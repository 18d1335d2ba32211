"""The facts of a clustering: differences, cautions and quality."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import AgglomerativeClustering
from sklearn.exceptions import ConvergenceWarning

import coterie
from coterie.explain import quality
from coterie.explain.cautions import cautions
from coterie.explain.certainty import count_probabilities, row_facts
from coterie.explain.differences import portraits
from coterie.selection import stratified_sample
from coterie.tabular import ClusteredTable, cluster_table
from tests.explain.test_report import blobs, kmeans


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
        clustered(blobs(200), coterie.TrimmedKMeans(3, outliers=0.2, n_init=5, random_state=0))
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
    assert len(shaky.agreement) == 2
    assert shaky.rows == 240
    without_seed = quality.stability(clustered(blobs(), AgglomerativeClustering(3)), refits=1)
    assert without_seed.mean == 1.0
    assert "one cluster" in quality.stability(clustered(blobs(), kmeans(1)))


def test_a_division_of_one_group_is_not_called_groups():
    rng = np.random.default_rng(0)
    groups = {
        "clear groups": 8 * np.eye(3)[np.arange(300) % 3] + rng.normal(size=(300, 3)),
        "probable groups": 3 * np.eye(3)[np.arange(300) % 3] + rng.normal(size=(300, 3)),
        "weak groups": 1.8 * np.eye(3)[np.arange(300) % 3] + rng.normal(size=(300, 3)),
        "no groups found": rng.normal(size=(300, 2)),
    }
    for words, X in groups.items():
        one = clustered(X, kmeans(3, n_init=3))
        assert one.verdict.words == words
        assert one.facts.verdict is one.verdict
    single = clustered(groups["clear groups"], kmeans(1)).verdict
    assert single.words == "no groups found"
    assert "One cluster was requested" in single.text
    assert single.advice == "Request two or more clusters (-k)."
    with pytest.warns(ConvergenceWarning):
        equal = clustered(np.ones((9, 2)), kmeans(2)).verdict
    assert "All rows are in one of the 2 clusters that were requested" in equal.text


def network(expected=0.9, proba=(0.0, 0.1, 0.7, 0.2), **more):
    """A stand-in for an estimator that says how sure it is."""
    return SimpleNamespace(
        expected_ari_=expected, n_clusters_proba_=np.array(proba), get_params=lambda deep: {}, **more
    )


def test_what_a_network_says_of_itself_decides_the_verdict():
    one = clustered(blobs(90))
    for estimator, words in (
        (network(), "clear groups"),
        (network(expected=0.6), "clear groups"),
        (network(expected=0.45), "probable groups"),
        (network(expected=0.3), "weak groups"),
        (network(certainty_=np.full(90, 0.4)), "weak groups"),
        (network(expected=np.nan), "cannot tell"),
        (network(expected=0.05), "no groups found"),
        (network(proba=(0.6, 0.1, 0.3)), "no groups found"),
    ):
        asked = replace(one, estimator=estimator)
        assert asked.verdict.words == words
    divided = clustered(np.random.default_rng(0).normal(size=(300, 2)), kmeans(2))
    assert replace(divided, estimator=network(expected=0.6, proba=(0.1, 0.9))).verdict.words == "probable groups"
    filled = replace(divided, estimator=network(expected=0.3, proba=(0.1, 0.9))).verdict
    assert filled.words == "no groups found"
    assert "as many rows between neighbouring clusters as near their centres" in filled.reason
    assert count_probabilities(replace(one, estimator=network())) == {3: 0.7, 4: 0.2, 2: 0.1}
    assert count_probabilities(one) == {}
    many = replace(one, estimator=network(proba=np.full(200, 0.005)))
    assert list(count_probabilities(many)) == [3]


def test_a_verdict_names_a_number_that_is_as_likely_or_likelier():
    several, one = clustered(blobs(90)), clustered(blobs(90), kmeans(1))
    assert (
        "4 clusters would be about as likely"
        in replace(several, estimator=network(proba=(0, 0, 0.4, 0.35))).verdict.text
    )
    assert (
        "4 clusters would be more likely (0.60), but"
        in replace(several, estimator=network(proba=(0, 0, 0.2, 0.6))).verdict.text
    )
    assert "likely" not in replace(several, estimator=network()).verdict.text
    single = replace(one, estimator=network(proba=(0.35, 0.65, 0.0))).verdict.text
    assert single.startswith("Cannot tell.")
    assert "probability is only 0.35. 2 clusters would be more likely (0.65)" in single
    assert "compare with -k 2" in single
    assert "likely" not in replace(one, estimator=network(proba=(0.9, 0.1, 0.0))).verdict.text


def test_limits_of_a_network_are_told_and_advice_fits_the_estimator():
    one = clustered(blobs(90))
    read = told(replace(one, estimator=network(context_indices_=np.arange(30))))
    assert "read 30 of the 90 rows" in read
    assert "3 is the largest number" in told(replace(one, estimator=network(proba=(0.1, 0.1, 0.8))))
    small = np.vstack([blobs(200), [[99, 99, 99, 99.0]]])
    advice = {type(kind).__name__: cautions(clustered(small, kind)) for kind in (
        kmeans(4, n_init=5), coterie.TrimmedKMeans(4, outliers=0.01, random_state=0))}  # fmt: skip
    assert "TrimmedKMeans" in " ".join(one.advice for one in advice["KMeans"])
    assert "TrimmedKMeans" not in " ".join(one.advice for one in advice["TrimmedKMeans"])
    unstable = quality.Stability([0.2], {0: 0.1}, 80)
    assert "n_init" in " ".join(one.advice for one in cautions(one, unstable))
    tree = clustered(blobs(90), AgglomerativeClustering(3))
    assert "n_init" not in " ".join(one.advice for one in cautions(tree, unstable))


def test_certainty_and_outliers_stand_beside_the_labels():
    soft = clustered(blobs(), coterie.SoftKMeans(3, random_state=0))
    assert list(row_facts(soft)) == ["certainty"]
    assert row_facts(soft)["certainty"].min() >= 1 / 3
    trimmed = clustered(blobs(), coterie.TrimmedKMeans(3, outliers=0.1, random_state=0))
    np.testing.assert_array_equal(row_facts(trimmed)["outlier"], trimmed.labels < 0)
    assert row_facts(clustered(blobs())) == {}
    given = np.linspace(0, 1, 120)
    labels = np.where(given < 0.1, -1, soft.labels)
    sure = replace(soft, estimator=network(certainty_=given, noise_=1 - given), labels=labels)
    np.testing.assert_allclose(row_facts(sure)["certainty"], given, atol=1e-4)
    assert row_facts(sure)["outlier"].sum() == 12
    assert sure.facts.outliers == 12


def test_samples_keep_small_clusters():
    labels = np.zeros(50_000, dtype=int)
    labels[:15] = 1
    rows = stratified_sample(labels, 1_000)
    assert (labels[rows] == 1).sum() == 15
    assert len(rows) <= 1_020
    assert len(np.unique(rows)) == len(rows)


@pytest.mark.parametrize("follow", [True, False])
def test_clusters_that_follow_missing_values_are_named(follow):
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1], 60)
    frame = pd.DataFrame(rng.normal(size=(120, 3)) + 9 * group[:, None], columns=list("abc"))
    frame.loc[group == 1 if follow else rng.random(120) < 0.5, "a"] = np.nan
    notes = " ".join(cluster_table(frame).facts.notes)
    assert ("The clusters follow missing values: 'a' is missing in 100% of cluster" in notes) == follow


@pytest.mark.parametrize("seed", range(6))
def test_answers_to_items_of_one_factor_are_no_groups(seed):
    rng = np.random.default_rng(seed)
    answers = 3 + rng.uniform(0.5, 0.8, 12) * rng.normal(size=(400, 1)) + 0.7 * rng.normal(size=(400, 12))
    found = cluster_table(pd.DataFrame(np.clip(np.round(answers), 1, 5).astype(int)).add_prefix("q"))
    assert found.verdict.words in ("no groups found", "cannot tell", "weak groups")
    assert found.estimator.expected_ari_ < 0.4 or found.k == 1


def test_a_row_of_totals_is_named_and_changes_nothing_else():
    X = np.abs(blobs(200)) * 100
    frame = pd.DataFrame(X, columns=list("abcd")).assign(place=np.repeat(["x", "y"], 100))
    total = pd.DataFrame([{**frame[list("abcd")].sum(), "place": "TOTAL"}])
    with_total = cluster_table(pd.concat([frame, total], ignore_index=True))
    np.testing.assert_array_equal(with_total.labels[:200], cluster_table(frame).labels)
    notes = " ".join(with_total.facts.notes)
    assert "far from all others: in row 201" in notes
    assert "almost the same information" not in notes


def test_a_verdict_says_when_a_table_cannot_tell():
    far = clustered(np.vstack([blobs(200), np.full((3, 4), 9_000.0)]), kmeans(2)).verdict
    assert far.words == "cannot tell"
    assert "All but 3 rows are in one cluster" in far.text
    few = clustered(blobs(12), kmeans(3)).verdict
    assert few.words == "cannot tell"
    assert "12 rows are too few to judge 3 clusters" in few.text
    same = clustered(np.repeat(np.eye(4), 50, axis=0), kmeans(3)).verdict
    assert "only 4 different rows" in same.text
    wide = clustered(blobs(90) * [1000, 1, 1, 1], kmeans(3)).verdict
    assert wide.words == "cannot tell"
    assert "its scale decides the clusters" in wide.text


def test_a_verdict_says_which_clusters_another_number_would_join():
    X = np.repeat([[0.0], [1.0], [10.0]], 30, axis=0) + np.random.default_rng(0).normal(scale=0.1, size=(90, 1))
    fitted = AgglomerativeClustering(3, compute_distances=True).fit(X)
    one = ClusteredTable.of(fitted, X)
    near = sorted({*fitted.labels_[[0, 30]].tolist()})
    doubt = network(proba=(0, 0.4, 0.5, 0.1), children_=fitted.children_)
    text = replace(one, estimator=doubt).verdict.text
    assert (
        f"2 clusters would be about as likely, with cluster {near[0]} and cluster {near[1]} as one: "
        "compare with -k 2." in text
    )


def test_a_given_number_that_is_far_less_likely_than_another_is_not_clear():
    rng = np.random.default_rng(0)
    rows = np.repeat([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]], 60, axis=0) + rng.normal(size=(180, 2))
    found = cluster_table(pd.DataFrame(rows, columns=["a", "b"]))
    given = cluster_table(pd.DataFrame(rows, columns=["a", "b"]), algorithm="zeroshot", clusters=[6])
    assert found.verdict.words == "clear groups"
    assert given.verdict.words != "clear groups"
    assert "3 clusters would be more likely" in given.verdict.reason
