"""Clusters in the words of the table: columns, rules, hierarchy, names and given labels."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import AgglomerativeClustering
from typer.testing import CliRunner

import coterie
from coterie.cli import app
from coterie.explain.differences import portraits
from coterie.explain.hierarchy import merges_of
from coterie.explain.rules import rules
from coterie.explain.verdict import NONE, STEPS, UNKNOWN
from coterie.tables.table import Table, read_table
from coterie.tabular import ClusteredTable, Request, SettingError, TableModel, cluster_table
from coterie.tabular.partial_labels import KnownLabels, checked_names, cluster_names


def guests(rows=120):
    """Two kinds of guests, who differ in price, plan and date."""
    rng = np.random.default_rng(0)
    kind = np.arange(rows) % 2
    frame = pd.DataFrame(
        {
            "price": np.round(rng.normal(40 + 160 * kind, 6), 2),
            "plan": np.where(kind, "full", "bed"),
            "arrival": pd.Timestamp("2024-01-10") + pd.to_timedelta(rng.integers(0, 5, rows) + 180 * kind, unit="D"),
            "name": [f"Guest {i}" for i in range(rows)],
        }
    )
    return frame, kind


@pytest.fixture(scope="module")
def hotel():
    frame, kind = guests()
    return cluster_table(frame, Request(clusters=[2], encode=True, keep="arrival")), kind


def test_columns_are_those_of_the_user(hotel):
    made, kind = hotel
    price, plan, arrival = made.fields
    assert [price.name, plan.name, arrival.name] == ["price", "plan", "arrival"]
    assert [plan.levels[code] for code in plan.values] == ["full" if one else "bed" for one in kind]
    assert arrival.dates
    assert arrival.show(arrival.values[0]) == str(made.table.frame["arrival"].iloc[0].date())
    np.testing.assert_allclose(price.values, made.table.frame["price"])
    assert (price.levels, price.dates) == (None, False)


def test_traits_are_shares_dates_and_numbers(hotel):
    made, kind = hotel
    late = int(made.labels[kind == 1][0])
    portrait = next(one for one in portraits(made) if one.label == late)
    traits = {trait.column: trait for trait in portrait.traits}
    assert set(traits) == {"price", "plan", "arrival"}
    assert traits["plan"].here_text == "full 100%"
    assert traits["plan"].words in ("almost always plan = full", "almost never plan = bed")
    assert traits["arrival"].here_text.startswith("2024-07")
    assert float(traits["price"].here_text) == pytest.approx(200, abs=5)
    assert set(portrait.typical).isdisjoint(portrait.borderline)
    assert (made.labels[portrait.borderline] == late).all()
    plan = next(one for one in made.fields if one.name == "plan")
    assert plan.profile(made.labels, range(made.k))[1][late] == "full 100%"
    summary = made.facts.summaries[late]
    assert summary.texts["arrival"].startswith("2024-07")


def test_rules_state_their_coverage_and_precision():
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"a": rng.normal(size=300), "b": rng.normal(size=300)})
    X.loc[:149, "a"] += 3.0
    made = ClusteredTable.of(coterie.KMeans(2, random_state=0).fit(X), X)
    for label, rule in rules(made).items():
        inside = made.labels == label
        column, sign, limit = rule.words.split(" and ")[0].split()
        assert column == "a"
        if rule.words.count(" and ") == 0:
            meets = X["a"] > float(limit) if sign == ">" else X["a"] <= float(limit)
            assert rule.coverage == pytest.approx((meets & inside).sum() / inside.sum(), abs=0.02)
            assert rule.precision == pytest.approx((meets & inside).sum() / meets.sum(), abs=0.02)
        assert rule.coverage > 0.8
        assert f"{rule.precision:.0%} of such rows" in rule.text
    assert rules(ClusteredTable.of(coterie.KMeans(1).fit(X), X)) == {}


def test_a_hierarchy_joins_the_nearest_clusters_first():
    X = np.concatenate([np.random.default_rng(0).normal(size=(30, 1)) + at for at in (0.0, 8.0, 100.0)])
    made = ClusteredTable.of(AgglomerativeClustering(3).fit(X), X)
    left, far = made.labels[[0, 30]], made.labels[60]
    merges = merges_of(made)
    assert {merges[0].left, merges[0].right} == set(left.tolist())
    assert {merges[1].left, merges[1].right} == {int(far), 3}
    assert [merge.remaining for merge in merges] == [2, 1]
    assert merges_of(ClusteredTable.of(coterie.KMeans(3, random_state=0).fit(X), X)) == []


def test_names_are_read_and_checked():
    assert cluster_names("young, old") == {0: "young", 1: "old"}
    assert cluster_names("2=old,0=young") == {2: "old", 0: "young"}
    for text, words in (("a=b", "not the number"),):
        with pytest.raises(SettingError, match=words):
            cluster_names(text)
    for names, words in (({5: "x"}, "no cluster 5"), ({0: "x", 1: "x"}, "Two clusters are named 'x'")):
        with pytest.raises(SettingError, match=words):
            checked_names(names, [0, 1])


def test_a_column_of_labels_may_have_gaps():
    known = KnownLabels.of(Table.of(pd.DataFrame({"k": ["b", None, "a", "a", "?", "NA", "-1"]})), "k")
    assert known.y.tolist() == [1, -1, 0, 0, -1, -1, -1]
    assert known.names == {0: "a", 1: "b"}
    for column, words in (([None, ""], "no label"), ([str(i) for i in range(200)], "different labels")):
        with pytest.raises(SettingError, match=words):
            KnownLabels.of(Table.of(pd.DataFrame({"k": column})), "k")


def call(*words):
    done = CliRunner().invoke(app, list(words))
    return SimpleNamespace(code=done.exit_code, out=done.stdout, err=done.stderr)


def test_labels_names_and_another_cut_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame, kind = guests()
    frame["known"] = np.where(np.arange(120) < 12, np.where(kind, "late", "early"), "")
    frame.to_csv("guests.csv", index=False)
    done = call("cluster", "guests.csv", "-x", "name", "--labels", "known", "-o", "l.csv", "-s", "m", "--json")
    assert done.code == 0, done.err
    document = json.loads(done.out)
    assert {one["name"] for one in document["clusters"]} == {"late", "early"}
    assert document["verdict"]["words"] in (*STEPS, NONE, UNKNOWN)
    assert document["n_clusters_proba"]
    written = read_table("l.csv")
    assert list(written.columns) == ["cluster", "name", "certainty", "outlier"]
    assert (written["name"] == np.where(kind, "late", "early")).all()
    assert TableModel.load("m").names == {0: "early", 1: "late"}
    told = call("predict", "m", "guests.csv", "-o", "p.csv")
    assert "early" in told.out
    assert list(read_table("p.csv").columns) == ["cluster", "name", "certainty", "outlier"]
    cut = call("cluster", "guests.csv", "--from", "m", "-k", "3", "--names", "x,y,z", "-o", "three.csv")
    assert cut.code == 0, cut.err
    assert set(read_table("three.csv")["name"]) == {"x", "y", "z"}
    assert call("cluster", "guests.csv", "--from", "m").err.startswith("coterie: --from MODEL needs one number")
    assert (
        "cannot use given labels" in call("cluster", "guests.csv", "-c", "price", "--labels", "known", "-a", "flow").err
    )
    call("cluster", "guests.csv", "-c", "price", "-k", "2", "-s", "k")
    assert "no hierarchy to cut" in call("cluster", "guests.csv", "--from", "k", "-k", "3").err


def test_one_cluster_has_no_differences(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame(np.random.default_rng(0).normal(size=(150, 2)), columns=["a", "b"]).to_csv("one.csv", index=False)
    told = call("cluster", "one.csv", "-r", "one.html")
    assert "No groups found." in told.out
    assert "give a number of clusters (-k)" in " ".join(told.out.split())
    assert "┃ cluster" not in told.out
    page = (tmp_path / "one.html").read_text()
    assert 'data-verdict="no groups found"' in page
    assert "Differences between the clusters" not in page


def test_times_of_day_are_around_an_hour_and_not_high_or_low():
    rng = np.random.default_rng(0)
    group = np.arange(180) % 3
    hours = (np.array([1, 9, 17])[group] + rng.normal(0, 0.8, 180)) % 24
    found = cluster_table(
        pd.DataFrame({"at": [f"{int(one):02d}:{int(one % 1 * 60):02d}" for one in hours]}), clusters=3
    )
    night = next(one for one in portraits(found) if group[found.labels == one.label][0] == 0)
    assert night.in_words(1).startswith("at around ")
    assert night.traits[0].here_text in [f"{hour}:{minute:02d}" for hour in (0, 1) for minute in range(60)]
    assert re.fullmatch(r"at from 2\d:\d\d to [1-4]:\d\d", night.rule.words)
