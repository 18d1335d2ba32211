import contextlib
import io
import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score
from typer.testing import CliRunner

import coterie
from coterie.cli import app, main
from coterie.tables.table import SAMPLES, read_table, sample
from coterie.tabular import EncodedTable, TableModel, cluster_table, make_estimator

WINE = SAMPLES / "wine.csv"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def points(folder):
    """Three groups of 30 rows with three outliers, the columns on very different scales."""
    rng = np.random.default_rng(0)
    groups = np.repeat([[0, 0], [10, 0], [0, 10]], 30, axis=0) + rng.normal(size=(90, 2))
    far = [[18, 16], [-12, 17], [16, -13]]
    frame = pd.DataFrame(np.vstack([groups, far]) * [1, 1000], columns=["left", "right"])
    frame["name"] = [f"row {i}" for i in range(len(frame))]
    frame.to_csv("points.csv", index=False)
    return frame


def call(*arguments):
    """Each argument may hold several words."""
    words = [word for argument in arguments for word in str(argument).split()]
    return CliRunner().invoke(app, words)


def succeed(*arguments):
    result = call(*arguments)
    assert result.exit_code == 0, result.stderr or result.exception
    return result


def refuse(*arguments):
    """The one line that a user reads."""
    before = sorted(os.listdir("."))
    result = call(*arguments)
    assert result.exit_code == 2, (result.stdout, result.stderr, result.exception)
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("coterie: ")
    assert sorted(os.listdir(".")) == before
    return result.stderr


def test_labels_picture_and_model_are_written(points):
    result = succeed(
        "cluster points.csv -k 3 -x name --scale -a trimmed --outliers 0.0323 -o l.csv -p c.png -s m.model"
    )
    labels = read_table("l.csv")["cluster"].to_numpy()
    assert len(labels) == 93
    assert (labels[-3:] == -1).all()
    assert sorted(np.bincount(labels[:90])) == [30, 30, 30]
    for word in ("3 clusters by trimmed", "outliers", "left", "l.csv", "c.png", "m.model"):
        assert word in result.stdout
    assert Path("c.png").read_bytes().startswith(b"\x89PNG")


def test_json_is_one_document_and_nothing_else(points):
    result = succeed("cluster points.csv -k 3 --columns left,right --scale --json --seed 5")
    document = json.loads(result.stdout)
    assert result.stderr == ""
    assert document["n_clusters"] == 3
    assert document["columns"] == ["left", "right"]
    assert document["seed"] == 5
    assert sum(one["rows"] for one in document["clusters"]) == 93
    values = points[["left", "right"]].to_numpy()
    scaled = (values - values.mean(axis=0)) / values.std(axis=0)
    fitted = coterie.KMeans(3, n_init=10, random_state=5).fit(scaled)
    assert document["inertia"] == pytest.approx(fitted.inertia_)
    centers = sorted(tuple(one["center"].values()) for one in document["clusters"])
    expected = sorted(map(tuple, fitted.cluster_centers_ * values.std(axis=0) + values.mean(axis=0)))
    np.testing.assert_allclose(centers, expected)


def test_a_range_chooses_the_number_of_clusters():
    result = succeed("cluster", WINE, "-x", "cultivar", "--scale", "-k", "2..5", "--json")
    document = json.loads(result.stdout)
    assert document["n_clusters"] == 3
    assert document["choice"]["criterion"] == "silhouette"
    assert [one["n_clusters"] for one in document["choice"]["candidates"]] == [2, 3, 4, 5]
    told = succeed("cluster", WINE, "-x", "cultivar", "--scale", "-k", "2..3", "--criterion", "davies-bouldin")
    assert "← chosen" in told.stdout
    assert "3 is the largest number of clusters that was tried" in told.stderr


def test_one_column_that_outweighs_the_others_is_noted():
    assert "'proline' has 99" in succeed("cluster", WINE, "-x", "cultivar", "-k", "3").stderr
    assert "'proline' has 99" not in succeed("cluster", WINE, "-x", "cultivar", "-k", "3", "--scale").stderr


