import pytest
import torch

from coterie_research.training.incontext.prior import SeparatedPrior, sample_separated, separated_centers


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("n_clusters,dims", [(2, 1), (4, 10), (10, 2)])
def test_the_two_nearest_centres_are_exactly_the_distance_apart(n_clusters, dims):
    distance = torch.linspace(0.5, 50, 20)
    centers = separated_centers(20, n_clusters, dims, distance, generator())
    gaps = torch.stack([torch.pdist(c.double()).min() for c in centers])
    torch.testing.assert_close(gaps, distance.double(), rtol=1e-3, atol=1e-3)
    assert centers.mean(1).abs().max() < 1e-2


def test_centres_may_lie_further_apart_than_the_distance():
    distance = torch.full((50,), 3.0)
    centers = separated_centers(50, 4, 5, distance, generator(), at_least=True)
    gaps = torch.stack([torch.pdist(c).min() for c in centers])
    assert (gaps >= 3 - 1e-4).all()
    assert gaps.max() > 4


def test_counts_and_variances_are_as_asked():
    data = sample_separated([30, 60, 10], 3, torch.full((200,), 40.0), torch.full((200,), 4.0), generator())
    assert torch.equal(torch.nn.functional.one_hot(data.labels_BN).sum(1), torch.tensor([30, 60, 10]).expand(200, 3))
    own = data.centers_BKD.gather(1, data.labels_BN[..., None].expand(-1, -1, 3))
    assert (data.points_BND - own).var().item() == pytest.approx(4.0, rel=0.03)
    torch.testing.assert_close(data.weights_BK[0], torch.tensor([0.3, 0.6, 0.1]))


def test_the_bayes_rule_names_far_clusters_right_and_knows_their_sizes():
    far = sample_separated([20, 20], 2, torch.full((5,), 30.0), torch.ones(5), generator())
    assert torch.equal(far.bayes_log_p_BNK().argmax(-1), far.labels_BN)
    near = sample_separated([90, 10], 2, torch.full((5,), 1e-3), torch.ones(5), generator())
    assert near.bayes_log_p_BNK().exp().mean((0, 1)).tolist() == pytest.approx([0.9, 0.1], abs=0.01)


def test_the_mixed_prior_stays_within_its_limits():
    prior = SeparatedPrior()
    for seed in range(60):
        data = prior.sample(3000, generator(seed))
        _, N, D = data.points_BND.shape
        assert 1 <= D <= 16
        assert 2 <= data.n_clusters <= 10
        assert 50 <= N <= 400
        assert (data.weights_BK * N >= prior.smallest - 0.5).all()
        assert data.points_BND.isfinite().all()


def test_the_same_seed_gives_the_same_data():
    one, two = (SeparatedPrior().sample(3000, generator(4)) for _ in range(2))
    assert torch.equal(one.points_BND, two.points_BND)
