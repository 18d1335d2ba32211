"""The constructed networks are Lloyd's algorithm: every step alone, then all together."""

import math

import pytest
import torch

from coterie_research.incontext_em.theory import approximation, expectation, maximisation, pieces
from coterie_research.incontext_em.theory.checks import instances, mixture
from coterie_research.incontext_em.theory.comparison import compare, distances, lloyd, means, one_hot, size_of
from coterie_research.incontext_em.theory.construction import (
    ConstructionSettings,
    Size,
    costs,
    exact_transformer_plus,
    transformer,
    transformer_plus,
)
from coterie_research.incontext_em.theory.context import Rows, context
from coterie_research.incontext_em.theory.modules import (
    SoftmaxAttention,
    Transformer,
    UnnormalisedAttention,
    parameter_norm,
)

BUILDERS = [transformer, transformer_plus, exact_transformer_plus]
SQUARE = ConstructionSettings(units=64, measure="square")


def instance(seed, n=200, d=2, k=3):
    """A mixture away from the origin, with overlapping components, and k of its points to start from."""
    return mixture(n, seed, d, k)


def started(seed, **sizes):
    x, start = instance(seed, **sizes)
    labels = lloyd(x, start, 0)[0].labels
    return x, start, labels, Rows(x.shape[1], len(start)), context(x, start, labels)


def run(blocks, h):
    for block in blocks:
        h = block(h)
    return h


# --- the matrix H ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d,k", [(2, 3), (4, 2)])
def test_the_rows_of_h_are_those_of_equation_4(d, k):
    x, start, labels, rows, h = started(0, n=20, d=d, k=k)
    assert torch.equal(h[:, rows.x], x)
    assert torch.equal(h[:k, rows.center], start)
    assert not h[k:, rows.center].any()
    assert torch.equal(h[:, rows.label], one_hot(labels, k))
    assert torch.equal(h[: max(k, d), rows.marker], torch.eye(max(k, d), dtype=torch.float64))
    assert not h[max(k, d) :, rows.marker].any()
    assert (h[:, rows.one] == 1).all()
    assert not h[:, rows.one.stop :].any()


def test_too_few_points_are_told():
    with pytest.raises(ValueError, match=r"first max\(k, d\) = 3 tokens"):
        context(torch.zeros(2, 3, dtype=torch.float64), torch.zeros(2, 3, dtype=torch.float64), torch.zeros(2).long())


def test_lloyd_by_hand():
    x = torch.tensor([[0.0], [1.0], [10.0]], dtype=torch.float64)
    after = lloyd(x, torch.tensor([[0.0], [1.0]], dtype=torch.float64), 1)[1]
    assert after.centers.flatten().tolist() == [0.0, 5.5]
    assert after.labels.tolist() == [0, 0, 1]


def test_an_empty_cluster_is_told():
    with pytest.raises(ValueError, match="cluster 1 has no points"):
        means(torch.zeros(3, 1, dtype=torch.float64), torch.zeros(3, dtype=torch.long), 2)


# --- pieces ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [4, 50])
def test_a_unit_head_is_exactly_a_sigmoid_whatever_the_number_of_tokens(n):
    *_, rows, h = started(1, n=n)
    total = approximation.SigmoidSum(
        torch.tensor([[1.0, -2.0], [0.3, 0.1]], dtype=torch.float64),
        torch.tensor([0.5, -1.0], dtype=torch.float64),
        torch.tensor([3.0, -7.0], dtype=torch.float64),
    )
    layer = pieces.softmax(pieces.units(rows, total, rows.x, rows.reciprocal, n))
    change = layer.definition(h) - h
    torch.testing.assert_close(change[:, rows.reciprocal.start], total(h[:, rows.x]), atol=1e-13, rtol=0)
    change[:, rows.reciprocal] = 0.0
    assert not change.any()


def test_clearing_leaves_exact_zeros_and_nothing_else():
    *_, rows, h = started(2)
    after = pieces.block(
        rows, pieces.softmax(pieces.mean_of_all(rows, rows.gram, rows.gram)), pieces.cleared(rows, rows.x)
    )(h)
    assert not after[:, rows.x].any()
    after[:, rows.x] = h[:, rows.x]
    assert torch.equal(after, h)


# --- the Expectation step --------------------------------------------------------------------------------------------


def expected(h, rows, centers, x):
    """H after an Expectation step: new centres and k copies of x, all else as it was."""
    wanted = h.clone()
    wanted[:, rows.center] = 0.0
    wanted[: rows.k, rows.center] = centers
    wanted[:, rows.x] = x
    wanted[:, rows.copy] = x.repeat(1, rows.k)
    return wanted


