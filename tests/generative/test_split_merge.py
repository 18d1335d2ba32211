"""Moves: a network goes from a cluster that has two to a pair of clusters that share one, if the bound says so."""

import pytest
import torch
from sklearn.metrics import adjusted_rand_score

from coterie.generative import split_merge
from coterie.generative.fitting import RestartPlan, Stage, fit_in_stages
from coterie.generative.mixture import EMSettings
from coterie.generative.split_merge import MovingMixture
from coterie.generative.vaes import VAEConfig, VAEs
from tests.generative.test_fitting import Kill, Killed
from tests.generative.test_mixture import one_hot


def blobs(n=240):
    """Three tight blobs, far apart, and the truth."""
    truth = torch.arange(n) % 3
    centers = torch.tensor([[0.0, 4.0], [-4.0, -2.0], [4.0, -2.0]])
    return centers[truth] + 0.5 * torch.randn(n, 2, generator=torch.Generator().manual_seed(0)), truth


def tangled(x_ND, truth):
    """Two blobs share cluster 0, and the third is divided between 1 and 2."""
    return torch.where(truth < 2, 0, 1 + (x_ND[:, 1] > -2).long())


STEPS = {"least_steps": 20, "first_epochs": 10.0, "batch_size": 32, "learning_rate": 1e-2, "n_samples": 1}


def settings(**changes):
    return EMSettings(3, **{**STEPS, **changes})


def vaes(generator, folds=2):
    return VAEs(3 * folds, VAEConfig(2, 16, 1, "gaussian", precision=4.0), generator)


def fitted(labels, networks=vaes, checkpoint=None, kill_after=1000, max_iter=4, **changes):
    return fit_in_stages(
        blobs()[0],
        lambda number: one_hot(labels),
        networks,
        [Stage(settings(**changes), RestartPlan(max_iter, tol=0.0))],
        checkpoint=checkpoint,
        run=Kill(kill_after),
    )[-1]


def ready(labels, **changes):
    """A mixture after its first M-step."""
    mixture = MovingMixture(blobs()[0], one_hot(labels), settings(**changes))
    state = mixture.begin(vaes(torch.Generator().manual_seed(0), mixture.settings.folds))
    return mixture, mixture.m_step(state, mixture.e_step(state))


@pytest.mark.parametrize("folds", [1, 2])
def test_a_move_puts_two_shared_clusters_and_a_divided_one_right(folds):
    x_ND, truth = blobs()
    labels = tangled(x_ND, truth)
    networks = lambda generator: vaes(generator, folds)  # noqa: E731
    stuck = fitted(labels, networks, folds=folds)
    moved = fitted(labels, networks, folds=folds, move_until=3)
    assert adjusted_rand_score(truth, stuck.expectation.labels) < 0.7
    assert adjusted_rand_score(truth, moved.expectation.labels) > 0.97
    assert moved.expectation.objective > stuck.expectation.objective


def test_a_move_that_lowers_the_bound_is_refused_and_leaves_everything_but_the_list_of_refusals():
    _, truth = blobs()
    mixture, state = ready(truth)
    before = {name: weight.clone() for name, weight in state.networks.state_dict().items()}
    shares = state.log_shares_K.clone()
    state.iteration = 2
    mixture.settings = settings(move_until=2)
    found = mixture.e_step(state)
    assert found.move is None
    assert not found.settled
    assert len(state.refused) == 2
    assert all(torch.equal(weight, before[name]) for name, weight in state.networks.state_dict().items())
    assert torch.equal(state.log_shares_K, shares)
    mixture.e_step(state)
    assert sorted(split for _, split in state.refused) == [0, 1, 2]  # none is tried twice
    assert mixture.e_step(state).settled


def test_an_accepted_move_replaces_the_networks_concerned_and_forgets_the_refusals():
    x_ND, truth = blobs()
    mixture, state = ready(tangled(x_ND, truth))
    mixture.settings, state.iteration, state.refused = settings(move_until=2), 2, ((0, 1),)
    found = mixture.e_step(state)
    assert found.move is not None
    merged, split = found.move
    assert split == 0
    assert merged in (1, 2)
    assert state.refused == ()
    assert not found.settled
    assert state.log_shares_K.exp().sum().item() == pytest.approx(1, abs=1e-5)
    moment = state.optimizer.state[state.networks.enter_weight]["exp_avg"]
    assert not moment[[merged, split, 3 + merged, 3 + split]].any()


def test_the_cluster_to_merge_is_the_one_that_another_replaces():
    log_joint = torch.tensor([[0.0, -30.0, -30.5], [-40.0, 0.0, -0.5], [-40.0, -0.5, 0.0]])
    losses = split_merge._losses(log_joint)
    assert losses.argmax() == 0
    assert losses[1] < 1
    assert losses[2] < 1


def test_a_fit_with_moves_that_was_killed_ends_as_if_it_had_not_been_bit_for_bit(tmp_path):
    labels = tangled(*blobs())
    whole = fitted(labels, move_until=3, max_iter=5)
    for after in (0, 1, 0):  # after the first, third and fourth iteration; the move is in the third
        with pytest.raises(Killed):
            fitted(labels, checkpoint=tmp_path, kill_after=after, move_until=3, max_iter=5)
    resumed = fitted(labels, checkpoint=tmp_path, move_until=3, max_iter=5)
    for one, two in zip(whole.state.networks.parameters(), resumed.state.networks.parameters()):
        assert torch.equal(one, two)
    assert torch.equal(whole.expectation.responsibilities_NK, resumed.expectation.responsibilities_NK)
    assert whole.state.refused == resumed.state.refused
