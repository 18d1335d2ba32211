import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.kmeans.rows import DenseRows


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**16),
    offset=st.sampled_from([0.0, 1.0, 1e2, 1e4]),
    scale=st.sampled_from([1e-6, 1.0, 1e6]),
    dtype=st.sampled_from([np.float32, np.float64]),
    d=st.integers(1, 40),
)
def test_products_choose_the_centres_that_differences_choose(seed, offset, scale, dtype, d):
    """Other devices compute distances by a matrix product; rounding must not decide."""
    rng = np.random.default_rng(seed)
    groups = offset * rng.choice([-1.0, 1.0], size=(6, d))
    x = (scale * (groups[rng.integers(6, size=200)] + rng.normal(size=(200, d)))).astype(dtype)
    centers = (scale * (groups + 0.6 * rng.normal(size=(6, d)))).astype(dtype)
    exact = ((x.astype(np.float64)[:, None] - centers.astype(np.float64)) ** 2).sum(axis=-1)
    found = DenseRows(torch.from_numpy(x)).sq_distances_by_products(slice(0, 200), torch.from_numpy(centers)).numpy()
    first, second = np.sort(exact, axis=1)[:, :2].T
    clear = second - first > 1e-12 * second
    np.testing.assert_array_equal(found.argmin(axis=1)[clear], exact.argmin(axis=1)[clear])


def test_products_without_differences_would_choose_wrongly():
    """The case above is one in which the plain product errs, so that the test can fail."""
    rng = np.random.default_rng(0)
    groups = 1e4 * np.array([[1.0, 1.0], [-1.0, 1.0]])
    labels = rng.integers(2, size=200)
    x = (groups[labels] + rng.normal(size=(200, 2))).astype(np.float32)
    centers = np.concatenate([groups - 0.6, groups + 0.6]).astype(np.float32)
    exact = ((x.astype(np.float64)[:, None] - centers) ** 2).sum(axis=-1).argmin(axis=1)
    rows, c = DenseRows(torch.from_numpy(x)), torch.from_numpy(centers)
    assert (rows._products(slice(0, 200), c)[0].numpy().argmin(axis=1) != exact).any()
    assert (rows.sq_distances_by_products(slice(0, 200), c).numpy().argmin(axis=1) == exact).all()


def test_gradients_go_through_the_products():
    x = torch.randn(5, 3, generator=torch.Generator().manual_seed(0), requires_grad=True)
    rows = DenseRows(x)
    rows.sq_distances(slice(0, 5), torch.zeros(2, 3)).sum().backward()
    assert x.grad is not None
    assert x.grad.detach().numpy() == pytest.approx(4 * x.detach().numpy(), rel=1e-5)
