import numpy as np
import pytest

from coterie.zeroshot.partitions.number_of_clusters import choice_features, clusters_proba


def test_evidence_for_a_number_of_clusters_by_hand():
    found = choice_features(np.array([0.5, 0.0, 0.2]), np.array([0.0, 0.8, 0.4]))
    np.testing.assert_allclose(found, [[np.log(1e-4), 0.8, np.log(2)], [np.log(0.2), 0.4, np.log(3)]])


def test_one_cluster_has_the_calibrated_probability_that_the_network_gives_it():
    given = np.array([0.4, 0.1, 0.5]), np.array([0.0, 0.8, 0.4]), (0.0, 0.0, 1.0)
    np.testing.assert_allclose(clusters_proba(*given, (1.0, 0.0, 1.0)), [0.4, 0.6 * 2 / 5, 0.6 * 3 / 5])
    odds = (0.4 / 0.6) ** 0.5 * np.exp(-1)
    assert clusters_proba(*given, (0.5, -1.0, 1.0))[0] == pytest.approx(odds / (1 + odds))
