import os
import warnings

import matplotlib
import numpy as np
import pytest
from matplotlib.image import imread

from coterie import palette, plot
from coterie.plot.view import MAX_POINTS, View, bulk


@pytest.fixture
def blobs():
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(3), 60)
    return rng.normal(size=(180, 5)) + 8 * np.eye(5)[labels], labels


def picture(path):
    pixels = imread(path)
    assert pixels.std() > 0.02, "the picture is blank"
    return pixels


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_any_number_of_columns_is_drawn(tmp_path, blobs, d):
    X, labels = blobs
    labels = np.where(np.arange(180) % 30 == 0, -1, labels)
    centers = np.array([X[labels == j, :d].mean(axis=0) for j in range(3)])
    path = plot.save_clusters(tmp_path / "a.png", X[:, :d], labels, centers, [f"column {i}" for i in range(d)], "Title")
    picture(path)
    assert os.listdir(tmp_path) == ["a.png"]


def test_every_cluster_has_its_colour_on_the_paper(tmp_path, blobs):
    X, labels = blobs
    pixels = (picture(plot.save_clusters(tmp_path / "a.png", X[:, :3], labels))[..., :3] * 255).round().astype(int)
    for color in plot.PALETTE[:3]:
        wanted = [int(color[i : i + 2], 16) for i in (1, 3, 5)]
        assert (np.abs(pixels - wanted).max(axis=-1) <= 2).sum() > 50
    unused = [int(plot.PALETTE[3][i : i + 2], 16) for i in (1, 3, 5)]
    assert (np.abs(pixels - unused).max(axis=-1) <= 2).sum() == 0


def test_fortynine_clusters_are_told_apart_by_colour_and_marker():
    looks = {(palette.color(j), palette.marker(j)) for j in range(len(plot.PALETTE) * len(plot.MARKERS))}
    assert len(looks) == 49


def test_degenerate_data_is_drawn_without_warnings(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for X in (np.ones((4, 3)), np.ones((1, 4)), np.zeros((3, 2)), np.full((3, 1), 7.0)):
            plot.save_clusters(tmp_path / "a.png", X, np.zeros(len(X), dtype=int), X[:1])
        plot.save_clusters(tmp_path / "a.png", np.eye(2), np.array([-1, -1]))


def test_column_names_are_words_not_formulas(tmp_path):
    names = ["cost $x_{$ of 日本", "a" * 300]
    plot.save_clusters(tmp_path / "a.png", np.eye(2), np.array([0, 1]), names=names, title="$\\frac$")
    picture(tmp_path / "a.png")


def test_many_points_are_sampled_and_the_view_says_so():
    X = np.random.default_rng(0).normal(size=(50_000, 2))
    view = View(X, None)
    assert len(view.points) == MAX_POINTS
    assert view.note == "20,000 of 50,000 points are shown"


def test_principal_axes_report_their_variance():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3)) * [2, 1, 0.01]
    shares = X.var(axis=0) / X.var(axis=0).sum()
    assert View(X, None).titles == [f"principal axis {i + 1} ({shares[i]:.0%} of the variance)" for i in range(2)]


def test_one_far_outlier_does_not_shrink_the_rest():
    rng = np.random.default_rng(0)
    least, most = bulk(np.vstack([rng.normal(size=(500, 2)), [[1e6, 1e6]]]))
    assert (most - least < 10).all()


def test_a_comparison_is_one_wide_picture(tmp_path, blobs):
    X, labels = blobs
    centers = np.array([X[labels == j].mean(axis=0) for j in range(3)])
    runs = [plot.Panel("one", labels, centers), plot.Panel("two", np.where(labels == 0, -1, labels), None)]
    wide = picture(plot.save_comparison(tmp_path / "c.png", X, runs, true_centers=centers, window=(-9, 9)))
    assert wide.shape[1] > wide.shape[0]


def test_global_state_is_left_alone(tmp_path, blobs):
    before = dict(matplotlib.rcParams)
    plot.save_clusters(tmp_path / "a.png", *blobs)
    assert dict(matplotlib.rcParams) == before


def test_labels_of_other_rows_are_refused(tmp_path):
    X = np.zeros((5, 2))
    wrong = [0, 1]
    for draw in (plot.clusters, plot.profile, plot.distributions):
        with pytest.raises(ValueError, match=r"one label per row, shape \(5,\); got shape \(2,\)"):
            draw(X, wrong)
    with pytest.raises(ValueError, match="one label per row"):
        plot.save_clusters(tmp_path / "a.png", X, wrong)
    with pytest.raises(ValueError, match="one label per row"):
        plot.silhouette(np.zeros(5), wrong)
    assert list(tmp_path.iterdir()) == []


def test_pictures_of_other_formats_and_in_missing_folders_are_refused(tmp_path):
    X, labels = np.eye(4), np.array([0, 0, 1, 1])
    with pytest.raises(ValueError, match=r"ends in \.png or \.svg"):
        plot.save_clusters(tmp_path / "a.gif", X, labels)
    with pytest.raises(OSError, match="there is no folder"):
        plot.save_clusters(tmp_path / "none" / "a.png", X, labels)
