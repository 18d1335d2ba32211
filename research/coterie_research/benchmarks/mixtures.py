"""FlowMixture compared with the mixtures of scikit-learn and with HDBSCAN, none of them given the number of clusters.

Drawn mixtures have 600 rows, and 600 more for the held-out log-likelihood. With noise, a tenth of the rows is uniform
on the bounding box of the others; the index of a partition is then computed with the noise as one more class. Tables
are standardised and at most 2,000 of their rows are used, one half for fitting. Calibration is the difference between
the probability of a row's label and the share of labels that are right, over ten bins. "The true mixture" labels rows
by the parameters that they were drawn with: no method can expect fewer errors or a higher log-likelihood.
"""

import functools
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.cluster import HDBSCAN
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import BayesianGaussianMixture
from sklearn.preprocessing import StandardScaler

from coterie.estimators import FlowMixture
from coterie_research.benchmarks.harness import Benchmark, Cell, Columns, Row, filled
from coterie_research.benchmarks.labelled_sets import tables
from coterie_research.benchmarks.methods import best_mixture, binned, grouped, interval, means, number_of_clusters

SEED = 50_000
ROWS = 600
MOST = 12  # components that the mixtures of scikit-learn try
FAMILIES = {"full": 200, "spherical": 88, "noise": 88}  # and how many are drawn
TABLE_ROWS = 2_000
NOISE = 0.1
BEST = "the true mixture"
TITLES = {
    "full": "Full covariances",
    "spherical": "Spherical covariances, equal variances",
    "noise": "Full covariances and 10% uniform noise",
    "tables": "Labelled tables",
}


class TrueMixture(NamedTuple):
    """The parameters of a drawn mixture; the noise is uniform on a box."""

    centers_KD: np.ndarray
    roots_KDD: np.ndarray  # the covariance of a cluster is a root times its transpose
    weights_K: np.ndarray
    noise: float
    log_volume: float

    def log_joint(self, X: np.ndarray) -> np.ndarray:
        """(N, K) log-densities times weights; with noise, its own in one more column."""
        clusters = zip(self.centers_KD, self.roots_KDD)
        log_p_KN = [multivariate_normal(center, root @ root.T).logpdf(X) for center, root in clusters]
        joint_NK = np.transpose(log_p_KN) + np.log((1 - self.noise) * self.weights_K)
        if not self.noise:
            return joint_NK
        return np.column_stack([joint_NK, np.full(len(X), np.log(self.noise) - self.log_volume)])


class Drawn(NamedTuple):
    """Rows of a mixture: those to fit, their labels (-1 for noise), those held out, and what it was drawn with."""

    X: np.ndarray
    labels: np.ndarray
    held_out: np.ndarray
    truth: TrueMixture


def drawn(family: str, number: int) -> Drawn:
    """A mixture of 2 to 8 clusters in 2 to 6 columns."""
    rng = np.random.default_rng((SEED, list(FAMILIES).index(family), number))
    dim, k = int(rng.integers(2, 7)), int(rng.integers(2, 9))
    centers_KD = rng.uniform(1.5, 4.0) * rng.normal(size=(k, dim))
    weights_K = rng.dirichlet(np.full(k, 5.0))
    labels_N = rng.choice(k, size=2 * ROWS, p=weights_K)
    noise_ND = rng.normal(size=(2 * ROWS, dim))
    roots_KDD = np.broadcast_to(np.eye(dim), (k, dim, dim))
    if family != "spherical":
        axes_KDD = np.linalg.qr(rng.normal(size=(k, dim, dim)))[0]
        roots_KDD = axes_KDD * np.exp(rng.uniform(np.log(0.3), np.log(2.0), size=(k, 1, dim)))
        noise_ND = np.einsum("nij,nj->ni", roots_KDD[labels_N], noise_ND)
    X = centers_KD[labels_N] + noise_ND
    noise, log_volume = 0.0, float(np.log(np.ptp(X, axis=0)).sum())
    if family == "noise":
        noise = NOISE
        lost_N = rng.random(2 * ROWS) < noise
        X[lost_N] = rng.uniform(X.min(0), X.max(0), size=(int(lost_N.sum()), dim))
        labels_N[lost_N] = -1
    truth = TrueMixture(centers_KD, roots_KDD, weights_K, noise, log_volume)
    return Drawn(X[:ROWS], labels_N[:ROWS], X[ROWS:], truth)


