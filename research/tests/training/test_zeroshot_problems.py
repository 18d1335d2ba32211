import numpy as np
import pytest

from coterie_research.training.zeroshot.prior.arrangements import unequal_widths
from coterie_research.training.zeroshot.prior.problems import (
    ARRANGEMENTS,
    NOISE,
    SOLVABLE,
    Prior,
    _neighbours_agree,
    scaled,
)


@pytest.mark.parametrize("seed", range(12))
def test_a_draw_is_whole(seed):
    problem = Prior().draw(np.random.default_rng(seed), 120)
    assert problem.points_ND.shape[0] == len(problem.labels_N) == 120
    assert np.isfinite(problem.points_ND).all()
    inside = problem.labels_N[problem.labels_N != NOISE]
    assert np.unique(inside).tolist() == list(range(problem.n_clusters))


def test_the_same_generator_gives_the_same_problem():
    one, other = (Prior().draw(np.random.default_rng(5), 80) for _ in range(2))
    assert np.array_equal(one.points_ND, other.points_ND)
    assert np.array_equal(one.labels_N, other.labels_N)


@pytest.mark.parametrize("kind", ARRANGEMENTS)
@pytest.mark.parametrize("dims", [2, 3])
def test_every_arrangement_gives_each_cluster_its_points(kind, dims):
    counts = np.array([20, 35, 15])
    parts = ARRANGEMENTS[kind][0](np.random.default_rng(1), counts, dims)
    assert [part.shape for part in parts] == [(m, dims) for m in counts]


def test_numbers_of_clusters_and_dimensions_span_their_ranges():
    rng = np.random.default_rng(0)
    problems = [Prior(many=0).draw(rng, 160) for _ in range(150)]
    counts = {problem.n_clusters for problem in problems}
    assert min(counts) == 1
    assert max(counts) >= 14
    dims = {problem.points_ND.shape[1] for problem in problems}
    assert min(dims) == 1
    assert max(dims) > 16  # columns that repeat the others


def test_most_problems_can_be_solved():
    rng = np.random.default_rng(3)
    shares = []
    for _ in range(40):
        problem = Prior(noise=0.0).draw(rng, 100, "shapes")
        shares.append(_neighbours_agree(problem.points_ND, problem.labels_N))
    assert np.mean(np.array(shares) >= SOLVABLE) > 0.95


def test_neighbours_agree_by_hand():
    points = np.array([[0.0], [1.0], [5.0], [5.5], [6.5]])
    assert _neighbours_agree(points, np.array([0, 0, 1, 1, 0])) == pytest.approx(4 / 5)


def test_scaling_does_not_mind_single_far_values():
    column = np.r_[np.random.default_rng(0).normal(10, 3, size=500), 1e6]
    result = scaled(column[:, None])[:-1, 0]
    assert np.median(result) == pytest.approx(0, abs=0.01)
    assert 0.7 < result.std() < 1.1


def test_a_constant_column_stays_finite():
    assert np.isfinite(scaled(np.full((10, 2), 7.0))).all()


@pytest.mark.parametrize("family", ["shapes", "tables", "mixed"])
def test_uneven_draws_have_wide_clusters_beside_narrow_ones(family):
    def contrast(uneven):
        """The median ratio of the widest cluster's deviation to the narrowest's."""
        ratios = []
        for seed in range(80):
            prior = Prior(clusters=(3, 4), noise=0.0, uneven=uneven)
            problem = prior.draw(np.random.default_rng(seed), 200, family)
            parts = [problem.points_ND[problem.labels_N == label] for label in range(problem.n_clusters)]
            widths = [np.sqrt(part.var(axis=0).sum()) for part in parts]
            ratios.append(max(widths) / max(min(widths), 1e-9))
        return np.median(ratios)

    assert contrast(1.0) > 1.3 * contrast(0.0)


def test_larger_clusters_are_mostly_the_wider_ones():
    counts = np.array([300, 20, 80])
    widths = np.array([unequal_widths(np.random.default_rng(seed), counts) for seed in range(200)])
    assert np.mean((widths.argsort(axis=1) == counts.argsort()).all(axis=1)) > 0.65
