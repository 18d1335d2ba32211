"""What cannot be clustered is told at once, and says which block."""

import dask
import dask.array as da
import dask.bag
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from coterie import KMeans
from tests.distributed.test_exact import K, points


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def blocks(*arrays):
    return da.concatenate([da.from_array(array, chunks=array.shape) for array in arrays])


def with_value(value):
    X = points(n=300)
    X[217, 1] = value
    return da.from_array(X, chunks=(100, 3))


def unknown_columns():
    X = da.from_array(points(n=300), chunks=(100, 3))
    return X[:, da.from_array(np.array([True, False, True]))]


def changing_columns():
    parts = [
        dask.delayed(pd.DataFrame)(points(n=50), columns=columns) for columns in (["a", "b", "c"], ["a", "c", "b"])
    ]
    return dd.from_delayed(parts, meta=pd.DataFrame(columns=["a", "b", "c"], dtype=float), verify_meta=False)


def changing_width():
    wide = dask.delayed(np.zeros)((50, 4))
    return da.concatenate([da.from_array(points(n=50)), da.from_delayed(wide, (50, 3), float)])


REFUSED = {
    "NaN": (lambda: with_value(np.nan), r"Block 2 of X .* contains NaN \(row 17 of the block, column 1\)"),
    "infinity": (lambda: with_value(-np.inf), "Block 2 of X .* contains infinity"),
    "overflow": (lambda: with_value(1e200), "Block 2 of X .* squared distances overflow"),
    "unknown columns": (unknown_columns, "unknown number of columns"),
    "changing columns": (changing_columns, r"Block 1 of X .* has the columns \(a, c, b\), not \(a, b, c\)"),
    "changing width": (changing_width, "Block 1 of X .* has 4 columns, but X has 3"),
    "no rows": (lambda: blocks(np.empty((0, 3)), np.empty((0, 3))), "every block is empty"),
    "few rows": (lambda: blocks(points(n=2), points(n=1)), "n_samples=3 should be >= n_clusters=6"),
    "text": (lambda: dd.from_pandas(pd.DataFrame({"a": ["x", "y"]}), npartitions=1), "not numbers: 'a'"),
    "half precision": (lambda: da.ones((50, 3), dtype="float16"), "float16"),
    "three dimensions": (lambda: da.ones((5, 3, 2)), "two-dimensional"),
    "a bag": (lambda: dask.bag.from_sequence([1, 2]), "Dask array or a Dask DataFrame; got a Bag"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_is_refused_with_a_reason(name):
    make, reason = REFUSED[name]
    with pytest.raises(ValueError, match=reason):
        KMeans(K, init="random", n_init=1).fit(make())


def test_empty_blocks_and_unknown_numbers_of_rows_are_no_obstacle():
    X = points(n=600)
    whole = KMeans(K, init=X[:K]).fit(X)
    gaps = blocks(X[:250], X[:0], X[250:], X[:0])
    np.testing.assert_allclose(KMeans(K, init=X[:K]).fit(gaps).cluster_centers_, whole.cluster_centers_, rtol=1e-9)
    np.testing.assert_array_equal(whole.predict(gaps).compute(), whole.labels_)
    unknown = gaps[da.from_array(np.ones(600, bool), chunks=(gaps.chunks[0],))]
    assert np.isnan(unknown.shape[0])
    fitted = KMeans(K, init=X[:K]).fit(unknown)
    np.testing.assert_allclose(fitted.cluster_centers_, whole.cluster_centers_, rtol=1e-9)
    np.testing.assert_array_equal(fitted.labels_.compute(), whole.labels_)
    with pytest.raises(ValueError, match="unknown sizes"):
        KMeans(K).fit(unknown, sample_weight=np.ones(600))


def test_weights_must_fit_the_rows():
    X = da.from_array(points(n=300), chunks=(100, 3))
    with pytest.raises(ValueError, match=r"sample_weight has shape \(299,\)"):
        KMeans(K).fit(X, sample_weight=np.ones(299))
    with pytest.raises(ValueError, match="negative"):
        KMeans(K).fit(X, sample_weight=da.from_array(np.r_[np.ones(299), -1]))
    with pytest.raises(ValueError, match="no rows of positive weight"):
        KMeans(K).fit(X, sample_weight=np.zeros(300))


def test_what_needs_memory_says_so():
    X = da.from_array(points(n=300), chunks=(100, 3))
    with pytest.raises(ValueError, match="use engine='auto'"):
        KMeans(K, engine="literal").fit(X)
    with pytest.raises(ValueError, match=r"init must have shape .* \(6, 3\)"):
        KMeans(K, init=np.ones((6, 2))).fit(X)
