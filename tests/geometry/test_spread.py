import numpy as np
import pytest
from sklearn.utils.extmath import _incremental_mean_and_var

from coterie.geometry.spread import Extent, Spread


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_the_spread_of_pieces_is_that_of_scikit_learn(weighted, offset):
    rng = np.random.default_rng(0)
    X = offset + rng.normal(size=(50_000, 3)) * [1.0, 5.0, 0.1]  # three pieces
    weight = rng.integers(0, 3, len(X)).astype(float) if weighted else None
    zeros = np.zeros(3)
    mean, var, size = _incremental_mean_and_var(X, zeros, zeros, zeros, sample_weight=weight)
    cuts = slice(None, 30_000), slice(30_000, None)
    first, second = (Spread.of(X[cut], None if weight is None else weight[cut]) for cut in cuts)
    for found in (Spread.of(X, weight), first + second, Extent.of(X, weight)):
        np.testing.assert_allclose(found.size, size[0])
        np.testing.assert_allclose(found.mean_D, mean, rtol=1e-9)
        np.testing.assert_allclose(found.var_D, var, rtol=1e-9)


def test_the_bounds_of_two_extents_are_the_wider_ones():
    both = Extent.of(np.array([[0.0, 5.0]])) + Extent.of(np.array([[2.0, -1.0]]))
    assert both.low_D.tolist() == [0.0, -1.0]
    assert both.high_D.tolist() == [2.0, 5.0]
    assert both.var_D.tolist() == [1.0, 9.0]
