"""What users see of the constructed family: answers, weights, dtypes, outliers, saving, callbacks, bad input."""

import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
import torch
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import KMeans as SklearnKMeans
from sklearn.datasets import load_iris, make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import coterie
from coterie import (
    AttentionClustering,
    KMeans,
    KMedoids,
    RobustKMeans,
    SoftKMeans,
    SphericalKMeans,
    TrimmedKMeans,
)
from coterie.kmeans.family import TABLE

FAMILY = [KMeans, SoftKMeans, SphericalKMeans, TrimmedKMeans, RobustKMeans, KMedoids, AttentionClustering]
blobs, truth, true_centers = make_blobs(300, 4, centers=4, cluster_std=0.7, random_state=3, return_centers=True)


@pytest.mark.parametrize("kind", FAMILY)
def test_float32_is_kept(kind):
    estimator = kind(n_clusters=4, random_state=0).fit(blobs.astype(np.float32))
    assert estimator.cluster_centers_.dtype == np.float32
    assert estimator.transform(blobs.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("engine", ["literal", "fused", "lazy", "auto"])
def test_kmeans_gives_scikit_learns_answer_from_the_same_start(engine):
    for seed in range(10):
        X = np.random.default_rng(seed).normal(size=(400, 3))
        ours = KMeans(n_clusters=6, init=X[:6], engine=engine, tol=0).fit(X)
        theirs = SklearnKMeans(n_clusters=6, init=X[:6], n_init=1, algorithm="lloyd", tol=0).fit(X)
        assert np.array_equal(ours.labels_, theirs.labels_)
        np.testing.assert_allclose(ours.cluster_centers_, theirs.cluster_centers_, atol=1e-10)
        assert ours.n_iter_ == theirs.n_iter_
        assert ours.inertia_ == pytest.approx(theirs.inertia_)


def test_kmeans_refills_empty_clusters_as_scikit_learn_does():
    X = np.array([[0.0], [0.5], [1.0], [9.0], [30.0]])
    start = np.array([[0.0], [100.0], [200.0]])
    theirs = SklearnKMeans(n_clusters=3, init=start, n_init=1, max_iter=1).fit(X)
    for engine in ("literal", "fused", "lazy", "auto"):
        ours = KMeans(n_clusters=3, init=start, max_iter=1, engine=engine).fit(X)
        np.testing.assert_allclose(np.sort(ours.cluster_centers_.ravel()), np.sort(theirs.cluster_centers_.ravel()))


@pytest.mark.parametrize("kind", FAMILY, ids=lambda kind: kind.__name__)
def test_fewer_distinct_rows_than_clusters_is_a_warning_and_every_row_a_centre(kind):
    X = np.repeat(blobs[:3], 10, axis=0)
    options = {"outliers": 0.0} if kind is TrimmedKMeans else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        few = kind(n_clusters=5, random_state=0, **options).fit(X)
    assert few.cluster_centers_.shape == (5, 4)
    assert few.n_clusters_ == 3 == len(np.unique(few.labels_))
    assert_array_equal(few.predict(X), few.labels_)
    if kind is not SoftKMeans:
        with pytest.warns(ConvergenceWarning, match="The number of distinct clusters, 3, is less than n_clusters=5"):
            kind(n_clusters=5, random_state=0, **options).fit(X)


@pytest.mark.parametrize("kind", [KMeans, SoftKMeans, TrimmedKMeans], ids=lambda kind: kind.__name__)
def test_a_run_that_does_not_converge_warns_and_says_so(kind):
    with pytest.warns(ConvergenceWarning, match="did not converge in max_iter=1 iterations"):
        assert not kind(n_clusters=4, max_iter=1, init="random", n_init=1, random_state=0).fit(blobs).converged_
    assert kind(n_clusters=4, random_state=0).fit(blobs).converged_


def test_n_init_is_ignored_with_a_warning_where_the_start_is_given():
    with pytest.warns(RuntimeWarning, match="n_init=5 is ignored"):
        KMeans(n_clusters=4, init=true_centers, n_init=5).fit(blobs)


def test_the_literal_engine_tells_its_whole_way():
    estimator = KMeans(n_clusters=4, engine="literal", random_state=0).fit(blobs)
    assert len(estimator.trajectory_) == estimator.n_iter_
    assert estimator.trajectory_[0].centers.shape == (4, 4)
    assert estimator.trajectory_[-1].assignments.shape == (300, 4)


@pytest.mark.parametrize("init", ["k-means++", "random", "spectral", "array", "callable"])
def test_every_start_leads_to_a_clustering(init):
    starts = {"array": true_centers, "callable": lambda X, n_clusters, random_state: true_centers}
    estimator = KMeans(n_clusters=4, init=starts.get(init, init), random_state=0).fit(blobs)
    assert estimator.inertia_ < 2 * KMeans(n_clusters=4, init=true_centers).fit(blobs).inertia_


@pytest.mark.parametrize("kind", FAMILY)
def test_zero_weights_leave_rows_out_but_label_them(kind):
    far = np.vstack([blobs, [[1e3] * 4]])
    weight = np.r_[np.ones(len(blobs)), 0.0]
    weighted = kind(n_clusters=4, random_state=0).fit(far, sample_weight=weight)
    plain = kind(n_clusters=4, random_state=0).fit(blobs)
    np.testing.assert_allclose(weighted.cluster_centers_, plain.cluster_centers_, atol=1e-9)
    assert len(weighted.labels_) == len(far)


@pytest.mark.parametrize("kind", [KMeans, SphericalKMeans])
def test_sparse_and_dense_agree(kind):
    X = np.where(np.random.default_rng(0).random(blobs.shape) < 0.5, blobs, 0.0)
    X = X[X.any(axis=1)]
    dense = kind(n_clusters=4, init=X[:4]).fit(X)
    thin = kind(n_clusters=4, init=X[:4]).fit(sparse.csr_matrix(X))
    assert np.array_equal(dense.labels_, thin.labels_)
    np.testing.assert_allclose(dense.cluster_centers_, thin.cluster_centers_, atol=1e-8)


@pytest.mark.parametrize("kind", [SoftKMeans, RobustKMeans])
def test_scaling_the_data_scales_the_centres(kind):
    small = kind(n_clusters=4, init=true_centers).fit(blobs)
    large = kind(n_clusters=4, init=1000 * true_centers).fit(1000 * blobs)
    np.testing.assert_allclose(large.cluster_centers_, 1000 * small.cluster_centers_, rtol=1e-6)


@pytest.mark.parametrize("mixing", [False, True])
def test_soft_memberships_sum_to_one_and_agree_with_the_labels(mixing):
    estimator = SoftKMeans(n_clusters=4, mixing_weights=mixing, random_state=0).fit(blobs)
    shares = estimator.predict_proba(blobs)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert np.array_equal(shares.argmax(axis=1), estimator.labels_)
    assert estimator.weights_.sum() == pytest.approx(1.0)


def test_trimming_leaves_out_the_share_that_was_asked_for():
    X = np.vstack([blobs, 500 + 50 * np.random.default_rng(0).normal(size=(20, 4))])
    overall = TrimmedKMeans(n_clusters=4, outliers=20 / 320, random_state=0).fit(X)
    assert np.flatnonzero(overall.labels_ == -1).tolist() == list(range(300, 320))
    assert overall.predict([[1e4] * 4]).tolist() == [-1]
    each = TrimmedKMeans(n_clusters=4, outliers=0.1, per_cluster=True, random_state=0).fit(blobs)
    sizes = np.bincount(KMeans(n_clusters=4, init=each.cluster_centers_, max_iter=1).fit(blobs).labels_)
    trimmed = np.sum(each.labels_ == -1)
    assert trimmed <= 0.1 * 300
    assert trimmed >= 0.1 * 300 - len(sizes)


def gross_outliers(seed):
    """Five separated blobs and 5% outliers, normal with 300 times their spread."""
    rng = np.random.default_rng(seed)
    centers = 20 * np.array([[0, 0], [1, 0], [0, 1], [1, 1], [2, 2.0]])
    X = centers[rng.integers(5, size=475)] + rng.normal(size=(475, 2))
    return np.vstack([X, 300 * rng.normal(size=(25, 2))]), centers


def test_trimmed_and_robust_centres_hardly_move_under_gross_outliers():
    """Less than a tenth of what k-means's centres move, mean of 20 seeds."""
    moved = {}
    for seed in range(20):
        X, centers = gross_outliers(seed)
        for name, estimator in {
            "plain": KMeans(n_clusters=5, init=centers),
            "trimmed": TrimmedKMeans(n_clusters=5, init=centers, outliers=0.08),
            "robust": RobustKMeans(n_clusters=5, init=centers),
        }.items():
            shift = np.linalg.norm(estimator.fit(X).cluster_centers_ - centers, axis=1).mean()
            moved.setdefault(name, []).append(shift)
    moved = {name: np.mean(values) for name, values in moved.items()}
    assert moved["trimmed"] < moved["plain"] / 10
    assert moved["robust"] < moved["plain"] / 10


@pytest.mark.parametrize(
    "estimator", [TrimmedKMeans(5, outliers=0.08), RobustKMeans(5)], ids=lambda e: type(e).__name__
)
def test_the_start_is_not_lured_away_by_outliers(estimator):
    found = 0
    for seed in range(10):
        X, centers = gross_outliers(seed)
        places = clone(estimator).set_params(random_state=seed).fit(X).cluster_centers_
        nearest = np.linalg.norm(centers[:, None] - places[None], axis=2).min(axis=1)
        found += np.sum(nearest < 2.0)
    assert found >= 45  # of 50 centres, from one start each


def test_medoids_are_rows():
    for method in ("annealed", "sampler"):
        estimator = KMedoids(n_clusters=4, method=method, random_state=0).fit(blobs)
        assert np.array_equal(blobs[estimator.medoid_indices_], estimator.cluster_centers_)
        assert len(set(estimator.medoid_indices_)) == 4 or method == "sampler"


def test_spherical_centres_are_unit_vectors_and_lengths_do_not_matter():
    lengths = np.random.default_rng(0).uniform(0.1, 10, size=(300, 1))
    a = SphericalKMeans(n_clusters=4, init=true_centers).fit(blobs)
    b = SphericalKMeans(n_clusters=4, init=true_centers).fit(blobs * lengths)
    np.testing.assert_allclose(np.linalg.norm(a.cluster_centers_, axis=1), 1.0)
    assert np.array_equal(a.labels_, b.labels_)


@pytest.mark.parametrize("settings", [{"keep": 0}, {"top": 1.5}, {"gamma": "auto"}, {"keeps": 0.9}])
def test_settings_of_a_row_that_cannot_be_are_refused(settings):
    with pytest.raises(ValueError, match=f"{next(iter(settings))}'"):
        AttentionClustering("trimmed", 3, settings=settings).fit(blobs)


@pytest.mark.parametrize("algorithm", TABLE)
def test_every_row_of_the_table_can_be_fitted_in_both_engines(algorithm):
    X = blobs[:80]
    kind = {"algorithm": algorithm, "n_clusters": 3, "random_state": 0, "max_iter": 6, "settings": {"delta": 0.5}}
    fast = AttentionClustering(engine="fused", **kind).fit(X)
    slow = AttentionClustering(engine="literal", **kind).fit(X)
    np.testing.assert_allclose(fast.cluster_centers_, slow.cluster_centers_, atol=1e-8)
    assert np.array_equal(fast.labels_, slow.labels_)


@pytest.mark.parametrize("kind", FAMILY)
def test_saving_and_loading_gives_the_same_predictions(kind, tmp_path):
    frame = pd.DataFrame(blobs, columns=["a", "b", "c", "d"])
    estimator = kind(n_clusters=4, random_state=0).fit(frame)
    estimator.save(tmp_path / "model.safetensors")
    loaded = coterie.load(tmp_path / "model.safetensors")
    assert type(loaded) is kind
    assert loaded.get_params().keys() == estimator.get_params().keys()
    assert np.array_equal(loaded.predict(frame), estimator.predict(frame))
    np.testing.assert_array_equal(loaded.transform(frame), estimator.transform(frame))
    assert list(loaded.feature_names_in_) == list("abcd")
    assert b"pickle" not in (tmp_path / "model.safetensors").read_bytes()


def test_loading_something_else_says_so(tmp_path):
    (tmp_path / "x").write_text("no model")
    with pytest.raises(ValueError, match="not a saved coterie model"):
        coterie.load(tmp_path / "x")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        coterie.load(tmp_path)


def test_parameters_of_any_kind_are_saved(tmp_path):
    init = [[0.0, 0, 0, 0], [5, 5, 5, 5]]
    KMeans(2, init=init, device=torch.device("cpu")).fit(blobs).save(tmp_path / "model")
    loaded = coterie.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.init, init)
    assert loaded.device == "cpu"


