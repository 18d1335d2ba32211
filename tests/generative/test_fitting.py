"""Fits that are killed and resumed, and the best of several starts."""

from contextlib import nullcontext

import pytest
import torch

from coterie.generative.fitting import RestartPlan, Stage, fit_in_stages
from coterie.generative.mixture import EMSettings
from tests.generative.test_mixture import blobs, make, one_hot


class Killed(Exception):
    pass


class Kill:
    """A watcher that lets ``after`` iterations pass."""

    def __init__(self, after):
        self.left = after

    def __call__(self, number):
        return self

    def __enter__(self):
        return self.count

    def __exit__(self, *error):
        return False

    def count(self, iteration):
        self.left -= 1
        if self.left < 0:
            raise Killed


def run(tmp_path=None, kill_after=1000, n_init=1, x=None):
    rows, truth = blobs(120)
    starts = {0: one_hot(truth), 1: one_hot(torch.arange(120) % 2)}
    settings = EMSettings(3, least_steps=5, learning_rate=1e-2, seed=7, revive_until=3)
    return fit_in_stages(
        rows if x is None else x,
        lambda number: starts[(number + 1) % 2] if n_init > 1 else starts[0],
        lambda generator: make(6, seed=generator.initial_seed()),
        [Stage(settings, RestartPlan(max_iter=6, n_init=n_init, short_iter=2, tol=0.0))],
        checkpoint=tmp_path,
        run=Kill(kill_after),
    )[-1]


@pytest.mark.parametrize(("kills", "n_init"), [((0,), 1), ((1, 1), 1), ((2, 2, 0), 2)])
def test_a_fit_that_was_killed_ends_as_if_it_had_not_been_bit_for_bit(tmp_path, kills, n_init):
    whole = run(n_init=n_init)
    for after in kills:
        with pytest.raises(Killed):
            run(tmp_path / "state", after, n_init)
    resumed = run(tmp_path / "state", n_init=n_init)
    for one, two in zip(whole.state.networks.parameters(), resumed.state.networks.parameters()):
        assert torch.equal(one, two)
    assert torch.equal(whole.expectation.responsibilities_NK, resumed.expectation.responsibilities_NK)
    assert whole.bounds == resumed.bounds
    assert list((tmp_path / "state").iterdir()) == []


def test_a_checkpoint_of_other_rows_is_refused(tmp_path):
    with pytest.raises(Killed):
        run(tmp_path, 2)
    with pytest.raises(ValueError, match="other rows or parameters"):
        run(tmp_path, x=blobs(120, seed=5)[0])


def test_the_best_of_several_starts_is_the_one_with_the_best_bound():
    found = run(n_init=2)
    assert found.bounds[1] > found.bounds[0]  # the second begins with the truth
    assert torch.equal(found.start_labels, blobs(120)[1])
    assert found.n_iter == 6


def test_a_callback_that_ends_a_stage_ends_the_fit():
    rows, truth = blobs(120)
    stage = Stage(EMSettings(3, least_steps=5, seed=7), RestartPlan(max_iter=4, tol=0.0))
    seen = []

    def watch(until):
        return lambda number: nullcontext(lambda iteration: seen.append(number) or len(seen) == until)

    arguments = (rows, lambda number: one_hot(truth), lambda generator: make(6, seed=0), [stage, stage])
    assert len(fit_in_stages(*arguments, run=watch(2))) == 1
    assert seen == [0, 0]
    seen.clear()
    first, second = fit_in_stages(*arguments, run=watch(0))
    assert seen == [0, 0, 0, 0, 1, 1, 1, 1]
    assert torch.equal(second.start_labels, first.expectation.responsibilities_NK.argmax(1))
