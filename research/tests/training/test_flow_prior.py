import pytest
import torch

from coterie_research.training.flow.prior import MixturePrior, sample_mixtures


def draw(prior, batch=400, n_points=300, seed=0):
    return sample_mixtures(prior, batch, n_points, torch.Generator().manual_seed(seed))


def test_noise_gives_the_snr_that_was_asked_for():
    data = draw(MixturePrior(dims=(3, 3), snr_db=(7.0, 7.0)))
    mean = (data.weights_BK[..., None] * data.centers_BKD).sum(1, keepdim=True)
    between = (data.weights_BK * (data.centers_BKD - mean).square().sum(-1)).sum(1)
    torch.testing.assert_close(10 * torch.log10(between / (3 * data.var_B)), data.snr_db_B)
    residual = (data.points_BND - data.own_centers_BND).square().mean((1, 2))
    assert (residual / data.var_B).mean().item() == pytest.approx(1, abs=0.01)


def test_counts_and_weights_agree_with_labels():
    data = draw(MixturePrior())
    assert (data.counts_BK.sum(1) == 300).all()
    assert (data.labels_BN < data.n_clusters_B[:, None]).all()
    torch.testing.assert_close(data.weights_BK.sum(1), torch.ones(400))
    assert (data.counts_BK - 300 * data.weights_BK).abs().max() < 60
    one = int(data.labels_BN[3, 5])
    assert torch.equal(data.own_centers_BND[3, 5], data.centers_BKD[3, one])


@pytest.mark.parametrize("law", ["uniform", "poisson", "harmonic"])
def test_cluster_counts_follow_their_law(law):
    prior = MixturePrior(clusters=(3, 7), clusters_law=law)
    counts = draw(prior, batch=5000, n_points=2).n_clusters_B
    share = torch.stack([(counts == k).double().mean() for k in range(3, 8)])
    assert (share - prior.cluster_probabilities()).abs().max() < 0.03


def test_dimensions_beyond_a_data_sets_own_are_zero():
    data = draw(MixturePrior(dims=(1, 4)))
    used = torch.arange(4) < data.dims_B[:, None]
    assert set(data.dims_B.tolist()) == {1, 2, 3, 4}
    assert ((data.points_BND != 0).any(1) == used).all()


def test_same_seed_gives_the_same_data():
    assert torch.equal(draw(MixturePrior()).points_BND, draw(MixturePrior()).points_BND)


def test_stretched_and_unequal_clusters_have_the_variance_of_the_snr_on_average():
    prior = MixturePrior(dims=(1, 6), clusters=(2, 6), stretch=0.7, unequal=0.5)
    data = sample_mixtures(prior, 40, 4000, torch.Generator().manual_seed(0))
    noise_BND = data.points_BND - data.own_centers_BND
    ratio_B = noise_BND.square().sum((1, 2)) / 4000 / data.dims_B / data.var_B
    torch.testing.assert_close(ratio_B.mean(), torch.tensor(1.0), atol=0.02, rtol=0)
    unused_B1D = torch.arange(6) >= data.dims_B[:, None, None]
    assert not (data.points_BND * unused_B1D).any()
    # within the clusters of one set, the variances along and across differ
    flat = int((data.dims_B == 2).nonzero()[0])
    own_ND = noise_BND[flat, data.labels_BN[flat] == 0, :2]
    assert torch.linalg.cond(own_ND.T @ own_ND) > 1.2


def test_spherical_mixtures_are_those_of_earlier_versions():
    """Scores of the experiments depend on it. Made by this code before mixtures could be stretched."""
    data = sample_mixtures(MixturePrior(), 2, 50, torch.Generator().manual_seed(1))
    torch.testing.assert_close(data.points_BND[1, 49], torch.tensor([0.6765699, 1.1051704]), atol=1e-5, rtol=0)
