"""The plain heuristics, the stronger learned Lloyd, and their comparison at equal seconds."""

import json
import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans

from coterie import checkpoints
from coterie.kmeans.learned import SHIPPED
from coterie_research.kmeans_transformers.learned_lloyd import conditioned, equal_seconds, plain, training
from coterie_research.kmeans_transformers.learned_lloyd.conditioned import (
    ANNEALING,
    Parameters,
    run_layers,
    shipped_schedule,
)


def problem(seed, n=200, k=6, d=3):
    rng = np.random.default_rng(seed)
    X = 3 * rng.normal(size=(k, d))[rng.integers(k, size=n)] + rng.normal(size=(n, d))
    return X, plain.greedy_start(X, k, rng), rng


def inertia_of(X, C):
    return ((X[:, None] - C) ** 2).sum(-1).min(1).sum()


@pytest.mark.parametrize("seed", range(5))
def test_lloyd_is_scikit_learns(seed):
    X, start, _ = problem(seed)
    assert set(map(tuple, start)) <= set(map(tuple, X))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = KMeans(len(start), init=start, n_init=1, tol=0).fit(X).inertia_
    assert plain.lloyd(X, start) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_every_heuristic_ends_in_a_fixed_point_whose_inertia_it_returns(seed):
    X, start, rng = problem(seed)
    for run in (
        lambda c: plain.hartigan(X, c),
        lambda c: plain.local_search(X, c, rng, 20),
        lambda c: plain.breathing(X, c, rng, 3),
        lambda c: run_layers(X, c, shipped_schedule(), conditioned.TRAINED.vector()),
    ):
        centers = start.copy()
        found = run(centers)
        assert found == pytest.approx(inertia_of(X, centers))
        assert found < inertia_of(X, start)
        assert plain.lloyd(X, centers.copy()) == pytest.approx(found, rel=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_transfers_and_breaths_never_end_above_lloyd(seed):
    X, start, rng = problem(seed)
    ends = plain.lloyd(X, start.copy())
    assert plain.hartigan(X, start.copy()) <= ends * (1 + 1e-9)
    assert plain.breathing(X, start.copy(), rng, 4) <= ends * (1 + 1e-9)


def test_a_bad_start_is_left_by_swaps_but_not_by_lloyd():
    rng = np.random.default_rng(0)
    places = np.array([[0.0, 0], [30, 0], [0, 30]])
    X = places[np.repeat([0, 1, 2], 40)] + rng.normal(size=(120, 2))
    bad = np.array([[-0.5, 0], [0.5, 0], [15.0, 15]])
    assert plain.lloyd(X, bad.copy()) > 5_000
    swapping = Parameters(log_gamma=2.0, log_split=math.log(0.3), swaps=1.0)
    for found in (
        plain.local_search(X, bad.copy(), rng, 20),
        plain.breathing(X, bad.copy(), rng, 2),
        run_layers(X, bad.copy(), ANNEALING, swapping.vector()),
    ):
        assert found < 300
    assert run_layers(X, bad.copy(), ANNEALING, replace(swapping, swaps=0.0).vector()) > 5_000


def test_hard_layers_with_plain_steps_are_lloyd():
    X, start, _ = problem(1)
    hard = Parameters(log_gamma=30)
    assert run_layers(X, start.copy(), ANNEALING, hard.vector()) == pytest.approx(
        plain.lloyd(X, start.copy()), rel=1e-9
    )


def test_the_schedule_alone_is_the_shipped_network():
    X, start, _ = problem(2)
    network = checkpoints.load(SHIPPED[10]).double()
    with torch.no_grad():
        centers = network(torch.from_numpy(X)[None], torch.from_numpy(start)[None])[-1][0].numpy().copy()
    found = run_layers(X, start.copy(), shipped_schedule(), Parameters().vector())
    assert found == pytest.approx(plain.lloyd(X, centers), rel=1e-4)


def test_records_are_written(tmp_path, monkeypatch):
    trained = training(tmp_path, quick=True)
    assert json.loads((tmp_path / "stronger.json").read_text())["parameters"] == trained["parameters"]
    monkeypatch.setitem(equal_seconds.__globals__, "KINDS", ("uniform",))
    record = equal_seconds(tmp_path, quick=True)
    reference = [row for row in record["rows"] if row["method"] == "Lloyd, best of n"]
    assert [row["ratio"] for row in reference] == [1.0, 1.0]
    assert all(row["milliseconds"] > 0 and row["runs"] >= 1 for row in record["rows"])
    assert (tmp_path / "equal-seconds.md").read_text().count("breathing") == 2
