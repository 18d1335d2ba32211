import itertools

import numpy as np
import pytest
import torch
from scipy.optimize import linear_sum_assignment, linprog

from coterie_research.metrics import (
    clustering_scores,
    normalised_accuracy,
    own_center_error,
    permutation_free_cross_entropy,
    squared_w2,
)


def test_distance_of_equal_weights_is_the_best_assignment():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 12, 3))
    cost = ((x[:, None] - y[None]) ** 2).sum(-1)
    rows, columns = linear_sum_assignment(cost)
    got = squared_w2(torch.tensor(x)[None], torch.tensor(y)[None], torch.full((1, 12), 1 / 12))
    assert got.item() == pytest.approx(cost[rows, columns].mean())


def test_distance_agrees_with_a_linear_programme():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(7, 2)), rng.normal(size=(4, 2))
    a, b = rng.dirichlet(np.ones(7)), rng.dirichlet(np.ones(4))
    cost = ((x[:, None] - y[None]) ** 2).sum(-1)
    rows = np.kron(np.eye(7), np.ones(4))
    columns = np.kron(np.ones(7), np.eye(4))
    plan = linprog(cost.ravel(), A_eq=np.vstack([rows, columns]), b_eq=np.concatenate([a, b]))
    got = squared_w2(*(torch.tensor(v)[None] for v in (x, y, b, a)))
    assert got.item() == pytest.approx(plan.fun)


def test_gradient_is_the_finite_difference():
    torch.manual_seed(0)
    x = torch.randn(2, 9, 2, dtype=torch.float64, requires_grad=True)
    y = torch.randn(2, 3, 2, dtype=torch.float64, requires_grad=True)
    weights = torch.tensor([[0.5, 0.3, 0.2], [0.6, 0.4, 0.0]], dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda x, y: squared_w2(x, y, weights), (x, y))


def test_atoms_of_weight_zero_are_ignored():
    x = torch.zeros(1, 4, 2)
    y = torch.tensor([[[1.0, 0.0], [99.0, 0.0]]])
    assert squared_w2(x, y, torch.tensor([[1.0, 0.0]])).item() == pytest.approx(1)


def test_distance_to_own_centres_bounds_the_distance_of_measures():
    torch.manual_seed(1)
    centers = torch.randn(1, 3, 2)
    labels = torch.randint(3, (1, 50))
    own = centers[0][labels]
    x = own + 0.5 * torch.randn_like(own)
    weights = torch.nn.functional.one_hot(labels, 3).double().mean(1)
    assert squared_w2(x, centers, weights).item() <= own_center_error(x, own).item()


@pytest.mark.parametrize("n_clusters", [1, 2, 3, 4, 5, 6])
def test_the_permutation_free_loss_is_the_least_over_all_permutations(n_clusters):
    generator = torch.Generator().manual_seed(n_clusters)
    log_p = torch.randn(4, 25, n_clusters, dtype=torch.float64, generator=generator).log_softmax(-1)
    labels = torch.randint(n_clusters, (4, 25), generator=generator)
    loss, renaming = permutation_free_cross_entropy(log_p, labels)
    for b in range(4):
        every = [
            -log_p[b, torch.arange(25), torch.tensor(names)[labels[b]]].mean()
            for names in itertools.permutations(range(n_clusters))
        ]
        torch.testing.assert_close(loss[b], torch.stack(every).min())
        torch.testing.assert_close(loss[b], -log_p[b, torch.arange(25), renaming[b][labels[b]]].mean())


def test_the_permutation_free_loss_forgets_the_names_of_labels_and_has_a_gradient():
    log_p = torch.randn(2, 30, 5).log_softmax(-1).requires_grad_()
    labels = torch.randint(5, (2, 30))
    renamed = torch.randperm(5)[labels]
    loss, _ = permutation_free_cross_entropy(log_p, labels)
    torch.testing.assert_close(loss, permutation_free_cross_entropy(log_p, renamed)[0])
    loss.sum().backward()
    assert (log_p.grad.sum(-1) * 30).allclose(-torch.ones(2, 30))


def test_clustering_scores_forget_names_and_count_errors():
    labels = np.array([[0, 0, 0, 1, 1, 1]])
    same = clustering_scores(np.array([[1, 1, 1, 0, 0, 0]]), labels)
    assert same["ari"][0] == same["nmi"][0] == 1
    assert same["error"][0] == 0
    assert clustering_scores(np.array([[1, 1, 0, 0, 0, 0]]), labels)["error"][0] == pytest.approx(1 / 6)
    assert clustering_scores(np.zeros((1, 6), dtype=int), labels)["error"][0] == pytest.approx(1 / 2)


def test_normalised_accuracy_by_hand():
    labels = np.array([0, 0, 0, 0, 1, 1])
    assert normalised_accuracy(labels, labels + 5) == 1
    assert normalised_accuracy(labels, np.zeros(6, dtype=int)) == pytest.approx(0)
    # three of four and both of two are in the cluster of their class: mean 7/8, of which 1/2 is chance
    assert normalised_accuracy(labels, np.array([0, 0, 0, 1, 1, 1])) == pytest.approx(0.75)
