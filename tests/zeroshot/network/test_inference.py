import numpy as np
import pytest

from coterie.zeroshot.network.inference import Reading, coincident_rows_apart, neighbours_mean, same_for_equal_rows

COMBINATIONS = np.random.default_rng(0).integers(0, 2, size=(90, 3)).astype(float)


def test_rows_that_coincide_become_narrow_clusters_around_their_places():
    places = np.array([[0.0, 0.0, 0.0], [4.0, 0.0, 1.0], [0.0, 90.0, 2.0]])
    rows = np.repeat(places, (40, 30, 1), axis=0)
    moved = coincident_rows_apart(rows, np.random.default_rng(0))
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
    assert coincident_rows_apart(rows, np.random.default_rng(0)) is rows


def test_rows_that_differ_by_rounding_coincide():
    rows = np.repeat([[0.1 + 0.2, 1.0], [0.3, 1.0], [5.0, -2.0], [1.0, 7.0]], 9, axis=0)
    moved = coincident_rows_apart(rows, np.random.default_rng(0))
    assert 1e-3 < np.abs(moved[:18] - rows[:18]).max() < 1.0


def test_two_values_are_apart_even_if_there_is_one_column():
    rows = np.repeat([[0.0], [1.0]], 30, axis=0)
    assert len(np.unique(coincident_rows_apart(rows, np.random.default_rng(0)))) == 60


def test_a_row_of_the_context_gets_its_own_value():
    context = np.array([[0.0], [1.0], [1.0], [2.0]])
    values = np.array([[0.0], [2.0], [4.0], [9.0]])
    assert neighbours_mean(context, context, values)[:, 0].tolist() == [0.0, 3.0, 3.0, 9.0]
    assert neighbours_mean(np.array([[0.5]]), context[:2], values[:2])[0, 0] == pytest.approx(1.0)


def test_equal_rows_have_equal_values_and_surely_share_a_cluster():
    rows = np.array([[1.0], [0.0], [1.0]])
    affinity = np.array([[1.0, 0.2, 0.9], [0.2, 1.0, 0.4], [0.9, 0.4, 1.0]], np.float32)
    found = same_for_equal_rows(rows, Reading(affinity, np.array([0.1, 0.5, 0.3], np.float32), np.ones(1)))
    np.testing.assert_allclose(found.affinity_NN, [[1, 0.3, 1], [0.3, 1, 0.3], [1, 0.3, 1]])
    np.testing.assert_allclose(found.noise_N, [0.2, 0.5, 0.2])
    other = Reading(affinity, np.zeros(3, np.float32), np.ones(1))
    assert same_for_equal_rows(np.arange(3.0)[:, None], other) is other
