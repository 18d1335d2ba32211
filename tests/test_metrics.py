import numpy as np
import pytest
import torch
from scipy.optimize import linear_sum_assignment, linprog

from coterie.metrics import own_center_error, squared_w2


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
