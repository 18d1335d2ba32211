"""Clusters that continue earlier ones, what changed, and whether a model is still true."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from coterie import KMeans, LivingClusterer, ZeroShotClusterer, cluster_table
from coterie.explain.changes import changes
from coterie.living.matching import Flows
from coterie.tabular import EncodedTable, TableModel
from tests.test_cli import call, refuse, succeed

PLACES = {"a": (0, 0), "b": (30, 0), "c": (0, 30), "d": (30, 30), "e": (60, 60)}


def rows(rng, groups, count=60):
    return np.vstack([rng.normal(np.add(PLACES[one[0]], float(one[1:] or 0)), 1.0, (count, 2)) for one in groups])


def fit(rng, groups, previous=None):
    X = rows(rng, groups)
    start = [X[i * 60] for i in range(len(groups))]
    return LivingClusterer(KMeans(len(groups), init=np.array(start))).fit(X, previous=previous), X


def test_ids_and_names_stay_births_get_new_ids_and_ended_ids_stay_retired():
    rng = np.random.default_rng(0)
    first, _ = fit(rng, "abc")
    first = first.rename(1, "guests")
    second, X = fit(rng, "cab", first)  # the same clusters in another order
    assert second.labels_[[0, 60, 120]].tolist() == [2, 0, 1]
    assert second.names_ == {1: "guests"}
    third, _ = fit(rng, "ab", second)
    assert third.ids_ == [0, 1]
    fourth, _ = fit(rng, "abce", third)
    assert fourth.labels_[::60].tolist() == [0, 1, 3, 4]
    assert fourth.history == ["Continued an earlier model: 2 clusters continued; new: 3 and 4."]
    np.testing.assert_array_equal(second.predict(X), second.labels_)


def test_a_cluster_that_appears_where_another_ended_is_new():
    rng = np.random.default_rng(0)
    first, _ = fit(rng, "abd")
    second, _ = fit(rng, "abe", first)  # e is nearest to d, but fits it not
    assert second.ids_ == [0, 1, 3]


def test_the_larger_part_of_a_split_keeps_the_id_and_hand_merged_clusters_stay_together():
    rng = np.random.default_rng(0)
    first, _ = fit(rng, "abc")
    merged = first.merge([0, 1])
    second, X = fit(rng, "abc", merged)
    assert second.ids_ == [0, 2]
    assert set(second.labels_[:120]) == {0}
    assert second._moments()[0].rows == 120
    assert second.check(X).shares[0].before == pytest.approx(2 / 3)


def test_flows_say_what_became_of_every_cluster():
    before = np.repeat([0, 1, 2, 3, -1], [50, 50, 40, 30, 20])
    after = np.concatenate([np.full(50, 0), np.full(90, 7), np.full(30, 3), np.full(20, 9)])
    found = Flows.of(before, after, (0, 1, 2, 3), (0, 3, 7, 9))
    assert found.partner == {0: 0, 3: 3, 7: 1}
    assert found.came_from == {9: None}
    assert found.went_to == {2: 7}


def shop(rng, n=200, shift=0.0, extra=0):
    values = [rng.normal(at, [3, 12], (n, 2)) for at in ([20, 100], [40, 300 + shift], [65, 120])]
    values.append(rng.normal([85, 500], [3, 12], (extra, 2)))
    frame = pd.DataFrame(np.vstack(values), columns=["age", "spent"])
    return frame.assign(town=np.where(rng.random(len(frame)) < 0.5, "Ayr", "Bath"))


def test_checks_of_unchanged_rows_are_quiet_and_drift_of_half_a_deviation_is_found():
    rng = np.random.default_rng(1)
    alarms, found = 0, 0
    for _ in range(30):
        model = cluster_table(shop(rng), columns=["age", "spent"], clusters=3, algorithm="kmeans", scale=True).model
        alarms += model.check(shop(rng)).changed
        drifted = model.check(shop(rng, shift=6.0))
        found += drifted.changed and any(one.changed and one.column == "spent" for one in drifted.drifts)
    assert alarms <= 4
    assert found >= 24


def test_a_check_names_the_column_the_cluster_and_the_rows_that_fit_none():
    rng = np.random.default_rng(2)
    found = cluster_table(shop(rng), columns=["age", "spent"])
    rich = int(found.value_centers[:, 1].argmax())
    model = found.rename(rich, "regulars").model
    assert model.check(shop(rng)).verdict.startswith("As before")
    drifted = model.check(shop(rng, shift=12))
    assert "spent of regulars is" in drifted.verdict
    assert "standard deviations higher" in drifted.verdict
    more = model.check(shop(rng, extra=60))
    assert 0.06 < more.outside < 0.13
    assert "fit no cluster" in more.verdict
    few = pd.concat([shop(rng).iloc[:420], shop(rng).iloc[:200]])
    assert "of the rows (33.3% at the fit)" in model.check(few).verdict
    json.dumps(model.check(few).document(), allow_nan=False)


def test_an_empty_column_is_named_and_shares_are_those_of_the_labels():
    rng = np.random.default_rng(8)
    table = shop(rng)
    table.loc[::50, "age"] = np.nan
    model = cluster_table(table).model
    new = shop(rng).assign(age=np.nan)
    checked, labels = model.check(new), model.predict(new)
    assert checked.empty == ("age",)
    assert checked.verdict.startswith("Changed: 'age' has no values")
    assert model.check(new[:9]).verdict.endswith("But 'age' has no values.")
    assert [one.rows for one in checked.shares] == [(labels == one.label).sum() for one in checked.shares]
    assert sum(one.now for one in checked.shares) == pytest.approx(1.0)


def test_an_estimator_that_remembers_nothing_is_told_the_rows_of_its_fit():
    rng = np.random.default_rng(3)
    X = rows(rng, "abc")
    model = KMeans(3, random_state=0).fit(X)
    with pytest.raises(ValueError, match="pass them as reference"):
        model.check(X)
    assert not model.check(rows(rng, "abc"), reference=X).changed
    assert model.check(rows(rng, "ab"), reference=X).changed
    assert not hasattr(model, "value_profile_")
    assert not LivingClusterer(ZeroShotClusterer(random_state=0)).fit(X).check(rows(rng, "abc")).changed


def test_the_commands_continue_compare_and_check(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(4)
    shop(rng).to_csv("april.csv", index=False)
    shop(rng, shift=12, extra=60).to_csv("may.csv", index=False)
    succeed("cluster april.csv -x town --names x,y,z --save april.model")
    told = succeed("cluster may.csv --previous april.model --save may.model --output may-labels.csv")
    assert "Continued an earlier model: 3 clusters continued; new: 3." in told.stderr
    assert {"x", "y", "z", "cluster 3"} == set(pd.read_csv("may-labels.csv")["name"])
    told = succeed("compare april.model may.model may.csv --report changed.html").stdout
    assert "Cluster 3 is new." in told
    assert "Drifted: spent of" in told
    page = Path("changed.html").read_text()
    assert "sankey" in page
    assert "Rows that fit no earlier cluster" in page
    document = json.loads(succeed("compare april.model may.model may.csv --json").stdout)
    assert document["new"] == {"3": None}
    changed = call("predict april.model may.csv --check --json")
    assert changed.exit_code == 3
    assert json.loads(changed.stdout)["check"]["changed"]
    assert "As before" in succeed("predict april.model april.csv --check").stdout
    KMeans(3).fit(pd.read_csv("april.csv")[["age", "spent"]]).save("alone.model")
    assert "without --workers" in refuse("predict alone.model april.csv --check")
    assert "would overwrite" in refuse("compare april.model may.model may.csv --report may.csv.html -r april.model")


@pytest.mark.parametrize("labels", [[0, 1], [1, 0], [2, 0]])
def test_an_edit_is_told_as_such_and_unchanged_rows_do_not_drift(labels, tmp_path):
    rng = np.random.default_rng(7)
    table = pd.concat([shop(rng, 30), shop(rng, 300).iloc[:300]])
    model = cluster_table(table, columns=["age", "spent"], clusters=3, algorithm="kmeans", scale=True).model
    merged = model.with_living(model.living.merge(labels))
    for name, one in (("a", model), ("b", merged)):
        one.save(tmp_path / name)
    kept, gone = labels
    told = changes(tmp_path / "a", tmp_path / "b", table).sentences
    assert told[:2] == ["2 clusters continued.", f"Cluster {gone} was merged into cluster {kept}."]
    assert not any("Drifted" in one for one in told)
    named = merged.with_living(merged.living.rename(kept, "few"))
    assert changes(model, named, table).sentences[1] == f"Cluster {gone} was merged into cluster {kept} few."
    back = changes(merged, model, table).sentences
    assert back[0] == "2 clusters continued."
    assert not any("Drifted" in one for one in back)
    split = model.with_living(model.living.split(0, 2, X=EncodedTable.apply(model.encoding, table).rows))
    told = changes(model, split, table).sentences
    assert told[:2] == ["3 clusters continued.", "Cluster 3 is a part of cluster 0."]
    assert not any("Drifted" in one for one in told)


def test_columns_that_do_not_exist_in_both_are_named(tmp_path):
    rng = np.random.default_rng(5)
    model = cluster_table(shop(rng), columns=["age", "spent"], clusters=3).model
    with pytest.raises(ValueError, match="spent"):
        changes(model, model, shop(rng).drop(columns="spent"))


def test_what_is_asked_for_overrules_the_earlier_model():
    rng = np.random.default_rng(6)
    april = cluster_table(shop(rng), columns=["age", "spent"], clusters=3, scale=True, algorithm="soft")
    may = cluster_table(shop(rng), previous=april.model)
    assert (may.run.algorithm, may.k, may.encoding.names) == ("soft", 3, ["age", "spent"])
    assert not may.encoding.is_identity
    assert cluster_table(shop(rng), previous=april.model, clusters=4, algorithm="kmeans").k == 4
    assert isinstance(may.model, TableModel)


def test_the_page_of_the_documentation_runs(tmp_path, monkeypatch, capsys):
    page = Path(__file__).parents[2] / "docs/living.md"
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    assert len(blocks) >= 5
    exec("\n".join(blocks), {})
    told = capsys.readouterr().out
    assert "3 clusters continued; new: 3" in told
    assert "As before" in told
    assert "Changed:" in told
