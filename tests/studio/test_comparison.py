"""Clusters of two runs find their partners."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from coterie.studio.comparison import compare


def test_renamed_clusters_get_the_same_colours():
    left = np.array([0, 0, 1, 1, 2, 2])
    found = compare(left, np.array([2, 2, 0, 0, 1, 1]))
    assert found["colors"] == [1, 2, 0]
    assert found["agreement"] == 1.0
    assert found["same"] == 6


def test_clusters_without_a_partner_get_colours_of_their_own():
    found = compare(np.array([0, 0, 0, 0, -1]), np.array([0, 0, 0, 1, 1]))
    assert found["colors"] == [0, 1]
    assert found["rows"] == 4


@pytest.mark.parametrize("seed", range(5))
def test_the_agreement_is_scikit_learns(seed):
    left, right = np.random.default_rng(seed).integers(0, 4, (2, 60))
    assert compare(left, right)["agreement"] == pytest.approx(adjusted_rand_score(left, right))


def test_nothing_in_common_is_no_error():
    assert compare(np.full(3, -1), np.array([0, 1, 0]))["rows"] == 0
