"""The parts of the report: findings, warnings, trust, replay and the lines that do it again."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from coterie.reporting.cautions import cautions
from coterie.reporting.differences import portraits
from coterie.reporting.origin import Origin
from coterie.reporting.subject import Subject, sample
from sklearn.preprocessing import StandardScaler

import coterie
from coterie.data.tables import read_table
from coterie.reporting import quality
from coterie.reporting.markup import data, escape, join, tag
from coterie.reporting.recipe import recipe
from coterie.reporting.replay import replay
from coterie.tabular import Columns
from tests.reporting.test_report import blobs, kmeans


def subject(X=None, estimator=None, **settings):
    X = blobs() if X is None else X
    return Subject.of((estimator or kmeans()).fit(X), X, **settings)


def told(one, **parts):
    given = {"sure": None, "stable": "", "counts": None, **parts}
    return " ".join(caution.what for caution in cautions(one, **given))


def test_text_is_escaped_and_html_is_not_escaped_twice():
    assert tag("p", "<b>", tag("i", "&")) == "<p>&lt;b&gt;<i>&amp;</i></p>"
    assert tag("a", "x", href='"><script>') == '<a href="&quot;&gt;&lt;script&gt;">x</a>'
    assert join("a", None, ["<", escape("<")]) == "a&lt;&lt;"
    assert "</script><" not in data("x", ["</script><!--"]).removesuffix("</script>")


def test_portraits_name_the_column_that_separates():
    one = subject(pd.DataFrame(blobs(), columns=list("abcd")))
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
    one = subject(X)
    for portrait in portraits(one):
        for trait in portrait.traits:
            column = X[:, int(trait.column[1:])]
            assert trait.above == pytest.approx(roc_auc_score(one.labels == portrait.label, column))


def test_unscaled_constant_and_doubled_columns_are_told():
    X = blobs()
    assert told(subject(X)) == ""
    assert "x0 holds 99" in told(subject(X * [1000, 1, 1, 1]))
    assert "x0 spreads" in told(subject(X * [30, 25, 1, 0.5]))
    assert "same value in every row" in told(subject(np.column_stack([X, np.ones(120)])))
    assert "x0 and x4" in told(subject(np.column_stack([X, X[:, 0] * 2])))
    directions = subject(X * [1000, 1, 1, 1], coterie.SphericalKMeans(3, random_state=0))
    assert "one scale" not in told(directions)


def test_small_clusters_many_outliers_and_limits_are_told():
    X = np.vstack([blobs(200), [[99, 99, 99, 99.0]]])
    assert "(1 row)" in told(subject(X, kmeans(4, n_init=5)))
    assert "40 rows (20%) are outliers" in told(
        subject(blobs(200), coterie.TrimmedKMeans(3, trim=0.2, n_init=5, random_state=0))
    )
    noise = np.random.default_rng(0).normal(size=(300, 4))
    assert "limit of 2 iterations" in told(subject(noise, kmeans(8, max_iter=2)))
    assert "iterations" not in told(subject(noise, coterie.KMedoids(8, max_iter=2, random_state=0)))
    assert "stay" not in told(subject(noise))


def test_a_doubtful_number_of_clusters_is_told():
    one = subject(blobs(150), kmeans(6))
    counts = quality.other_counts(one, seconds=60)
    assert counts.best == 3
    assert "3 have a higher silhouette" in told(one, counts=counts)
    right = subject(blobs(150), kmeans(3, n_init=5))
    assert quality.other_counts(right, seconds=60).best == 3
    assert told(right, counts=quality.other_counts(right, seconds=60)) == ""
    choice = SimpleNamespace(
        criterion="silhouette", k=3, at_edge=True,
        candidates=[SimpleNamespace(k=2, score=0.1), SimpleNamespace(k=3, score=0.2)],
    )  # fmt: skip
    assert "largest number of clusters that was tried" in told(right, choice=choice)
    assert quality.other_counts(right, choice).ks == [2, 3]


def test_silhouettes_of_a_sample_count_clusters_by_their_true_size():
    from sklearn.metrics import silhouette_score

    X = np.random.default_rng(0).normal(size=(300, 2))
    one = subject(X)
    assert quality.sureness(one).mean == pytest.approx(silhouette_score(X, one.labels))
    assert quality.sureness(subject(X, kmeans(1))) is None


def test_clear_clusters_are_stable_and_noise_is_not():
    clear = quality.stability(subject(blobs(300), kmeans(3, n_init=5)), refits=2)
    assert clear.mean == 1.0
    assert set(clear.recovery.values()) == {1.0}
    noise = np.random.default_rng(0).normal(size=(300, 6))
    shaky = quality.stability(subject(noise, kmeans(12)), refits=2)
    assert shaky.mean < 0.8
    assert shaky.matrix.shape == (3, 3)
    given = subject(blobs(), coterie.KMeans(3, init=blobs()[:3], engine="fused"))
    assert "start was given" in quality.stability(given)


def test_samples_keep_small_clusters():
    labels = np.zeros(50_000, dtype=int)
    labels[:15] = 1
    rows = sample(labels, 1_000)
    assert (labels[rows] == 1).sum() == 15
    assert len(rows) <= 1_020
    assert len(np.unique(rows)) == len(rows)


@pytest.mark.parametrize("estimator", [kmeans(n_init=5), coterie.SoftKMeans(3, random_state=0)], ids=["hard", "soft"])
def test_a_replay_ends_in_the_clusters_of_the_report(estimator):
    one = subject(blobs(150), estimator)
    played = replay(one)
    last = played.layers.assignments[-1].argmax(1)
    assert (last == one.labels[played.rows]).all()
    assert "ends in the clusters of this report" in played.note
    assert played.layers.names[0] == "start"
    falls = np.diff(played.layers.objective)
    assert (falls <= 1e-9 * played.layers.objective[0]).all()


def test_wide_rows_are_replayed_without_loss():
    X = np.random.default_rng(0).normal(size=(60, 200))
    X[:30, 0] += 20
    one = subject(X, kmeans(2))
    played = replay(one)
    np.testing.assert_allclose(played.layers.centers[-1], one.centers, atol=1e-6)


def test_kept_layers_are_played_as_they_were_and_others_say_why_not():
    one = subject(estimator=coterie.KMeans(3, engine="literal", random_state=0))
    played = replay(one)
    assert len(played.layers.names) == one.estimator.n_iter_
    assert "the fit itself" in played.note
    assert "has no layers" in replay(subject(estimator=coterie.KMedoids(3, max_iter=3, random_state=0)))


def test_the_recipe_makes_the_same_clusters_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame(blobs() * [1, 10, 100, 1000], columns=["a", "b", 'it\'s "c"', "d" * 90])
    frame.to_csv("points.csv", index=False)
    X = StandardScaler().fit_transform(frame)
    fitted = coterie.TrimmedKMeans(3, trim=0.1, random_state=3).fit(X)
    names = list(frame.columns)
    one = Subject.of(fitted, X, frame, names)
    lines = recipe(one, Origin("points.csv", names, scaled=True))
    assert "coterie.TrimmedKMeans(n_clusters=3, random_state=3, trim=0.1).fit(X)" in lines
    space: dict = {}
    exec("\n".join(line for line in lines.splitlines() if "coterie.report" not in line), space)
    np.testing.assert_array_equal(space["estimator"].labels_, fitted.labels_)


def test_the_recipe_of_an_encoded_table_makes_the_same_clusters_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = blobs()
    kind = np.where(rows[:, 0] > np.median(rows[:, 0]), "high", "low")
    frame = pd.DataFrame(rows, columns=list("abcd")).assign(kind=kind)
    frame.loc[::9, "b"] = np.nan
    frame.to_csv("mixed.csv", index=False)
    frame = read_table("mixed.csv")
    columns = Columns.of(frame, encode=True)
    fitted = kmeans().fit(columns.matrix(frame))
    one = Subject.of(fitted, columns.matrix(frame), columns.table(frame), columns.names)
    lines = recipe(one, Origin("mixed.csv", columns.names, scaled=True, made_from=columns.source))
    space: dict = {}
    exec(lines, space)
    np.testing.assert_array_equal(space["estimator"].labels_, fitted.labels_)
    assert (tmp_path / "report.html").exists()


def test_the_recipe_tells_of_arrays_and_seeds_that_it_cannot_write():
    one = subject(estimator=coterie.KMeans(3, init=blobs()[:3], engine="fused"))
    lines = recipe(one)
    assert "init=...,  # the 3 × 4 array that was given" in lines
    assert "Give random_state=0" in lines
    compile(lines, "recipe", "exec")
