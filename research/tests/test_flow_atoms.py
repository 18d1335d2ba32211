import pytest
import torch

from coterie.mixtures.atoms import noise_variance
from coterie_research.measure_flows.atoms import log_joint, merge_all, prune, refine, run_em
from coterie_research.training.flow.prior import MixturePrior, sample_mixtures
from coterie_research.training.flow.targets import Atoms


def test_tokens_at_a_few_places_become_those_places():
    places = torch.tensor([[0.0, 0.0], [5.0, 0.0], [0.0, 5.0]])
    labels = torch.tensor([0] * 50 + [1] * 30 + [2])
    tokens = places[labels] + 0.01 * torch.randn(81, 2, generator=torch.Generator().manual_seed(0))
    atoms = merge_all(tokens[None], torch.tensor([0.5]))
    order = atoms.weights_BK[0].argsort(descending=True)
    torch.testing.assert_close(atoms.weights_BK[0][order] * 81, torch.tensor([50.0, 30.0, 1.0]))
    torch.testing.assert_close(atoms.centers_BKD[0][order], places, atol=0.03, rtol=0)


def test_merged_atoms_keep_mass_and_mean():
    tokens = torch.randn(3, 200, 2, generator=torch.Generator().manual_seed(1))
    atoms = merge_all(tokens, torch.tensor([0.1, 0.5, 100.0]))
    torch.testing.assert_close(atoms.weights_BK.sum(1), torch.ones(3))
    mean = (atoms.weights_BK[..., None] * atoms.centers_BKD).sum(1)
    torch.testing.assert_close(mean, tokens.mean(1), atol=1e-5, rtol=0)
    assert (atoms.weights_BK[2] > 0).sum() == 1


def test_em_steps_raise_the_likelihood_and_leave_padding_alone():
    data = sample_mixtures(MixturePrior(clusters=(3, 5), snr_db=(8.0, 8.0)), 4, 300, torch.Generator().manual_seed(2))
    points = data.points_BND.double()
    var = data.var_B.double()
    atoms = Atoms(data.centers_BKD.double() + 0.3, data.weights_BK.double())
    before = log_joint(points, atoms, var).logsumexp(-1).mean(1)
    for _ in range(5):
        atoms = refine(points, atoms, var, 1)
        after = log_joint(points, atoms, var).logsumexp(-1).mean(1)
        assert (after >= before - 1e-12).all()
        before = after
    assert ((atoms.weights_BK == 0) == (data.weights_BK == 0)).all()
    assert torch.isfinite(atoms.centers_BKD).all()


def test_the_variance_that_an_snr_implies_is_the_noises():
    data = sample_mixtures(MixturePrior(snr_db=(12.0, 12.0)), 50, 4000, torch.Generator().manual_seed(3))
    ratio = noise_variance(data.points_BND, data.snr_db_B) / data.var_B
    assert ratio.mean().item() == pytest.approx(1, abs=0.02)


def test_atoms_that_the_likelihood_does_not_need_are_dropped():
    generator = torch.Generator().manual_seed(4)
    places = torch.tensor([[0.0, 0.0], [8.0, 0.0], [0.0, 8.0]], dtype=torch.float64)
    labels = torch.randint(3, (2, 300), generator=generator)
    points = places[labels] + torch.randn(2, 300, 2, generator=generator, dtype=torch.float64)
    extra = torch.cat([places, places + 0.5, places - 0.5]).expand(2, 9, 2)
    atoms = Atoms(extra.clone(), torch.full((2, 9), 1 / 9, dtype=torch.float64))
    kept = prune(points, refine(points, atoms, torch.ones(2).double(), 5), torch.ones(2).double())
    assert ((kept.weights_BK > 0).sum(1) == 3).all()
    for centers, weights in zip(kept.centers_BKD, kept.weights_BK):
        assert torch.cdist(places, centers[weights > 0]).min(1).values.max() < 0.5


def test_equal_tokens_are_one_atom_however_small_the_radius():
    places = torch.randn(9, 8, generator=torch.Generator().manual_seed(6))
    atoms = merge_all(places.repeat(4, 1)[None], torch.tensor([1e-6]))
    assert atoms.weights_BK.shape == (1, 9)
    torch.testing.assert_close(atoms.weights_BK, torch.full((1, 9), 1 / 9))
    assert torch.isfinite(atoms.centers_BKD).all()


def test_em_stops_when_the_likelihood_does_not_rise_and_finds_the_variance():
    data = sample_mixtures(
        MixturePrior(clusters=(3, 3), snr_db=(15.0, 15.0)), 1, 2000, torch.Generator().manual_seed(9)
    )
    points, start = data.points_BND.double(), Atoms(data.centers_BKD.double()[:, :3], data.weights_BK.double()[:, :3])
    found = run_em(points, start, 3 * data.var_B.double(), max_iter=100, tol=1e-6, var_known=False)
    assert found.converged
    assert found.n_iter < 100
    assert found.state[1].item() == pytest.approx(data.var_B.item(), rel=0.1)
    assert not run_em(points, start, data.var_B.double(), max_iter=1, tol=0.0).converged