def test_a_number_is_never_broken_over_two_lines_of_a_narrow_terminal():
    from rich.console import Console

    from coterie.cli.console import clusters_table
    from coterie.explain.facts import ClusterSummary

    center = {f"column {i}": -123456.0 - i for i in range(6)}
    one = ClusterSummary(0, 10, 1.0, center, {name: 1.0 for name in center})
    for width in (60, 80, 200):
        console = Console(width=width, record=True, file=io.StringIO())
        console.print(clusters_table([one], console))
        assert "-123,456" in console.export_text()


@pytest.mark.parametrize("algorithm", ["kmeans", "soft", "spherical", "trimmed", "robust", "medoids"])
@pytest.mark.parametrize("scale", [[], ["--scale"]])
def test_predict_on_the_same_table_gives_the_same_labels(points, algorithm, scale):
    succeed("cluster", "points.csv", "-k", 3, "-x", "name", "-a", algorithm, *scale, "-o", "a.npy", "-s", "m")
    points[["name", "right", "left"]].to_parquet("turned.parquet")
    result = succeed("predict", "m", "turned.parquet", "-o", "b.npy", "--json")
    np.testing.assert_array_equal(np.load("a.npy"), np.load("b.npy"))
    document = json.loads(result.stdout)
    labels = np.load("a.npy")
    assert [one["rows"] for one in document["clusters"]] == [int((labels == j).sum()) for j in range(3)]
    assert document["outliers"] == (labels < 0).sum()


@pytest.mark.parametrize("options", ["-a zeroshot", "-k 3 -a soft", "-k 3 -a trimmed", "-k 3"])
def test_predict_writes_the_columns_that_cluster_writes(points, options):
    succeed(f"cluster points.csv {options} -x name -o a.csv -s m")
    succeed("predict m points.csv -o b.csv")
    pd.testing.assert_frame_equal(pd.read_csv("a.csv"), pd.read_csv("b.csv"))


def test_outliers_of_a_mixture_saved_in_python_are_written_with_their_certainty():
    rng = np.random.default_rng(0)
    inside = np.repeat([[0.0, 0.0], [9.0, 9.0]], 100, axis=0) + rng.normal(size=(200, 2))
    table = pd.DataFrame(np.r_[inside, rng.uniform(-30, 30, size=(20, 2))], columns=["a", "b"])
    table.to_csv("mixture.csv", index=False)
    model = coterie.FlowMixture(outliers=0.1, random_state=0).fit(table)
    model.save("mixture.model")
    succeed("predict mixture.model mixture.csv -o labels.csv")
    written = pd.read_csv("labels.csv")
    np.testing.assert_array_equal(written["outlier"], model.outliers_)
    np.testing.assert_allclose(written["certainty"], model.certainty_, atol=1e-4)
    assert model.outliers_.sum() >= 10


def test_an_estimator_saved_in_python_predicts_on_the_command_line(points):
    coterie.KMeans(3, random_state=0).fit(points[["left", "right"]]).save("python.model")
    assert "clusters of python.model" in succeed("predict", "python.model", "points.csv").stdout
    coterie.KMeans(3, random_state=0).fit(points[["left", "right"]].to_numpy()).save("nameless.model")
    assert "does not contain column names" in refuse("predict", "nameless.model", "points.csv")


def test_a_model_without_scaling_loads_in_python(points):
    succeed("cluster points.csv -k 3 -x name -s m -o l.npy")
    np.testing.assert_array_equal(coterie.load("m").predict(points[["left", "right"]]), np.load("l.npy"))


def test_scaling_and_column_names_travel_with_the_model(points):
    rows = EncodedTable.learn(points, ["left", "right"], scale=True)
    fitted = coterie.KMeans(3, random_state=0).fit(rows.points)
    TableModel(fitted, rows.encoding).save("m")
    with pytest.raises(ValueError, match="encoding of its columns"):
        coterie.load("m")  # it would take raw columns for scaled ones
    back = TableModel.load("m")
    assert back.encoding == rows.encoding
    np.testing.assert_array_equal(back.predict(points.iloc[:7]), fitted.labels_[:7])


def test_labels_can_stand_beside_the_data(points):
    succeed("cluster points.csv -k 2 -x name -o all.csv --with-data")
    written = read_table("all.csv")
    assert list(written.columns) == ["left", "right", "name", "cluster"]
    assert list(written["name"]) == list(points["name"])


