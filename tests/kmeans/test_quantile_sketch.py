import numpy as np
import pytest

from coterie.kmeans.quantile_sketch import LEAST_BITS, MOST_BINS, CostSketch


def percentile(costs, weights, keep):
    order = np.argsort(costs)
    running = np.cumsum(weights[order])
    return costs[order][np.searchsorted(running, keep * running[-1] * (1 - 1e-15))]


def sketch_in_parts(groups, costs, weights, parts):
    cuts = np.array_split(np.arange(len(costs)), parts)
    first, *others = [CostSketch.of(groups[cut], costs[cut], weights[cut]) for cut in cuts]
    return sum(others, first)


def test_small_sketches_are_exact_however_they_are_added():
    rng = np.random.default_rng(0)
    costs, weights = rng.exponential(size=5000), rng.integers(1, 4, 5000).astype(float)
    groups = rng.integers(0, 3, 5000)
    for parts in (1, 2, 7):
        sketch = sketch_in_parts(groups, costs, weights, parts)
        assert sketch.error == 0
        limits = sketch.thresholds(0.9, 4)
        assert limits[3] == -np.inf
        for group in range(3):
            own = groups == group
            assert limits[group] == percentile(costs[own], weights[own], 0.9)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_large_sketches_stay_small_and_keep_their_promise(scale):
    rng = np.random.default_rng(1)
    n = 400_000
    costs, weights = scale * rng.lognormal(sigma=3, size=n), np.ones(n)
    sketch = sketch_in_parts(np.zeros(n, int), costs, weights, 5)
    assert sketch.bits >= LEAST_BITS
    assert len(sketch.bins) <= MOST_BINS or sketch.bits == LEAST_BITS
    for keep in (0.5, 0.95, 1.0):
        exact, found = percentile(costs, weights, keep), sketch.thresholds(keep, 1)[0]
        assert exact <= found <= exact * (1 + sketch.error)
        assert np.mean(costs <= found) >= keep


def test_zero_costs_and_ties():
    sketch = CostSketch.of(np.zeros(4, int), np.array([0.0, -0.0, 2.0, 2.0]), np.ones(4))
    assert len(sketch.bins) == 2
    assert sketch.thresholds(0.5, 1)[0] == 0
    assert sketch.thresholds(0.75, 1)[0] == 2
