"""One row of the catalogue puts an estimator everywhere."""

import importlib
import inspect
import json
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from sklearn.utils import get_tags

import coterie
from coterie import KMeans
from coterie.catalogue import CATALOGUE, Row
from coterie.estimators.capabilities import finds_count, has_parameter
from tests.studio.serving import studio
from tests.test_cli import succeed

DOCS = Path(__file__).parents[1] / "docs"


class Halves(KMeans):
    """A small estimator of somebody's own."""


@pytest.fixture
def added(monkeypatch):
    module = types.ModuleType("coterie.estimators.halves")
    module.Halves = Halves
    monkeypatch.setitem(sys.modules, module.__name__, module)
    row = Row("halves", "halves", "Divides the rows.", "two halves", "It is small.", "quick_start", "new rows")
    monkeypatch.setitem(CATALOGUE, "Halves", row)


def test_an_estimator_that_is_added_to_the_catalogue_is_found_everywhere(added, tmp_path, monkeypatch):
    assert coterie.Halves is Halves
    X = np.random.default_rng(0).normal(size=(40, 2))
    fitted = coterie.Halves(2, random_state=0).fit(X)
    fitted.save(tmp_path / "halves.model")
    again = coterie.load(tmp_path / "halves.model")
    assert type(again) is Halves
    np.testing.assert_array_equal(again.predict(X), fitted.labels_)

    monkeypatch.chdir(tmp_path)
    np.savetxt("rows.csv", X, delimiter=",", header="a,b", comments="")
    assert json.loads(succeed("cluster rows.csv -k 2 --algorithm halves --json").stdout)["algorithm"] == "halves"

    with studio() as served:
        offered = {one["name"]: one for one in served.ask("GET", "/api/state").json["algorithms"]}
    assert (offered["halves"]["title"], offered["halves"]["about"]) == ("Halves", "Divides the rows.")

    monkeypatch.syspath_prepend(str(DOCS))
    _, rows = importlib.import_module("tables").estimators(CATALOGUE)
    assert rows[-1][:4] == ["two halves", "[`Halves`](api/coterie.Halves.rst)", "It is small.", "new rows"]


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_row_says_what_its_class_takes_and_finds(name):
    kind, row = getattr(coterie, name), CATALOGUE[name]
    estimator, tags = kind(), get_tags(kind()).input_tags
    takes = {
        "weights": "sample_weight" in inspect.signature(kind.fit).parameters,
        "sparse": tags.sparse,
        "missing values": tags.allow_nan,
        "new rows": hasattr(kind, "predict"),
    }
    assert set(row.takes.split(", ")) == {word for word, does in takes.items() if does}
    assert row.counts == has_parameter(estimator, "n_clusters")
    assert row.finds == finds_count(estimator)
    assert row.sized == has_parameter(estimator, "sizes")
    assert row.outliers == has_parameter(estimator, "outliers")
    assert len(row.about) <= 68  # a line of the help


def test_the_table_of_the_documentation_shows_examples_and_pages_that_are_there(monkeypatch):
    assert "```{estimators}" in (DOCS / "choosing.md").read_text()
    reference = (DOCS / "api.md").read_text()
    for name, row in CATALOGUE.items():
        assert (DOCS.parent / "examples" / f"{row.example}.py").exists()
        assert f"   {name}\n" in reference


@pytest.mark.parametrize("name", CATALOGUE)
def test_no_estimator_has_more_than_twelve_parameters(name):
    earlier_names = {"trim"}
    assert len({*getattr(coterie, name)._get_param_names()} - earlier_names) <= 12
