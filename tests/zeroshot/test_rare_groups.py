"""Small groups of a large table are in the sample that the network reads."""

import numpy as np
import pytest

from coterie import ZeroShotClusterer
from coterie.zeroshot.rare_groups import ENOUGH, with_rare_groups

SIZES = (9_000, 7_900, 3_000, 60, 40)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(len(SIZES), 5)) * 8
    which = np.repeat(np.arange(len(SIZES)), SIZES)
    return centers[which] + rng.normal(size=(len(which), 5)), which


def sample_of(n, rng):
    return np.sort(rng.choice(n, 1_024, replace=False))


def test_a_sample_gets_rows_of_small_groups_and_keeps_its_size(table):
    X, which = table
    rng = np.random.default_rng(1)
    sample = sample_of(len(X), rng)
    assert (np.bincount(which[sample])[3:] < 10).all()
    read = with_rare_groups(X, sample, rng, 1)
    assert len(np.unique(read)) == len(sample)
    assert (np.bincount(which[read])[3:] >= ENOUGH).all()


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: rng.normal(size=(20_000, 4)),
        lambda rng: rng.standard_t(2, size=(20_000, 4)),
        lambda rng: rng.uniform(size=(20_000, 4)),
        lambda rng: rng.integers(0, 4, size=(20_000, 4)).astype(float),
    ],
    ids=["normal", "heavy tails", "uniform", "a lattice"],
)
def test_a_sample_of_a_table_without_small_groups_stays_as_it_is(draw):
    rng = np.random.default_rng(2)
    X = draw(rng)
    sample = sample_of(len(X), rng)
    np.testing.assert_array_equal(with_rare_groups(X, sample, rng, 1), sample)


def test_clusters_of_a_few_rows_in_a_thousand_are_found(table):
    X, which = table
    labels = ZeroShotClusterer(random_state=0).fit_predict(X)
    for group in (3, 4):
        found = np.bincount(labels[which == group] + 1).argmax() - 1
        assert found >= 0
        assert (labels == found).sum() == SIZES[group]