def test_without_a_number_the_zero_shot_network_clusters_and_finds_it(points):
    result = succeed("cluster points.csv -x name --output l.csv --plot c.png --save m.model")
    assert "3 clusters by zeroshot" in result.stdout
    labels = read_table("l.csv")["cluster"].to_numpy()
    assert sorted(np.bincount(labels[:90])) == [30, 30, 30]
    predicted = json.loads(succeed("predict m.model points.csv --json").stdout)
    assert [one["rows"] for one in predicted["clusters"]] == np.bincount(labels[labels >= 0]).tolist()
    assert predicted["outliers"] == (labels < 0).sum()
    assert json.loads(succeed("cluster points.csv -x name -a zeroshot -k 2 --json").stdout)["n_clusters"] == 2
    assert "by kmeans" in succeed("cluster points.csv -x name --criterion gap").stdout
    assert "by trimmed" in succeed("cluster points.csv -x name -k 2 --outliers 0.1").stdout


@pytest.fixture
def passengers(folder):
    """Three clusters by age, fare and class; ports are unrelated, names are different, some ages are missing."""
    rng = np.random.default_rng(0)
    cluster = rng.integers(3, size=240)
    frame = pd.DataFrame(
        {
            "name": [f"Passenger {i}" for i in range(240)],
            "age": rng.normal([25, 45, 70], 3, (240, 3))[np.arange(240), cluster].round(),
            "fare": rng.normal([20, 150, 60], 8, (240, 3))[np.arange(240), cluster].round(2),
            "class": np.array(["third", "first", "second"])[cluster],
            "port": rng.choice(["Southampton", "Cherbourg"], 240),
            "boarded": pd.to_datetime("2024-01-01") + pd.to_timedelta(rng.integers(0, 30, 240), "D"),
        }
    )
    frame.loc[::40, "age"] = np.nan
    frame.to_csv("passengers.csv", index=False)
    return cluster


@pytest.mark.parametrize("words", ["", "-k 2..5", "-k 3 -a zeroshot"])
def test_text_dates_and_missing_values_are_encoded(passengers, words):
    result = succeed("cluster passengers.csv --keep boarded -o l.npy -s m -p c.png -r r.html --json", *words.split())
    document = json.loads(result.stdout)
    assert document["n_clusters"] == 3
    assert adjusted_rand_score(passengers, np.load("l.npy")) > 0.95
    assert document["encoded"] == ["age", "fare", "class", "port", "boarded"]
    told = " ".join(document["notes"])
    for part in (
        "'name' was ignored",
        "'class' and 'port' were compared",
        "'boarded' was read as dates",
        "similar row: 'age' (6)",
    ):
        assert part in told
    assert all(set(one["center"]) >= {"age", "class = first", "port = Cherbourg"} for one in document["clusters"])
    succeed("predict m passengers.csv -o again.npy")
    np.testing.assert_array_equal(np.load("again.npy"), np.load("l.npy"))
    page = Path("r.html").read_text()
    assert "almost always class = third" in page
    assert ("EncodedTable.learn(table" in page) == (words == "-k 2..5")
    with pytest.raises(ValueError, match="encoding of its columns"):
        coterie.load("m")


def test_an_encoded_model_refuses_columns_of_another_kind(passengers):
    succeed("cluster passengers.csv -k 3 --encode -s m -p c.png --view age,fare")
    frame = read_table("passengers.csv")
    frame.assign(**{"class": 1.0}).to_csv("changed.csv", index=False)
    assert "'class' held text during fit and now holds numbers" in refuse("predict m changed.csv")
    frame.drop(columns="fare").to_csv("less.csv", index=False)
    assert "There is no column 'fare'" in refuse("predict m less.csv")
    frame.assign(port="Queenstown", age=np.nan).to_csv("unseen.csv", index=False)
    result = succeed("predict m unseen.csv")
    assert "did not occur during fit: 'port' (240)" in result.stderr
    assert "filled from the most similar row: 'age' (240)" in result.stderr


