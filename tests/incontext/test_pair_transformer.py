import itertools
from dataclasses import replace

import pytest
import torch

from coterie.incontext.inference import read
from coterie.incontext.pair_transformer import PairConfig, PairTransformer
from coterie.incontext.starting import both_kinds, distinct_modes, em
from tests.separated import mixtures


@pytest.fixture(scope="module")
def data():
    points, labels, _ = mixtures([20, 60, 40], 3, 2.5, batch=4)
    return torch.from_numpy(points), labels


def network(*, trained: bool, n_layers=3):
    torch.manual_seed(1)
    net = PairTransformer(PairConfig(width=8, n_layers=n_layers, n_heads=2)).double().eval()
    if trained:
        with torch.no_grad():
            for weight in net.parameters():
                weight += 0.05 * torch.randn(weight.shape, dtype=weight.dtype)
    return net


def start_of(points):
    found = both_kinds(points, points[:, :3], 15)
    return found.pick(torch.arange(len(points), 2 * len(points)))  # those with estimated shares


def posterior(points, mixtures):
    sq = torch.cdist(points, mixtures.centers_BKD).square()
    return (mixtures.shares_BK.log()[:, None] - sq / (2 * mixtures.var_B[:, None, None])).log_softmax(-1)


def test_untrained_layers_are_steps_of_em_with_mixing_weights(data):
    points, _ = data
    centers = points[:, :3]
    with torch.no_grad():
        ours = network(trained=False)(points, em(points, centers, 2, prior=0.0))
    for steps, log_p in enumerate(ours):
        torch.testing.assert_close(log_p, posterior(points, em(points, centers, 2 + steps, prior=0.0)))


@torch.no_grad()
def test_place_scale_rotation_and_order_change_nothing(data):
    points, _ = data
    net, start = network(trained=True), start_of(points)
    turn = torch.linalg.qr(torch.randn(3, 3, dtype=points.dtype, generator=torch.Generator().manual_seed(3)))[0]
    order = torch.randperm(points.shape[1], generator=torch.Generator().manual_seed(4))
    centers = 7 * start.centers_BKD @ turn + 5
    other = replace(start, centers_BKD=centers, var_B=49 * start.var_B)
    torch.testing.assert_close(net((7 * points @ turn + 5)[:, order], other)[-1], net(points, start)[-1][:, order])


@torch.no_grad()
def test_renamed_clusters_are_renamed_in_the_answer(data):
    points, _ = data
    net, start = network(trained=True), start_of(points)
    names = torch.tensor([2, 0, 1])
    other = replace(start, centers_BKD=start.centers_BKD[:, names], shares_BK=start.shares_BK[:, names])
    torch.testing.assert_close(net(points, other)[-1], net(points, start)[-1][..., names])


@torch.no_grad()
def test_a_row_of_the_context_is_labelled_as_it_was_read(data):
    points, _ = data
    net = network(trained=True)
    context, log_p = net.read(points, start_of(points))
    torch.testing.assert_close(net.label(points[:, :5], context), log_p[:, :5])


@pytest.mark.parametrize("mixing_weights", [True, False])
def test_em_raises_the_likelihood(data, mixing_weights):
    points, _ = data
    values = [
        em(points, points[:, :3], n, mixing_weights=mixing_weights, prior=0.0).log_likelihood_B for n in range(1, 12)
    ]
    assert all((after >= before - 1e-9).all() for before, after in itertools.pairwise(values))
    fitted = em(points, points[:, :3], 11, mixing_weights=mixing_weights, prior=0.0)
    torch.testing.assert_close(fitted.last_rise_B, (values[-1] - values[-2]) / points.shape[1])


def test_em_finds_shares_and_variance():
    points, _, centers = mixtures([300, 100], 2, 8.0, 2**0.5, seed=5)
    fitted = em(torch.from_numpy(points), torch.from_numpy(centers), 20)
    assert sorted(fitted.shares_BK[0].tolist()) == pytest.approx([0.25, 0.75], abs=0.02)
    assert fitted.var_B.item() == pytest.approx(2.0, rel=0.15)


def test_modes_are_distinct_and_near_the_best():
    values = torch.tensor([-5.0, -1.0, -1.001, -20.0, -2.0, -3.0])
    assert distinct_modes(values, 4).tolist() == [1, 4, 5, 0]
    assert distinct_modes(values, 2).tolist() == [1, 4]


def test_a_reading_labels_and_weighs_several_modes(data):
    points, labels = data
    starts = torch.stack([points[0, rows] for rows in ([0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11])])
    reading, log_p = read(network(trained=True), points[0], starts, n_modes=3)
    assert 1 <= len(reading.weights_S) <= 3
    assert reading.weights_S.sum() == pytest.approx(1)
    assert (reading.weights_S[:-1] >= reading.weights_S[1:]).all()
    p = reading.probabilities(log_p)
    assert p.sum(1) == pytest.approx(1)
    assert reading.labels(log_p).shape == (len(labels[0]),)
