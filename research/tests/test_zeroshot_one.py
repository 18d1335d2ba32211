import subprocess
import sys

import numpy as np
import pytest
import torch

from coterie import checkpoints
from coterie.zeroshot.network.loading import ArrayNetwork
from coterie.zeroshot.network.numpy_operations import Arrays
from coterie.zeroshot.network.two_passes import TwoPassConfig
from coterie_research.training.zeroshot.modules import TwoPassNetwork
from coterie_research.zeroshot_one import network as one_pass
from coterie_research.zeroshot_one.modules import ZeroShotNetwork
from coterie_research.zeroshot_one.network import PAIR_FEATURES, POINT_FEATURES, ZeroShotConfig, naturally_weighted

SMALL = {"width": 16, "n_heads": 2, "pair_channels": 4}


@pytest.fixture(scope="module")
def old():
    torch.manual_seed(0)
    network = ZeroShotNetwork(ZeroShotConfig(**SMALL, n_stretches=2, stretch=1)).eval()
    with torch.no_grad():
        for weight in network.parameters():  # layers are the identity before training
            weight.add_(0.1 * torch.randn_like(weight))
    return network


@torch.no_grad()
def test_a_new_network_begins_with_the_affinities_and_the_noise_of_the_old_one(old):
    network = TwoPassNetwork(TwoPassConfig(**SMALL, first=(1, 1), second=(1,))).eval()
    old.copy_into(network)
    x = np.random.default_rng(0).normal(size=(20, 3))
    answers = network([network.describe(x)], np.random.default_rng(1))
    expected = old([old.describe(x)], np.random.default_rng(1))[0]
    torch.testing.assert_close(answers[0].same_BNN, expected.same_BNN, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(answers[0].noise_BN, expected.noise_BN, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(answers[1].same_BNN, expected.same_BNN.clamp(-12, 12), atol=1e-4, rtol=1e-4)
    several = expected.clusters_BK[:, 1:]
    torch.testing.assert_close(
        answers[0].clusters_BK[:, :15].log_softmax(-1), several.log_softmax(-1), atol=1e-4, rtol=1e-4
    )


def test_another_width_is_refused(old):
    with pytest.raises(ValueError, match="the same width"):
        old.copy_into(TwoPassNetwork(TwoPassConfig(width=32, n_heads=2, pair_channels=4, first=(1, 1))))


def test_a_balanced_affinity_becomes_rarer_in_a_set_of_many_clusters():
    cluster = np.arange(40) // 4
    same = np.where(cluster[:, None] == cluster, 3.0, -3.0)[None].astype(np.float32)
    natural = naturally_weighted(Arrays(), same)
    apart = same < 0
    assert (natural[apart] < -4).all()
    assert Arrays.sigmoid(natural[apart]).mean() < Arrays.sigmoid(same[apart]).mean()


@pytest.mark.parametrize("n", [2, 3, 90])
def test_numpy_answers_as_torch_does(old, n):
    by_numpy = ArrayNetwork(one_pass, old.config, {name: weight.numpy() for name, weight in old.state_dict().items()})
    x = np.random.default_rng(5).normal(size=(n, 3))
    answers = [each.answer([each.describe(x)], np.random.default_rng(0)) for each in (by_numpy, old)]
    for one, other in zip(*answers, strict=True):
        np.testing.assert_allclose(one, other, atol=2e-4, rtol=1e-4)
    proba = old.clusters_proba(answers[0])
    assert proba.shape == (1, 100)
    assert proba.sum() == pytest.approx(1, abs=1e-5)


def test_distances_and_five_hierarchies_are_read():
    seen = one_pass.describe(np.random.default_rng(0).normal(size=(12, 2)))
    assert seen.points_NT.shape == (12, POINT_FEATURES)
    assert seen.pairs.expanded().shape == (PAIR_FEATURES, 12, 12)


def test_weights_are_read_by_numpy_and_by_torch():
    by_numpy, by_torch = checkpoints.load_arrays("zeroshot", kind="zeroshot"), checkpoints.load("zeroshot")
    seen = [by_torch.describe(np.random.default_rng(2).normal(size=(30, 2)))]
    one, other = (each.answer(seen, np.random.default_rng(0)) for each in (by_numpy, by_torch))
    np.testing.assert_allclose(one.natural_BNN, other.natural_BNN, atol=1e-3)


@pytest.mark.parametrize("name", ["zeroshot", "zeroshot-2"])
def test_earlier_networks_are_found_by_name_without_importing_this_package(name):
    code = f"""
import numpy as np
from coterie import ZeroShotClusterer
X = np.random.default_rng(0).normal(size=(60, 2)) + np.repeat([[0, 0], [9, 0]], 30, axis=0)
print(ZeroShotClusterer(network={name!r}, random_state=0).fit(X).n_clusters_)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "2"