def test_estimators_work_in_pipelines_and_searches():
    X = load_iris().data
    pipe = make_pipeline(StandardScaler(), KMeans(random_state=0))
    search = GridSearchCV(pipe, {"kmeans__n_clusters": [2, 3, 5]}, cv=3).fit(X)
    assert search.best_params_["kmeans__n_clusters"] == 5
    assert search.predict(X).shape == (150,)
    frame = KMeans(n_clusters=3, random_state=0).set_output(transform="pandas").fit(X).transform(X)
    assert list(frame.columns) == ["kmeans0", "kmeans1", "kmeans2"]


def test_verbose_draws_a_bar_on_standard_error_only(capsys):
    KMeans(n_clusters=3, verbose=1, random_state=0).fit(blobs)
    out, err = capsys.readouterr()
    assert out == ""
    assert "KMeans 1/1" in err
    assert "objective" in err


@pytest.mark.skipif(not hasattr(sklearn, "callback") and sklearn.__version__ < "1.9", reason="no callbacks before 1.9")
def test_callbacks_see_every_iteration_and_can_stop_the_fit():
    class Count:
        def __init__(self, stop_after=None):
            self.ended, self.scores, self.stop_after = [], [], stop_after

        def setup(self, estimator, context): ...

        def teardown(self, estimator, context): ...

        def on_fit_task_begin(self, estimator, context): ...

        def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
            self.ended.append(context.task_name)
            if context.task_name == "iteration":
                self.scores.append(fitted_estimator.score(blobs))
                return self.stop_after is not None and len(self.scores) >= self.stop_after
            return False

    start = blobs[:6]
    for kind in (KMeans, TrimmedKMeans):
        watcher = Count()
        estimator = kind(n_clusters=6, init=start, tol=0).set_callbacks(watcher).fit(blobs)
        assert watcher.ended.count("iteration") == estimator.n_iter_
        assert watcher.ended[-2:] == ["run", "fit"]
    stopper = Count(stop_after=2)
    assert KMeans(n_clusters=6, init=start, tol=0).set_callbacks(stopper).fit(blobs).n_iter_ == 2


