"""The plotly figures: what they show, what they weigh, and that users' words stay words."""

import json

import numpy as np
import plotly.graph_objects as go
import pytest

import coterie
from coterie import KMeans, plot
from coterie.plot.maps import SVG_POINTS
from coterie.plot.themes import INKS, template
from coterie.plot.view import View


@pytest.fixture(scope="module")
def blobs():
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(3), 60)
    return rng.normal(size=(180, 5)) + 8 * np.eye(5)[labels], labels


@pytest.fixture(scope="module")
def fitted(blobs):
    return KMeans(3, init="random", n_init=1, engine="literal", random_state=1).fit(blobs[0])


def test_plot_is_reached_from_the_package():
    assert coterie.plot.clusters is plot.clusters
    assert "plot" in dir(coterie)
    assert "report" in dir(coterie)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_every_cluster_is_a_trace_in_its_colour_and_outliers_are_grey_crosses(blobs, d):
    X, labels = blobs
    labels = np.where(np.arange(180) % 30 == 0, -1, labels)
    figure = plot.clusters(X[:, :d], labels, X[:3, :d])
    named = {trace.name: trace for trace in figure.data if trace.name != "centres"}
    assert list(named) == ["cluster 0 (58)", "cluster 1 (58)", "cluster 2 (58)", "outliers (6)"]
    assert named["cluster 1 (58)"].marker.color == plot.PALETTE[1]
    assert named["outliers (6)"].marker.color == plot.OUTLIER
    if d > 1:
        assert named["outliers (6)"].marker.symbol == "x-thin"


def test_points_become_webgl_and_then_squares_as_they_get_more():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, 3))
    labels = (X[:, 0] > 0).astype(int)
    few = plot.clusters(X[:SVG_POINTS], labels[:SVG_POINTS])
    more = plot.clusters(X[:10_000], labels[:10_000])
    many = plot.clusters(X, labels)
    assert {trace.type for trace in few.data} == {"scatter"}
    assert {trace.type for trace in more.data} == {"scattergl"}
    assert "heatmap" in {trace.type for trace in many.data}
    assert len(many.to_json()) < 300_000


def test_squares_count_every_point_in_the_frame():
    X = np.random.default_rng(0).uniform(size=(25_000, 2))
    figure = plot.clusters(X, np.zeros(25_000, dtype=int))
    counts = np.nan_to_num(np.asarray(figure.data[0].z, dtype=float)) ** 2
    assert counts.sum() == pytest.approx(25_000, rel=1e-3)


def test_a_view_by_name_takes_those_columns_and_a_wrong_name_is_told(blobs):
    X, labels = blobs
    figure = plot.clusters(X, labels, names=list("abcde"), view=("d", "b"))
    np.testing.assert_allclose(figure.data[0].x, X[labels == 0, 3], atol=0.01)
    assert figure.layout.xaxis.title.text == "d"
    with pytest.raises(ValueError, match="no column 'z'"):
        plot.clusters(X, labels, names=list("abcde"), view=("z", "b"))
    with pytest.raises(ValueError, match="'auto', 'columns', 'pca', 'umap'"):
        View(X, None, "tsne")


def test_principal_axes_agree_by_covariance_and_by_singular_values():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 6)) * [5, 3, 1, 1, 1, 1]
    tall, flat = View(X), View(X[:20])
    again = View(np.repeat(X[:20], 2, axis=0))  # twice the rows: the other way of computing, the same axes
    np.testing.assert_allclose(flat.axes, again.axes, atol=1e-8)
    assert tall.axes.shape == (6, 2)


def test_profile_writes_means_and_keeps_the_columns_that_differ(blobs):
    X, labels = blobs
    figure = plot.profile(X, labels, list("abcde"))
    heat = figure.data[0]
    assert list(heat.y) == list("abcde")
    assert float(heat.text[0][0]) == pytest.approx(X[labels == 0, 0].mean(), rel=1e-3)
    assert list(plot.profile(X, labels, list("abcde"), max_columns=3).data[0].y) == ["a", "b", "c"]
    alike = plot.profile(X, labels, ["a" * 100 + str(i) for i in range(5)]).data[0]
    assert len(set(alike.y)) == 5


def test_trajectory_attention_and_objective_have_a_frame_a_layer(blobs, fitted):
    X, _ = blobs
    layers = fitted.n_iter_
    for figure in (plot.trajectory(X, fitted.trajectory_), plot.attention(X, fitted.trajectory_)):
        assert len(figure.frames) == layers
        assert len(figure.layout.sliders[0].steps) == layers
    start = X[:3]
    figure = plot.objective(X, fitted.trajectory_, start=start, controls=False)
    assert [frame.name for frame in figure.frames] == ["start", *(str(i + 1) for i in range(layers))]
    assert figure.layout.sliders == ()
    values = np.asarray(figure.data[0].y)
    assert (np.diff(values) <= 1e-3 * values[0]).all()
    assert values[-1] == pytest.approx(fitted.inertia_, rel=1e-3)


def test_attention_ends_as_a_staircase(blobs, fitted):
    seen = np.asarray(plot.attention(blobs[0], fitted.trajectory_).frames[-1].data[0].z)
    assert set(np.unique(seen)) == {0, 100}
    assert (np.diff(seen.argmax(axis=0)) >= 0).all()


def test_no_layers_are_refused_with_the_remedy(blobs):
    with pytest.raises(ValueError, match="engine='literal'"):
        plot.trajectory(blobs[0], [])


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_ink_stands_out_from_the_paper(theme):
    def light(color: str) -> float:
        parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return float(np.dot([0.2126, 0.7152, 0.0722], linear))

    paper, ink, faint, _ = INKS[theme]
    for color in (ink, faint):
        high, low = sorted([light(color), light(paper)], reverse=True)
        assert (high + 0.05) / (low + 0.05) >= 4.5
    go.Figure(layout={"template": template(theme)})


def test_users_words_are_no_markup(blobs):
    X, labels = blobs
    names = ["<b>bold</b>", "a & b", "c", "d", "<script>alert(1)</script>"]
    for figure in (
        plot.clusters(X, labels, names=names, view=(0, 4), title="<i>t</i>", row_names=["<u>r</u>"] * 180),
        plot.profile(X, labels, names),
    ):
        text = json.dumps(figure.to_dict(), default=str)
        for word in ("<b>bold", "<script>", "<i>t", "<u>r"):
            assert word not in text
        assert "&lt;" in text


def test_rows_on_a_bent_map_stand_amid_their_neighbours(monkeypatch):
    """UMAP itself is slow to load: a stand-in that doubles two columns shows what the view makes of it."""
    import sys
    from types import SimpleNamespace

    class Doubling:
        def __init__(self, **settings):
            pass

        def fit_transform(self, X):
            return 2 * X[:, :2]

    monkeypatch.setitem(sys.modules, "umap", SimpleNamespace(UMAP=Doubling))
    X = np.random.default_rng(0).normal(size=(6_000, 3))
    view = View(X, kind="umap")
    assert view.note == "5,000 of 6,000 points are shown"
    assert np.abs(view.place(np.zeros((1, 3)))).max() < 0.5
    assert plot.clusters(X, np.zeros(6_000, dtype=int), X[:1], view=view).data[0].type == "scattergl"
    monkeypatch.setitem(sys.modules, "umap", None)
    with pytest.raises(ImportError, match="pip install umap-learn"):
        View(X, kind="umap")