def test_pictures_and_reports_of_encoded_tables_with_few_axes(folder):
    number = np.arange(40.0)
    for name, plan in (("none", np.tile(["a", "b"], 20)), ("one", np.repeat(["a", "b"], 20))):
        pd.DataFrame({"x": number, "plan": plan, "plan = a": 0.0}).to_csv(f"{name}.csv", index=False)
        succeed(f"cluster {name}.csv -c x,plan -k 2 --encode -p {name}.png -r {name}.html")
        assert Path(f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert "'plan' was ignored" in succeed("cluster none.csv -c x,plan -k 2 --encode").stderr


def test_columns_may_be_numbered():
    frame = pd.DataFrame({0: [1.0, np.nan, 3.0, 9.0], 1: ["a", "b", "a", "b"]})
    for settings in ({"columns": ["0"]}, {"encode": True}):
        rows = EncodedTable.learn(frame.fillna(0) if "columns" in settings else frame, **settings)
        assert len(rows.points) == 4
        assert rows.encoding.names == settings.get("columns", ["0", "1"])


def test_a_model_of_a_complete_table_fills_later_missing_values(folder):
    frame = pd.DataFrame({"x": np.r_[np.zeros(20), np.ones(20)], "y": np.arange(40.0) / 7})
    frame.to_csv("full.csv", index=False)
    succeed("cluster full.csv -k 2 --encode -s m")
    frame.loc[3, "y"] = np.nan
    frame.to_csv("hole.csv", index=False)
    assert "filled with the median: 'y' (1)" in succeed("predict m hole.csv").stderr


def test_a_table_that_cannot_be_encoded_is_refused(passengers):
    assert "nothing to compare" in refuse("cluster passengers.csv --columns name")
    Path("same.csv").write_text("a,b\n" + "x,y\n" * 9)
    assert "All rows are equal" in refuse("cluster same.csv")
    assert "encode them as numbers with --encode" in refuse("cluster passengers.csv -k 3 --no-encode")
    frame = read_table("passengers.csv")
    frame.loc[3, "fare"] = np.inf
    frame.to_parquet("infinite.parquet")
    assert "Row 4 has an infinite value in the column 'fare'" in refuse("cluster infinite.parquet")


def test_pretrained_networks_cluster_a_table_too(points):
    for algorithm, wanted in (("flow", ""), ("incontext", "-k 2..4")):
        words = f"cluster points.csv -x name --scale -a {algorithm} {wanted} -s m.model -o l.npy --json"
        document = json.loads(succeed(words).stdout)
        assert sum(one["rows"] for one in document["clusters"]) == 93
        assert document["inertia"] is None
        again = json.loads(succeed("predict m.model points.csv -o again.npy --json").stdout)
        assert len(again["clusters"]) == document["n_clusters"]
        np.testing.assert_array_equal(np.load("again.npy"), np.load("l.npy"))
    assert "3 clusters by incontext" in succeed("cluster points.csv -x name --scale -a incontext -k 3").stdout


def test_what_is_usual_for_k_means_is_not_for_networks():
    usual = {"n_init": 10, "max_iter": 300, "init": "k-means++"}
    assert make_estimator("kmeans", usual, n_init=3).get_params().items() >= {"n_init": 3, "max_iter": 300}.items()
    for algorithm in ("vae", "incontext", "flow", "zeroshot"):
        plain = type(make_estimator(algorithm))()
        assert make_estimator(algorithm, usual).get_params() == plain.get_params()


def test_a_picture_is_drawn_on_the_axes_that_are_asked_for():
    wine = ["cluster", WINE, "-x", "cultivar", "-k", "3", "--scale", "-p"]
    for name, view in (("plain", []), ("pca", ["--view", "pca"]), ("two", ["--view", "alcohol,proline"])):
        succeed(*wine, f"{name}.png", *view)
    pictures = {name: Path(f"{name}.png").read_bytes() for name in ("plain", "pca", "two")}
    assert pictures["plain"] == pictures["pca"] != pictures["two"]


def test_a_tiny_table_needs_no_k():
    pd.DataFrame({"a": [0.0, 0.1, 5.0, 5.1]}).to_csv("tiny.csv", index=False)
    assert "4 rows, column a" in succeed("cluster", "tiny.csv").stdout


@pytest.mark.parametrize(
    "arguments, words",
    [
        ("nowhere.csv", "There is no file"),
        ("point.csv", "Did you mean points.csv?"),
        ("points.csv -k 3 --no-encode", "--exclude name"),
        ("points.csv -c left,rihgt", "Did you mean 'right'?"),
        ("points.csv -x nme", "Did you mean 'name'?"),
        ("points.csv -c left -x name", "use one of them"),
        ("points.csv -x name -k 94", "94 clusters were requested, but the table has 93 rows"),
        ("points.csv -x name -k 90..95", "95 clusters"),
        ("points.csv -x name -k 0", "at least 1"),
        ("points.csv -x name -k -3", "at least 1"),
        ("points.csv -x name -k five", "such as 2..12; got 'five'"),
        ("points.csv -x name -k 2..x", "such as 2..12"),
        ("points.csv -x name -k 5..2", "-k 2..5"),
        ("points.csv -x name -k 1..4", "gap"),
        ("points.csv -x name -k 2..4 --criterion elbow", "silhouette, calinski-harabasz"),
        ("points.csv -x name -k 3 -a trimed", "Did you mean 'trimmed'?"),
        (
            "points.csv -x name -k 3 -a dbscan",
            "zeroshot, kmeans, trimmed, robust, soft, spherical, medoids, incontext, flow",
        ),
        ("points.csv -x name -k 3 -a flow", "determines the number of clusters itself"),
        ("points.csv -x name -k 2..4 -a zeroshot", "determines the number of clusters itself"),
        ("points.csv -x name -k 21 -a incontext", "at most 20 clusters"),
        ("points.csv -x name -k 3 --view pca", "--report report.html"),
        ("points.csv -x name -k 3 -p a.png --view left,name", "'name' is not one of the clustered columns"),
        ("points.csv -x name -k 3 -p a.png --view left,right,left", "one or two columns"),
        (
            "points.csv -x name -k 3 --outliers 0.1 -a kmeans",
            "'kmeans' has no setting 'outliers': remove it, or choose an algorithm",
        ),
        ("points.csv --outliers 0.1 -a kmeans", "an algorithm that has it (zeroshot, trimmed, flow)"),
        ("points.csv -x name -k 3 --from no.model", "uses the columns and settings of the model"),
        ("points.csv --from no.model", "needs one number of clusters"),
        ("points.csv --from points.csv -k 3", "--save NAME.model"),
        ("nothing -k 3", "No file matches nothing"),
        ("points.csv --save a.html", "a model is no .html file"),
        ("points.csv --no-encode", "zeroshot encodes all tables"),
        ("parts -k 3 --plot a.png", "--plot is not available"),
        ("one.csv", "only one row"),
        ("one.csv -k 2", "the table has 1 row: request at most 1"),
        ("void.csv -k 2 --no-encode", "The column 'b' has no values"),
        ("vast.csv -k 2 --scale", "The column 'a' has values that are too large to be scaled"),
        ("points.csv -x name -k 3 -a trimmed --outliers 1.5", "a share from 0 to 1"),
        ("points.csv -x name -k 3 -o no/labels.csv", "there is no folder"),
        ("points.csv -x name -k 3 -o labels.xls", ".csv, .tsv, .parquet, .xlsx"),
        ("points.csv -x name -k 3 -o points.csv", "overwrite the input"),
        ("points.csv -x name -k 3 -p a.jpg", "PNG"),
        ("points.csv -x name -k 3 -p /proc/a.png", "cannot be written"),
        ("points.csv -x name -k 3 -s .", "is a folder"),
        ("points.csv -x name -k 3 -o a.csv -s a.csv", "overwrite the file of --output"),
        ("points.csv -x name -k 3 --with-data", "--output"),
        ("holes.csv -k 2 --no-encode", "Row 3 has a missing value in the column 'b'"),
        ("huge.npy -k 2", "overflow"),
        ("half.npy -k 2", "float32"),
        ("flat.npy -k 2", "reshape"),
    ],
)
def test_what_a_user_gets_wrong_is_one_line_and_exit_code_2(points, arguments, words):
    pd.DataFrame({"a": [1, 2, 3], "b": [1, 2, None]}).to_csv("holes.csv", index=False)
    np.save("huge.npy", np.array([[1e30, 0], [0, 1], [3, 3]], dtype=np.float32))
    np.save("half.npy", np.eye(3, dtype=np.float16))
    np.save("flat.npy", np.arange(5.0))
    pd.DataFrame({"a": [1.0], "b": [2.0]}).to_csv("one.csv", index=False)
    pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [None] * 3}).to_csv("void.csv", index=False)
    pd.DataFrame({"a": [1e300, -1e308, 3.0], "b": [1, 2, 3]}).to_csv("vast.csv", index=False)
    for folder in ("nothing", "parts"):
        Path(folder).mkdir()
    pd.DataFrame({"a": [1.0, 2.0, 3.0]}).to_parquet("parts/0.parquet")
    assert words in refuse("cluster", arguments)


