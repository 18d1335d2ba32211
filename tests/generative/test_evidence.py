"""Votes of the start or of the neighbours beside the bounds: neither overrules the other where it knows less."""

import numpy as np
import pytest
import torch
from scipy import sparse

from coterie.generative.evidence import Neighbours, with_neighbours, with_votes

EYE = torch.eye(3)


@pytest.fixture
def truth():
    return torch.arange(600) % 3


def noise(scale, seed=0):
    return scale * torch.randn(600, 3, generator=torch.Generator().manual_seed(seed))


def spoilt(truth):
    """One label in ten is wrong."""
    return torch.where(torch.arange(600) % 10 == 7, (truth + 1) % 3, truth)


def test_bounds_that_know_nothing_but_are_sure_leave_the_start_as_it_is(truth):
    assert torch.equal(with_votes(noise(30), EYE[truth]).argmax(1), truth)


def test_good_bounds_correct_a_spoilt_start(truth):
    found = with_votes(12 * EYE[truth] + noise(1), EYE[spoilt(truth)]).argmax(1)
    assert (found == truth).double().mean() > 0.99


def test_both_together_are_better_than_either(truth):
    bounds, start = 3 * EYE[truth] + noise(1.5), spoilt(truth)
    alone = (bounds.argmax(1) == truth).double().mean()
    together = (with_votes(bounds, EYE[start]).argmax(1) == truth).double().mean()
    assert 0.7 < alone < 0.9
    assert together > 0.92


def test_a_start_that_says_nothing_leaves_the_most_likely_cluster_alone():
    bounds = noise(2)
    found = with_votes(bounds, torch.full((600, 3), 1 / 3))
    assert torch.equal(found.argmax(1), bounds.argmax(1))
    torch.testing.assert_close(found.sum(1), torch.ones(600))


def chain(n_rows):
    """Every row is connected to the next two rows of its own class and the two before; a last row equals the first."""
    ends = [(i, i + step) for step in (3, 6) for i in range(n_rows - step)]
    one, other = np.array(ends).T
    graph = sparse.csr_matrix((np.ones(len(ends)), (one, other)), (n_rows, n_rows))
    return Neighbours((graph + graph.T).tocsr(), np.append(np.arange(n_rows), 0))


def test_votes_are_the_mean_responsibilities_of_neighbours_and_equal_rows_share_them():
    neighbours = chain(12)
    votes = neighbours.votes(torch.arange(13.0)[:, None].expand(-1, 2))
    torch.testing.assert_close(votes[5], torch.full((2,), (2 + 8 + 11) / 3))
    assert torch.equal(votes[12], votes[0])
    assert votes[3, 0] == pytest.approx(((0 + 12) / 2 + 6 + 9) / 3)  # the node of the equal rows is their mean


def test_neighbours_correct_bounds_that_are_right_more_often_than_not(truth):
    bounds = 3 * EYE[truth] + noise(2)
    bounds = torch.cat([bounds, bounds[:1]])
    alone = (bounds[:-1].argmax(1) == truth).double().mean()
    together = (with_neighbours(bounds, chain(600))[:-1].argmax(1) == truth).double().mean()
    assert alone < 0.8
    assert together > alone + 0.05


def test_neighbours_of_any_class_leave_good_bounds_alone(truth):
    rng = np.random.default_rng(0)
    graph = sparse.csr_matrix((np.ones(3000), rng.integers(600, size=(2, 3000))), (600, 600))
    bounds = 12 * EYE[truth] + noise(1)
    found = with_neighbours(bounds, Neighbours((graph + graph.T).tocsr(), np.arange(600)))
    assert (found.argmax(1) == truth).double().mean() > 0.99
