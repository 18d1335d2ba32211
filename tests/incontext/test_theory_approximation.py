"""Sums of sigmoid units against the maps they stand for, and the softmax against the hardmax."""

import math

import pytest
import torch

from coterie.incontext.theory import approximation as approx


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
