"""Texts as points, and clusters of texts in words."""

import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

from coterie import cluster_table, describe_texts
from coterie.tables import texts
from coterie.tables.columns import TableError
from coterie.tables.texts import TextCluster, embed, names_in_words

TOPICS = {
    "bank": "card payment transfer account balance refund money charge",
    "garden": "tomato watering seeds compost flowers roses pruning garden",
    "bikes": "bicycle wheel brakes chain pedal saddle tyre helmet",
    "weather": "rain storm sunshine forecast temperature wind snow clouds",
}


def posts(n: int = 400) -> tuple[list[str], np.ndarray]:
    rng = np.random.default_rng(0)
    truth = rng.integers(len(TOPICS), size=n)
    words = [words.split() for words in TOPICS.values()]
    return [" ".join(["What about the", *rng.choice(words[one], 6)]) for one in truth], truth


@pytest.fixture(scope="module")
def found():
    written, truth = posts()
    frame = pd.DataFrame({"id": range(len(written)), "body": written, "votes": 1})
    return cluster_table(frame, text="body", embedder="tfidf"), truth


def test_a_column_of_texts_is_clustered_by_what_it_says(found):
    made, truth = found
    assert adjusted_rand_score(truth, made.labels) > 0.9
    assert list(made.table.names) == ["id", "body", "votes"]
    assert "TF-IDF" in made.run.notes[0]


def test_clusters_are_named_by_their_words_and_have_typical_texts(found):
    made, truth = found
    for label, about in made.texts.items():
        topic = list(TOPICS.values())[np.bincount(truth[made.labels == label]).argmax()].split()
        assert set(about.words[:5]) <= set(topic)
        assert made.names[label] == " ".join(about.words[:3])
        assert len(about.typical) == 3
    document = made.facts.document()["clusters"][0]
    assert document["words"] == made.texts[0].words
    assert document["typical"] == made.texts[0].typical


def test_a_function_such_as_a_language_model_names_clusters(found):
    named = found[0].name_clusters(lambda about: f"about {about.words[0]}")
    assert named.name(0) == f"about {found[0].texts[0].words[0]}"


def test_the_report_shows_words_and_typical_texts(found):
    page = found[0].report(refits=0).html
    assert "Typical texts" in page
    assert found[0].texts[0].typical[0] in page


def test_changed_clusters_have_no_words_of_earlier_ones(found):
    assert found[0].merge([0, 1]).texts == {}


def test_words_distinguish_the_cluster_and_outliers_have_none():
    written = ["card lost", "lost my card", "card stolen", "cash machine", "no cash today", "the weather"]
    about = describe_texts(written, [0, 0, 0, 3, 3, -1], n_words=2, n_typical=1)
    assert set(about) == {0, 3}
    assert about[0].words == ("card", "lost")
    assert about[3].words[0] == "cash"
    assert len(about[0].typical) == 1
    with pytest.raises(ValueError, match="one label per text"):
        describe_texts(written, [0])
    with pytest.raises(TableError, match="have no words"):
        describe_texts(["", "!"], [0, 0])


def test_equal_names_are_told_apart():
    alike = {label: TextCluster(("card",), ()) for label in (0, 1)} | {2: TextCluster((), ())}
    assert names_in_words(alike) == {0: "card", 1: "card 1", 2: "2"}


def test_texts_become_points_of_length_one_by_what_is_asked_for(monkeypatch, tmp_path):
    written = [*posts(200)[0], ""]
    points, how = embed(written, "tfidf")
    np.testing.assert_allclose(np.linalg.norm(points[:-1], axis=1), 1.0)
    assert not points[-1].any()
    assert "TF-IDF" in how
    points, how = embed(written, lambda texts: np.full((len(texts), 3), 2.0))
    np.testing.assert_allclose(points, 3**-0.5)
    with pytest.raises(TableError, match="one row per text"):
        embed(written, lambda texts: np.ones(3))
    with pytest.raises(TableError, match="There is no folder"):
        embed(written, tmp_path / "nothing")
    monkeypatch.setattr(texts, "find_spec", lambda name: None)
    with pytest.raises(TableError, match="needs the package model2vec"):
        embed(written, tmp_path)
    assert embed(written)[1].startswith("by TF-IDF")


def test_wordllama_is_used_where_it_is_installed_and_downloads_nothing(monkeypatch, tmp_path):
    asked = {}

    def load(**how):
        asked.update(how)
        return SimpleNamespace(embed=lambda written: np.ones((len(written), 4)))

    module = SimpleNamespace(__file__=str(tmp_path / "__init__.py"), WordLlama=SimpleNamespace(load=load))
    monkeypatch.setitem(sys.modules, "wordllama", module)
    monkeypatch.setattr(texts, "find_spec", lambda name: object())
    points, how = embed(["one", "two"])
    assert points.shape == (2, 4)
    assert how == "by wordllama"
    assert asked == {"cache_dir": tmp_path, "disable_download": True}
