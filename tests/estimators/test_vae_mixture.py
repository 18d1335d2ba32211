"""VAEMixture: clusters, samples, files, interruptions and bad input."""

import warnings

import numpy as np
import pytest
import torch
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from coterie import VAEMixture, load
from coterie.estimators import vae_mixture as estimator_module
from coterie.generative import mixture as em_steps
from coterie.generative import split_merge
from coterie.geometry.spread import Extent

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(150, centers=3, n_features=4, random_state=0)


@pytest.fixture(scope="module")
def fitted(blobs):
    return VAEMixture(3, max_iter=3, random_state=0).fit(blobs[0])


def test_labels_are_predictions_and_the_likeliest_of_the_probabilities(blobs, fitted):
    X, truth = blobs
    assert adjusted_rand_score(truth, fitted.labels_) == 1
    np.testing.assert_array_equal(fitted.labels_, fitted.predict(X))
    proba = fitted.predict_proba(X)
    np.testing.assert_allclose(proba.sum(1), 1)
    np.testing.assert_array_equal(proba.argmax(1), fitted.labels_)


def test_rows_far_away_are_less_likely_and_scores_are_those_of_the_original_scale(blobs, fitted):
    X, _ = blobs
    assert fitted.score_samples(X).mean() > fitted.score_samples(X + 20).mean() + 10
    scaled = VAEMixture(3, max_iter=3, random_state=0).fit(X * 10)
    np.testing.assert_allclose(scaled.score(X * 10), fitted.score(X) - 4 * np.log(10), atol=1e-2)


def test_reconstructions_and_latent_means_have_their_shapes_and_are_near(blobs, fitted):
    X, _ = blobs
    assert fitted.transform(X).shape == (150, fitted.latent_size_)
    error = ((fitted.reconstruct(X) - X) ** 2).mean()
    assert error < X.var(axis=0).mean() / 3


def test_samples_are_of_the_cluster_asked_for(fitted):
    rows, labels = fitted.sample(50, cluster=1)
    assert set(labels.tolist()) == {1}
    assert np.mean(fitted.predict(rows) == 1) > 0.9
    assert fitted.sample(3, noise=False)[0].shape == (3, 4)
    with pytest.raises(ValueError, match="from 0 to 2"):
        fitted.sample(1, cluster=3)


def test_a_file_gives_the_same_predictions_to_the_last_bit(tmp_path, blobs, fitted):
    fitted.save(tmp_path / "vae.model")
    again = load(tmp_path / "vae.model")
    X = blobs[0]
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    np.testing.assert_array_equal(again.score_samples(X), fitted.score_samples(X))
    np.testing.assert_array_equal(again.transform(X), fitted.transform(X))


@pytest.mark.usefixtures("brief_training")
@pytest.mark.parametrize("many", [2000, 50])  # rows per cluster from which on neighbours are evidence
def test_a_fit_that_was_killed_goes_on_from_its_checkpoint(tmp_path, blobs, monkeypatch, many):
    monkeypatch.setattr(estimator_module, "_MANY_ROWS", many)
    whole = VAEMixture(3, max_iter=3, random_state=0).fit(blobs[0])
    steps, original = [], em_steps.Mixture.m_step

    def dies(self, state, expectation):
        steps.append(state.iteration)
        if len(steps) == 2:
            raise KeyboardInterrupt
        return original(self, state, expectation)

    monkeypatch.setattr(em_steps.Mixture, "m_step", dies)
    mixture = VAEMixture(3, max_iter=3, random_state=0, checkpoint=tmp_path / "state")
    with pytest.raises(KeyboardInterrupt):
        mixture.fit(blobs[0])
    mixture.fit(blobs[0])
    assert steps == [0, 1, 1, 2]
    np.testing.assert_array_equal(mixture.network_weights_, whole.network_weights_)
    np.testing.assert_array_equal(mixture.labels_, whole.labels_)


@pytest.mark.usefixtures("brief_training")
def test_labels_and_responsibilities_are_the_same_start(blobs):
    X, truth = blobs
    one, two = (
        VAEMixture(3, init=start, max_iter=1, random_state=0).fit(X) for start in (truth, 5.0 * np.eye(3)[truth])
    )
    np.testing.assert_array_equal(one.start_labels_, truth)
    np.testing.assert_array_equal(one.network_weights_, two.network_weights_)


