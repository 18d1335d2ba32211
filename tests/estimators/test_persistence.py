"""A model file ends in an estimator that is the one that was saved, or in one sentence."""

import contextlib
import json
import warnings

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import save as to_bytes
from sklearn.exceptions import ConvergenceWarning

import coterie
from coterie import AttentionClustering, KMeans, checkpoints
from coterie.catalogue import CATALOGUE
from coterie.estimators import persistence, schema
from coterie.tables.columns import TableError
from coterie.tables.encoding import Encoding
from coterie.tabular import TableModel

X = np.concatenate([np.random.RandomState(0).randn(25, 2), np.random.RandomState(1).randn(25, 2) + 6])
QUICK = {
    "VAEMixture": {"n_clusters": 2, "max_iter": 1, "hidden_size": 4, "init": np.repeat([0, 1], 25), "random_state": 0},
    "FlowMixture": {"random_state": 0},
    "ZeroShotClusterer": {"random_state": 0},
    "InContextClusterer": {"n_clusters": 2, "n_init": 1, "random_state": 0},
}


@pytest.fixture(scope="module")
def packed():
    """Of every estimator once: the tensors and the header of its file."""
    made = {}

    def of(name):
        if name not in made:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                estimator = getattr(coterie, name)(**QUICK.get(name, {"n_clusters": 2, "random_state": 0})).fit(X)
            tensors, entry = persistence.packed(estimator)
            made[name] = estimator, tensors, json.loads(entry)
        estimator, tensors, header = made[name]
        return estimator, dict(tensors), json.loads(json.dumps(header))

    return of


def write(path, tensors, header):
    path.write_bytes(to_bytes(tensors, metadata={"coterie": json.dumps(header)}))
    return path


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_estimator_comes_back_and_says_when_anything_is_missing(name, packed, tmp_path):
    estimator, tensors, header = packed(name)
    again = coterie.load(write(tmp_path / "m", tensors, header))
    np.testing.assert_array_equal(again.predict(X), estimator.predict(X))
    for attribute in schema.NEEDED.get(name, schema.CENTERS):
        less = {**header, "attributes": {key: each for key, each in header["attributes"].items() if key != attribute}}
        with pytest.raises(ValueError, match=f"m is damaged or was altered: there is no {attribute}"):
            coterie.load(write(tmp_path / "m", tensors, less))


def test_a_trimmed_fit_with_an_empty_cluster_can_be_saved(tmp_path):
    """The threshold of such a cluster was -inf, which no file may contain."""
    model = AttentionClustering("trimmed", n_clusters=3, settings={"keep": 0.5}, random_state=0)
    with pytest.warns(ConvergenceWarning):
        model.fit(np.repeat([[0.0, 0.0], [1.0, 1.0]], 5, axis=0))
    model.save(tmp_path / "m")
    again = coterie.load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict(model.cluster_centers_), model.predict(model.cluster_centers_))


@pytest.mark.parametrize("name", CATALOGUE)
def test_arrays_of_other_shapes_types_or_values_are_rejected(name, packed, tmp_path):
    _, tensors, header = packed(name)
    for attribute, shape in schema.NEEDED.get(name, schema.CENTERS).items():
        key = f"attribute.{attribute}"
        array = tensors[key]
        bad = [array[..., None], array.astype(bool), np.concatenate([array, array, array[:1]])]
        bad += [array.astype(np.float16)] if array.dtype.kind == "f" else []  # were read, and failed in predict
        if array.dtype.kind == "f" and not shape.startswith("any"):
            bad.append(np.full_like(array, np.nan))
        if attribute == "children_":
            bad += [array + 10**6, -1 - array, np.zeros_like(array)]
        if attribute == "network_weights_":
            bad.append(array[:-1])
        for each in bad:
            if np.array_equal(each, array):
                continue
            with pytest.raises(ValueError, match="damaged or was altered"):
                coterie.load(write(tmp_path / "m", {**tensors, key: each}, header))


