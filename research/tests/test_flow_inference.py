import torch

from coterie import checkpoints
from coterie.mixtures.atoms import flow_tokens
from coterie.mixtures.spherical_sampler import Sweeps
from coterie_research.measure_flows.inference import barycentre, cell_tokens
from coterie_research.metrics import squared_w2
from coterie_research.training.flow.cells import grid_cells
from coterie_research.training.flow.prior import MixturePrior, sample_mixtures
from coterie_research.training.flow.targets import Atoms, posterior_samples


def drawn(n_sets, n_points, snr_db, dim=2):
    prior = MixturePrior(clusters=(3, 7), snr_db=(snr_db, snr_db), dims=(dim, dim))
    return sample_mixtures(prior, n_sets, n_points, torch.Generator().manual_seed(0))


def test_cells_have_the_means_and_the_counts_of_their_points():
    points = torch.tensor([[0.0, 0.0], [0.1, 0.1], [5.0, 5.0], [5.1, 4.9], [5.2, 5.1]])
    centers, counts, cell = grid_cells(points, 3.0)
    assert sorted(counts.tolist()) == [2, 3]
    torch.testing.assert_close(centers[cell[:2]], torch.tensor([[0.05, 0.05]]).expand(2, -1))
    torch.testing.assert_close(centers[cell[2:]], torch.tensor([[5.1, 5.0]]).expand(3, -1))


def test_cells_move_with_the_points():
    points = drawn(1, 300, 10.0).points_BND[0].double()
    _, _, cell = grid_cells(points, 0.2)
    _, _, moved = grid_cells(points + 2.0**20 + 0.07, 0.2)
    assert (cell == moved).all()


def test_cells_hardly_change_the_measure_of_the_tokens():
    network = checkpoints.load("flow-d2")
    for snr_db in (5.0, 10.0, 15.0):
        data = drawn(8, 600, snr_db)
        exact = flow_tokens(network, data.points_BND, data.snr_db_B)
        fast = cell_tokens(network, data.points_BND, data.snr_db_B)
        errors = [squared_w2(tokens, data.centers_BKD, data.empirical_weights_BK).mean() for tokens in (exact, fast)]
        assert errors[1] < 1.05 * errors[0]
        assert len(fast[0].unique(dim=0)) < 0.6 * len(exact[0].unique(dim=0))


def test_points_that_share_no_cells_are_read_as_they_are():
    network = checkpoints.load("flow-d8")
    data = drawn(2, 100, 10.0, dim=8)
    exact, fast = (tokens(network, data.points_BND, data.snr_db_B) for tokens in (flow_tokens, cell_tokens))
    torch.testing.assert_close(fast, exact, atol=1e-4, rtol=0)


def test_barycentre_of_one_draw_is_that_draw():
    data = drawn(6, 200, 10.0)
    moved = barycentre(data.points_BND, Atoms(data.centers_BKD[None], data.empirical_weights_BK[None]))
    assert squared_w2(moved, data.centers_BKD, data.empirical_weights_BK).max() < 1e-6


def test_averaging_beats_the_mean_draw_where_clusters_overlap():
    data = drawn(10, 200, 4.0)
    generator = torch.Generator().manual_seed(2)
    signal = data.var_B * 10 ** (data.snr_db_B / 10)
    draws = posterior_samples(
        data.points_BND, Atoms(data.centers_BKD, data.weights_BK), data.var_B, signal, generator, Sweeps(120, 10, 48)
    )
    single = torch.stack([squared_w2(c, data.centers_BKD, data.empirical_weights_BK, w) for c, w in zip(*draws)]).mean()
    average = squared_w2(barycentre(data.points_BND, draws), data.centers_BKD, data.empirical_weights_BK).mean()
    assert average < 0.9 * single


def test_a_variance_that_is_not_known_is_found():
    data = drawn(4, 400, 12.0)
    start = Atoms(data.centers_BKD, data.weights_BK)
    signal, far = torch.ones(4), 3 * data.var_B
    sweeps = Sweeps(burn_in=100, apart=10, n_draws=10)
    errors = []
    for known in (True, False):
        generator = torch.Generator().manual_seed(9)
        draws = posterior_samples(data.points_BND, start, far, signal, generator, sweeps, var_known=known)
        average = barycentre(data.points_BND, draws)
        errors.append(squared_w2(average, data.centers_BKD, data.empirical_weights_BK).mean())
    assert errors[1] < 0.5 * errors[0]
