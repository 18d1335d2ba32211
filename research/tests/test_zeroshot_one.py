import subprocess
import sys

import numpy as np
import pytest

from coterie import checkpoints
from coterie.zeroshot.network.numpy_operations import Arrays
from coterie_research import zeroshot_one


def test_a_balanced_affinity_becomes_rarer_in_a_set_of_many_clusters():
    cluster = np.arange(40) // 4
    same = np.where(cluster[:, None] == cluster, 3.0, -3.0)[None].astype(np.float32)
    natural = zeroshot_one.naturally_weighted(Arrays(), same)
    apart = same < 0
    assert (natural[apart] < -4).all()
    assert Arrays.sigmoid(natural[apart]).mean() < Arrays.sigmoid(same[apart]).mean()


def test_distances_and_five_hierarchies_are_read_and_clusters_have_probabilities():
    network = checkpoints.load_arrays("zeroshot", kind="zeroshot")
    seen = network.describe(np.random.default_rng(0).normal(size=(12, 2)))
    assert seen.points_NT.shape == (12, zeroshot_one.POINT_FEATURES)
    assert seen.pairs.expanded().shape == (zeroshot_one.PAIR_FEATURES, 12, 12)
    proba = network.clusters_proba(network.answer([seen], np.random.default_rng(0)))
    assert proba.shape == (1, 100)
    assert proba.sum() == pytest.approx(1, abs=1e-5)


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