@pytest.mark.parametrize(
    "change, message",
    [
        ({"class": "load"}, "contains a load, which this version"),
        ({"class": "__dict__"}, "does not have"),
        ({"class": ["KMeans"]}, "header cannot be read"),
        ({"format": "new"}, "header cannot be read"),
        ({"format": 99}, "newer format"),
        ({"params": None}, "list of its params is missing"),
        ({"params": {"n_clusters": 2, "shell": "rm"}}, "has no parameter 'shell'"),
        ({"params": {"n_clusters": "two"}}, "n_clusters"),
        ({"params": {"init": {"tensor": "nowhere"}}}, "there is no array init"),
        ({"params": {"device": 3}}, "device must be"),
        ({"network": {"sha256": 3}}, "header cannot be read"),
        ({"params": {"init": [["k-means++"]]}}, r"param.init has a value of a wrong type"),
        ({"attributes": {"feature_names_in_": {"names": 3}}}, r"attribute.feature_names_in_ has a value of a wrong"),
        ({"attributes": {"inertia_": {"a": 1}}}, r"attribute.inertia_ has a value of a wrong type"),
        ({"attributes": []}, "list of its attributes is missing"),
        ({"attributes": {"predict": 1}}, "'predict' cannot be an attribute"),
        ({"attributes": {"__class__": 1}}, "cannot be an attribute"),
        ({"attributes": {"n_features_in_": -1}}, "must be a count"),
        ({"attributes": {"n_features_in_": 1.5}}, "must be a count"),
    ],
)
def test_headers_that_are_not_in_order_are_named(change, message, packed, tmp_path):
    _, tensors, header = packed("KMeans")
    with pytest.raises(ValueError, match=message):
        coterie.load(write(tmp_path / "m", tensors, {**header, **change}))


def test_labels_of_clusters_that_do_not_exist_are_rejected(packed, tmp_path):
    _, tensors, header = packed("KMeans")
    for wrong in (2, -2):
        labels = np.full(len(X), wrong, dtype=np.int32)
        with pytest.raises(ValueError, match="labels_ has values outside"):
            coterie.load(write(tmp_path / "m", {**tensors, "attribute.labels_": labels}, header))


def test_damaged_bytes_end_in_a_model_or_in_a_sentence(tmp_path):
    path = tmp_path / "m"
    KMeans(2, random_state=0).fit(X).save(path)
    content, random = path.read_bytes(), np.random.RandomState(0)
    for _ in range(300):
        damaged = bytearray(content)
        for _ in range(random.randint(1, 4)):
            damaged[random.randint(len(damaged))] = random.randint(256)
        path.write_bytes(bytes(damaged[: random.randint(len(damaged))] if random.rand() < 0.2 else damaged))
        with contextlib.suppress(ValueError):
            coterie.load(path)


def test_a_header_of_another_kind_is_no_model(tmp_path):
    for text in ("", "[]", "3", "[" * 100_000, '{"format": 1}'):
        (tmp_path / "m").write_bytes(to_bytes({"a": np.zeros(1)}, metadata={"coterie": text}))
        with pytest.raises(ValueError, match="header cannot be read"):
            coterie.load(tmp_path / "m")


def test_a_literal_fit_and_a_function_as_start_can_be_saved(tmp_path):
    fitted = KMeans(2, engine="literal", random_state=0).fit(X)
    fitted.save(tmp_path / "m")
    np.testing.assert_array_equal(coterie.load(tmp_path / "m").predict(X), fitted.labels_)
    KMeans(2, init=lambda X, k, random_state: X[[0, 30]]).fit(X).save(tmp_path / "f")
    assert coterie.load(tmp_path / "f").init is None


def test_the_same_fit_gives_the_same_bytes(tmp_path):
    """With the encoding of a table there are two entries, which safetensors orders at random."""
    for number in range(8):
        fitted = KMeans(2, random_state=0).fit(pd.DataFrame(X, columns=["a", "b"]))
        TableModel(fitted, Encoding.affine(["a", "b"])).save(tmp_path / str(number))
    assert len({path.read_bytes() for path in tmp_path.iterdir()}) == 1


@pytest.fixture
def own_network(tmp_path, monkeypatch):
    """A copy of the in-context network under another name, on no shelf."""
    monkeypatch.setenv("COTERIE_HOME", str(tmp_path / "home"))
    card = json.loads((checkpoints.SHELF / "incontext.json").read_text())
    network = checkpoints.load("incontext")
    checkpoints.save(network, {**card, "name": "mine"}, tmp_path)
    return tmp_path / "mine.safetensors"