def test_options_for_columns_can_be_repeated(points):
    together = succeed("cluster points.csv -k 3 -x name,left --json").stdout
    repeated = succeed("cluster points.csv -k 3 -x name -x left --json").stdout
    assert json.loads(together)["columns"] == json.loads(repeated)["columns"]


def test_a_setting_that_zeroshot_lacks_selects_kmeans_and_a_note_says_so(points):
    assert "The algorithm is kmeans: zeroshot has no n-init." in succeed("cluster points.csv -x name --n-init 2").stderr


def test_every_help_page_is_free_of_control_marks():
    commands = succeed("--help").stdout
    research = ("train", "ship") if find_spec("coterie_research") else ()
    for command in ("cluster", "columns", "predict", "export", "studio", "warmup", *research):
        assert command in commands
        assert "\\b" not in succeed(command, "--help").stdout


def test_escapes_in_names_and_values_are_shown_and_not_obeyed(points):
    """``coterie columns`` once printed them as they are."""
    escape, told = "\x1b7", "\\x1b7"
    points["name"] = [f"{escape}{i % 3}" for i in range(len(points))]
    points.rename(columns={"left": f"le{escape}ft", "name": f"na{escape}me"}).to_csv(f"a{escape}.csv", index=False)
    for arguments in (
        f"columns a{escape}.csv",
        f"cluster a{escape}.csv -k 3 --encode -o l{escape}.csv -s m{escape}.model -r r{escape}.html",
        f"predict m{escape}.model a{escape}.csv -o p{escape}.csv",
    ):
        result = succeed(arguments)
        assert told in result.stdout
        assert "\x1b" not in result.stdout + result.stderr
    for arguments in (
        f"cluster n{escape}.csv",
        f"cluster a{escape}.csv -k 3 --no-encode",
        f"cluster points.csv -c n{escape}",
    ):
        assert told in refuse(arguments)


