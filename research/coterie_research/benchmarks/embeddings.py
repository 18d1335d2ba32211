"""Embeddings, pixels, cells and drawn groups: two to hundreds of groups in many columns, K unknown and given.

The embeddings and cells are in the folder ``embeddings`` of the data that COTERIE_DATA names. Peers that are not
installed are named on the page. Rows that a method calls noise count as one group of their own.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from sklearn import datasets
from sklearn.cluster import HDBSCAN
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import adjusted_mutual_info_score, adjusted_rand_score, v_measure_score
from sklearn.preprocessing import normalize

from coterie import ZeroShotClusterer
from coterie.geometry.neighbours import graph_of
from coterie_research.benchmarks.harness import Benchmark, Cell, Row, installed, table
from coterie_research.benchmarks.labelled_sets import _data
from coterie_research.benchmarks.methods import best_kmeans, kmeans, number_of_clusters, searched
from coterie_research.images import load

SEEDS = range(3)
ROWS = 3_000  # of images and drawn groups
NAMES = ("banking77", "stackoverflow", "cells-worm-neuron-cell", "cells-cite-cbmc-counts")
DRAWN = (20, 100, 300)
Set = tuple[np.ndarray, np.ndarray]


def stored(name: str) -> Set:
    """A set of the folder ``embeddings``: sentence embeddings, or principal components of cells."""
    file = np.load(_data() / "embeddings" / f"{name}.npz", allow_pickle=True)
    return file["x"].astype(np.float64), np.unique(file["y"], return_inverse=True)[1]


def words(name: str) -> Set:
    """TF-IDF of the same texts, 32 components of length one."""
    file = np.load(_data() / "embeddings" / f"{name}.npz", allow_pickle=True)
    counts = TfidfVectorizer(sublinear_tf=True, min_df=2, stop_words="english").fit_transform(file["text"].tolist())
    X = normalize(TruncatedSVD(32, random_state=0).fit_transform(counts))
    return X, np.unique(file["y"], return_inverse=True)[1]


def images(name: str, components: int | None) -> Set:
    data, labels = load(name)
    rows = np.random.default_rng(0).permutation(len(data))[:ROWS]
    X = np.asarray(data, dtype=np.float64).reshape(len(data), -1)[rows]
    return (X if components is None else PCA(components, random_state=0).fit_transform(X)), np.asarray(labels)[rows]


def drawn(n_groups: int) -> Set:
    """Normal groups of uneven sizes in 64 columns, 20 rows or more on average."""
    rng = np.random.default_rng(n_groups)
    truth = rng.choice(n_groups, max(ROWS, 20 * n_groups), p=rng.dirichlet(np.full(n_groups, 5.0)))
    return rng.normal(size=(n_groups, 64))[truth] + 1.2 * rng.normal(size=(len(truth), 64)), truth


SETS: dict[str, Callable[[], Set]] = {
    **{name: partial(stored, name) for name in NAMES},
    "stackoverflow, TF-IDF": partial(words, "stackoverflow"),
    "banking77, TF-IDF": partial(words, "banking77"),
    "digits": lambda: datasets.load_digits(return_X_y=True),
    "MNIST, PCA-50": partial(images, "mnist", 50),
    "MNIST, pixels": partial(images, "mnist", None),
    "Fashion, PCA-50": partial(images, "fashion", 50),
    **{f"drawn, {k} groups": partial(drawn, k) for k in DRAWN},
}


def _umap_hdbscan(X: np.ndarray, seed: int) -> np.ndarray:
    """As BERTopic does by default."""
    import umap

    low = umap.UMAP(n_neighbors=15, n_components=5, min_dist=0.0, metric="cosine", random_state=seed).fit_transform(X)
    return HDBSCAN(min_cluster_size=10, copy=True).fit_predict(low)


def _leiden(X: np.ndarray, seed: int) -> np.ndarray:
    """Modularity (resolution 1) on the graph that ours divides."""
    import igraph
    import leidenalg

    edges = graph_of(X).tocoo()
    kept = edges.row < edges.col
    graph = igraph.Graph(len(X), np.column_stack([edges.row[kept], edges.col[kept]]).tolist())
    kind = leidenalg.RBConfigurationVertexPartition
    return np.array(leidenalg.find_partition(graph, kind, weights=edges.data[kept].tolist(), seed=seed).membership)


def _evoc(X: np.ndarray, seed: int) -> np.ndarray:
    import evoc

    return evoc.EVoC(random_state=seed).fit_predict(X.astype(np.float32))


UNKNOWN: dict[str, tuple[tuple[str, ...], Callable[[np.ndarray, int], np.ndarray]]] = {
    "UMAP + HDBSCAN": (("umap",), _umap_hdbscan),
    "Leiden": (("leidenalg", "igraph"), _leiden),
    "EVoC": (("evoc",), _evoc),
}
OURS, GIVEN = "ZeroShotClusterer", "ZeroShotClusterer, K given"


def measure(name: str, seeds: range) -> Row:
    X, truth = SETS[name]()
    k = len(np.unique(truth))
    found = {OURS: [_fit(X, truth, None, seed) for seed in seeds], GIVEN: [_fit(X, truth, k, seed) for seed in seeds]}
    for peer, (needs, fit) in UNKNOWN.items():
        if all(map(installed, needs)):
            found[peer] = [_scored(truth, partial(fit, X, 0))]
    found["k-means + silhouette"] = [_scored(truth, lambda: best_kmeans(X, searched(X, 2), n_init=1))]
    found["k-means, K given"] = [_scored(truth, lambda: kmeans(X, k))]
    methods = {
        peer: {key: float(np.mean([one[key] for one in scores])) for key in scores[0]} | {
            "ks": [one["k"] for one in scores]} for peer, scores in found.items()
    }  # fmt: skip
    return {"name": name, "rows": len(X), "columns": X.shape[1], "groups": k, "methods": methods}


def _fit(X: np.ndarray, truth: np.ndarray, k: int | None, seed: int) -> Row:
    model = ZeroShotClusterer(k, random_state=seed)
    scores = _scored(truth, lambda: model.fit(X).labels_)
    return {**scores, "expected": model.expected_ari_}


def _scored(truth: np.ndarray, fit: Callable[[], np.ndarray]) -> Row:
    began = time.process_time()
    labels = np.asarray(fit())
    seconds = time.process_time() - began
    return {
        "ari": float(adjusted_rand_score(truth, labels)), "ami": float(adjusted_mutual_info_score(truth, labels)),
        "v": float(v_measure_score(truth, labels)), "k": number_of_clusters(labels),
        "noise": float((labels < 0).mean()), "cpu_seconds": seconds,
    }  # fmt: skip


def cells(quick: bool) -> Iterator[Cell]:
    for name in ("digits", "drawn, 20 groups") if quick else SETS:
        yield Cell(name, partial(measure, name, range(1) if quick else SEEDS))


def summary(rows: list[Row]) -> Row:
    kept = [row for row in rows if not row["name"].startswith("drawn")] or rows
    names = list(rows[0]["methods"])
    means = {
        peer: {key: float(np.mean([row["methods"][peer][key] for row in kept])) for key in ("ari", "ami", "v", "noise")}
        | {"seconds": float(sum(row["methods"][peer]["cpu_seconds"] for row in kept))}
        | {"near": float(np.mean([1 / 1.5 <= row["methods"][peer]["k"] / row["groups"] <= 1.5 for row in kept]))}
        for peer in names
    }
    off = [row["methods"][OURS]["expected"] - row["methods"][OURS]["ari"] for row in rows]
    seeds = [row["methods"][OURS]["ks"] for row in rows]
    return {
        "sets": len(kept),
        "means": means,
        "expected_off": [float(np.mean(off)), float(np.mean(np.abs(off)))],
        "k_spread": float(np.median([(max(ks) - min(ks)) / np.mean(ks) for ks in seeds])),
    }


def page(record: Row) -> list[str]:
    names = list(record["means"])
    lines = [
        [row["name"], f"{row['rows']:,} × {row['columns']}", row["groups"]]
        + ["{ari:.2f} ({k:.0f})".format(**row["methods"][peer]) for peer in names]
        for row in record["rows"]
    ]
    means = [
        [peer, *("{ari:.3f}|{ami:.3f}|{v:.3f}|{near:.0%}|{noise:.1%}|{seconds:.0f}".format(**one).split("|"))]
        for peer, one in record["means"].items()
    ]
    head = ["method", "ARI", "AMI", "V-measure", "K within a factor of 1.5", "noise", "CPU seconds of one fit each"]
    bias, off = record["expected_off"]
    return [
        f"Means over the {record['sets']} real sets:", "", *table(head, means), "",
        f"`expected_ari_` is {bias:+.2f} from the index that is reached in the mean, and {off:.2f} without the sign. "
        f"The numbers of clusters of {len(SEEDS)} seeds differ by {record['k_spread']:.0%} (median over all sets).", "",
        f"Adjusted Rand index (and number of clusters); ours is the mean of {len(SEEDS)} seeds:", "",
        *table(["set", "rows × columns", "groups", *names], lines),
    ]  # fmt: skip


BENCHMARK = Benchmark(
    "embeddings",
    "Embeddings, pixels and cells",
    cells,
    summary,
    page=page,
    peers=("umap", "leidenalg", "igraph", "evoc"),
)
