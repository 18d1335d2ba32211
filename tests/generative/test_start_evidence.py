"""The start beside the bounds: neither overrules the other where it knows less."""

import pytest
import torch

from coterie.generative.start_evidence import with_start

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
    assert torch.equal(with_start(noise(30), EYE[truth]).argmax(1), truth)


def test_good_bounds_correct_a_spoilt_start(truth):
    found = with_start(12 * EYE[truth] + noise(1), EYE[spoilt(truth)]).argmax(1)
    assert (found == truth).double().mean() > 0.99


def test_both_together_are_better_than_either(truth):
    bounds, start = 3 * EYE[truth] + noise(1.5), spoilt(truth)
    alone = (bounds.argmax(1) == truth).double().mean()
    together = (with_start(bounds, EYE[start]).argmax(1) == truth).double().mean()
    assert 0.7 < alone < 0.9
    assert together > 0.92


def test_a_start_that_says_nothing_leaves_the_most_likely_cluster_alone():
    bounds = noise(2)
    found = with_start(bounds, torch.full((600, 3), 1 / 3))
    assert torch.equal(found.argmax(1), bounds.argmax(1))
    torch.testing.assert_close(found.sum(1), torch.ones(600))