@pytest.mark.parametrize("numbers", ["2", "2..4"])
def test_fewer_different_rows_than_clusters_are_noted(numbers):
    pd.DataFrame(np.ones((5, 2)), columns=["a", "b"]).to_csv("equal.csv", index=False)
    notes = succeed("cluster equal.csv -k", numbers).stderr
    assert "The number of distinct clusters, 1, is less than n_clusters=" in notes
    assert "No row belongs to cluster 1" in notes


def test_huge_values_are_fine_in_float64_and_when_scaled():
    np.save("huge.npy", np.array([[1e30, 0], [1.1e30, 1], [0, 3], [1, 3]]))
    labels = json.loads(succeed("cluster", "huge.npy", "-k", 2, "--json").stdout)["clusters"]
    assert [one["rows"] for one in labels] == [2, 2]
    np.save("huge.npy", np.array([[1e30, 0], [1.1e30, 1], [0, 3], [1, 3]], dtype=np.float32))
    succeed("cluster", "huge.npy", "-k", 2, "--scale")


def test_rows_that_a_model_cannot_label_are_refused_with_advice_for_predict(points):
    succeed("cluster points.csv -k 3 -c left,right -s m.model")
    pd.DataFrame({"left": ["x", "1"], "right": [1, 2]}).to_csv("words.csv", index=False)
    pd.DataFrame({"left": [1, None], "right": [1, 2]}).to_csv("gaps.csv", index=False)
    for file, words in (("words.csv", "'left' holds text"), ("gaps.csv", "Row 2 has a missing value")):
        told = refuse("predict", "m.model", file)
        assert words in told
        assert "Correct the values" in told
        assert "--exclude" not in told  # which predict does not have


def test_a_configuration_that_is_not_json_is_named(points):
    pytest.importorskip("coterie_research", reason="which trains networks")
    Path("run.json").write_text("{")
    assert "run.json is not valid JSON" in refuse("train flow --config run.json --output run")