@pytest.mark.parametrize("d,k", [(2, 3), (4, 2)])
def test_the_softmax_expectation_gives_the_means_of_the_centred_points(d, k):
    x, _, labels, rows, h = started(3, d=d, k=k)
    got = run([expectation.centred(rows)] + expectation.by_softmax(rows, len(x), 100.0), h)
    x = x - x.mean(0)
    torch.testing.assert_close(got, expected(h, rows, means(x, labels, k), x), atol=1e-12, rtol=0)


def test_as_printed_every_centre_loses_the_mean_of_all_points():
    x, _, labels, rows, h = started(3)
    h[:, rows.center] = 0.0
    got = run(expectation.as_printed(rows, len(x), 100.0), h)
    torch.testing.assert_close(got, expected(h, rows, means(x, labels, 3) - x.mean(0), x), atol=1e-12, rtol=0)


def test_with_temperature_c_log_n_the_error_is_n_to_the_minus_c():
    x, _, labels, rows, h = started(4, n=400)
    h = expectation.centred(rows)(h)
    true = means(h[:, rows.x], labels, 3)
    for c in (1.0, 2.0, 3.0):
        got = run(expectation.by_softmax(rows, len(x), c), h)[:3, rows.center]
        error = float((got - true).norm(dim=1).max())
        assert 0.1 < error * len(x) ** c < 100


@pytest.mark.parametrize("d,k", [(2, 3), (4, 2)])
def test_the_reciprocal_expectation_is_as_good_as_its_reciprocal(d, k):
    x, _, labels, rows, h = started(5, d=d, k=k)
    h[:, rows.center] = 0.0
    true = means(x, labels, k)
    got = run(expectation.by_reciprocal(rows, len(x), 128), h)
    share = torch.bincount(labels, minlength=k).to(x) / len(x)
    r = approximation.fitted_reciprocal(128, 1 / len(x))
    predicted = true * (share * r(share.unsqueeze(1))).unsqueeze(1)
    torch.testing.assert_close(got, expected(h, rows, predicted, x), atol=1e-9, rtol=0)
    torch.testing.assert_close(got[:k, rows.center], true, atol=0, rtol=2e-4)


# --- the Maximisation step -------------------------------------------------------------------------------------------


def before_maximisation(seed, **sizes):
    x, _, labels, rows, h = started(seed, **sizes)
    centers = means(x, labels, rows.k)
    return x, centers, rows, expected(h, rows, centers, x)


@pytest.mark.parametrize("pick", [None, 100.0])
@pytest.mark.parametrize("measure", ["norm", "square"])
def test_the_maximisation_picks_the_nearest_centre_and_tidies_up(pick, measure):
    x, centers, rows, h = before_maximisation(6)
    size = size_of(x, 3)
    blocks = maximisation.by_units(
        rows,
        len(x),
        costs(size, ConstructionSettings(units=128, measure=measure)),
        size.reach ** (1 + (measure == "square")),
        1e8,
        pick,
    )
    held = run(blocks[:2], h)[:, rows.distance]
    true = distances(x, centers) ** (1 + (measure == "square"))
    error = float((held - true).abs().max())
    assert error < 0.02 * size.reach
    two = true.sort(dim=1).values
    clear = two[:, 1] - two[:, 0] > 2 * error
    got = run(blocks, h)
    assert clear.sum() > 150
    torch.testing.assert_close(got[clear][:, rows.label], one_hot(true.argmin(1), 3)[clear], atol=1e-12, rtol=0)
    wanted = h.clone()
    wanted[:, rows.center], wanted[:, rows.copy], wanted[:, rows.label] = 0.0, 0.0, got[:, rows.label]
    assert torch.equal(got, wanted)


@pytest.mark.parametrize("d,k", [(2, 3), (4, 2), (1, 5)])
def test_the_exact_maximisation_picks_the_nearest_centre(d, k):
    x, centers, rows, h = before_maximisation(7, d=d, k=k)
    h[:, rows.copy] = 0.0
    radius = float(x.norm(dim=1).max())
    got = run(maximisation.exact(rows, len(x), radius, 1e8), h)
    torch.testing.assert_close(got[:, rows.label], one_hot(distances(x, centers).argmin(1), k), atol=1e-12, rtol=0)
    assert not got[:, rows.center].any()
    assert not got[:, rows.one.stop :].any()


# --- whole networks --------------------------------------------------------------------------------------------------


