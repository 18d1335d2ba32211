import numpy as np
from sklearn.metrics import adjusted_rand_score

from coterie.zeroshot.features.hierarchies import cut, ward
from coterie.zeroshot.partitions.cuts import expected_ari, mean_affinity


def test_the_expected_index_of_certain_affinities_is_the_index():
    rng = np.random.default_rng(0)
    truth = rng.integers(4, size=30)
    p = (truth[:, None] == truth).astype(float)
    distance = np.abs(rng.normal(size=(30, 30)))
    tree = ward(np.triu(distance, 1) + np.triu(distance, 1).T)
    realised = [adjusted_rand_score(truth, labels) for labels in (cut(tree.left, tree.right, k) for k in range(1, 13))]
    np.testing.assert_allclose(expected_ari(p, tree.left, tree.right, 12), realised, atol=1e-12)


def test_mean_affinity_leaves_the_point_itself_out():
    p = np.array([[0.0, 0.8, 0.2], [0.8, 0.0, 0.4], [0.2, 0.4, 0.0]])
    found = mean_affinity(p, np.array([0, 0, 1]))
    np.testing.assert_allclose(found, [[0.8, 0.2], [0.8, 0.4], [0.3, 1.0]], atol=1e-9)