def test_models_that_are_refused(points):
    assert "There is no model" in refuse("predict", "none.model", "points.csv")
    assert "not a saved model" in refuse("predict", "points.csv", "points.csv")
    succeed("cluster points.csv -k 3 -x name -s m")
    points.rename(columns={"left": "links"}).to_csv("other.csv", index=False)
    assert "There is no column 'left'" in refuse("predict", "m", "other.csv")
    assert "overwrite the model" in refuse("predict", "m", "points.csv", "-o", "m")
    assert "overwrite the input" in refuse("predict", "m", "points.csv", "-o", "points.csv")
    assert "overwrite the model" in refuse("cluster points.csv --from m -k 2 --save m")
    Path("m.onnx").write_bytes(Path("m").read_bytes())
    assert "overwrite the model" in refuse("export m.onnx m.onnx")


def test_the_file_of_a_database_url_is_an_input(folder):
    Path("shop.db").write_bytes(b"SQLite format 3")
    assert "overwrite the input" in refuse("cluster sqlite:///shop.db -k 2 --save shop.db")


def test_the_demo_tells_its_stories_and_writes_pictures(folder):
    result = succeed("demo")
    right = re.search(r"(\d+) of 940 customers are in a cluster whose most frequent habit is theirs", result.stdout)
    assert int(right[1]) > 850
    assert sorted(os.listdir(folder / "demo")) == ["customers.png", "layers.html", "outliers.png"]
    (folder / "file").write_text("")
    assert "cannot be created" in refuse("demo", "-o", "file/demo")


def test_the_networks_of_the_package_are_listed():
    listed = succeed("models").stdout
    assert "zeroshot-3" in listed
    assert "flow-d8" in listed


@pytest.mark.parametrize("command", ["reproduce", "bench", "train", "ship"])
def test_commands_of_the_research_package_say_how_to_get_it(command, monkeypatch):
    monkeypatch.setattr("coterie.cli.research.find_spec", lambda name: None)
    assert "coterie-research, which is not installed: pip install ./research" in refuse(command, "--config", "a")


@pytest.mark.parametrize("command", [[], ["cluster"], ["predict"], ["demo"], ["models"]])
def test_help_reads(command):
    text = succeed(*command, "--help").stdout
    assert "Usage" in text
    assert len(text.splitlines()) > 5


def test_the_program_itself_answers_with_exit_codes_and_one_line(folder):
    sample("wine").drop(columns="cultivar").to_csv("wine.csv", index=False)

    def program(*arguments):
        code = "from coterie.cli import main; main()"
        return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)

    good, bad = program("cluster", "wine.csv", "-k", "3", "--scale", "--json"), program("cluster", "none.csv")
    assert (good.returncode, good.stderr) == (0, "")
    assert json.loads(good.stdout)["rows"] == 178
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr.startswith("coterie: ")
    assert bad.stderr.count("\n") == 1, bad.stderr


@pytest.mark.parametrize("words", ["cluster none.csv", "cluster wine.csv --clutsers 3", "clutser"])
def test_what_is_misspelled_is_answered_with_one_line(words, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["coterie", *words.split()])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr()
    assert (ended.value.code, said.out) == (2, "")
    assert said.err.startswith("coterie: ")
    assert said.err.count("\n") == 1, said.err


def test_a_terminal_that_is_not_utf_8_gets_the_whole_result(folder, monkeypatch):
    sample("wine").rename(columns={"ash": "äsche"}).to_csv("wine.csv", index=False)
    words = ["cluster", "wine.csv", "-k", "3", "-c", "äsche,alcohol", "-o", "labels.csv"]
    monkeypatch.setattr(sys, "argv", ["coterie", *words])
    terminals = [io.TextIOWrapper(io.BytesIO(), encoding="ascii", write_through=True) for _ in range(2)]
    for name, terminal in zip(("stdout", "stderr"), terminals):
        monkeypatch.setattr(sys, name, terminal)
    with contextlib.suppress(SystemExit):
        main()
    said, wrong = (terminal.buffer.getvalue().decode("ascii") for terminal in terminals)
    assert wrong == ""
    assert "?sche" in said
    assert "labels: labels.csv" in said


def test_the_number_of_samples_is_an_option_of_the_network(folder):
    sample("wine").to_csv("wine.csv", index=False)
    assert json.loads(succeed("cluster wine.csv --contexts 2 --json").stdout)["algorithm"] == "zeroshot"
    assert "'kmeans' has no setting 'n-contexts'" in refuse("cluster wine.csv -k 3 --contexts 2")
    assert json.loads(succeed("cluster wine.csv --contexts auto --json").stdout)["algorithm"] == "zeroshot"
    assert "a number from 1, or auto; got 'few'" in refuse("cluster wine.csv --contexts few")


