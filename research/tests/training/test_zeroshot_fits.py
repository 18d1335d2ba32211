"""What is fitted to a trained zero-shot network: its head, and its probability of a single cluster."""

import numpy as np
import pytest
import torch

from coterie.zeroshot.network.head import scores, unflattened
from coterie.zeroshot.network.numpy_operations import Arrays
from coterie.zeroshot.network.two_passes import TwoPassConfig
from coterie.zeroshot.partitions.candidates import describe
from coterie_research.training.zeroshot.fitting import Example, calibrated, examples, head_loss, together, train_head
from coterie_research.training.zeroshot.modules import TwoPassNetwork
from coterie_research.training.zeroshot.prior.problems import Prior

CONFIG = TwoPassConfig(width=16, n_heads=2, first=(1,), second=(1,), pair_channels=4, partition_width=8)


def test_padding_does_not_change_a_score():
    rng, labels = np.random.default_rng(0), np.arange(60)
    affinity = rng.uniform(size=(60, 60))
    told = [describe((affinity + affinity.T) / 2, np.zeros(60), np.full(20, 1 / 20), labels[None] % k) for k in (2, 7)]
    torch.manual_seed(0)
    network = TwoPassNetwork(CONFIG).eval()
    with torch.no_grad():
        for weight in network.partitions.parameters():
            weight.add_(0.3 * torch.randn_like(weight))
    head = unflattened(network.head)
    apart = np.concatenate([scores(Arrays(), head, part) for part in told])
    np.testing.assert_allclose(scores(Arrays(), head, together(told)), apart, atol=1e-5)
    np.testing.assert_allclose(network.scores(together(told)).detach().numpy(), apart, atol=1e-4)


def test_the_loss_is_least_at_the_index_that_is_reached_and_where_the_best_is_chosen():
    index = np.array([0.9, 0.2, 0.5], dtype=np.float32)
    one = Example(None, index, [2, 1])
    best = head_loss(torch.logit(torch.from_numpy(index)), one)
    for shift in ([1.0, 0, 0], [-1.0, 0, 0], [0, 2.0, 0], [0, 0, 0.5]):
        assert head_loss(torch.logit(torch.from_numpy(index)) + torch.tensor(shift), one) > best
    wrong = head_loss(torch.logit(torch.tensor([0.2, 0.9, 0.5])), one)
    assert wrong - best > 0.7  # of which 2 x (0.9 - 0.2) / 2 are lost by the choice


def test_training_changes_the_head_alone_and_lowers_its_loss():
    torch.manual_seed(0)
    network = TwoPassNetwork(CONFIG).eval()
    before = {name: weight.clone() for name, weight in network.state_dict().items()}
    rng = np.random.default_rng(0)
    given_examples = examples(network, Prior(clusters=(2, 4), dims=(1, 3)), 12, rng, n_points=(24, 40))
    curve = train_head(network, given_examples, rng)
    assert curve[-1] < curve[0]
    changed = {name.split(".")[0] for name, weight in network.state_dict().items() if not weight.equal(before[name])}
    assert changed == {"partitions"}


def test_a_calibrated_logit_is_right_as_often_as_it_says():
    rng = np.random.default_rng(0)
    logits = 2 * rng.normal(size=4_000)
    true = rng.random(4_000) < 1 / (1 + np.exp(1 - 0.5 * logits))
    factor, shift = calibrated(logits, true, share=true.mean())
    assert factor == pytest.approx(0.5, abs=0.1)
    assert shift == pytest.approx(-1, abs=0.15)
