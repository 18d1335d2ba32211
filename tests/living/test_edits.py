"""Clusters that are merged, split, named, pinned and taken back, of every estimator."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans as OtherKMeans
from sklearn.datasets import make_blobs

import coterie
from coterie import LivingClusterer, cluster_table, load
from coterie.catalogue import CATALOGUE
from coterie.tabular import TableModel
from tests.test_cli import refuse, succeed

X, _ = make_blobs(90, centers=[[0, 0], [9, 0], [0, 9], [12, 12]], cluster_std=1.2, random_state=3)
SETTINGS = {
    "VAEMixture": {"n_clusters": 3, "max_iter": 2, "hidden_size": 4},
    "TrimmedKMeans": {"n_clusters": 3, "outliers": 0.05},
    "InContextClusterer": {"n_clusters": 3},
}


def fitted(name):
    kind = getattr(coterie, name)
    usual = {"n_clusters": 3} if CATALOGUE[name].counts and not CATALOGUE[name].finds else {}
    return kind(random_state=0, **SETTINGS.get(name, usual)).fit(X)


def random_edit(model, rng):
    """A step that is possible, and what it must do to the labels."""
    before, ids = model.labels_, model.ids_
    kind = rng.choice(["merge", "split", "rename", "pin", "undo"])
    if kind == "merge" and len(ids) > 2:
        one, other = rng.choice(ids, 2, replace=False)
        made = model.merge([one, other])
        expected = np.where(before == other, one, before)
        np.testing.assert_array_equal(made.labels_, expected)
        assert other not in made.ids_
        return made
    if kind == "split":
        label = max(ids, key=lambda one: (before == one).sum())
        try:
            made = model.split(label, X=X)
        except ValueError:  # a cluster without parts, or with too few rows
            return model
        assert (made.labels_[before != label] == before[before != label]).all()
        assert label in made.ids_
        assert set(made.ids_) > set(ids)
        assert min(set(made.ids_) - set(ids)) > max(ids)
        return made
    if kind == "rename":
        label = int(rng.choice(ids))
        made = model.rename(label, f"name {rng.integers(1_000_000)}")
        np.testing.assert_array_equal(made.labels_, before)
        assert made.names_[label].startswith("name ")
        return made
    if kind == "pin":
        row, label = int(rng.integers(len(X))), int(rng.choice(ids))
        made = model.pin([row], label, X=X)
        assert made.labels_[row] == label
        assert (made.labels_ != before).sum() <= 1
        return made
    return model.undo() if model.history else model


@pytest.mark.usefixtures("brief_training")
@pytest.mark.parametrize("name", CATALOGUE)
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::sklearn.exceptions.ConvergenceWarning")
def test_random_edits_of_every_estimator_predict_report_save_and_can_be_taken_back(name, tmp_path):
    base = fitted(name)
    rng = np.random.default_rng(len(name))
    model = LivingClusterer.of(base)
    for _ in range(8):
        model = random_edit(model, rng)
        np.testing.assert_array_equal(model.predict(X), model.labels_)
        assert set(np.unique(model.labels_)) <= {-1, *model.ids_}
    told = coterie.report(model.rename(model.ids_[0], "the first"), X, refits=0).html
    assert "the first" in told
    model.save(tmp_path / "edited.model")
    again = load(tmp_path / "edited.model")
    np.testing.assert_array_equal(again.predict(X), model.labels_)
    assert (again.history, again.names_, again.ids_) == (model.history, model.names_, model.ids_)
    while again.history:
        again = again.undo()
    np.testing.assert_array_equal(again.labels_, base.labels_)


def test_any_estimator_of_scikit_learn_can_be_edited_but_not_saved(tmp_path):
    model = LivingClusterer(OtherKMeans(3, random_state=0, n_init=1)).fit(X)
    made = model.merge([2, 0]).split(2, 3, X=X)
    assert made.ids_ == [1, 2, 3, 4]
    np.testing.assert_array_equal(made.predict(X), made.labels_)
    assert not hasattr(clone(made), "estimator_")
    with pytest.raises(ValueError, match="of another package cannot be saved"):
        made.save(tmp_path / "other.model")


def test_ids_are_never_used_again():
    model = LivingClusterer(coterie.KMeans(4, random_state=0)).fit(X).merge([0, 3])
    assert model.split(0, 2, X=X).ids_ == [0, 1, 2, 4]
    assert model.merge([0, 1]).split(0, 3, X=X).ids_ == [0, 2, 4, 5]


def test_merged_clusters_keep_a_name_and_two_clusters_have_no_name_in_common():
    model = LivingClusterer(coterie.KMeans(3, random_state=0)).fit(X).rename(2, "guests")
    assert model.merge([0, 2]).names_ == {0: "guests"}
    assert model.rename(2, "").names_ == {}
    with pytest.raises(ValueError, match="Two clusters would be named 'guests'"):
        model.rename(1, "guests")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda model: model.merge([0, 7]), "no cluster 7: the clusters are 0, 1 and 2"),
        (lambda model: model.merge([1]), "at least two different"),
        (lambda model: model.split(0), "pass the rows of the fit"),
        (lambda model: model.split(0, 1, X=X), "at least 2 parts"),
        (lambda model: model.split(0, X=X[:5]), "fitted to 90"),
        (lambda model: model.pin([90], 0, X=X), "whole numbers from 0 to 89"),
        (lambda model: model.pin([1.5], 0, X=X), "whole numbers from 0 to 89"),
        (lambda model: model.undo(), "nothing to undo"),
    ],
)
def test_impossible_edits_say_what_must_hold(change, message):
    with pytest.raises(ValueError, match=message):
        change(LivingClusterer(coterie.KMeans(3, random_state=0)).fit(X))


def test_pinned_rows_take_their_copies_along():
    twice = np.vstack([X, X[:1]])
    model = LivingClusterer(coterie.KMeans(3, random_state=0)).fit(twice)
    other = next(label for label in model.ids_ if label != model.labels_[0])
    made = model.pin([0], other, X=twice)
    assert made.labels_[0] == made.labels_[-1] == other
    np.testing.assert_array_equal(made.predict(X[:3]), made.labels_[:3])


def test_a_zero_shot_model_is_split_along_its_hierarchy_without_the_rows():
    model = LivingClusterer.of(coterie.ZeroShotClusterer(random_state=0).fit(X))
    alone, beside = model.split(0, 2), model.split(0, 2, X=X)
    np.testing.assert_array_equal(alone.predict(X), beside.labels_)
    assert not hasattr(alone, "labels_")
    assert not hasattr(beside, "certainty_")
    remembering = LivingClusterer(coterie.ZeroShotClusterer(random_state=0)).fit(X).split(0, 2)
    assert not remembering.check(X).changed  # the other clusters are compared
    assert [one.label for one in remembering.check(X).shares] == remembering.ids_[1:-1]
    assert len(model.rename(0, "a").certainty_) == len(X)


def shop(rng, shift=0.0):
    values = [rng.normal(at, [2, 9], (60, 2)) for at in ([20, 100], [40, 300 + shift], [60, 100])]
    return pd.DataFrame(np.vstack(values), columns=["age", "spent"])


@pytest.mark.parametrize("how", [{}, {"clusters": 3, "scale": True}])
def test_an_edited_table_reports_draws_and_saves_like_any_other(how, tmp_path):
    found = cluster_table(shop(np.random.default_rng(0)), **how).rename(1, "regulars").merge([0, 2]).split(0)
    assert found.history[:2] == ["Named 1 'regulars'.", "Merged 0 and 2 into 0."]
    assert 2 not in found.ids
    assert found.facts.n_clusters == found.k == len(found.ids)
    assert [one.label for one in found.facts.summaries] == found.ids
    page = found.report(tmp_path / "report.html", refits=1).html
    assert "regulars" in page
    assert "Cluster 2" not in page
    found.save_picture(tmp_path / "map.png")
    found.model.save(tmp_path / "shop.model")
    again = TableModel.load(tmp_path / "shop.model")
    np.testing.assert_array_equal(again.predict(found.table.frame), found.labels)
    assert again.names[1] == "regulars"
    assert found.undo().undo().history == ["Named 1 'regulars'."]


def test_the_command_edits_a_model_and_lists_what_was_done(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shop(np.random.default_rng(0)).to_csv("shop.csv", index=False)
    succeed("cluster shop.csv -k 3 --scale --save shop.model")
    told = succeed(
        "edit shop.model --merge 0,2 --split 1=2 --name 1=regulars --rows shop.csv --output new.model"
    ).stdout
    assert "Merged 0 and 2 into 0." in told
    assert "regulars" in succeed("predict new.model shop.csv").stdout
    document = json.loads(succeed("edit new.model --undo 2 --pin 1=1 --rows shop.csv -o last.model --json").stdout)
    assert document["history"] == ["Merged 0 and 2 into 0.", "Pinned 1 row to 1."]
    assert document["clusters"] == [0, 1]
    assert succeed("edit new.model").stdout.count("\n") == 4
    assert "3 clusters: 0, 1 regulars and 3" in succeed("edit new.model").stdout
    assert "1 regulars" in succeed("predict new.model shop.csv").stdout
    assert "--output shop.model would overwrite" in refuse("edit shop.model --merge 0,1 -o shop.model")
    assert "add --output" in refuse("edit shop.model --merge 0,1")
    assert "no cluster 8" in refuse("edit shop.model --merge 0,8 -o x.model")
    assert "--rows" in refuse("edit shop.model --split 0 -o x.model")
    assert "would overwrite the model" in refuse("edit shop.model --merge 0,1 -o shop.model")


@pytest.mark.parametrize("damage", ["step", "estimator", "ids", "pin"])
def test_a_damaged_edited_model_raises_a_sentence(damage, tmp_path):
    from coterie.estimators import persistence

    model = LivingClusterer(coterie.KMeans(3, random_state=0)).fit(X).split(0, 2, X=X).pin([1], 0, X=X)
    model.save(tmp_path / "a.model")
    tensors, metadata = persistence.read(tmp_path / "a.model")
    header = json.loads(metadata["coterie"])
    if damage == "step":
        header["steps"][0]["kind"] = "run"
    elif damage == "estimator":
        header["steps"][0]["estimator"] = 7
    elif damage == "ids":
        header["steps"][0]["parts"] = [0, 2**40]
    else:
        tensors["pin1.places"] = np.array([10**6])
    persistence.write(tmp_path / "b.model", tensors, {"coterie": json.dumps(header)})
    with pytest.raises(ValueError, match=r"b\.model|cluster|id|pinned|kind"):
        load(tmp_path / "b.model")
