import torch

from coterie.mixtures.spherical_sampler import Sweeps
from coterie_research.training.flow.prior import MixturePrior, sample_mixtures
from coterie_research.training.flow.targets import Atoms, posterior_samples

SHORT = Sweeps(burn_in=10, apart=5, n_draws=8)


def draw(snr_db, batch=6, n_points=200, seed=0):
    prior = MixturePrior(clusters=(3, 5), snr_db=(snr_db, snr_db))
    return sample_mixtures(prior, batch, n_points, torch.Generator().manual_seed(seed))


def test_draws_stay_with_clusters_that_lie_far_apart():
    places = torch.tensor([[0.0, 0.0], [20.0, 0.0], [0.0, 20.0]])
    labels = torch.arange(3).repeat_interleave(60)
    generator = torch.Generator().manual_seed(1)
    points = (places[labels] + torch.randn(180, 2, generator=generator))[None]
    start = Atoms(places[None] + 1.0, torch.full((1, 3), 1 / 3))
    draws = posterior_samples(points, start, torch.ones(1), torch.full((1,), 90.0), generator, Sweeps(80, 8, 40))
    for centers, weights in zip(*draws):
        distance = torch.cdist(places, centers[0][weights[0] > 0.05])
        assert distance.min(0).values.max() < 2
        assert distance.min(1).values.max() < 1


def test_same_generator_gives_the_same_draws():
    data = draw(8.0, batch=2)
    start = Atoms(data.centers_BKD, data.weights_BK)
    first, second = (
        posterior_samples(data.points_BND, start, data.var_B, data.var_B, torch.Generator().manual_seed(3), SHORT)
        for _ in range(2)
    )
    assert all(torch.equal(a, b) for a, b in zip(first, second))


def test_draws_that_start_at_the_truth_are_distributed_as_the_truth():
    # the truth is a draw from the posterior: over many data sets its statistics are those of the chain's last draw
    prior = MixturePrior(clusters=(2, 16), clusters_law="harmonic", snr_db=(4.0, 8.0))
    data = sample_mixtures(prior, 300, 40, torch.Generator().manual_seed(6))
    start = Atoms(data.centers_BKD, data.weights_BK)
    signal, origin = torch.ones(len(data)), torch.zeros(len(data), 2)
    generator = torch.Generator().manual_seed(7)
    draws = posterior_samples(data.points_BND, start, data.var_B, signal, generator, SHORT, origin_BD=origin)
    largest, truth = draws.weights_BK[-1].max(1).values, data.empirical_weights_BK.max(1).values
    n_used, n_true = (draws.weights_BK[-1] > 0).sum(1).float(), (data.counts_BK > 0).sum(1).float()
    for drawn, true in ((largest, truth), (n_used, n_true)):
        difference = drawn - true
        assert abs(difference.mean()) < 4 * difference.std() / len(difference) ** 0.5


def test_padding_takes_no_part():
    data = draw(8.0, batch=2)
    start = Atoms(data.centers_BKD, data.weights_BK)
    signal, dims = torch.ones(2), torch.tensor([2, 2])
    padded = torch.nn.functional.pad
    plain = posterior_samples(data.points_BND, start, data.var_B, signal, torch.Generator().manual_seed(3), SHORT)
    more = posterior_samples(
        padded(data.points_BND, (0, 3)),
        Atoms(padded(data.centers_BKD, (0, 3)), data.weights_BK),
        data.var_B,
        signal,
        torch.Generator().manual_seed(3),
        SHORT,
        dims_B=dims,
    )
    torch.testing.assert_close(more.centers_BKD, padded(plain.centers_BKD, (0, 3)))
