"""Thresholds of trimming: selection by rank and sorting give the same."""

import numpy as np
import pytest
import torch

from coterie.kmeans.algorithm import Algorithm
from coterie.kmeans.family import TABLE
from coterie.kmeans.member_weights import Segments, share_of, thresholds


@pytest.mark.parametrize("keep", [0.05, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("per_cluster", [True, False])
@pytest.mark.parametrize("levels", [7, 10_000])  # few levels: many points have equal costs
def test_points_of_equal_weight_have_the_thresholds_that_sorting_gives(keep, per_cluster, levels):
    random = np.random.RandomState(0)
    labels = torch.from_numpy(random.choice([0, 1, 1, 1, 3, 4], 2_000))  # cluster 2 is empty
    cost = torch.from_numpy(random.randint(0, levels, 2_000).astype(float))
    weight = torch.ones(2_000, dtype=torch.float64)
    found = thresholds(Algorithm(TABLE["lloyd"], keep=keep, per_cluster=per_cluster), labels, cost, weight, 5)
    groups = labels if per_cluster else torch.zeros_like(labels)
    segments = Segments(groups, cost, weight, 5 if per_cluster else 1)
    expected = segments.threshold(share_of(segments.total, keep)).expand(5)
    assert found.tolist() == expected.tolist()
    assert not per_cluster or found[2] == -torch.inf


def test_weights_that_count_copies_have_the_thresholds_of_the_copies():
    random = np.random.RandomState(1)
    labels, cost = torch.from_numpy(random.randint(0, 3, 500)), torch.from_numpy(random.rand(500))
    times = torch.from_numpy(random.randint(1, 4, 500))
    algorithm = Algorithm(TABLE["lloyd"], keep=0.8)
    weighted = thresholds(algorithm, labels, cost, times.double(), 3)
    copies = torch.ones(int(times.sum()), dtype=torch.float64)
    copied = thresholds(algorithm, labels.repeat_interleave(times), cost.repeat_interleave(times), copies, 3)
    assert weighted.tolist() == copied.tolist()
