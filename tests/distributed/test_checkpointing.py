import json

import dask
import dask.array as da
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from sklearn.base import clone

from coterie import KMeans, SoftKMeans, TrimmedKMeans, distributed
from coterie.distributed import fitting
from coterie.distributed.passes import Passes
from coterie.kmeans import block_statistics
from tests.distributed.test_exact import K, points


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


class Lost(Exception):
    """Stands for whatever ends a process."""


@pytest.fixture
def interrupted(monkeypatch):
    """Makes the fifth step of a fit fail."""
    whole, steps = Passes.total, []

    def total(self, function, state, **options):
        if function is block_statistics.step:
            steps.append(function)
            if len(steps) == 5:
                raise Lost
        return whole(self, function, state, **options)

    monkeypatch.setattr(Passes, "total", total)
    return steps


@pytest.mark.parametrize(
    "member", [KMeans(K, random_state=0, tol=0), SoftKMeans(K, mixing_weights=True, tol=1e-9, random_state=0)]
)
def test_a_fit_goes_on_where_it_stopped(member, tmp_path, interrupted):
    X = da.from_array(points(seed=3), chunks=(400, 3))
    path = tmp_path / "centres.safetensors"
    with distributed.checkpoint(path), pytest.raises(Lost):
        clone(member).fit(X)
    interrupted.extend([None] * 5)  # no more failures
    before = len(interrupted)
    with distributed.checkpoint(path, resume=True):
        resumed = clone(member).fit(X)
    whole = clone(member).fit(X)
    np.testing.assert_array_equal(resumed.cluster_centers_, whole.cluster_centers_)
    assert resumed.n_iter_ == whole.n_iter_
    assert resumed.inertia_ == whole.inertia_
    own = len([one for one in interrupted[before:] if one is not None]) - (whole.n_iter_ + 1)
    assert own == whole.n_iter_ + 1 - 4  # four iterations were not made again
    with distributed.checkpoint(path, resume=True):
        assert clone(member).fit(X).n_iter_ == whole.n_iter_  # a finished fit only looks at the data


def test_a_checkpoint_of_another_fit_is_refused(tmp_path):
    X = da.from_array(points(), chunks=(400, 3))
    path = tmp_path / "centres.safetensors"
    with distributed.checkpoint(path):
        KMeans(K, random_state=0).fit(X)
    with distributed.checkpoint(path, resume=True):
        with pytest.raises(ValueError, match="number of clusters is 6, here it is 3"):
            KMeans(3, random_state=0).fit(X)
        with pytest.raises(ValueError, match="n_init=1"):
            KMeans(K, n_init=2).fit(X)
    path.write_text("nothing")
    with distributed.checkpoint(path, resume=True), pytest.raises(ValueError, match="not a checkpoint"):
        KMeans(K).fit(X)


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda rows: rows + 1, "fingerprint of the rows is"),
        (lambda rows: rows.mean(axis=0) + 5 * (rows - rows.mean(axis=0)), "fingerprint of the rows is"),
        (lambda rows: 2 * rows, "fingerprint of the rows is"),
        (lambda rows: np.vstack([rows[:1], rows[:-1]]), "fingerprint of the rows is"),
        (lambda rows: rows[:, ::-1], "fingerprint of the rows is"),
        (lambda rows: rows.astype(np.float32), "type of the numbers is float64, here it is float32"),
    ],
)
def test_a_fit_does_not_go_on_with_other_rows(change, message, tmp_path):
    """Rows of the same mean and five times the spread were taken for the same rows."""
    path, rows = tmp_path / "centres.safetensors", points()
    with distributed.checkpoint(path):
        KMeans(K, random_state=0, max_iter=2).fit(da.from_array(rows, chunks=(400, 3)))
    before = path.read_bytes()
    with distributed.checkpoint(path, resume=True), pytest.raises(ValueError, match=message):
        KMeans(K, random_state=0).fit(da.from_array(change(rows), chunks=(400, 3)))
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "change, message",
    [
        ({"random_state": 1}, "random_state is 0, here it is 1"),
        ({"random_state": None}, "random_state is 0, here it is None"),
        ({"tol": 0.5}, "tol is 0.0001, here it is 0.5"),
        ({"init": "random", "n_init": 1}, "init is k-means[+][+], here it is random"),
        ({"init": np.zeros((K, 3)), "n_init": 1}, "init is k-means[+][+], here it is array"),
    ],
)
def test_a_fit_does_not_go_on_with_other_parameters(change, message, tmp_path):
    path, X = tmp_path / "centres.safetensors", da.from_array(points(), chunks=(400, 3))
    member = KMeans(K, random_state=0, max_iter=2)
    with distributed.checkpoint(path):
        member.fit(X)
    with distributed.checkpoint(path, resume=True):
        with pytest.raises(ValueError, match=message):
            clone(member).set_params(**change).fit(X)
        assert clone(member).set_params(max_iter=300, n_jobs=1, verbose=0).fit(X).n_iter_ > 2


