"""The report as a whole: for every estimator, complete, safe and small."""

import base64
import hashlib
import re

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.cluster import DBSCAN
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import coterie
from coterie.explain.report import report, report_on
from coterie.files import OutputError
from coterie.tabular import ClusteredTable
from tests.explain.pages import Reader

ATTACK = '</script><img src=x onerror="alert(1)"><script>alert(2)</script>&amp;\u2028'
SECTIONS = [
    "Summary",
    "Warnings",
    "Map of the rows",
    "Sizes",
    "Differences between the clusters",
    "Certainty",
    "Outliers",
    "Layer by layer",
    "Stability",
    "Number of clusters",
    "Method",
    "Reproduce",
]


def blobs(n=120, d=4, k=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) + 8 * np.eye(max(d, k))[np.arange(n) % k][:, :d]


def kmeans(k=3, **settings):
    return coterie.KMeans(k, engine="fused", random_state=0, **settings)


@pytest.mark.parametrize(
    "estimator",
    [
        kmeans(),
        coterie.KMeans(3, engine="literal", random_state=0),
        coterie.SoftKMeans(3, random_state=0),
        coterie.SphericalKMeans(3, random_state=0),
        coterie.TrimmedKMeans(3, outliers=0.1, random_state=0),
        coterie.RobustKMeans(3, random_state=0),
        coterie.KMedoids(3, random_state=0, max_iter=5),
        coterie.AttentionClustering("soft", 3, random_state=0),
        coterie.AttentionClustering("lloyd/spherical-layernorm", 3, engine="literal", random_state=0),
        coterie.FlowMixture(random_state=0),
        coterie.InContextClusterer(3),
        DBSCAN(eps=3),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_every_estimator_gets_a_whole_report(estimator):
    X = blobs()
    page = Reader(report(estimator.fit(X), X, refits=1).html)
    assert [title for title in SECTIONS if title in page.titles] == page.titles
    assert set(SECTIONS) - set(page.titles) <= {"Number of clusters"}
    assert type(estimator).__name__ in page.text
    assert "nan" not in page.text.lower().split()
    assert "Map of the rows, coloured by cluster" in page.figures


def test_the_file_is_complete_and_only_its_own_scripts_may_run(tmp_path, whole_pages):
    X = blobs()
    path = tmp_path / "report.html"
    made = report(kmeans().fit(X), X, path, refits=1)
    assert path.read_text(encoding="utf-8") == made.html
    assert made.html.count("Plotly=") + made.html.count("plotly.js v") >= 1
    page = Reader(made.html)
    assert len(page.scripts) == 2
    policy = next(a["content"] for tag, a in page.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in policy
    for script in page.scripts:
        assert base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() in policy
    assert not [a for tag, a in page.elements if "src" in a]
    assert not [a for tag, a in page.elements if "href" in a and not a["href"].startswith("#")]
    assert len(made.html) < 6_000_000
    shown = made._repr_html_()
    assert "iframe" in shown
    assert "\n" not in shown  # pages that show notebooks indent lines, and the scripts are known by their hashes
    assert "\t" not in shown
    assert "MB" in repr(made)


def test_names_and_cells_that_are_html_do_no_harm():
    X = blobs()
    names = [ATTACK + str(i) for i in range(4)]
    frame = pd.DataFrame(X, columns=names, index=[ATTACK + str(i) for i in range(120)])
    frame["kind" + ATTACK] = np.where(np.arange(120) % 3 == 0, ATTACK, "plain")
    fitted = coterie.TrimmedKMeans(3, random_state=0).fit(X)
    told = ClusteredTable.of(fitted, X, frame, names, notes=(ATTACK,), source=ATTACK)
    made = report_on(told, title=ATTACK, refits=1, command=ATTACK)
    clean = Reader(report(fitted, X, refits=1).html)
    page = Reader(made.html)
    known = {tag for tag, _ in clean.elements} | {"ul", "li"}
    assert {tag for tag, _ in page.elements} <= known
    assert len(page.scripts) == 2
    assert page.scripts == clean.scripts
    assert not [a for _, a in page.elements if any(name.startswith("on") for name in a)]
    assert "<img src=x" in page.text
    assert "</script><img" not in made.html


def test_a_table_in_its_own_units_is_shown_in_them():
    X = blobs()
    frame = pd.DataFrame(X * [1, 10, 100, 1000] + 5_000, columns=list("abcd"))
    frame["name"] = [f"person {i}" for i in range(120)]
    frame["town"] = np.array(["Ulm", "Bonn", "Kiel"])[np.arange(120) % 3]
    scaled = StandardScaler().fit_transform(frame[list("abcd")])
    page = Reader(report(kmeans().fit(scaled), scaled, table=frame, columns=list("abcd"), refits=1).html)
    assert "which were scaled" in page.text
    assert re.search(r"town: (Ulm|Bonn|Kiel) in 100% of its rows \(33% of all rows\)", page.text)
    assert "person" in page.text
    heat = page.figures["Heat map of the means of the columns in each cluster"]["data"][0]
    assert all(float(cell.replace(",", "")) > 4_000 for row in heat["text"] for cell in row)
    two = Reader(report(kmeans().fit(scaled[:, :2]), scaled[:, :2], table=frame, columns=["a", "b"], refits=1).html)
    axis = two.figures["Map of the rows, coloured by cluster"]["layout"]["xaxis"]
    assert axis["title"]["text"] == "a"
    assert axis["range"][0] > 4_000


def test_a_pipeline_is_taken_apart():
    frame = pd.DataFrame(blobs() * [1, 10, 100, 1000], columns=list("abcd"))
    fitted = make_pipeline(StandardScaler(), kmeans()).fit(frame)
    page = Reader(report(fitted, frame, refits=1).html)
    assert "prepared by StandardScaler" in page.text
    assert "Pipeline(steps=[('standardscaler', StandardScaler())," in page.text
    assert "from coterie import KMeans" in page.text


@pytest.mark.parametrize("view", ["columns", "pca", ("b", "d"), (0, 2)])
def test_the_map_can_be_chosen(view):
    frame = pd.DataFrame(blobs(), columns=list("abcd"))
    page = Reader(report(kmeans().fit(frame), frame, view=view, refits=0).html)
    title = page.figures["Map of the rows, coloured by cluster"]["layout"]["xaxis"]["title"]["text"]
    assert title == {"columns": "a", ("b", "d"): "b", (0, 2): "a"}.get(view) or title.startswith("principal")


@pytest.mark.parametrize("shape", [(40, 1), (40, 2), (3, 3), (40, 300)])
def test_any_shape_and_one_cluster(shape):
    X = np.random.default_rng(0).normal(size=shape)
    for k in (1, 3):
        page = Reader(report(kmeans(k).fit(X), X, refits=1).html)
        assert f"{k} cluster" in page.text


def test_sparse_rows_constant_columns_and_equal_rows():
    X = blobs(60)
    X[:, 3] = 7.0
    X[30:] = X[:30]
    for rows in (X, sparse.csr_matrix(X)):
        page = Reader(report(kmeans().fit(rows), rows, refits=1).html)
        assert "'x3' has the same value in every row" in page.text


def test_wrong_rows_unfitted_estimators_and_bad_places_are_refused(tmp_path):
    X = blobs()
    with pytest.raises(ValueError, match="X has 60 rows, but the estimator was fitted to 120"):
        report(kmeans().fit(X), X[:60])
    with pytest.raises(NotFittedError):
        report(kmeans(), X)
    with pytest.raises(OutputError, match="no folder"):
        report(kmeans().fit(X), X, tmp_path / "none" / "a.html")
    with pytest.raises(ValueError, match="table has 3 rows"):
        report(kmeans().fit(X), X, table=pd.DataFrame({"a": [1, 2, 3]}))
    with pytest.raises(ValueError, match="X has 1 columns, but the estimator was fitted to 4"):
        report(kmeans().fit(X), X[:, :1])
    with pytest.raises(ValueError, match=r"ends in \.html"):
        report(kmeans().fit(X), X, tmp_path / "a.pdf")
    with pytest.raises(ValueError, match="only outliers"):
        report(DBSCAN(eps=1e-9).fit(X), X)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_hundred_thousand_rows_stay_under_ten_megabytes(whole_pages):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(100_000, 6)) + 6 * rng.integers(0, 3, size=(100_000, 1)), columns=list("abcdef"))
    made = report(kmeans(max_iter=5).fit(X), X, refits=1)
    assert len(made.html.encode()) < 10_000_000
    assert "All 100,000 rows are counted in small squares" in made.html


def test_a_report_takes_what_the_estimator_took(tmp_path):
    X = blobs()
    np.save(tmp_path / "rows.npy", X)
    fitted = kmeans().fit(tmp_path / "rows.npy")
    fitted.labels_ = fitted.predict(X)
    assert "120 rows" in Reader(report(fitted, tmp_path / "rows.npy", refits=0).html).text
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.round(20 * X[:, 2]) % 200, unit="D")
    mixed = pd.DataFrame({"a": X[:, 0], "kind": np.where(X[:, 1] > 2, "x", "y"), "day": day})
    mixed.loc[3, "a"] = np.nan
    page = Reader(
        report(coterie.ZeroShotClusterer(2, kinds={"day": "date"}, random_state=0).fit(mixed), mixed, refits=0).html
    )
    assert "kind" in page.text
    assert "2024-0" in page.text
    assert "Probability of each number of clusters" in page.figures
