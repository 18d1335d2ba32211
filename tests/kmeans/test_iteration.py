import numpy as np
import pytest
from sklearn.utils.extmath import _incremental_mean_and_var

from coterie.kmeans.iteration import moments


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_moments_of_pieces_are_those_of_scikit_learn(weighted, offset):
    rng = np.random.default_rng(0)
    X = offset + rng.normal(size=(50_000, 3)) * [1.0, 5.0, 0.1]  # three pieces
    weight = rng.integers(0, 3, len(X)).astype(float) if weighted else None
    zeros = np.zeros(3)
    theirs = _incremental_mean_and_var(X, zeros, zeros, zeros, sample_weight=weight)
    ours = moments(X, weight)
    continued = moments(
        X[30_000:],
        None if weight is None else weight[30_000:],
        moments(X[:30_000], weight if weight is None else weight[:30_000]),
    )
    for found in (ours, continued):
        for one, other in zip(found, theirs):
            np.testing.assert_allclose(one, other, rtol=1e-9)
