import pytest
import torch

from coterie_research.incontext_em.point_training import ExponentialDecay, PointTask, train_points
from coterie_research.incontext_em.point_transformer import PointConfig
from coterie_research.metrics import permutation_free_cross_entropy
from coterie_research.training.incontext.prior import sample_separated


def blobs(batch, generator):
    return sample_separated([10, 10], 2, torch.full((batch,), 5.0), torch.full((batch,), 0.5), generator)


def test_the_papers_schedule_falls_by_a_constant_factor():
    training = ExponentialDecay(steps=300)
    assert training.rate(0) == 1.0
    assert training.rate(299) == pytest.approx(0.995**299)


def test_the_papers_network_learns_two_clusters():
    training = ExponentialDecay(steps=60, seed=0, learning_rate=3e-3)
    network = train_points(PointConfig(dims=2, n_clusters=2, width=32, n_layers=2), blobs, training, batch=16)
    data = blobs(64, torch.Generator().manual_seed(99))
    with torch.no_grad():
        loss, _ = permutation_free_cross_entropy(network(data.points_BND), data.labels_BN)
    assert loss.mean() < 0.3  # names drawn at random would give log 2 = 0.69 or little less


def test_fixed_instances_are_drawn_once():
    task = PointTask(PointConfig(dims=2, n_clusters=2), blobs, batch=3, seed=0, instances=5)
    seen = {
        tuple(x.flatten().tolist()) for step in range(20) for x in task._draw(torch.Generator().manual_seed(step))[0]
    }
    assert len(seen) == 5


def test_context_rows_are_made_in_training():
    task = PointTask(PointConfig(dims=2, n_clusters=2, context=True), blobs, batch=3, seed=0)
    loss, _ = task.loss(task.model, 0, torch.Generator().manual_seed(0))
    loss.backward()
    assert task.model.embed.weight.grad.abs().sum() > 0
