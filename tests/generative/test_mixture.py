"""The two steps: who judges whom, what is sent where, what is watched."""

import math

import pytest
import torch
from sklearn.metrics import adjusted_rand_score

from coterie import em
from coterie.generative.mixture import EMSettings, Mixture, screened_bounds
from coterie.generative.vaes import VAEConfig, VAEs


def blobs(n=300, seed=0):
    """Three blobs in the plane, and the truth."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(n) % 3
    centers = torch.tensor([[0.0, 4.0], [-4.0, -2.0], [4.0, -2.0]])
    return centers[labels] + torch.randn(n, 2, generator=generator), labels


def one_hot(labels, n_clusters=3):
    return torch.nn.functional.one_hot(labels, n_clusters).float()


def make(n_networks=6, seed=0):
    return VAEs(n_networks, VAEConfig(2, 16, 1, "gaussian"), torch.Generator().manual_seed(seed))


class Table:
    """Densities by table: network g gives row x the bound ``table[g, int(x)]``, and records who was asked."""

    noise_size = 0

    def __init__(self, table):
        self.table, self.asked = table, []

    def bound(self, x, noise, networks=slice(None), *, dropout=None):
        rows = x[:, 0].long()
        self.asked.append((networks.start, len(noise), rows.tolist()))
        return self.table[networks][:, rows].clone()


def state_of(networks, n_clusters):
    class Holder:
        log_shares_K = torch.full((n_clusters,), -math.log(n_clusters))
        iteration = 1

    Holder.networks = networks
    return Holder()


def test_rows_are_judged_by_the_networks_of_the_other_half():
    n, k = 8, 2
    x_ND = torch.arange(n).float()[:, None]
    mixture = Mixture(x_ND, torch.full((n, k), 0.5), EMSettings(k, n_samples=1))
    table = torch.arange(2 * k).float()[:, None].expand(-1, n)  # network g says g about everything
    found = mixture.log_joint(state_of(Table(table), k)) + math.log(k)
    for row in range(n):
        other = 1 - int(mixture.fold_N[row])
        assert found[row].tolist() == pytest.approx([other * k, other * k + 1])


def test_screening_spends_samples_only_where_clusters_compete():
    table = Table(torch.tensor([[0.0, 0.0, -50.0], [-50.0, -3.0, -60.0], [-40.0, -90.0, -55.0]]))
    x_BD, noise = torch.arange(3).float()[:, None], torch.zeros(10, 1, 3, 0)
    shares = torch.zeros(3)
    bounds = screened_bounds(table, x_BD, noise, shares, range(3), gap=20.0)
    torch.testing.assert_close(bounds, table.table)
    further = [(network, rows) for network, samples, rows in table.asked if samples == 9]
    assert further == [(0, [1, 2]), (1, [1, 2]), (2, [2])]


def test_screening_changes_no_responsibility_by_more_than_the_gap_allows():
    networks = make(3).requires_grad_(False)
    x_BD, _ = blobs(200)
    noise = torch.randn(10, 1, 200, 1, generator=torch.Generator().manual_seed(0))
    shares = torch.full((3,), -math.log(3))
    whole = networks.bound(x_BD, noise)
    screened = screened_bounds(networks, x_BD, noise, shares, range(3), gap=20.0)
    torch.testing.assert_close(screened.softmax(0), whole.softmax(0), atol=1e-3, rtol=0)


def test_a_row_is_sent_only_to_clusters_above_the_threshold():
    n = 40
    x_ND = torch.arange(n).float()[:, None]
    responsibilities = torch.zeros(n, 2)
    responsibilities[:10, 0], responsibilities[10:, 1] = 1, 1
    responsibilities[10, 0] = 1e-4  # below the threshold
    mixture = Mixture(x_ND, responsibilities, EMSettings(2, folds=1, batch_size=4))
    batches = list(mixture._own_batches(responsibilities, 1, torch.Generator().manual_seed(0)))
    rows_GT = torch.cat([rows for rows, _ in batches], 1)
    assert set(rows_GT[0].tolist()) == set(range(10))
    assert set(rows_GT[1].tolist()) <= set(range(10, n))
    assert all((weights == 1).all() for _, weights in batches)


@pytest.mark.parametrize("folds", [1, 2])
def test_shared_batches_show_every_row_to_all_networks_of_its_fold_with_its_responsibilities(folds):
    n, k = 12, 3
    x_ND = torch.arange(n).float()[:, None]
    responsibilities = torch.rand(n, k, generator=torch.Generator().manual_seed(0))
    settings = EMSettings(k, folds=folds, shared_batches=True, batch_size=4, n_epochs=1)
    mixture = Mixture(x_ND, responsibilities, settings)
    seen = torch.zeros(folds * k, n)
    for rows, weights_GB in mixture._shared_batches(responsibilities, 1, torch.Generator().manual_seed(0)):
        rows_GB = rows.expand(folds * k, -1)
        for network in range(folds * k):
            assert (mixture.fold_N[rows_GB[network]] == network // k).all()
            torch.testing.assert_close(weights_GB[network], responsibilities[rows_GB[network], network % k])
            seen[network, rows_GB[network]] += 1
    for network in range(folds * k):
        assert torch.equal(seen[network] > 0, mixture.fold_N == network // k)


def test_from_random_responsibilities_em_moves_towards_the_blobs():
    x_ND, truth = blobs()
    start = torch.rand(300, 3, generator=torch.Generator().manual_seed(0))
    mixture = Mixture(x_ND, start / start.sum(1, keepdim=True), EMSettings.from_random(3, least_steps=20))
    config = VAEConfig(2, 16, 1, "gaussian", precision=2.0, dropout=0.2)
    networks = VAEs(3, config, torch.Generator().manual_seed(0))
    bounds = []
    run = em.run(
        mixture.begin(networks),
        mixture.e_step,
        mixture.m_step,
        max_iter=40,
        on_iteration=lambda iteration: bounds.append(iteration.expectation.objective),
    )
    assert bounds[-1] > bounds[1] + 1
    assert adjusted_rand_score(truth, run.expectation.labels) > 0.4  # one network may share two blobs


def test_the_learning_rate_falls_in_steps():
    mixture = Mixture(*blobs(9)[:1], one_hot(blobs(9)[1]), EMSettings.from_random(3))
    rates = [mixture._learning_rate(iteration) for iteration in (0, 19, 20, 40)]
    assert rates == pytest.approx([1e-3, 1e-3, 9e-4, 8.1e-4])
    assert Mixture(blobs(9)[0], one_hot(blobs(9)[1]), EMSettings(3))._learning_rate(100) == 4e-3


def test_em_from_a_spoilt_start_finds_the_blobs_and_raises_the_bound():
    x_ND, truth = blobs()
    spoilt = truth.clone()
    spoilt[::5] = (spoilt[::5] + 1) % 3
    settings = EMSettings(3, least_steps=60, batch_size=32, learning_rate=1e-2)
    bounds = []
    mixture = Mixture(x_ND, one_hot(spoilt), settings)
    run = em.run(
        mixture.begin(make()),
        mixture.e_step,
        mixture.m_step,
        max_iter=4,
        on_iteration=lambda iteration: bounds.append(iteration.expectation.objective),
    )
    assert math.isnan(bounds[0])
    assert bounds[-1] > bounds[1]
    assert (torch.as_tensor(run.expectation.labels) == truth).float().mean() > 0.97
    assert 0 <= run.expectation.entropy < 0.4  # log 3 = 1.1 would be undecided


def test_a_dead_cluster_begins_again_with_the_worst_explained_rows():
    x_ND, truth = blobs(90)
    mixture = Mixture(x_ND, one_hot(truth), EMSettings(3))
    responsibilities = one_hot(torch.zeros(90, dtype=torch.long))
    responsibilities[:45] = one_hot(torch.ones(45, dtype=torch.long))
    evidence = torch.arange(90).float()
    assert mixture._revive(responsibilities, evidence) == (2,)
    assert responsibilities[:15].argmax(1).tolist() == [2] * 15
    assert responsibilities.sum(1).tolist() == [1.0] * 90


def test_a_restarted_network_has_new_weights_and_no_momentum_and_the_others_keep_theirs():
    x_ND, truth = blobs(60)
    mixture = Mixture(x_ND, one_hot(truth), EMSettings(3, least_steps=2))
    state = mixture.begin(make())
    state = mixture.m_step(state, mixture.e_step(state))
    before = state.networks.enter_weight.detach().clone()
    mixture._restart(state, 1)
    after, moment = state.networks.enter_weight, state.optimizer.state[state.networks.enter_weight]["exp_avg"]
    changed = [not torch.equal(before[g], after[g]) for g in range(6)]
    assert changed == [False, True, False, False, True, False]
    assert [bool(moment[g].any()) for g in range(6)] == [True, False, True, True, False, True]


def test_the_temperature_falls_to_one():
    mixture = Mixture(*blobs(9)[:1], one_hot(blobs(9)[1]), EMSettings(3, temperature=16.0, anneal_iter=4))
    assert [mixture._temperature(i) for i in (1, 3, 5, 9)] == pytest.approx([16, 4, 1, 1])
    assert Mixture(blobs(9)[0], one_hot(blobs(9)[1]), EMSettings(3))._temperature(1) == 1