def scores(truth: np.ndarray, labels: np.ndarray, seconds: float, certainty: np.ndarray | None, held_out: float) -> Row:
    """Of one partition. Without certainty there is no density either."""
    row = {
        "seconds": seconds,
        "ari": float(adjusted_rand_score(truth, labels)),
        "k": number_of_clusters(labels),
        "true_k": number_of_clusters(truth),
    }
    if certainty is not None:
        row |= {"held_out": float(held_out), "calibration": calibration(labels, truth, certainty)}
    return row


def best_possible(data: Drawn) -> Row:
    """The scores of the true mixture."""
    joint_NK, k = data.truth.log_joint(data.X), len(data.truth.weights_K)
    labels = joint_NK.argmax(1)
    labels[labels == k] = -1
    certainty = np.exp(joint_NK.max(1) - logsumexp(joint_NK, axis=1))
    held_out = logsumexp(data.truth.log_joint(data.held_out), axis=1).mean()
    return scores(data.labels, labels, 0.0, certainty, held_out) | {"k": k, "true_k": k}


def _flow(**settings: Any) -> Callable[[np.ndarray], Any]:
    return lambda X: FlowMixture(random_state=0, **settings).fit(X)


METHODS: dict[str, Callable[[np.ndarray], Any]] = {
    "FlowMixture": _flow(),
    "FlowMixture, outliers='auto'": _flow(outliers="auto"),
    "FlowMixture, outliers='auto', posterior": _flow(outliers="auto", refine="posterior"),
    "GaussianMixture full + BIC": lambda X: best_mixture(X, range(1, min(MOST, len(X) // 3) + 1)),
    "BayesianGaussianMixture": lambda X: BayesianGaussianMixture(n_components=MOST, random_state=0).fit(X),
    "HDBSCAN": lambda X: HDBSCAN(copy=True).fit(X),
}
OURS, OTHERS = tuple(METHODS)[:3], tuple(METHODS)[3:]


@functools.cache
def _warm_up(names: tuple[str, ...]) -> None:
    """What a process imports and compiles is not part of the seconds."""
    for name in names:
        METHODS[name](drawn("full", 0).X[:100])


def measure(X: np.ndarray, truth: np.ndarray, held_out: np.ndarray, methods: tuple[str, ...] = tuple(METHODS)) -> Row:
    """The scores of all methods on one data set."""
    _warm_up(methods)
    row: Row = {}
    for name in methods:
        began = time.process_time()
        model = METHODS[name](X)
        labels = model.labels_ if hasattr(model, "labels_") else model.predict(X)
        seconds = time.process_time() - began
        if name == "HDBSCAN":
            row[name] = scores(truth, labels, seconds, None, np.nan)
        else:
            certainty = model.certainty_ if hasattr(model, "certainty_") else model.predict_proba(X).max(1)
            row[name] = scores(truth, labels, seconds, certainty, model.score(held_out))
    return row


def calibration(labels: np.ndarray, truth: np.ndarray, certainty: np.ndarray) -> float:
    """Expected calibration error: a label is right if its cluster has most of its rows from the row's own class."""
    right = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        mine = labels == label
        classes, counts = np.unique(truth[mine], return_counts=True)
        right[mine] = truth[mine] == classes[counts.argmax()]
    _, expected, realised = np.transpose(binned(certainty, right))
    return float(np.abs(realised - expected).sum() / len(labels))


def cells(quick: bool) -> list[Cell]:
    """The tables, then the drawn mixtures, of every family in turn."""
    numbers = {family: 2 if quick else count for family, count in FAMILIES.items()}
    return [
        *(
            Cell(f"tables {one.name}", partial(_of_table, one.name, one.X, one.labels))
            for one in list(tables())[: 1 if quick else None]
        ),
        *(
            Cell(f"{family} {number}", partial(_of_drawn, family, number))
            for number in range(max(numbers.values()))
            for family in FAMILIES
            if number < numbers[family]
        ),
    ]


def _of_table(name: str, X: np.ndarray, labels: np.ndarray) -> Row:
    order = np.random.default_rng(SEED).permutation(len(X))[:TABLE_ROWS]
    X, half = StandardScaler().fit_transform(X[order]), len(order) // 2
    found = measure(X[:half], labels[order[:half]], X[half:])
    return {"group": "tables", "name": name, "k": number_of_clusters(labels[order[:half]]), "scores": found}


def _of_drawn(family: str, number: int) -> Row:
    data = drawn(family, number)
    found = {**measure(data.X, data.labels, data.held_out), BEST: best_possible(data)}
    return {"group": family, "name": str(number), "k": found[BEST]["k"], "scores": found}


def summary(rows: list[Row]) -> Row:
    groups = {group: grouped(rows)[group] for group in TITLES if group in grouped(rows)}
    found = {group: means(members, "scores") for group, members in groups.items()}
    for method in (method for group in found.values() for method in group.values()):
        method["exact_k"] = method.pop("exact")
    return {
        "summary": found,
        "differences": {group: differences([row["scores"] for row in members]) for group, members in groups.items()},
        "rows": {group: {row["name"]: row["scores"] for row in members} for group, members in groups.items()},
    }


def differences(rows: list[Row]) -> dict[str, dict[str, list[float]]]:
    """Mean paired difference of the FlowMixtures to the others, with the bounds of its 95% bootstrap interval."""
    found: dict[str, dict[str, list[float]]] = {}
    for ours in OURS:
        for other in (*OTHERS, BEST):
            both = [row for row in rows if other in row]
            for key in ("ari", "held_out", "exact_k"):
                if both and (key, other) not in (("held_out", "HDBSCAN"), ("exact_k", BEST)):
                    gaps = [_value(row[ours], key) - _value(row[other], key) for row in both]
                    found.setdefault(f"{ours} - {other}", {})[key] = interval(gaps)
    return found


def _value(scored: dict[str, float], key: str) -> float:
    return float(scored["k"] == scored["true_k"]) if key == "exact_k" else scored[key]


MEANS: Columns = {
    "method": "{method}",
    "adjusted Rand index": "{ari:.3f}",
    "held-out log-likelihood": "{held_out:.3f}",
    "K exact": "{exact_k:.0%}",
    "calibration error": "{calibration:.3f}",
    "seconds": "{seconds:.3f}",
}
GAPS: Columns = {
    "difference": "{pair}",
    "adjusted Rand index": "{ari[0]:+.3f} [{ari[1]:+.3f}, {ari[2]:+.3f}]",
    "held-out log-likelihood": "{held_out[0]:+.3f} [{held_out[1]:+.3f}, {held_out[2]:+.3f}]",
    "K exact": "{exact_k[0]:+.3f} [{exact_k[1]:+.3f}, {exact_k[2]:+.3f}]",
}


def page(record: Row) -> list[str]:
    lines = []
    for group, found in record["summary"].items():
        sets = max(one["sets"] for one in found.values())
        lines += [f"## {TITLES[group]} ({sets} data sets)", ""]
        lines += [*filled(MEANS, ({"method": name, **one} for name, one in found.items())), ""]
        lines += [*filled(GAPS, ({"pair": pair, **one} for pair, one in record["differences"][group].items())), ""]
    return lines[:-1]


BENCHMARK = Benchmark(
    name="mixtures",
    title="Gaussian mixtures with an unknown number of clusters",
    rows=None,
    seed=SEED,
    jobs=2,
    cells=cells,
    summary=summary,
    intro="Means over data sets; seconds are CPU seconds of one thread. Differences are paired, with 95% bootstrap "
    "intervals in brackets.",
    page=page,
)
