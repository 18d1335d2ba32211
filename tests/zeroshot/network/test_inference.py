import numpy as np
import pytest

from coterie.zeroshot.network.inference import slightly_apart

COMBINATIONS = np.random.default_rng(0).integers(0, 2, size=(90, 3)).astype(float)


def test_rows_that_coincide_become_narrow_clusters_around_their_places():
    places = np.array([[0.0, 0.0, 0.0], [4.0, 0.0, 1.0], [0.0, 90.0, 2.0]])
    rows = np.repeat(places, (40, 30, 1), axis=0)
    moved = slightly_apart(rows, np.random.default_rng(0))
    assert len(np.unique(moved, axis=0)) == len(rows)
    away = np.linalg.norm(moved - rows, axis=1)
    nearest = np.sqrt([17.0, 17.0, 90.0**2 + 4])
    assert (away < 0.1 * np.repeat(nearest, (40, 30, 1))).all()
    assert np.median(away[:70]) == pytest.approx(0.02 * np.sqrt(17), rel=0.3)


@pytest.mark.parametrize(
    "rows",
    [
        np.random.default_rng(0).normal(size=(50, 2)),  # all different
        np.repeat(np.random.default_rng(0).normal(size=(30, 2)), 2, axis=0),  # of few copies
        np.ones((20, 2)),
        np.repeat(np.arange(6.0), 10)[:, None],  # six steps of one column
        COMBINATIONS,  # of three columns
        np.c_[COMBINATIONS, COMBINATIONS[:, :1]],  # and a copy of one
        np.concatenate([np.eye(2)[column.astype(int)] for column in COMBINATIONS.T], axis=1),  # one column per value
        COMBINATIONS @ np.random.default_rng(1).normal(size=(3, 2)),  # in other coordinates
        np.repeat(np.round([[1, 1, 2], [2, 2, 2], [3, 3, 3], [4, 4, 3], [5, 5, 5], [2, 1, 2], [4, 3, 3]]), 9, axis=0),
    ],
)
def test_other_rows_stay_where_they_are(rows):
    assert slightly_apart(rows, np.random.default_rng(0)) is rows


def test_rows_that_differ_by_rounding_coincide():
    rows = np.repeat([[0.1 + 0.2, 1.0], [0.3, 1.0], [5.0, -2.0], [1.0, 7.0]], 9, axis=0)
    moved = slightly_apart(rows, np.random.default_rng(0))
    assert 1e-3 < np.abs(moved[:18] - rows[:18]).max() < 1.0


def test_two_values_are_apart_even_if_there_is_one_column():
    rows = np.repeat([[0.0], [1.0]], 30, axis=0)
    assert len(np.unique(slightly_apart(rows, np.random.default_rng(0)))) == 60