@pytest.mark.usefixtures("brief_training")
def test_labels_stay_evidence_and_responsibilities_do_not(blobs, monkeypatch):
    X, truth = blobs
    used = []
    monkeypatch.setattr(em_steps, "with_votes", lambda bounds, start: used.append(1) or start)
    VAEMixture(3, init=np.eye(3)[truth], max_iter=2, random_state=0).fit(X)
    assert not used
    VAEMixture(3, init=truth, max_iter=2, random_state=0).fit(X)
    assert used
    assert VAEMixture(3, init="graph")._has_start_evidence(5999)
    assert not VAEMixture(3, init="graph")._has_start_evidence(6000)  # networks know more than the start


@pytest.mark.usefixtures("brief_training")
def test_neighbours_are_evidence_where_there_are_many_rows(blobs, monkeypatch):
    X, truth = blobs
    used = []

    def noted(bounds, neighbours):
        used.append(len(bounds))
        return bounds.softmax(1)

    monkeypatch.setattr(em_steps, "with_neighbours", noted)
    VAEMixture(3, max_iter=2, random_state=0).fit(X)
    assert not used
    monkeypatch.setattr(estimator_module, "_MANY_ROWS", len(X) // 3)
    monkeypatch.setattr(estimator_module, "with_neighbours", lambda bounds, neighbours: bounds.roll(1, 1))
    mixture = VAEMixture(3, max_iter=2, random_state=0).fit(X)
    assert used
    np.testing.assert_array_equal(mixture.labels_, (mixture.predict(X) + 1) % 3)  # labels_ ask the neighbours, too
    used.clear()
    VAEMixture(3, init=truth, max_iter=2, random_state=0).fit(X)
    assert not used


def test_from_a_random_start_em_moves_towards_the_clusters_by_itself(blobs):
    X, truth = blobs
    settings = {"init": "random", "likelihood": ("gaussian", 4), "latent_size": 1, "max_iter": (25, 0)}
    mixture = VAEMixture(3, random_state=1, **settings).fit(X)
    assert abs(adjusted_rand_score(truth, mixture.start_labels_)) < 0.1
    assert adjusted_rand_score(truth, mixture.labels_) > 0.4  # two clusters may share one network
    assert mixture.bound_ > mixture.start_score_ + 1
    assert (mixture.networks_per_cluster_, mixture.likelihood_) == (1, "gaussian")
    np.testing.assert_array_equal(mixture.labels_, mixture.predict(X))
    rows, labels = mixture.sample(60)
    assert np.mean(mixture.predict(rows) == labels) > 0.6


@pytest.mark.usefixtures("brief_training")
def test_the_precision_is_the_one_given_or_follows_the_variance():
    X = np.random.RandomState(0).rand(40, 6)
    given = VAEMixture(2, likelihood=("gaussian", 4), max_iter=1, random_state=0).fit(X)
    assert given.precision_ == 4
    np.testing.assert_array_equal(given.scale_, np.ones(6))  # one unit for all columns
    mixture = VAEMixture(2, init="random")
    mixture._choose_sizes(Extent.of(X))
    assert mixture.precision_ * X.var(axis=0).sum() == pytest.approx(105)
    learned = VAEMixture(2, likelihood="gaussian")
    learned._choose_sizes(Extent.of(X))
    assert learned.precision_ is None
    np.testing.assert_allclose(learned.scale_, X.std(axis=0))


def test_the_gain_over_the_start_is_told(blobs):
    X, truth = blobs
    spoilt = np.where(np.arange(150) % 5 == 0, (truth + 1) % 3, truth)
    mixture = VAEMixture(3, init=spoilt, max_iter=2, random_state=0).fit(X)
    assert mixture.bound_ > mixture.start_score_
    once = VAEMixture(3, init=spoilt, max_iter=1, random_state=0).fit(X)
    assert once.start_score_ == once.bound_ == mixture.start_score_


def test_a_fit_that_has_not_converged_says_so(blobs):
    with pytest.warns(ConvergenceWarning, match=r"limit of max_iter=1 iterations.*% of the rows.*Increase max_iter"):
        mixture = VAEMixture(3, max_iter=1, random_state=0).fit(blobs[0])
    assert not mixture.converged_
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mixture = VAEMixture(3, max_iter=30, random_state=0).fit(blobs[0])
    assert mixture.converged_
    assert mixture.n_iter_ < 30
    assert mixture.n_clusters_ == 3


@pytest.mark.usefixtures("brief_training")
def test_the_number_of_threads_is_set_for_the_fit_and_put_back(blobs, monkeypatch):
    before, asked = torch.get_num_threads(), []
    monkeypatch.setattr(torch, "set_num_threads", asked.append)
    VAEMixture(3, max_iter=1, n_jobs=3, random_state=0).fit(blobs[0])
    assert asked == [3, before]


@pytest.mark.usefixtures("brief_training")
def test_of_several_starts_the_one_with_the_best_bound_is_kept(blobs):
    mixture = VAEMixture(3, init="random", n_init=2, max_iter=(5, 0), random_state=0).fit(blobs[0])
    assert mixture.bounds_.shape == (2,)
    assert mixture.n_iter_ == 5


def test_moves_follow_a_random_start_and_separate_what_em_left_together(blobs, capsys):
    X, truth = blobs
    settings = {"init": "random", "likelihood": ("gaussian", 4), "latent_size": 1, "random_state": 3}
    alone = VAEMixture(3, max_iter=(10, 0), **settings).fit(X)
    moved = VAEMixture(3, max_iter=(10, 8), verbose=2, **settings).fit(X)
    assert adjusted_rand_score(truth, alone.labels_) < 0.7
    assert adjusted_rand_score(truth, moved.labels_) > 0.95
    assert moved.bound_ > alone.bound_
    assert moved.n_iter_ > alone.n_iter_
    assert moved.start_score_ == alone.start_score_
    np.testing.assert_array_equal(moved.start_labels_, alone.start_labels_)
    told = capsys.readouterr().err
    assert f"VAEMixture 1/2: iteration {alone.n_iter_} of 10" in told
    assert "VAEMixture 2/2: iteration 1 of 8" in told


def test_a_start_that_knows_the_clusters_needs_no_moves():
    assert VAEMixture()._iterations() == (6, 0)
    assert VAEMixture(init="random")._iterations() == (300, 30)
    assert VAEMixture(init="random", max_iter=2)._iterations() == (2, 0)
    assert VAEMixture(max_iter=[5, 4])._iterations() == (5, 4)
    stages = VAEMixture(3, init="random")._stages(150, 300, 30, np.random.RandomState(0))
    assert [stage.plan.max_iter for stage in stages] == [300, 30]
    assert stages[1].settings.move_until == 20
    assert len(VAEMixture(1, init="random")._stages(150, 300, 30, np.random.RandomState(0))) == 1
    assert len(VAEMixture(3)._stages(150, 6, 0, np.random.RandomState(0))) == 1


@pytest.mark.usefixtures("brief_training")
def test_a_fit_that_was_killed_among_the_moves_continues_there(tmp_path, blobs, monkeypatch):
    settings = {"init": "random", "max_iter": (4, 3), "random_state": 0}
    whole = VAEMixture(3, **settings).fit(blobs[0])
    interrupted = VAEMixture(3, checkpoint=tmp_path / "state", **settings)
    with monkeypatch.context() as patch:
        patch.setattr(split_merge.MovingMixture, "_move", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            interrupted.fit(blobs[0])
    assert sorted(path.name for path in (tmp_path / "state").iterdir()) == ["run-0.pt", "stage-2-run-0.pt"]
    np.testing.assert_array_equal(interrupted.fit(blobs[0]).network_weights_, whole.network_weights_)
    assert list((tmp_path / "state").iterdir()) == []


@pytest.mark.usefixtures("brief_training")
def test_progress_tells_bound_entropy_and_time(capsys, blobs):
    VAEMixture(3, max_iter=3, random_state=0, verbose=2).fit(blobs[0])
    told = capsys.readouterr().err
    assert "iteration 3 of 3" in told
    assert all(word in told for word in ("bound", "entropy", "left"))


@pytest.mark.usefixtures("brief_training")
@pytest.mark.parametrize("likelihood", ["bernoulli", "continuous_bernoulli"])
def test_values_outside_the_likelihoods_range_are_refused(likelihood):
    X = np.random.RandomState(0).rand(30, 3)
    with pytest.raises(ValueError, match=r"explains values in \[0, 1\].*divide by 255"):
        VAEMixture(2, likelihood=likelihood).fit(X * 255)
    mixture = VAEMixture(2, likelihood=likelihood, max_iter=1, random_state=0).fit(X)
    with pytest.raises(ValueError, match="explains values in"):
        mixture.predict(X - 1)


def test_fewer_rows_than_clusters_are_refused():
    with pytest.raises(ValueError, match="n_samples=3 should be >= n_clusters=8"):
        VAEMixture().fit(np.eye(3))


def test_nan_is_refused_with_its_place():
    X = np.ones((20, 3))
    X[4, 1] = np.nan
    with pytest.raises(ValueError, match="row 4, column 1"):
        VAEMixture(2).fit(X)


@pytest.mark.parametrize("pair", [(3, -1), (3, 2), (3, "many"), (0, 3), (3,), (3, 3, 3)])
def test_pairs_of_iterations_that_cannot_be_are_refused(blobs, pair):
    with pytest.raises(ValueError, match="A pair of numbers for max_iter"):
        VAEMixture(3, max_iter=pair).fit(blobs[0])


@pytest.mark.parametrize("pair", [("bernoulli", 2.0), ("gaussian", 0), ("gaussian", "auto"), ("gaussian",)])
def test_precisions_that_cannot_be_are_refused(blobs, pair):
    with pytest.raises(ValueError, match="A pair for likelihood"):
        VAEMixture(3, likelihood=pair).fit(blobs[0])


@pytest.mark.usefixtures("brief_training")
@pytest.mark.parametrize(("moves", "limit"), [(0, "max_iter=1"), (3, "max_iter[1]=3")])
def test_the_limit_that_was_reached_is_named(blobs, moves, limit):
    mixture = VAEMixture(3, init="random", max_iter=(1, moves), random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mixture.fit(blobs[0])
    assert f"at the limit of {limit} iterations" in str(caught[-1].message)
    np.testing.assert_array_equal(mixture.bounds_, [mixture.bound_])


def test_clusters_without_rows_are_told(blobs):
    with pytest.warns(ConvergenceWarning, match="Only . of 3 clusters have rows"):
        VAEMixture(3, random_state=0).fit(np.r_[blobs[0], np.full((1, blobs[0].shape[1]), 1e4)])


@pytest.mark.parametrize("name", ["latent_size", "hidden_size", "n_clusters", "max_iter", "n_init"])
def test_sizes_of_zero_are_refused(name):
    with pytest.raises(ValueError, match=f"The '{name}' parameter"):
        VAEMixture(**{name: 0}).fit(np.random.RandomState(0).randn(20, 2))


def test_a_constant_column_changes_nothing_and_stays_finite(blobs, fitted):
    X = np.c_[blobs[0], np.full(150, 7.0)]
    mixture = VAEMixture(3, max_iter=3, random_state=0).fit(X)
    assert adjusted_rand_score(fitted.labels_, mixture.labels_) == 1
    assert np.isfinite(mixture.score_samples(X)).all()
    np.testing.assert_allclose(mixture.sample(5, noise=False)[0][:, 4], 7, atol=0.2)


@pytest.mark.parametrize(
    "init", [np.ones((150, 2)), np.full(150, 3), np.full(150, -1), np.ones(150), np.zeros((150, 3))]
)
def test_a_start_that_is_none_is_refused(blobs, init):
    with pytest.raises(ValueError, match=r"from 0 to 2, or responsibilities of shape .* = \(150, 3\)"):
        VAEMixture(3, init=init).fit(blobs[0])


def test_a_device_that_is_not_there_is_refused(blobs):
    with pytest.raises(ValueError, match="use device='cpu'"):
        VAEMixture(3, device="cuda:7").fit(blobs[0])


def test_a_checkpoint_without_a_seed_is_refused(tmp_path, blobs):
    with pytest.raises(ValueError, match="give an integer random_state, not None"):
        VAEMixture(3, checkpoint=tmp_path).fit(blobs[0])


def test_one_cluster_of_one_column_is_a_density_of_its_own():
    X = np.random.RandomState(0).randn(80, 1)
    mixture = VAEMixture(1, max_iter=2, random_state=0).fit(X)
    assert not mixture.labels_.any()
    assert -2.5 < mixture.score(X) < 0
    assert mixture.bound_ == pytest.approx(mixture.score(X), abs=0.5)


def test_sizes_suit_the_data():
    for n_features, hidden, latent in ((1, 64, 1), (2, 64, 2), (64, 128, 8), (784, 128, 8)):
        mixture = VAEMixture()
        mixture._choose_sizes(Extent.of(np.random.RandomState(0).randn(5, n_features)))
        assert (mixture.hidden_size_, mixture.latent_size_) == (hidden, latent)
