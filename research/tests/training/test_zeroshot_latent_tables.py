import numpy as np
import pytest

from coterie_research.training.zeroshot.prior.latent_tables import mixed_table, table
from coterie_research.training.zeroshot.prior.problems import (
    AGREEMENT,
    FAMILIES,
    NOISE,
    SOLVABLE,
    Prior,
    _neighbours_agree,
)


@pytest.mark.parametrize("draw", [table, mixed_table])
@pytest.mark.parametrize("seed", range(8))
def test_a_table_has_a_row_for_every_label_and_no_missing_value(draw, seed):
    labels = np.repeat([0, 1, 2], [30, 20, 10])
    points = draw(np.random.default_rng(seed), labels)
    assert points.shape[0] == 60
    assert np.isfinite(points).all()


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_can_be_drawn(family):
    problem = Prior().draw(np.random.default_rng(0), 160, family)
    assert len(problem.points_ND) == len(problem.labels_N) == 160
    assert problem.labels_N.max() == problem.n_clusters - 1


def test_many_clusters_are_17_to_100():
    rng = np.random.default_rng(0)
    counts = [Prior().draw(rng, n, "many").n_clusters for n in (120, 240, 400, 640)]
    assert min(counts) >= 17
    assert max(counts) <= 100


def test_tables_that_cannot_be_solved_are_drawn_again():
    rng = np.random.default_rng(1)
    for _ in range(20):
        problem = Prior(noise=0.0).draw(rng, 120, "tables")
        share = np.bincount(problem.labels_N) / 120
        chance = (share**2).sum()
        agree = _neighbours_agree(problem.points_ND, problem.labels_N)
        assert problem.n_clusters == 1 or (agree - chance) / (1 - chance) >= AGREEMENT or agree >= SOLVABLE


def test_rounding_leaves_enough_different_rows():
    rng = np.random.default_rng(3)
    for family in ("tables", "mixed"):
        for _ in range(20):
            problem = Prior().draw(rng, 80, family)
            assert len(np.unique(problem.points_ND, axis=0)) >= 3 * problem.n_clusters


def test_mixed_tables_have_no_background_noise():
    rng = np.random.default_rng(2)
    assert all((Prior(noise=1.0).draw(rng, 60, "mixed").labels_N != NOISE).all() for _ in range(5))
