"""Every matrix of every row takes part: without it the network computes something else."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from coterie.kmeans import iteration, literal
from coterie.kmeans.family import TABLE
from tests.kmeans.cases import algorithm_for

SOCKETS = ("encoder_self", "encoder_cross", "decoder_self", "decoder_cross")


def after(algorithm, X, C, n_layers=5, without=None):
    """The centres after some layers of the estimators' engine, one of its matrices being zeroed."""
    network = literal.Literal(X, C, algorithm)
    if without is not None:
        module, matrix = without
        with torch.no_grad():
            getattr(getattr(network.layer, module), matrix).zero_()
    with torch.no_grad():
        return iteration.iterate(network, network.state(), max_iter=n_layers, tol=-1.0).state.places.numpy()


def problem(seed, row):
    """Few points of overlapping clusters, and a start from which labels change."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(24, 2)) + rng.choice([-1.5, 1.5], size=(24, 2))
    if row.form.spherical:
        X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, X[:3].copy()


@pytest.mark.parametrize("name", TABLE)
def test_zeroing_any_matrix_changes_the_answer(name):
    row = TABLE[name]
    algorithm = algorithm_for(row)
    matrices = [(socket, matrix) for socket in SOCKETS for matrix in ("query", "key", "value")]
    if row.form.ffn:
        matrices += [("ffn", matrix) for matrix in ("w_in", "w_out", "bias")]
    idle = set(matrices)
    for seed in range(10):
        X, C = problem(seed, row)
        whole = after(algorithm, X, C)
        assert_allclose(whole, after(algorithm, X, C), atol=0)
        idle -= {one for one in idle if not np.allclose(after(algorithm, X, C, without=one), whole, atol=1e-9)}
    # The bias writes the -1/2 that turns <x, c> - |c|²/2 into -|x - c|²/2. It shifts all scores of a point alike, which
    # no normaliser notices unless centres read the scores of their members too.
    # Prices that make sizes equal take up the |c|² that the network squares, too: it shifts a centre's scores alike.
    unnoticed = ("w_in", "w_out", "bias") if row.variant.sized else ("bias",)
    assert idle == ({("ffn", one) for one in unnoticed} if row.form.ffn and row.variant.reads == "labels" else set())