def test_networks_are_found_by_name_or_by_a_path_of_this_call_never_by_a_path_in_a_file(own_network, tmp_path):
    fitted = coterie.InContextClusterer(2, n_init=1, network=own_network, random_state=0).fit(X)
    fitted.save(tmp_path / "m")
    assert str(tmp_path).encode() not in (tmp_path / "m").read_bytes()
    with pytest.raises(ValueError, match=r"needs the network 'mine'.*network="):
        coterie.load(tmp_path / "m")
    again = coterie.load(tmp_path / "m", network=own_network)
    np.testing.assert_array_equal(again.predict(X), fitted.labels_)
    checkpoints.save(checkpoints.load(own_network), checkpoints.card(own_network), checkpoints.user_shelf())
    np.testing.assert_array_equal(coterie.load(tmp_path / "m").predict(X), fitted.labels_)
    KMeans(2).fit(X).save(tmp_path / "k")
    with pytest.raises(ValueError, match="uses no network"):
        coterie.load(tmp_path / "k", network="mine")


def test_a_path_inside_a_file_is_rejected(packed, own_network, tmp_path):
    for name in ("InContextClusterer", "FlowMixture", "ZeroShotClusterer"):
        _, tensors, header = packed(name)
        header["params"]["network"] = str(own_network)
        with pytest.raises(ValueError, match="cannot be the name of a network"):
            coterie.load(write(tmp_path / "m", tensors, header))


def test_a_network_with_other_weights_is_rejected(packed, tmp_path):
    _, tensors, header = packed("InContextClusterer")
    header["network"]["sha256"] = "0" * 64
    with pytest.raises(ValueError, match="fitted with other weights"):
        coterie.load(write(tmp_path / "m", tensors, header))


def test_a_path_of_a_checkpoint_is_not_followed(packed, tmp_path):
    _, tensors, header = packed("VAEMixture")
    header["params"]["checkpoint"] = str(tmp_path / "state.pt")
    assert coterie.load(write(tmp_path / "m", tensors, header)).checkpoint is None


def test_a_damaged_encoding_is_named(tmp_path):
    fitted = KMeans(2, random_state=0).fit(pd.DataFrame(X, columns=["a", "b"]))
    tensors, entry = persistence.packed(fitted)
    good = json.loads(Encoding.affine(["a", "b"]).to_json())
    bad_column = {**good["columns"][0], "spread": 0.0}
    for text in (
        "{",
        "[]",
        json.dumps({**good, "columns": good["columns"][:1]}),
        json.dumps({**good, "columns": 3}),
        json.dumps({**good, "columns": [bad_column, bad_column]}),
        json.dumps({**good, "factors": [[1.0], ["x"]]}),
        json.dumps({**good, "factors": [1.0, 2.0, 3.0]}),
    ):
        persistence.write(tmp_path / "m", tensors, {"coterie": entry, "encoding": text})
        with pytest.raises(TableError, match="m is damaged"):
            TableModel.load(tmp_path / "m")


def test_settings_that_were_parameters_of_the_first_version_are_read():
    old = schema.check_parameters(coterie.AttentionClustering, {"algorithm": "trimmed", "keep": 0.8, "top": 50})
    assert old.settings == {"keep": 0.8, "top": 50}
    assert old._algorithm().keep == 0.8
    vae = schema.check_parameters(coterie.VAEMixture, {"precision": "auto", "dtype": "float32", "max_iter": 5})
    assert vae.max_iter == 5


@pytest.mark.parametrize(
    "estimator",
    [
        coterie.AttentionClustering("trimmed", 2, settings={"keep": 0.9}, random_state=0),
        coterie.VAEMixture(2, likelihood=("gaussian", 2.0), max_iter=(1, 0), hidden_size=4, random_state=0),
    ],
    ids=["settings", "pairs"],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_settings_and_pairs_come_back(estimator, tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 3))
    fitted = estimator.fit(X)
    fitted.save(tmp_path / "model")
    again = coterie.load(tmp_path / "model")
    for name, value in fitted.get_params().items():
        kept = getattr(again, name)
        assert kept == (list(value) if isinstance(value, tuple) else value)
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    np.testing.assert_array_equal(again.fit(X).labels_, fitted.labels_)
