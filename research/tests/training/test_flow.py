import copy
import json

import pytest
import torch

from coterie import checkpoints
from coterie_research.metrics import squared_w2
from coterie_research.training.flow.cells import in_cells
from coterie_research.training.flow.prior import MixturePrior, sample_mixtures
from coterie_research.training.flow.run import FlowRun, expected_squared_w2

CONFIG = {
    "model": {"width": 16, "n_heads": 2, "n_layers": 3},
    "training": {
        "steps": 40,
        "learning_rate": 5e-3,
        "checkpoint_every": 8,
        "log_every": 4,
        "warmup_steps": 5,
        "average_decay": 0.8,
    },
    "stages": [
        {"until": 10, "n_points": [16, 24], "n_layers": 2, "tokens": 96, "loss": "own"},
        {"until": 20, "n_points": [24, 32], "n_layers": 3, "tokens": 96},
        {"until": 40, "n_points": [24, 32], "n_layers": 3, "tokens": 96, "loss": "posterior"},
    ],
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder of a run, and its network."""
    folder = tmp_path_factory.mktemp("whole")
    return folder, FlowRun.from_dict(CONFIG).train(folder)


def test_the_posterior_of_spherical_mixtures_is_not_taken_for_stretched_ones():
    with pytest.raises(ValueError, match='the loss "w2"'):
        FlowRun.from_dict({**CONFIG, "prior": {"stretch": 0.5}}).task()


def test_a_run_stopped_and_resumed_ends_in_the_same_weights(tmp_path, trained):
    run = FlowRun.from_dict(CONFIG)
    run.train(tmp_path, on_progress=lambda progress: progress.step == 16)
    run.train(tmp_path, resume=True)
    ours, theirs = (torch.load(folder / "state.pt", weights_only=True) for folder in (tmp_path, trained[0]))
    assert ours["step"] == theirs["step"] == 40
    for part in ("model", "average"):
        for name, weight in theirs[part].items():
            assert torch.equal(ours[part][name], weight), name


def test_stages_set_the_points_layers_and_loss_of_a_step():
    task = FlowRun.from_dict(CONFIG)
    seen = []

    def network(points, snr_db, dims_B, n_layers, weights_BN):
        seen.append((points.shape, n_layers))
        return points

    generator = torch.Generator().manual_seed(0)
    own, _ = task.loss(network, 9, generator.manual_seed(0))
    w2, _ = task.loss(network, 10, generator.manual_seed(0))
    assert [n_layers for _, n_layers in seen] == [2, 3]
    assert 16 <= seen[0][0][1] <= 24 <= seen[1][0][1] <= 32
    assert own > 0
    assert w2 > 0


def test_cells_of_points_have_nearly_the_loss_and_the_gradient_of_the_points():
    network = copy.deepcopy(checkpoints.load("flow-d2")).requires_grad_()
    found = {}
    for cells in (False, True):
        stage = CONFIG["stages"][2] | {"n_points": [400, 400], "n_layers": 16, "tokens": 1200, "cells": cells}
        run = FlowRun.from_dict({**CONFIG, "stages": [stage]})
        loss, _ = run.loss(network, 0, torch.Generator().manual_seed(0))
        gradients = torch.autograd.grad(loss, list(network.blocks.parameters()))
        found[cells] = loss.item(), torch.cat([gradient.flatten() for gradient in gradients])
    assert found[True][0] == pytest.approx(found[False][0], rel=0.05)
    assert torch.cosine_similarity(found[True][1], found[False][1], dim=0) > 0.9


def test_cells_that_are_padding_have_no_share():
    data = sample_mixtures(MixturePrior(), 5, 200, torch.Generator().manual_seed(1))
    means, shares = in_cells(data.points_BND, data.var_B)
    assert len(set((shares > 0).sum(1).tolist())) > 1
    torch.testing.assert_close(shares.sum(1), torch.ones(5))
    torch.testing.assert_close((shares[..., None] * means).sum(1), data.points_BND.mean(1))


def test_training_lowers_the_error_on_data_it_has_not_seen(trained):
    data = sample_mixtures(MixturePrior(), 64, 32, torch.Generator().manual_seed(9))
    with torch.no_grad():
        estimate = trained[1](data.points_BND, data.snr_db_B)
    before = squared_w2(data.points_BND, data.centers_BKD, data.empirical_weights_BK).mean()
    assert squared_w2(estimate, data.centers_BKD, data.empirical_weights_BK).mean() < 0.95 * before


def test_a_trained_run_can_be_shipped(tmp_path, trained):
    folder, network = trained
    path = FlowRun.from_dict(CONFIG).ship(folder, "tiny", {"n = 30": 1.0}, shelf=tmp_path)
    card = json.loads(path.read_text())
    assert card["training"]["steps"] == 40
    assert card["scores"] == {"n = 30": 1.0}
    loaded = checkpoints.load(tmp_path / "tiny.safetensors")
    for name, weight in network.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], weight)


def test_the_posterior_loss_has_the_same_mean_gradient_and_a_smaller_variance():
    prior = MixturePrior(clusters=(2, 16), clusters_law="harmonic", snr_db=(4.0, 8.0))
    generator = torch.Generator().manual_seed(8)
    data = sample_mixtures(prior, 400, 50, generator)
    shrink = torch.full((400, 1, 1), 0.8, requires_grad=True)
    mean = data.points_BND.mean(1, keepdim=True)
    estimate = mean + shrink * (data.points_BND - mean)
    by_truth = squared_w2(estimate, data.centers_BKD, data.empirical_weights_BK)
    by_draws = expected_squared_w2(estimate, data, generator)
    truth, draws = (torch.autograd.grad(loss.sum(), shrink, retain_graph=True)[0] for loss in (by_truth, by_draws))
    assert abs((truth - draws).mean()) < 3 * (truth - draws).std() / 20
    # given the points, the gradient's mean is its best prediction: what is taken away is uncorrelated noise
    assert draws.var() < truth.var()
    assert by_draws.mean() < by_truth.mean()
