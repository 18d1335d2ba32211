import math
from dataclasses import asdict

import pytest
import torch

from coterie.incontext.pair_transformer import PairConfig, PairTransformer, build
from coterie.incontext.starting import lloyd, sq_to_centers
from coterie_research.incontext_em.best_start import best_start, plus_plus
from coterie_research.incontext_em.point_transformer import PointConfig, PointTransformer, context_rows


def data(B=3, N=40, D=3, K=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    centers = 4 * torch.randn(B, K, D, generator=generator)
    labels = torch.randint(K, (B, N), generator=generator)
    own = centers.gather(1, labels[..., None].expand(-1, -1, D))
    return own + torch.randn(B, N, D, generator=generator), centers


def test_a_network_is_built_from_its_card():
    network = PairTransformer(PairConfig(width=16, n_heads=2, n_layers=2))
    again = build(asdict(network.config))
    again.load_state_dict(network.state_dict())
    assert again.config == network.config


@pytest.mark.parametrize("heads", ["concatenated", "averaged"])
@pytest.mark.parametrize("norm", [True, False])
@pytest.mark.parametrize("context", [True, False])
def test_the_documents_network_gives_log_probabilities(heads, norm, context):
    x, centers = data()
    network = PointTransformer(PointConfig(dims=3, heads=heads, norm=norm, context=context))
    start = (centers, torch.cdist(x, centers).argmin(-1))
    log_p = network(x, start)
    assert log_p.shape == (3, 40, 4)
    torch.testing.assert_close(log_p.exp().sum(-1), torch.ones(3, 40))
    if not context:
        rows = torch.randperm(40)
        torch.testing.assert_close(network(x[:, rows]), log_p[:, rows], atol=1e-5, rtol=1e-4)


def test_averaged_heads_are_the_mean_of_heads_of_full_width():
    torch.manual_seed(0)
    network = PointTransformer(PointConfig(dims=3, n_layers=1, heads="averaged", norm=False))
    block = network.blocks[0]
    z = torch.randn(1, 6, 64)
    q, k, v = block.query_key_value(z).view(1, 6, 3, 2, 64).permute(2, 0, 3, 1, 4)
    expected = torch.stack([(q[:, h] @ k[:, h].mT / 8).softmax(-1) @ v[:, h] for h in range(2)]).mean(0)
    torch.testing.assert_close(block.attention(z), block.output(expected))


def test_the_log_temperature_grows_with_the_points():
    torch.manual_seed(0)
    root = PointTransformer(PointConfig(dims=3))
    log = PointTransformer(PointConfig(dims=3, temperature="log"))
    log.load_state_dict(root.state_dict())
    x, _ = data(N=200)
    torch.testing.assert_close(root(x), log(x))
    assert (root(x[:, :50]) - log(x[:, :50])).abs().max() > 1e-4


def test_context_rows_are_those_of_equation_4():
    x, centers = data(B=1, N=6, D=2, K=3)
    labels = torch.tensor([[0, 2, 1, 1, 0, 2]])
    H = context_rows(x, centers, labels)[0]
    assert H.shape == (6, 2 + 2 + 3 + 3 + 1)
    assert torch.equal(H[:, :2], x[0])
    assert torch.equal(H[:3, 2:4], centers[0])
    assert not H[3:, 2:4].any()
    assert torch.equal(H[:, 4:7].argmax(1), labels[0])
    assert torch.equal(H[:3, 7:10], torch.eye(3))
    assert torch.equal(H[:, 10], torch.ones(6))


def test_a_context_network_asks_for_its_start():
    with pytest.raises(ValueError, match="needs a start"):
        PointTransformer(PointConfig(dims=3, context=True))(torch.randn(1, 8, 3))


def test_the_batched_start_is_lloyds_algorithm():
    x, _ = data(B=5, K=3)
    generator = torch.Generator().manual_seed(0)
    first = plus_plus(x, 3, generator)
    assert all((x[b] == center).all(1).any() for b in range(5) for center in first[b])
    centers = lloyd(x, first, 50)
    labels = sq_to_centers(x, centers).argmin(-1)
    for b in range(5):
        means = torch.stack([x[b][labels[b] == k].mean(0) for k in range(3)])
        torch.testing.assert_close(means, centers[b])


def test_more_starts_never_give_a_higher_inertia():
    x, _ = data(B=8, D=6, K=5)

    def inertia(**options):
        centers = best_start(x, 5, torch.Generator().manual_seed(1), **options)
        return torch.cdist(x, centers).square().amin(-1).sum(-1)

    # from the same stream of draws the first start of ten is not that of one: compare on average
    assert inertia(n_starts=10).mean() <= inertia(n_starts=1).mean()
    assert inertia(n_starts=10, spectral=5).mean() < 1.05 * inertia(n_starts=10).mean()
    assert math.isfinite(inertia(n_starts=2, spectral=1, n_iter=0).mean())
