"""Sums of sigmoid units against the maps they stand for, and the softmax against the hardmax."""

import math

import pytest
import torch

from coterie_research.incontext_em.theory import approximation as approx


def generator(seed=9):
    return torch.Generator().manual_seed(seed)


def reciprocal_error(total, smallest):
    x = torch.logspace(math.log10(smallest), 0.0, 4001, dtype=torch.float64)
    return float((x * total(x.unsqueeze(1)) - 1.0).abs().max())


@pytest.mark.parametrize("smallest", [0.005, 0.05])
def test_one_over_x_is_fitted_better_with_more_units(smallest):
    errors = [reciprocal_error(approx.fitted_reciprocal(m, smallest), smallest) for m in (16, 32, 64, 128)]
    assert errors == sorted(errors, reverse=True)
    assert errors[0] < 0.05
    assert errors[-1] < 1e-4


def test_drawn_units_for_one_over_x_follow_the_proofs_rate_and_quantiles_beat_them():
    def error(m, draw):
        return reciprocal_error(approx.reciprocal_steps(m, 0.2, 2.0 * m, draw), 0.2)

    drawn = [sum(error(m, generator(seed)) for seed in range(8)) / 8 for m in (64, 1024)]
    assert 0.3 < math.log(drawn[0] / drawn[1]) / math.log(16) < 0.7
    assert error(256, None) < 0.2 * error(256, generator())


def test_the_square_is_fitted_to_seven_digits_with_32_units():
    t = torch.linspace(-1, 1, 5001, dtype=torch.float64)
    assert float((approx.fitted_square(32)(t.unsqueeze(1)) - t.square()).abs().max()) < 1e-6


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_norm_is_fitted_better_with_more_units(d):
    v = approx.ball_points(9000, d, generator())
    errors = [approx.largest_error(approx.fitted_norm(m, d), approx.norm_of, v) for m in (16, 64, 256)]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.03


def test_the_drawn_norm_is_unbiased():
    v = approx.ball_points(150, 3, generator())
    total = approx.drawn_norm(100_000, 3, 1e4, generator())
    assert approx.largest_error(total, approx.norm_of, v) < 0.03


def test_lemma_a3_fits_the_reciprocal_of_the_norm_on_a_shell():
    v = approx.ball_points(9000, 2, generator(), smallest=0.25)
    assert float(v.norm(dim=1).min()) >= 0.25 - 1e-12
    total = approx.fitted_radial(lambda r: 1.0 / r, 128, 2, smallest=0.25)
    assert approx.largest_error(total, lambda v: 1.0 / v.norm(dim=1), v) < 0.1


def test_a_scaled_sum_holds_on_the_larger_ball():
    v = approx.ball_points(500, 2, generator())
    total = approx.fitted_norm(64, 2)
    torch.testing.assert_close(total.scaled(5.0, 5.0)(5.0 * v), 5.0 * total(v))


def test_hardmax_shares_ties():
    assert approx.hardmax(torch.tensor([1.0, 3.0, 3.0])).tolist() == [0.0, 0.5, 0.5]


@pytest.mark.parametrize("beta", [0.1, 1.0, 10.0, 100.0])
def test_lemma_b1_bounds_the_distance_of_softmax_and_hardmax(beta):
    v = torch.randint(6, (2000, 5), generator=generator()).to(torch.float64) / 5
    v = v[(v != v.amax(1, keepdim=True)).any(1)]
    error = (torch.softmax(beta * v, dim=1) - approx.hardmax(v)).norm(dim=1)
    assert (error <= approx.hardmax_bound(v, beta) * (1 + 1e-9) + 1e-15).all()


def softmax_sum_error(n_outputs, n_units, radius):
    """Largest error of the best Σ a_i softmax(A_i [x; 1]), random A_i, for the first two coordinates of (x, x, 0)."""
    x = torch.linspace(-radius, radius, 401, dtype=torch.float64)
    ones = torch.stack([x, torch.ones_like(x)])
    a_MO2 = 3 * torch.randn(n_units, n_outputs, 2, dtype=torch.float64, generator=generator(n_units))
    units_MOX = (a_MO2 @ ones).softmax(1)
    target_2X = torch.stack([x, x])
    features = units_MOX[:, :2].flatten(1).T
    found = torch.linalg.lstsq(features, target_2X.flatten()[:, None], rcond=1e-12, driver="gelsd").solution[:, 0]
    total_OX = torch.einsum("m,mox->ox", found, units_MOX)
    torch.testing.assert_close(total_OX.sum(0), found.sum().expand(len(x)), rtol=1e-8, atol=1e-6)
    return float((total_OX[:2] - target_2X).abs().max())


@pytest.mark.parametrize("radius", [0.5, 2.0])
def test_lemma_3_1_fails_as_printed_because_the_coordinates_of_a_sum_of_softmaxes_have_a_constant_sum(radius):
    # of f(x) = (x, x) the sum is 2x, from -2R to 2R: some coordinate is off by R, whatever the number of units
    assert all(softmax_sum_error(2, m, radius) >= radius * (1 - 1e-9) for m in (4, 64, 512))
    # one more coordinate, which is not read, takes up the difference
    assert softmax_sum_error(3, 64, radius) < 0.01 * radius


@pytest.mark.parametrize("axis", [0, 1])
def test_softmaxes_of_the_right_product_approximate_not_every_map(axis):
    """Within rows, output i sees x_i alone: (x₂, x₁) is out of reach. Within columns, x + c has the output of x."""

    def total(x):
        draw = generator()
        parts = [torch.randn(2, 5, generator=draw, dtype=torch.float64) for _ in range(30)]
        x1 = torch.stack([x, torch.ones_like(x)], 1)
        return sum(torch.softmax(x1 @ part, axis) for part in parts)

    x = torch.tensor([0.3, -1.1, 0.8], dtype=torch.float64)
    other = x + 0.7 if axis == 0 else torch.cat([x[:1], -x[1:]])
    kept = slice(None) if axis == 0 else slice(1)
    torch.testing.assert_close(total(x)[kept], total(other)[kept])
    assert not torch.allclose(total(x)[1:], total(x * 1.5)[1:])
