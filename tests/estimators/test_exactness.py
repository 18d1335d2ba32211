"""Labels are those of double-precision differences, whatever the offset, the scale, the weights and the duplicates."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from coterie import (
    AttentionClustering,
    KMeans,
    KMedoids,
    RobustKMeans,
    SoftKMeans,
    SphericalKMeans,
    TrimmedKMeans,
)

FAMILY = [KMeans, SoftKMeans, SphericalKMeans, TrimmedKMeans, RobustKMeans, KMedoids, AttentionClustering]
names = {"ids": lambda one: getattr(one, "__name__", str(one))}


def nearest(X, centers, spherical=False):
    """Labels by plain differences in double precision, and whether they are clear: 1e-12 apart, relative."""
    X, centers = X.astype(np.float64), centers.astype(np.float64)
    if spherical:
        X = X / np.linalg.norm(X, axis=1, keepdims=True)
    sq = np.stack([((X - c) ** 2).sum(axis=1) for c in centers], axis=1)
    two = np.sort(sq, axis=1)[:, :2]
    return sq.argmin(axis=1), two[:, 1] - two[:, 0] > 1e-12 * two[:, 1]


def problem(seed, dtype=np.float64):
    """Groups far apart, each of two clusters near one another, with duplicated rows; starting centres among them."""
    rng = np.random.default_rng(seed)
    middles = np.array([[-1.0, 0], [1, 0], [0, 1]])
    near = rng.choice([-0.6, 0.6], size=(60, 1)) * [0.0, 1.0]
    X = near + 0.1 * rng.normal(size=(60, 2))
    group = rng.integers(3, size=60)
    rows = np.concatenate([np.arange(60), rng.integers(60, size=20)])
    return X[rows].astype(dtype), middles[group[rows]], rows


@pytest.mark.parametrize("offset", [1.0, 1e2, 1e4, 1e6, 1e8])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", [KMeans, SoftKMeans, TrimmedKMeans, RobustKMeans, KMedoids], **names)
def test_labels_are_those_of_exact_distances_at_any_offset(kind, dtype, offset):
    if dtype == np.float32 and offset > 1e6:
        pytest.skip("single precision does not tell such rows apart")
    for seed in range(4):
        inner, middles, _ = problem(seed)
        X = (inner + offset * middles).astype(dtype)
        model = kind(n_clusters=6, init=X[:6], max_iter=20) if kind is not KMedoids else kind(6, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X)
        labels, clear = nearest(X, model.cluster_centers_)
        kept = clear & (model.labels_ >= 0)
        assert_array_equal(model.labels_[kept], labels[kept])
        assert_array_equal(model.predict(X), model.labels_)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 20),
    offset=st.sampled_from([1.0, 1e4, 1e6, 1e8]),
    exponent=st.integers(-495, 450),
    single=st.booleans(),
    weighted=st.booleans(),
    init=st.sampled_from(["given", "k-means++", "random"]),
)
def test_labels_of_sparse_rows_are_those_of_exact_distances(seed, offset, exponent, single, weighted, init):
    inner, middles, _ = problem(seed)
    dtype = np.float32 if single else np.float64
    X = (inner + min(offset, 1e5 if single else 1e8) * middles).astype(dtype)
    weight = np.random.default_rng(seed).uniform(0.5, 2, len(X)) if weighted else None
    exponent = max(-60, min(40, exponent)) if single else exponent
    big = np.ldexp(X, exponent)
    settings = {"n_clusters": 6, "max_iter": 10, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = KMeans(init=X[:6] if init == "given" else init, **settings)
        model.fit(sparse.csr_matrix(X), sample_weight=weight)
        scaled = KMeans(init=big[:6] if init == "given" else init, **settings)
        scaled.fit(sparse.csr_matrix(big), sample_weight=weight)
    labels, clear = nearest(X, model.cluster_centers_)
    assert_array_equal(model.labels_[clear], labels[clear])
    assert_array_equal(model.predict(sparse.csr_matrix(X)), model.labels_)
    assert_array_equal(model.predict(X)[clear], labels[clear])
    assert_array_equal(scaled.labels_, model.labels_)


@pytest.mark.parametrize("engine", ["literal", "fused", "lazy", "auto"])
@pytest.mark.parametrize("offset", [1.0, 1e4])
def test_all_engines_of_k_means_agree_at_an_offset_in_single_precision(engine, offset):
    inner, middles, _ = problem(0)
    X = (inner + offset * middles).astype(np.float32)
    start = {"n_clusters": 6, "init": X[:6], "tol": 0}
    model, exact = KMeans(engine=engine, **start).fit(X), KMeans(**start).fit(X.astype(np.float64))
    assert_array_equal(model.labels_, exact.labels_)
    assert model.inertia_ == pytest.approx(exact.inertia_, rel=1e-4)


@pytest.mark.parametrize("kind", FAMILY, **names)
@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 20),
    exponent=st.integers(-495, 480),
    weighted=st.booleans(),
    init=st.sampled_from(["given", "k-means++", "random", "spectral"]),
)
def test_scaling_by_a_power_of_two_changes_no_label(kind, seed, exponent, weighted, init):
    inner, middles, _ = problem(seed)
    X = inner + 3 * middles
    weight = np.random.default_rng(seed).uniform(0.5, 2, len(X)) if weighted else None
    big = np.ldexp(X, exponent)
    settings = {"n_clusters": 5, "random_state": 0, "max_iter": 10}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one = kind(init=X[:5] if init == "given" else init, **settings).fit(X, sample_weight=weight)
        other = kind(init=big[:5] if init == "given" else init, **settings).fit(big, sample_weight=weight)
    assert_array_equal(other.labels_, one.labels_)
    assert_array_equal(other.predict(big), other.labels_)
    if kind is not SphericalKMeans:
        assert_allclose(np.ldexp(other.cluster_centers_, -exponent), one.cluster_centers_, rtol=1e-12)
        assert_allclose(np.ldexp(other.transform(big), -exponent), one.transform(X), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("exponent", [-70, -45, 0, 40])
@pytest.mark.parametrize("kind", FAMILY, **names)
def test_single_precision_at_any_scale(kind, exponent):
    inner, middles, _ = problem(3)
    X = (inner + 3 * middles).astype(np.float32)
    big = np.ldexp(X, exponent)
    settings = {"n_clusters": 5, "random_state": 0, "max_iter": 10}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one, other = kind(init=X[:5], **settings).fit(X), kind(init=big[:5], **settings).fit(big)
    assert_array_equal(other.labels_, one.labels_)
    assert_array_equal(other.predict(big), other.labels_)


@pytest.mark.parametrize("engine", ["literal", "fused"])
@pytest.mark.parametrize(
    "row", ["trimmed/dot", "trimmed/spherical", "robust-topk/dot", "robust-topk/spherical", "trimmed"]
)
def test_equal_rows_are_treated_alike_in_every_engine(row, engine):
    rng = np.random.default_rng(1)
    X = np.repeat(rng.normal(size=(37, 5)), rng.integers(1, 5, 37), axis=0)
    X = X[rng.permutation(len(X))]
    rows, first, inverse = np.unique(X, axis=0, return_index=True, return_inverse=True)
    options = {"n_clusters": 3, "init": rows[:3], "settings": {"keep": 0.8, "top": 6}, "max_iter": 8}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = AttentionClustering(row, engine=engine, **options).fit(X)
        weighted = AttentionClustering(row, engine=engine, **options).fit(
            rows, sample_weight=np.bincount(inverse.ravel())
        )
    assert_array_equal(model.labels_, model.labels_[first][inverse.ravel()])
    assert_allclose(model.cluster_centers_, weighted.cluster_centers_, rtol=1e-9, atol=1e-12)