def test_the_exact_network_is_lloyd_on_a_hundred_instances():
    for _, x, start in instances(100):
        got = compare(exact_transformer_plus(size_of(x, 3), 5), x, start, 5)
        assert got.parted is None
        assert float((got.labels[-1] - one_hot(got.trajectory[-1].labels, 3)).abs().max()) < 1e-12


@pytest.mark.parametrize("build", [transformer, transformer_plus])
def test_with_fitted_squares_the_networks_are_lloyd(build):
    for _, x, start in instances(12):
        got = compare(build(size_of(x, 3), 5, SQUARE), x, start, 5, "square")
        assert got.parted is None


@pytest.mark.parametrize("build", [transformer, transformer_plus])
def test_with_fitted_norms_only_points_between_two_centres_part(build):
    different = 0
    for _, x, start in instances(12):
        got = compare(build(size_of(x, 3), 5, ConstructionSettings(units=256)), x, start, 5, "norm")
        assert got.explained
        different += got.n_different
    assert different < 0.02 * 12 * 200


@pytest.mark.parametrize("build", BUILDERS)
@pytest.mark.parametrize("d,k", [(1, 4), (5, 2), (3, 3)])
def test_any_number_of_clusters_and_dimensions_will_do(build, d, k):
    x, start = instance(1, n=60, d=d, k=k)
    settings = ConstructionSettings(units=48 * d, measure="square")
    assert compare(build(size_of(x, k), 3, settings), x, start, 3, "square").parted is None


@pytest.mark.parametrize("build", BUILDERS)
def test_running_every_layer_by_its_definition_changes_nothing(build):
    x, start = instance(2, n=40)
    model = build(size_of(x, 3), 2, ConstructionSettings(units=32, measure="square"))
    h = context(x, start, lloyd(x, start, 0)[0].labels)
    literal = h
    for block in model.blocks:
        literal = block.fully_connected(block.attention.definition(literal))
    torch.testing.assert_close(model.states(h)[-1], literal, atol=1e-9, rtol=0)


@pytest.mark.parametrize("build", BUILDERS)
def test_without_iterations_the_start_assignment_is_read(build):
    x, _, labels, _, h = started(8)
    assert torch.equal(build(size_of(x, 3), 0, SQUARE)(h), one_hot(labels, 3))


def test_only_the_plus_networks_hold_unnormalised_attention_and_depths_are_within_the_theorems():
    size, tau, k = Size(200, 2, 3, 8.0), 5, 3
    built = {build: build(size, tau, SQUARE) for build in BUILDERS}
    kinds = {build: {type(block.attention) for block in model.blocks} for build, model in built.items()}
    assert isinstance(built[transformer], Transformer)
    assert kinds[transformer] == {SoftmaxAttention}
    assert kinds[transformer_plus] == {SoftmaxAttention, UnnormalisedAttention}
    assert len(built[transformer].blocks) <= tau * (3 + 3 * k)
    assert len(built[transformer_plus].blocks) <= tau * (7 + 3 * k)


def test_the_parameter_norm_grows_with_log_n():
    def norm(n):
        settings = ConstructionSettings(units=32, measure="square", hardmax_sharpness=1.0)
        return parameter_norm(transformer(Size(n, 2, 3, 1.0), 1, settings), per_head=False)

    grown = norm(10_000) - norm(100)
    assert 0 < grown < 110 * math.log(100)


def test_an_unknown_measure_is_told():
    with pytest.raises(ValueError, match="measure must be 'norm' or 'square'"):
        transformer(Size(10, 2, 2, 1.0), 1, ConstructionSettings(measure="cube"))


@pytest.mark.parametrize("sharpness", [1.5, 2.0])
def test_a_subtracted_centre_is_wrong_by_n_to_the_one_minus_c(sharpness):
    centers = torch.tensor([[3.0, -1.0], [0.5, 2.0]], dtype=torch.float64)
    rows = Rows(2, 2)

    def error(n):
        h = context(torch.zeros(n, 2, dtype=torch.float64), centers, torch.zeros(n, dtype=torch.long))
        strength = sharpness * math.log(n)
        moved = pieces.softmax(pieces.subtracted_center(rows, 0, strength))(h)[:, rows.copy_of(0)]
        found = float((moved + centers[0]).abs().max())
        assert found <= n * math.exp(-strength) * float(centers.abs().max())  # (N + k - 2) exp(-strength)
        return found

    assert math.log(error(30_000) / error(300)) / math.log(100) == pytest.approx(1 - sharpness, abs=0.03)
