"""One value for all fronts: the table is encoded once, and command line and studio give the same clusters."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import DBSCAN, AgglomerativeClustering
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner

import coterie
from coterie.cli import app
from coterie.explain import quality
from coterie.explain.report import report_on
from coterie.studio import clustering
from coterie.studio.limits import Limits
from coterie.studio.settings import run_settings
from coterie.studio.uploads import describe
from coterie.tables.encoding import Encoding
from coterie.tables.table import SAMPLES, read_table
from coterie.tabular import ClusteredTable, Request, SettingError, TableModel, Watcher, cluster_table
from tests.tabular.golden import mixed

WINE = SAMPLES / "wine.csv"
ROOT = Path(__file__).parents[2]


@pytest.fixture
def encodings(monkeypatch):
    """Counts how often an encoding is learned, and how often rows are encoded."""
    counts = {"learned": 0, "encoded": 0}
    learn, encode = Encoding.learn.__func__, Encoding.encode

    def counted(name, function):
        def call(*arguments, **settings):
            counts[name] += 1
            return function(*arguments, **settings)

        return call

    monkeypatch.setattr(Encoding, "learn", classmethod(counted("learned", learn)))
    monkeypatch.setattr(Encoding, "encode", counted("encoded", encode))
    return counts


@pytest.mark.parametrize(
    "words", ["", "-k 3 --encode", "-k 2..4 --scale -x cultivar"], ids=["zeroshot", "encoded", "scaled"]
)
def test_the_command_line_encodes_a_table_once(encodings, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    files = ["-o", "l.csv", "-p", "c.png", "-r", "r.html", "-s", "m", "--json"]
    done = CliRunner().invoke(app, ["cluster", str(WINE), *words.split(), *files])
    assert done.exit_code == 0, done.stderr
    assert encodings["encoded"] == 1
    assert encodings["learned"] == ("--scale" not in words)
    assert sorted(os.listdir()) == ["c.png", "l.csv", "m", "r.html"]


def test_pictures_and_reports_encode_nothing(encodings, tmp_path):
    made = cluster_table(WINE, Request(clusters=[3], encode=True))
    before = dict(encodings)
    made.save_picture(tmp_path / "a.png")
    made.save_picture(tmp_path / "b.png", view=["alcohol", "proline"])
    report_on(made, tmp_path / "a.html", refits=1)
    assert made.facts.n_clusters == 3
    assert encodings == before == {"learned": 1, "encoded": 1}


def studio_run(frame, folder, **given):
    columns = describe(frame)["columns"]
    chosen = [column["name"] for column in columns if column["used"]]
    wanted = run_settings({"columns": chosen, **given}, columns, Limits())
    folder.mkdir()
    clustering.run(frame, wanted, folder, lambda _: None)
    return np.load(folder / "labels.npy")


def test_a_run_of_the_studio_and_its_report_encode_a_table_once(encodings, tmp_path):
    frame = mixed()
    studio_run(frame, tmp_path / "run", clusters=3)
    _, made = clustering.read(frame, tmp_path / "run", "mixed.csv")
    report_on(made, refits=1)
    assert encodings == {"learned": 1, "encoded": 1}
    assert made.n == len(frame)
    assert any("similar row: 'age'" in note for note in made.run.notes)


def test_without_stored_rows_a_report_of_the_studio_encodes_them_again(tmp_path, monkeypatch):
    monkeypatch.setattr(clustering, "STORED_BYTES", 0)
    frame = mixed()
    studio_run(frame, tmp_path / "run", clusters=3, drop_missing=True)
    assert not (tmp_path / "run/points.npy").exists()
    _, made = clustering.read(frame, tmp_path / "run", "mixed.csv")
    assert made.n == len(made.points) == (frame["age"].notna() & frame["class"].notna()).sum()


@pytest.mark.parametrize(
    "request_, given",
    [
        (Request(encode=True, clusters=[3]), {"clusters": 3}),
        (Request(encode=True, criterion="silhouette"), {}),
        (Request(), {"algorithm": "zeroshot"}),
        (
            Request(encode=True, algorithm="trimmed", clusters=[4], settings={"outliers": 0.1}, seed=2),
            {"algorithm": "trimmed", "clusters": 4, "outliers": 0.1, "seed": 2},
        ),
        (Request(encode=True, algorithm="medoids", clusters=[3]), {"algorithm": "medoids", "clusters": 3}),
    ],
    ids=["kmeans", "chosen", "zeroshot", "trimmed", "medoids"],
)
def test_command_line_and_studio_give_the_same_labels(tmp_path, request_, given):
    frame = mixed(rows=120)
    expected = cluster_table(frame, request_).labels
    np.testing.assert_array_equal(studio_run(frame, tmp_path / "run", **given), expected)


def test_the_public_function_takes_a_path_or_a_frame_and_fields_of_a_request(tmp_path):
    frame = pd.read_csv(WINE)
    found = coterie.cluster_table(WINE, exclude=["cultivar"], clusters=3, scale=True, seed=1)
    points = StandardScaler().fit_transform(frame.drop(columns="cultivar"))
    assert adjusted_rand_score(found.labels, coterie.KMeans(3, n_init=10, random_state=1).fit_predict(points)) == 1
    again = coterie.cluster_table(frame, Request(exclude=["cultivar"], clusters=[3], scale=True, seed=1))
    np.testing.assert_array_equal(again.labels, found.labels)
    assert "<h2>Summary</h2>" in found.report(tmp_path / "wine.html", refits=0).html
    with pytest.raises(ValueError, match=r"or its fields \(clusters\), not both"):
        coterie.cluster_table(frame, Request(), clusters=3)
    with pytest.raises(TypeError, match="n_clusters"):
        coterie.cluster_table(frame, n_clusters=3)


def test_facts_describe_every_cluster_and_the_outliers():
    frame = pd.DataFrame({"a": [0.0, 0.1, 9.0, 9.1, 50.0], "b": [1.0, 1.0, 2.0, 2.0, 2.0]})
    made = cluster_table(frame, Request(algorithm="trimmed", clusters=[2], settings={"outliers": 0.2}))
    facts = made.facts
    assert [one.label for one in facts.summaries] == [0, 1, -1]
    assert facts.outliers == 1
    assert facts.n_clusters == 2
    assert facts.summaries[-1].center == {"a": 50.0, "b": 2.0}
    assert sum(one.size for one in facts.summaries) == facts.rows == 5
    assert any("only 5 rows for 2 clusters" in note for note in facts.notes)


@pytest.mark.parametrize("estimator", [DBSCAN(eps=3), AgglomerativeClustering(3)], ids=lambda one: type(one).__name__)
def test_estimators_of_scikit_learn_become_the_same_value(estimator):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2)) + 20 * np.eye(3)[np.arange(90) % 3][:, :2]
    made = ClusteredTable.of(estimator.fit(X), X)
    assert made.k == 3
    np.testing.assert_allclose(made.centers[0], X[made.labels == 0].mean(axis=0))
    assert sorted(one.size for one in made.facts.summaries) == [30, 30, 30]


def test_a_zero_shot_clusterer_of_a_mixed_table_can_be_reported_on():
    frame = mixed(rows=100).drop(columns=["name", "boarded"])
    fitted = coterie.ZeroShotClusterer(3).fit(frame)
    made = ClusteredTable.of(fitted, frame)
    assert made.point_names[-1].startswith("categories, axis")
    assert "class = third" in made.value_names
    assert "almost always class" in report_on(made, refits=0).html


def test_a_zero_shot_model_of_a_table_predicts_alone_or_with_its_encoding(tmp_path):
    frame = mixed(rows=100)
    made = cluster_table(frame)
    back = TableModel.load(made.model.save(tmp_path / "m"))
    np.testing.assert_array_equal(back.predict(frame), made.labels)
    np.testing.assert_array_equal(back.estimator.predict(frame[made.encoding.names]), made.labels)
    fitted = coterie.ZeroShotClusterer(random_state=0).fit(frame[made.encoding.names])
    fitted.save(tmp_path / "alone")
    np.testing.assert_array_equal(TableModel.load(tmp_path / "alone").predict(frame), made.labels)


def test_a_watcher_follows_the_work():
    told = []

    class Listener(Watcher):
        def on_encoded(self, rows, estimator):
            told.append(rows.points.shape)

        def fitting(self, estimator):
            told.append(type(estimator).__name__)
            return super().fitting(estimator)

    cluster_table(read_table(WINE), Request(exclude=["cultivar"], clusters=[3]), Listener())
    assert told == [(178, 13), "KMeans"]


def test_a_request_that_cannot_be_met_says_why():
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0]})
    for wanted, words in (
        (Request(clusters=[4]), "4 clusters were requested, but the table has 3 rows"),
        (Request(algorithm="flow", clusters=[2]), "determines the number of clusters itself"),
        (Request(criterion="gap", clusters=[2]), "from a range"),
        (Request(criterion="elbow"), "criterion must be one of"),
        (Request(algorithm="kmean"), "Did you mean 'kmeans'?"),
    ):
        with pytest.raises(SettingError, match=words.replace("?", r"\?")):
            cluster_table(frame, wanted)
    with pytest.raises(SettingError, match="too few"):
        cluster_table(frame[:2], Request(algorithm="kmeans"))


def test_k_means_on_an_array_needs_no_pandas(tmp_path):
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).normal(size=(60, 3)))
    first, second = (str(tmp_path / f"{number}.npy") for number in "12")
    drawn = ["-k", "3", "--scale", "-p", str(tmp_path / "rows.png"), "-o", first]
    commands = [
        ["cluster", str(tmp_path / "rows.npy"), *words] for words in (drawn, ["-k", "2", "--encode", "-o", second])
    ]
    command = [sys.executable, "-m", "tests.tabular.without_pandas", json.dumps(commands)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert len(np.load(first)) == len(np.load(second)) == 60


def test_k_means_of_a_table_imports_neither_torch_nor_figures(tmp_path):
    code = (
        "import sys; from coterie.cli import app; from typer.testing import CliRunner; "
        f"done = CliRunner().invoke(app, ['cluster', {str(WINE)!r}, '-x', 'cultivar', '-k', '3', '--scale']); "
        "print(done.exit_code, [name for name in ('torch', 'plotly', 'matplotlib', 'dask') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[0] == "0 []"


def blobs_frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame(rng.normal(size=(60, 3)) + 8 * np.eye(3)[np.arange(60) % 3], columns=list("abc"))


@pytest.mark.parametrize(
    "estimator, table, columns",
    [
        (coterie.ZeroShotClusterer(), None, None),
        (make_pipeline(StandardScaler(), coterie.ZeroShotClusterer()), None, None),
        (coterie.ZeroShotClusterer(), blobs_frame() * 100, None),
        (coterie.KMeans(3, random_state=0), blobs_frame() * 100, ["a", "b", "c"]),
        (coterie.KMeans(3, random_state=0), blobs_frame().to_numpy() * 100, ["a", "b", "c"]),
        (make_pipeline(StandardScaler(), coterie.SoftKMeans(3, random_state=0)), None, None),
    ],
    ids=["encoded inside", "pipeline", "own units", "columns", "array", "soft"],
)
def test_values_are_in_the_units_of_the_table_however_the_rows_were_prepared(estimator, table, columns):
    X = blobs_frame()
    made = ClusteredTable.of(estimator.fit(X), X, table, columns)
    values = (X if table is None else table).to_numpy() if not isinstance(table, np.ndarray) else table
    assert made.value_names == ["a", "b", "c"]
    np.testing.assert_allclose(made.values, values)
    means = np.array([values[made.labels == j].mean(axis=0) for j in range(3)])
    np.testing.assert_allclose(made.value_centers, means, atol=0.02 * np.abs(values).max())
    shares = quality.memberships(made)
    if shares is not None:  # from the same rows that the estimator saw
        np.testing.assert_array_equal(shares[1].argmax(axis=1), made.labels)