def bad(change):
    X = blobs.copy()
    change(X)
    return X


BAD_INPUT = {
    "k > n": (blobs[:3], {"n_clusters": 5}, "n_samples=3 should be >= n_clusters=5"),
    "k = 0": (blobs, {"n_clusters": 0}, "n_clusters"),
    "k < 0": (blobs, {"n_clusters": -2}, "n_clusters"),
    "NaN": (bad(lambda X: X.__setitem__((7, 2), np.nan)), {}, r"NaN \(row 7, column 2\)"),
    "infinity": (bad(lambda X: X.__setitem__((9, 1), -np.inf)), {}, r"infinity \(row 9, column 1\)"),
    "1-D": (blobs[:, 0], {}, "Expected 2D array"),
    "text": (np.array([["a", "b"]] * 9), {}, "could not convert|numbers"),
    "1e30 in float32": (1e30 * blobs.astype(np.float32), {}, "StandardScaler"),
    "1e200": (1e200 * blobs, {}, "StandardScaler"),
    "differences that square to nothing": (1e-200 * blobs, {}, "StandardScaler"),
    "float16": (blobs.astype(np.float16), {}, "astype"),
    "empty": (np.empty((0, 3)), {}, "0 sample"),
}


@pytest.mark.parametrize("case", BAD_INPUT)
@pytest.mark.parametrize("kind", FAMILY)
def test_bad_input_gets_a_clear_error(kind, case):
    X, params, message = BAD_INPUT[case]
    with pytest.raises(ValueError, match=message):
        kind(**params).fit(X)


