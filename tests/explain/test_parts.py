"""The parts of the report: markup, replay, and the code that reproduces the clusters."""

import json

import jinja2
import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

import coterie
from coterie.explain.page import Page, chip, escaped_json
from coterie.explain.recipe import recipe
from coterie.explain.replay import replay
from coterie.tabular import Request, cluster_table
from tests.explain.test_facts import clustered
from tests.explain.test_report import blobs, kmeans


def test_text_is_escaped_and_html_is_not_escaped_twice():
    assert chip(0, "<b>").endswith("</span>&lt;b&gt;")
    for letter in "<>&\u2028\u2029":
        assert letter not in escaped_json([f"a{letter}b"])
    assert json.loads(escaped_json(["</script><!--"])) == ["</script><!--"]


def test_every_value_of_the_template_is_escaped():
    hostile = '"><script>alert(1)</script>'
    frame = pd.DataFrame(
        {hostile: [0.0, 0.1, 9.0, 9.1] * 5, "b": [1.0, 1.1, 2.0, 2.1] * 5, "c": [hostile] * 10 + ["y"] * 10}
    )
    made = cluster_table(frame, columns=[hostile, "b"], clusters=2, names={0: hostile})
    text = made.report(title=hostile, command=hostile, refits=1).html
    assert hostile not in text
    assert text.count("<script") == text.count("</script>") == text.count('<script type="application/json"') + 2


def test_a_value_that_the_template_needs_and_nobody_gave_is_an_error():
    with pytest.raises(jinja2.UndefinedError):
        Page().html("report.html", sections=["Summary"], title="", subtitle="")


@pytest.mark.parametrize("estimator", [kmeans(n_init=5), coterie.SoftKMeans(3, random_state=0)], ids=["hard", "soft"])
def test_a_replay_ends_in_the_clusters_of_the_report(estimator):
    one = clustered(blobs(150), estimator)
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
    one = clustered(X, kmeans(2))
    played = replay(one)
    np.testing.assert_allclose(played.layers.centers[-1], one.centers, atol=1e-6)


def test_kept_layers_are_played_as_they_were_and_others_say_why_not():
    one = clustered(estimator=coterie.KMeans(3, engine="literal", random_state=0))
    played = replay(one)
    assert len(played.layers.names) == one.estimator.n_iter_
    assert "the fit itself" in played.note
    assert "has no layers" in replay(clustered(estimator=coterie.KMedoids(3, max_iter=3, random_state=0)))


@pytest.mark.parametrize(
    "request_, line",
    [
        (
            Request(columns=["a", "b"], clusters=[3], seed=3),
            "KMeans(n_clusters=3, n_init=10, random_state=3).fit(X)",
        ),
        (
            Request(exclude="kind", scale=True, algorithm="trimmed", clusters=[3], settings={"outliers": 0.1}),
            "X = StandardScaler().fit_transform(X)",
        ),
        (Request(encode=True, clusters=[3]), "X = EncodedTable.learn(table, ["),
        (Request(), "estimator = ZeroShotClusterer("),
    ],
    ids=["plain", "scaled", "encoded", "zeroshot"],
)
def test_the_recipe_makes_the_same_clusters_again(tmp_path, monkeypatch, request_, line):
    monkeypatch.chdir(tmp_path)
    rows = blobs()
    frame = pd.DataFrame(rows * [1, 10, 100, 1000], columns=["a", "b", 'it\'s "c"', "d" * 90])
    frame["kind"] = np.where(rows[:, 0] > np.median(rows[:, 0]), "high", "low")
    if request_.encode or request_.suitable_algorithm() == "zeroshot":
        frame.loc[::9, "b"] = np.nan
    frame.to_csv("points.csv", index=False)
    made = cluster_table("points.csv", request_)
    lines = recipe(made)
    assert line in lines
    space: dict = {}
    exec(lines, space)
    assert adjusted_rand_score(space["estimator"].labels_, made.labels) == 1
    assert (tmp_path / "report.html").exists()


def test_the_recipe_tells_of_arrays_and_seeds_that_it_cannot_write():
    one = clustered(estimator=coterie.KMeans(3, init=blobs()[:3], engine="fused"))
    lines = recipe(one)
    assert "# init: the 3 × 4 array that was passed" in lines
    assert "Pass random_state=0" in lines
    compile(lines, "recipe", "exec")
