import torch

from coterie.data.mixtures import MixturePrior, sample_mixtures
from coterie.flow.atoms import Atoms
from coterie.flow.posterior import _components, barycentre, posterior_samples
from coterie.metrics import squared_w2


def draw(snr_db, batch=6, n_points=200, seed=0):
    prior = MixturePrior(clusters=(3, 5), snr_db=(snr_db, snr_db))
    return sample_mixtures(prior, batch, n_points, torch.Generator().manual_seed(seed))


def test_draws_stay_with_clusters_that_lie_far_apart():
    places = torch.tensor([[0.0, 0.0], [20.0, 0.0], [0.0, 20.0]])
    labels = torch.arange(3).repeat_interleave(60)
    generator = torch.Generator().manual_seed(1)
    points = (places[labels] + torch.randn(180, 2, generator=generator))[None]
    start = Atoms(places[None] + 1.0, torch.full((1, 3), 1 / 3))
    draws = posterior_samples(points, start, torch.ones(1), torch.full((1,), 90.0), generator, 400)
    for atoms in draws:
        distance = torch.cdist(places, atoms.centers_BKD[0][atoms.weights_BK[0] > 0.05])
        assert distance.min(0).values.max() < 2
        assert distance.min(1).values.max() < 1


def test_the_number_of_components_follows_its_conditional_law():
    # two clusters in use, three points: p(2, 3, 4) is in proportion to 1/24, 1/30, 1/40
    count = torch.tensor([2.0, 1.0, 0.0, 0.0]).expand(4000, -1)
    drawn = _components(count, 3, torch.Generator().manual_seed(4))
    assert drawn[:, :2].all()
    shares = torch.bincount(drawn.sum(1), minlength=5)[2:] / 4000
    torch.testing.assert_close(shares, torch.tensor([5 / 12, 4 / 12, 3 / 12]), atol=0.03, rtol=0)


def test_barycentre_of_one_draw_is_that_draw():
    data = draw(10.0)
    moved = barycentre(data.points_BND, [Atoms(data.centers_BKD, data.empirical_weights_BK)])
    assert squared_w2(moved, data.centers_BKD, data.empirical_weights_BK).max() < 1e-6


def test_averaging_beats_the_mean_draw_where_clusters_overlap():
    data = draw(4.0, batch=10)
    generator = torch.Generator().manual_seed(2)
    signal = data.var_B * 10 ** (data.snr_db_B / 10)
    draws = posterior_samples(
        data.points_BND, Atoms(data.centers_BKD, data.weights_BK), data.var_B, signal, generator, 600
    )
    single = torch.stack(
        [squared_w2(a.centers_BKD, data.centers_BKD, data.empirical_weights_BK, a.weights_BK) for a in draws]
    ).mean()
    average = squared_w2(barycentre(data.points_BND, draws), data.centers_BKD, data.empirical_weights_BK).mean()
    assert average < 0.9 * single


def test_same_generator_gives_the_same_draws():
    data = draw(8.0, batch=2)
    start = Atoms(data.centers_BKD, data.weights_BK)
    first, second = (
        posterior_samples(data.points_BND, start, data.var_B, data.var_B, torch.Generator().manual_seed(3), 50)
        for _ in range(2)
    )
    assert all(torch.equal(a.centers_BKD, b.centers_BKD) for a, b in zip(first, second))