def test_a_checkpoint_of_another_version_and_other_weights_are_refused(tmp_path, monkeypatch):
    path, X = tmp_path / "centres.safetensors", da.from_array(points(), chunks=(400, 3))
    weight = np.ones(len(X))
    with distributed.checkpoint(path):
        KMeans(K, random_state=0).fit(X)
    with distributed.checkpoint(path, resume=True):
        KMeans(K, random_state=0).fit(X, sample_weight=weight)  # which is the same fit
        weight[:2] = 0.5, 1.5
        with pytest.raises(ValueError, match="fingerprint of the rows"):
            KMeans(K, random_state=0).fit(X, sample_weight=weight)
        monkeypatch.setattr(fitting, "__version__", "0.0.1")
        with pytest.raises(ValueError, match=r"version is .*, here it is 0\.0\.1\."):
            KMeans(K, random_state=0).fit(X)


def test_a_generator_is_identified_by_its_state(tmp_path):
    path, X = tmp_path / "centres.safetensors", da.from_array(points(), chunks=(400, 3))
    with distributed.checkpoint(path):
        KMeans(K, random_state=np.random.RandomState(3)).fit(X)
    with distributed.checkpoint(path, resume=True):
        KMeans(K, random_state=np.random.RandomState(3)).fit(X)
        with pytest.raises(ValueError, match="random_state is generator"):
            KMeans(K, random_state=np.random.RandomState(4)).fit(X)


@pytest.mark.parametrize(
    "tensors, header, message",
    [
        ({"places": np.full((K, 3), np.nan)}, {}, "6 rows of 3 finite numbers"),
        ({"places": np.zeros((K, 2))}, {}, "6 rows of 3 finite numbers"),
        ({"places": np.zeros((K - 1, 3))}, {}, "6 rows of 3 finite numbers"),
        ({"places": np.zeros((K, 3), np.int64)}, {}, "6 rows of 3 finite numbers"),
        ({"weights": np.full(K, np.inf)}, {}, "finite numbers"),
        ({"weights": np.full(K, -1.0)}, {}, "negative"),
        ({"places": np.zeros((K, 3), np.float16)}, {}, "6 rows of 3 finite numbers"),
        ({}, {"number": "three"}, "header.number has a value of a wrong type"),
        ({}, {"number": -1}, "number of iterations"),
        ({}, {"gamma": -1.0}, "gamma"),
        ({}, {"problem": None}, "cannot be read"),
        ({}, {"problem": {}}, "header.problem has no number of clusters"),
    ],
)
def test_a_damaged_checkpoint_is_rejected_before_a_kernel_sees_it(tensors, header, message, tmp_path):
    """Centres of another shape, or NaN, once ended in a corrupted heap."""
    X = da.from_array(points(), chunks=(400, 3))
    path = tmp_path / "centres.safetensors"
    with distributed.checkpoint(path):
        KMeans(K, random_state=0, max_iter=20).fit(X)
    with safe_open(path, framework="numpy") as file:
        saved = json.loads(file.metadata()["coterie-checkpoint"])
    entry = {"coterie-checkpoint": json.dumps({**saved, **header})}
    save_file({**load_file(path), **tensors}, path, metadata=entry)
    with distributed.checkpoint(path, resume=True), pytest.raises(ValueError, match=f"not a checkpoint.*{message}"):
        KMeans(K, random_state=0).fit(X)


@pytest.mark.parametrize("member", [KMeans(K), SoftKMeans(K), TrimmedKMeans(K)])
def test_a_block_that_changes_after_the_first_pass_is_named(member):
    """NaN in a later pass once ended in a corrupted heap."""
    rows, seen = points(), []

    def block(part, block_info=None):
        seen.append(1)
        return np.full_like(part, np.nan) if len(seen) > 12 else part

    X = da.from_array(rows, chunks=(400, 3)).map_blocks(block, dtype=rows.dtype, meta=rows[:0])
    with pytest.raises(ValueError, match=r"Block \d of X .* contains NaN|rows contain NaN"):
        member.fit(X)
