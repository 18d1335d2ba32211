import numpy as np
import pytest

from coterie.mixtures.fitting import can_be_cut


@pytest.mark.parametrize("n_columns", [1, 2, 6])
@pytest.mark.parametrize("seed", range(5))
def test_normal_rows_are_not_cut(seed, n_columns):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(300, n_columns)) @ rng.normal(size=(n_columns, n_columns))
    assert not can_be_cut(rows)


def test_blobs_and_distant_rows_are_cut_off():
    rows = np.random.default_rng(0).normal(size=(200, 3))
    assert can_be_cut(np.r_[rows, rows[:100] + 8])
    assert can_be_cut(np.r_[rows, [[0.0, 20.0, 0.0]]])


def test_a_cut_along_a_principal_axis_is_seen():
    # two clusters of long, parallel ellipses: no column shows them
    rng = np.random.default_rng(0)
    along, across = rng.normal(size=(400, 1)), 0.1 * rng.normal(size=(400, 1))
    across[200:] += 1
    rows = np.hstack([5 * along + across, 5 * along - across])
    assert can_be_cut(rows)
    assert not can_be_cut(rows[:, :1])


def test_the_gain_of_a_cut_by_hand():
    # half of the rows at -1 and half at 1, with tiny differences: nothing but the entropy log(2) is lost
    rows = np.repeat([[-1.0], [1.0]], 10, axis=0) + 1e-3 * np.arange(20)[:, None]
    assert can_be_cut(rows)
    # evenly spaced rows: a cut in the middle leaves a quarter of the variance, and -log(1 / 4) / 2 = log(2)
    assert not can_be_cut(np.linspace(0, 1, 1000)[:, None])
