"""Texts as points, and clusters of texts in words.

Nothing is downloaded: texts become points by a package whose weights are on this machine or, without one, by TF-IDF and
its leading components.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.preprocessing import normalize

from coterie.tables.columns import TableError

COMPONENTS = 32  # of TF-IDF; with 50 and 100, fewer groups of short texts are found (results/LOG.md)
SHORTEST = 3  # characters of a word


class TextCluster(NamedTuple):
    """Words that distinguish a cluster, the most distinctive first, and its most typical texts."""

    words: tuple[str, ...]
    typical: tuple[str, ...]


def embed(texts: Sequence[str], embedder: str | Path | Callable[[list[str]], Any] = "auto") -> tuple[np.ndarray, str]:
    """(N, D) points of length one, and how they were made.

    Parameters
    ----------
    texts : sequence of str
    embedder : "auto", "tfidf", "wordllama", path or callable
        A folder with a model of sentence-transformers or model2vec, or a function that takes a list of texts and
        returns an array. "auto" is wordllama, which brings its weights, if it is installed, and TF-IDF otherwise.
    """
    texts = [str(text) for text in texts]
    if callable(embedder):
        points, how = embedder(texts), "by the function that was given"
    elif embedder == "tfidf" or (embedder == "auto" and find_spec("wordllama") is None):
        points, how = _tfidf(texts), f"by TF-IDF and {COMPONENTS} components"
    elif embedder in ("auto", "wordllama"):
        points, how = _wordllama(texts), "by wordllama"
    else:
        points, how = _by_model(texts, Path(embedder)), f"by the model {Path(embedder).name}"
    points = np.asarray(points, dtype=np.float64)
    if points.ndim != 2 or len(points) != len(texts):
        raise TableError(f"The embedder must return one row per text, {len(texts):,}; got the shape {points.shape}.")
    return normalize(points), how


def _tfidf(texts: list[str]) -> np.ndarray:
    from sklearn.decomposition import TruncatedSVD

    counts = _counts(texts, least=2 if len(texts) > 100 else 1)[0]
    weights = TfidfTransformer(sublinear_tf=True).fit_transform(counts)
    width = min(COMPONENTS, weights.shape[1] - 1)
    if width < 1:
        raise TableError("The texts share no words: there is nothing to compare.")
    return TruncatedSVD(width, random_state=0).fit_transform(weights)


def _wordllama(texts: list[str]) -> np.ndarray:
    import wordllama

    own = Path(wordllama.__file__).parent  # of the package, where its weights are
    return wordllama.WordLlama.load(cache_dir=own, disable_download=True).embed(texts)


def _by_model(texts: list[str], folder: Path) -> np.ndarray:
    if not folder.is_dir():
        raise TableError(f"There is no folder {folder}: the embedder is auto, tfidf, wordllama or a folder of a model.")
    package = "sentence_transformers" if (folder / "modules.json").exists() else "model2vec"
    if find_spec(package) is None:
        raise TableError(f"The model in {folder} needs the package {package}: install it, or choose tfidf.")
    if package == "model2vec":
        from model2vec import StaticModel

        return StaticModel.from_pretrained(str(folder)).encode(texts)
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(folder), local_files_only=True).encode(texts, show_progress_bar=False)


def describe_texts(
    texts: Sequence[str], labels: Sequence[int] | np.ndarray, *, n_words: int = 10, n_typical: int = 3
) -> dict[int, TextCluster]:
    """Say in words what clusters of texts are about.

    Words are weighed by class-based TF-IDF (Grootendorst 2022, "BERTopic"): by their share of the words of the cluster,
    and by how rare they are in all texts. The most typical texts of a cluster are those whose words agree best with
    these.

    Parameters
    ----------
    texts : sequence of str
    labels : sequence of int
        The cluster of every text; rows with negative labels, which are outliers, are left out.
    n_words : int, default=10
        The number of words per cluster, at most.
    n_typical : int, default=3
        The number of typical texts per cluster, at most.

    Returns
    -------
    clusters : dict of int to TextCluster
        For every label its ``words`` and ``typical`` texts.

    Examples
    --------
    >>> from coterie import describe_texts
    >>> found = describe_texts(["card lost", "lost my card", "cash machine", "no cash today"], [0, 0, 1, 1], n_words=1)
    >>> found[0].words, found[1].words
    (('card',), ('cash',))
    """
    texts = [str(text) for text in texts]
    if len(texts) != len(labels):
        raise ValueError(f"There must be one label per text: got {len(texts):,} texts and {len(labels):,} labels.")
    counts, names = _counts(texts, least=1)
    found, place_N = np.unique(np.asarray(labels), return_inverse=True)
    of_class = sparse.csr_matrix((np.ones(len(texts)), (place_N, np.arange(len(texts)))))
    in_class = (of_class @ counts).tocsr()
    total = np.asarray(in_class.sum(axis=1)).ravel()
    rare = np.log1p(total.mean() / np.maximum(np.asarray(in_class.sum(axis=0)).ravel(), 1))
    weights = normalize(in_class.multiply(1 / np.maximum(total, 1)[:, None]).multiply(rare).tocsr())
    own = normalize(counts.multiply(rare).tocsr())
    described = {}
    for place, label in enumerate(found.tolist()):
        if label < 0:
            continue
        row = weights.getrow(place)
        order = np.lexsort([row.indices, -row.data])[:n_words]
        rows = np.flatnonzero(place_N == place)
        near = (own[rows] @ row.T).toarray().ravel()
        best = rows[np.argsort(-near, kind="stable")]
        typical = list(dict.fromkeys(texts[one] for one in best.tolist()))[:n_typical]
        described[label] = TextCluster(tuple(names[row.indices[order]].tolist()), tuple(typical))
    return described


def names_in_words(described: Mapping[int, TextCluster], n_words: int = 3) -> dict[int, str]:
    """A name for every cluster, of its first words; of equal names, later ones have their number, too."""
    names: dict[int, str] = {}
    for label, one in described.items():
        name = " ".join(one.words[:n_words])
        names[label] = f"{name} {label}".strip() if name in names.values() or not name else name
    return names


def _counts(texts: list[str], least: int) -> tuple[sparse.csr_matrix, np.ndarray]:
    """How often every word occurs in every text, and the words: those of texts without words are none."""
    pattern = rf"(?u)\b[^\W\d_]\w{{{SHORTEST - 1},}}\b"
    try:
        reader = CountVectorizer(stop_words="english", min_df=least, token_pattern=pattern)
        return reader.fit_transform(texts).astype(np.float64).tocsr(), reader.get_feature_names_out()
    except ValueError:  # no words, or only very frequent ones
        raise TableError("The texts have no words: there is nothing to compare.") from None
