import pytest
import torch

from coterie.mixtures.flow import FlowConfig, FlowPredictor, MeasureFlow, step_sizes


def close(got, expected):  # the encoder is orthonormal to single precision
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-5)


@pytest.fixture
def network():
    torch.manual_seed(0)
    model = MeasureFlow(FlowConfig(dim=3, width=16, n_heads=2, n_layers=4, snr_offset=True)).double()
    with torch.no_grad():
        for weight in model.parameters():  # away from the zero-initialised identity
            weight.add_(0.3 * torch.randn_like(weight))
    return model.eval()


@pytest.fixture
def data():
    generator = torch.Generator().manual_seed(1)
    places = torch.randn(5, 4, 3, generator=generator, dtype=torch.float64).repeat(1, 10, 1)
    points = places + 0.4 * torch.randn(5, 40, 3, generator=generator, dtype=torch.float64)
    return points, torch.linspace(3, 15, 5, dtype=torch.float64)


def test_untrained_network_is_the_identity(data):
    points, snr_db = data
    model = MeasureFlow(FlowConfig(dim=3, width=16, n_heads=2)).double()
    close(model(points, snr_db), points)


def test_trained_network_is_the_identity_at_flow_zero_only(network, data):
    points, snr_db = data
    zero = torch.zeros(len(points), dtype=torch.float64)
    close(network(points, snr_db, flow_time_B=zero), points)
    assert (network(points, snr_db) - points).abs().max() > 0.01


def test_translation_and_scale_of_the_points_carry_over(network, data):
    points, snr_db = data
    shift = torch.tensor([100.0, -3.0, 7.0], dtype=torch.float64)
    moved = network(1e-3 * points + shift, snr_db)
    torch.testing.assert_close(moved, 1e-3 * network(points, snr_db) + shift)


def test_permutation_of_the_points_carries_over(network, data):
    points, snr_db = data
    order = torch.randperm(points.shape[1], generator=torch.Generator().manual_seed(2))
    torch.testing.assert_close(network(points[:, order], snr_db), network(points, snr_db)[:, order])


def test_a_point_of_weight_three_acts_as_three_points(network, data):
    points, snr_db = data
    counts = 1 + torch.arange(points.shape[1]) % 3
    repeated = network(points.repeat_interleave(counts, dim=1), snr_db)
    weights = counts.double().expand(len(points), -1)
    weighted = network(points, snr_db, weights_BN=weights)
    torch.testing.assert_close(weighted.repeat_interleave(counts, dim=1), repeated)
    torch.testing.assert_close(network(points, snr_db, weights_BN=7 * weights), weighted)


def test_padding_does_not_change_what_the_used_coordinates_give(network, data):
    points, snr_db = data
    points = points.clone()
    points[:, :, 2] = 0
    two = torch.full((len(points),), 2)
    estimate = network(points, snr_db, dims_B=two)
    assert (estimate[:, :, 2] == 0).all()
    zero = torch.zeros(len(points), dtype=torch.float64)
    close(network(points, snr_db, dims_B=two, flow_time_B=zero), points)
    spread = network(points, snr_db, dims_B=torch.full((len(points),), 3))
    assert (spread - estimate).abs().max() > 1e-6


def test_all_points_equal_stay_where_they_are(network):
    points = torch.full((1, 10, 3), 4.0, dtype=torch.float64)
    torch.testing.assert_close(network(points, torch.tensor([10.0], dtype=torch.float64)), points)


def test_flow_time_falls_with_the_snr_and_stays_in_range():
    predictor = FlowPredictor(16, 16.0, (0.0, 20.0))
    with torch.no_grad():
        predictor.weight_logit.normal_(generator=torch.Generator().manual_seed(3))
    time = predictor(torch.linspace(-20, 40, 200))
    assert (time.diff() <= 0).all()
    assert time.min() >= 0
    assert time.max() <= 16.0


@pytest.mark.parametrize("regime", ["uniform", "unit"])
def test_step_sizes_add_up_to_the_flow_time_and_pass_a_gradient(regime):
    total = torch.tensor([2.7, 5.3], requires_grad=True)
    steps = step_sizes(total, 8, regime)
    torch.testing.assert_close(steps.sum(0), total)
    steps.sum().backward()
    assert (total.grad != 0).all()


def test_the_floor_regime_takes_whole_steps_only_and_has_a_gradient():
    total = torch.tensor([2.7, 0.4], requires_grad=True)
    steps = step_sizes(total, 4, "floor")
    assert steps.T.tolist() == [[1, 1, 0, 0], [0, 0, 0, 0]]
    steps.sum().backward()
    assert (total.grad > 0).all()


def test_a_network_of_the_unit_regime_is_evaluated_as_it_was_trained(data):
    points, snr_db = data
    model = MeasureFlow(FlowConfig(dim=3, width=16, n_heads=2, n_layers=4, regime="unit")).double()
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    trained = model(points, snr_db)
    torch.testing.assert_close(model.eval()(points, snr_db), trained)
    assert not torch.allclose(model(points, snr_db, regime="floor"), trained)


def test_regimes_coincide_when_the_flow_time_is_the_depth(network, data):
    points, snr_db = data
    total = torch.full((len(points),), 4.0, dtype=torch.float64)
    uniform, unit, none = (network(points, snr_db, regime=r, flow_time_B=total) for r in ("uniform", "unit", "none"))
    torch.testing.assert_close(uniform, none)
    torch.testing.assert_close(unit, none)


def test_distinct_blocks_are_taken_in_turn(data):
    points, snr_db = data
    model = MeasureFlow(FlowConfig(dim=3, width=16, n_heads=2, n_layers=6, n_blocks=3)).double()
    visited = []
    for index, block in enumerate(model.blocks):
        block.register_forward_hook(lambda *_, index=index: visited.append(index))
    seen = []
    model(points, snr_db, on_layer=seen.append)
    assert visited == [0, 1, 2, 0, 1, 2]
    assert len(seen) == 7
