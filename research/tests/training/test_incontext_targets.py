import torch

from coterie_research.training.incontext.prior import sample_separated
from coterie_research.training.incontext.run import aligned_targets, pair_loss, posterior_members, together


def far(batch=2):
    generator = torch.Generator().manual_seed(0)
    return sample_separated([15, 10, 20], 2, torch.full((batch,), 20.0), torch.ones(batch), generator)


def test_the_posterior_of_far_clusters_is_the_truth():
    data = far()
    members = posterior_members(data, torch.Generator().manual_seed(1), n_draws=4, apart=2)
    truth = torch.nn.functional.one_hot(data.labels_BN, 3).float()
    torch.testing.assert_close(members, truth[:, None].expand_as(members), atol=1e-4, rtol=0)


def test_targets_take_the_networks_names():
    data = far()
    members = posterior_members(data, torch.Generator().manual_seed(1), n_draws=4, apart=2)
    names = torch.tensor([2, 0, 1])
    answer = (members[:, 0][..., names] * 0.97 + 0.01).log()
    torch.testing.assert_close(aligned_targets(members, answer), members[:, 0][..., names], atol=1e-4, rtol=0)
    switched = torch.cat([members, members[..., names]], 1)  # a chain that renamed its clusters
    torch.testing.assert_close(aligned_targets(switched, answer), members[:, 0][..., names], atol=1e-4, rtol=0)


def test_the_pair_loss_is_least_for_the_posterior_itself():
    generator = torch.Generator().manual_seed(2)
    p = torch.rand(2, 30, 3, generator=generator).pow(3)
    p = p / p.sum(-1, keepdim=True)
    partners = torch.rand(2, 4, 30, generator=generator).argsort(-1)
    wanted = together(p[:, None], partners)
    least = pair_loss(p.log(), partners, wanted)
    for seed in range(5):
        noise = torch.randn(p.shape, generator=torch.Generator().manual_seed(seed))
        assert pair_loss((p.log() + 0.3 * noise).log_softmax(-1), partners, wanted) > least