def test_a_large_value_that_float64_holds_is_no_error():
    X = np.vstack([blobs, blobs + 1e30])
    assert len(np.unique(KMeans(n_clusters=2, random_state=0).fit(X).labels_)) == 2


def test_huge_weights_no_device_and_bad_starts_are_told():
    with pytest.raises(ValueError, match="divide by a constant"):
        KMeans(n_clusters=2).fit(blobs, sample_weight=np.full(len(blobs), 1e308))
    with pytest.raises(ValueError, match="use device='cpu'"):
        KMeans(n_clusters=2, device="gpu9").fit(blobs)
    with pytest.raises(ValueError, match=r"init contains NaN"):
        KMeans(n_clusters=2, init=np.full((2, 4), np.nan)).fit(blobs)


def test_a_refit_forgets_the_trajectory():
    estimator = KMeans(n_clusters=2, engine="literal", random_state=0).fit(blobs)
    assert not hasattr(estimator.set_params(engine="auto").fit(blobs), "trajectory_")


def test_dates_are_not_numbers():
    frame = pd.DataFrame({"day": pd.date_range("2024-01-01", periods=5), "size": np.arange(5.0)})
    with pytest.raises(ValueError, match="'day'"):
        KMeans(n_clusters=2).fit(frame)


def test_text_columns_of_a_frame_are_named():
    frame = pd.DataFrame({"age": [1.0, 2.0, 3.0], "name": ["x", "y", "z"]})
    with pytest.raises(ValueError, match=r"X contains text .*OneHotEncoder"):
        KMeans(2).fit([["a", "b"], ["c", "d"]])
    for estimator in (KMeans(2), coterie.ZeroShotClusterer()):
        with pytest.raises(ValueError, match="two columns named 'a': rename one"):
            estimator.fit(pd.DataFrame(np.eye(3), columns=["a", "b", "a"]))
    with pytest.raises(TypeError, match="n_clusters must be a number of clusters"):
        KMeans(n_clusters=True).fit(np.eye(3))
    with pytest.raises(ValueError, match=r"'name'.*OneHotEncoder"):
        KMeans(n_clusters=2).fit(frame)


def test_errors_name_the_column():
    frame = pd.DataFrame({"age": [1.0, np.nan, 3.0], "size": [1.0, 2.0, 3.0]})
    with pytest.raises(ValueError, match="row 1, column 0 'age'"):
        KMeans(n_clusters=2).fit(frame)


def test_a_wrong_array_of_starts_says_which_shape_it_needs():
    with pytest.raises(ValueError, match=r"\(4, 4\)"):
        KMeans(n_clusters=4, init=np.zeros((3, 4))).fit(blobs)
