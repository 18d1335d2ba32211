"""How many clusters there could be: plateaus, the tree of splits, and the picture."""

import json

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score

import coterie
from coterie import KMeans, LivingClusterer, TrimmedKMeans, ZeroShotClusterer, cluster_table
from coterie.catalogue import CATALOGUE
from coterie.living.granularity import Granularity
from coterie.plot import save_granularity
from tests.test_cli import refuse, succeed

RNG = np.random.default_rng(0)
NESTED = np.vstack(
    [
        RNG.normal(np.add(place, part), 1.0, (30, 2))
        for place in ([0, 0], [40, 0], [20, 35])
        for part in ([0, 0], [8, 0], [4, 7])
    ]
)


def test_groups_of_groups_have_two_plateaus_and_each_part_comes_from_its_group():
    found = KMeans(3, random_state=0).fit(NESTED).granularity(NESTED, most=12)
    assert found.plateaus == [(3, 3), (9, 9)]
    assert found.verdict == "Good and stable numbers of clusters: 3 and 9."
    assert np.isnan(found.quality[0])
    group = np.repeat([0, 1, 2], 90)
    for labels in found.labels[2:9]:  # from three to nine clusters, no cluster has rows of two groups
        assert len(np.unique(np.column_stack([group, labels]), axis=0)) == len(np.unique(labels))
    for k, parents in enumerate(found.parents, 2):
        assert len(parents) == k
        assert set(parents.values()) <= set(found.labels[k - 2])


def test_the_network_is_not_asked_again_and_levels_are_those_of_recut(monkeypatch):
    model = ZeroShotClusterer(random_state=0).fit(NESTED)
    monkeypatch.setattr("coterie.zeroshot.network.inference.read_contexts", None)
    found = model.granularity(most=10)
    assert any(first <= 9 <= last for first, last in found.plateaus)
    for k in (3, 9):
        again = model.recut(NESTED, k)
        assert found.quality[k - 1] == pytest.approx(again.expected_ari_)
        labels = again.context_proba_.argmax(axis=1)[np.argsort(again.context_indices_)]
        assert len(np.unique(np.column_stack([found.labels[k - 1], labels]), axis=0)) == k


def test_labels_are_in_the_order_of_the_rows_or_beside_their_places():
    order = np.random.default_rng(3).permutation(len(NESTED))
    X, group = NESTED[order], order // 90
    found = ZeroShotClusterer(random_state=0).fit(X).granularity(most=4)
    np.testing.assert_array_equal(found.indices, np.arange(len(X)))
    assert adjusted_rand_score(group, found.labels[2]) == 1.0
    model = ZeroShotClusterer(max_context=100, outliers=None, random_state=0).fit(X)
    sample = model.granularity(most=4)
    assert len(sample.indices) == sample.labels.shape[1] == 100
    assert adjusted_rand_score(model.cut(X, 4)[sample.indices], sample.labels[3]) > 0.95


@pytest.mark.parametrize("model", [ZeroShotClusterer(random_state=0), KMeans(2, random_state=0)])
def test_there_are_no_more_clusters_than_different_rows(model):
    X = np.repeat([[0.0, 0.0], [5.0, 5.0]], [30, 40], axis=0)
    assert len(model.fit(X).granularity(X).quality) == 2


def test_a_model_that_was_not_fitted_says_so():
    for model in (ZeroShotClusterer(), KMeans(), LivingClusterer()):
        with pytest.raises(NotFittedError):
            model.granularity(NESTED)


def test_ids_are_those_of_the_model_also_after_an_edit():
    model = LivingClusterer(KMeans(4, random_state=0)).fit(NESTED)
    merged = model.merge(model.ids_[:2])
    found = merged.granularity(NESTED, most=6)
    assert found.k == 3
    assert set(found.labels[2]) == set(merged.ids_)
    assert (found.labels[2] == merged.labels_).mean() > 0.6


def test_one_group_is_said_to_be_one():
    found = ZeroShotClusterer(random_state=0).fit(np.random.default_rng(1).normal(size=(300, 3))).granularity(most=6)
    assert found.plateaus == []
    assert found.verdict == "The rows form one group."


def test_a_plateau_is_a_stable_peak():
    stability = np.array([1, 1, 1, 0.5, 1, 1, 1.0])
    quality = np.array([0.0, 0.9, 0.88, 0.9, 0.7, 0.95, 0.2])
    found = Granularity("silhouette", quality, stability, np.zeros((7, 3), int), np.arange(3), 2)
    assert found.plateaus == [(2, 3), (6, 6)]
    quality = np.array([0.0, 0.5, 0.6, 0.94, 0.98, 1.0, 0.2])
    beside = Granularity("silhouette", quality, np.ones(7), np.zeros((7, 3), int), np.arange(3), 2)
    assert beside.plateaus == [(4, 4), (5, 6)]
    assert beside.verdict == "Good and stable numbers of clusters: 4 to 6."


@pytest.mark.parametrize("name", CATALOGUE)
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_estimator_says_what_numbers_are_worth_or_why_not(name, tmp_path):
    kind, X = getattr(coterie, name), NESTED[::6]
    model = kind(random_state=0)
    if name in ("InContextClusterer", "FlowMixture", "VAEMixture"):
        model.labels_ = np.zeros(len(X), int)
        with pytest.raises(ValueError, match=r"no hierarchy.*use ZeroShotClusterer or KMeans"):
            model.granularity(X)
        return
    found = model.set_params(n_clusters=3).fit(X).granularity(X, most=4)
    assert found.quality.shape == found.stability.shape == (4,)
    assert ((found.stability >= 0) & (found.stability <= 1)).all()
    assert save_granularity(tmp_path / "a.svg", found).stat().st_size > 1000


def test_sparse_rows_are_compared_too():
    dense, csr = (KMeans(3, random_state=0).fit(X).granularity(X, 5) for X in (NESTED, sparse.csr_matrix(NESTED)))
    np.testing.assert_allclose(dense.quality, csr.quality, rtol=1e-6)


def test_impossible_numbers_are_told():
    with pytest.raises(ValueError, match="got most=1"):
        KMeans(3, random_state=0).fit(NESTED).granularity(NESTED, most=1)
    with pytest.raises(ValueError, match="pass the rows as X"):
        TrimmedKMeans(3, random_state=0).fit(NESTED).granularity()


def test_the_command_prints_draws_and_recuts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savetxt("nested.csv", NESTED, delimiter=",", header="x,y", comments="")
    told = succeed("granularity nested.csv -a kmeans --most 10 --plot numbers.png").stdout
    assert "Good and stable numbers of clusters: 3 and 9." in told
    assert (tmp_path / "numbers.png").stat().st_size > 10_000
    document = json.loads(succeed("granularity nested.csv --most 4 --json").stdout)
    assert [len(level["clusters"]) for level in document["levels"]] == [1, 2, 3, 4]
    assert document["measure"] == "expected agreement"
    assert "no hierarchy" in refuse("granularity nested.csv -a flow")
    found = cluster_table(tmp_path / "nested.csv", clusters=3)
    assert found.recut(9).k == 9
    assert found.rename(0, "near").recut(9).run.notes[-1].endswith("the names are not kept.")
    assert found.recut(9).granularity(3).k == 9