@pytest.mark.parametrize("words, scale", [("", None), ("--scale", True), ("--no-scale", False)])
def test_columns_are_scaled_as_suits_them_or_all_or_none(points, words, scale):
    found = cluster_table("points.csv", algorithm="zeroshot", scale=scale)
    told = json.loads(succeed(f"cluster points.csv -a zeroshot {words} --json").stdout)
    assert told["clusters"][0]["rows"] == found.sizes[0]
    assert (found.encoding.spread == 1).all() == (scale is False)
    assert found.estimator.get_params()["scale"] == ("auto" if scale is None else scale)


def test_help_loads_nothing_heavy():
    code = (
        "import sys, coterie.cli; "
        "print([name for name in ('torch', 'numba', 'pandas', 'numpy', 'sklearn') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


@pytest.mark.parametrize(
    "options, words",
    [
        ("-k 2 --resume", "add that option"),
        ("-k 2 --checkpoint c.st", "in blocks"),
        ("-k 2 --criterion gap", "chooses from a range"),
    ],
)
def test_options_that_would_do_nothing_are_refused(tmp_path, options, words):
    table = tmp_path / "t.csv"
    table.write_text("a,b\n" + "\n".join(f"{i % 2 * 9},{i}" for i in range(8)))
    assert words in refuse(f"cluster {table} {options}")


def test_shells_complete_commands_options_and_algorithms():
    assert "--install-completion" in succeed("--help").stdout
    for typed, offered in {
        "coterie col": "columns",
        "coterie cluster --sch": "--scheduler",
        "coterie cluster -a sp": "spherical",
    }.items():
        asked = {"_COTERIE_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1)}
        told = CliRunner().invoke(app, [], prog_name="coterie", env=asked)
        assert told.stdout.split() == [offered], typed


@pytest.mark.parametrize(
    "command", [["cluster", "NAME.csv"], ["cluster", "a.csv", "-o", "NAME.csv"], ["predict", "NAME", "a.csv"]]
)
def test_names_that_are_too_long_end_in_a_sentence(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("a,b\n1,2\n3,4\n")
    monkeypatch.setattr(sys, "argv", ["coterie", *(word.replace("NAME", "x" * 300) for word in command)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "xxx is no file (File name too long): give another name." in capsys.readouterr().err


def test_closed_output_is_no_traceback(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["coterie", "models"])
    with monkeypatch.context() as closed:
        closed.setattr(sys, "stdout", None)
        closed.setattr(sys, "stderr", None)
        with pytest.raises(SystemExit) as ended:
            main()
        sys.stdout.close()
        sys.stderr.close()
    assert ended.value.code == 0


@pytest.mark.parametrize("cell", ["bell \x07", "x" * 40_000])
def test_cells_that_excel_does_not_hold_are_refused_before_the_fit(cell, tmp_path, monkeypatch, capsys):
    frame = pd.DataFrame({"a": [1.0, 2.0, 9.0], "b": [1.0, 2.0, 8.0], "note": [cell, "y", "z"]})
    frame.to_parquet(tmp_path / "a.parquet")
    monkeypatch.setattr(coterie.KMeans, "fit", lambda *given: pytest.fail("the fit began"))
    command = ["cluster", tmp_path / "a.parquet", "-k", "2", "-x", "note", "-o", tmp_path / "l.xlsx", "--with-data"]
    monkeypatch.setattr(sys, "argv", ["coterie", *map(str, command)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "'note' has texts of more than 32,767 letters or with control characters" in capsys.readouterr().err
    assert not (tmp_path / "l.xlsx").exists()


def test_the_warmup_compiles_both_halves_and_tells_of_a_failure(monkeypatch):
    from coterie.cli import warmup

    monkeypatch.setattr(warmup, "COMPILE", "import sys; sys.exit('{}' not in ('centers', 'networks'))")
    assert CliRunner().invoke(app, ["warmup"]).exit_code == 0
    monkeypatch.setattr(warmup, "COMPILE", "import sys; sys.exit('{}' == 'networks')")
    failed = CliRunner().invoke(app, ["warmup"])
    assert failed.exit_code == 2
    assert callable(warmup.centers)
    assert callable(warmup.networks)
