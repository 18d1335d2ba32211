"""FlowMixture compared with the mixtures of scikit-learn and with HDBSCAN, none of them given the number of clusters.

Command: ``coterie bench mixtures``. Drawn mixtures have 600 rows, and 600 more for the held-out log-likelihood. With
noise, a tenth of the rows is uniform on the bounding box of the others; the index of a partition is then computed with
the noise as one more class. Tables are standardised and at most 2,000 of their rows are used, one half for fitting.
Calibration is the difference between the probability of a row's label and the share of labels that are right, over ten
bins. "The true mixture" labels rows by the parameters that they were drawn with: no method can expect fewer errors or a
higher log-likelihood. An interrupted run continues with the rows in its file.
"""

import functools
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy.special import logsumexp
from sklearn.cluster import HDBSCAN
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture
from sklearn.preprocessing import StandardScaler

from coterie.estimators import FlowMixture
from coterie.files import replacing
from coterie_research.benchmarks._zeroshot_sets import tables

SEED = 50_000
ROWS = 600
MOST = 12  # components that the mixtures of scikit-learn try
FAMILIES = {"full": 200, "spherical": 88, "noise": 88}  # and how many are drawn
TABLE_ROWS = 2_000
NOISE = 0.1
RESAMPLES = 2_000
CHUNK = 2  # data sets between two writes of the file


class Drawn(NamedTuple):
    """Rows of a mixture: those to fit, their labels (-1 for noise), those held out, and what it was drawn with."""

    X: np.ndarray
    labels: np.ndarray
    held_out: np.ndarray
    truth: "TrueMixture"


class TrueMixture(NamedTuple):
    """The parameters of a drawn mixture; the noise is uniform on a box."""

    centers_KD: np.ndarray
    roots_KDD: np.ndarray  # the covariance of a cluster is a root times its transpose
    weights_K: np.ndarray
    noise: float
    log_volume: float

    def log_joint(self, X: np.ndarray) -> np.ndarray:
        """(N, K) log-densities times weights; with noise, its own in one more column."""
        away_KND = np.linalg.solve(self.roots_KDD[:, None], (X - self.centers_KD[:, None])[..., None])[..., 0]
        log_det_K = np.linalg.slogdet(self.roots_KDD)[1]
        joint_KN = -0.5 * np.square(away_KND).sum(-1) - (log_det_K + X.shape[1] / 2 * np.log(2 * np.pi))[:, None]
        joint_NK = joint_KN.T + np.log((1 - self.noise) * self.weights_K)
        if not self.noise:
            return joint_NK
        return np.column_stack([joint_NK, np.full(len(X), np.log(self.noise) - self.log_volume)])


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


def best_possible(data: Drawn) -> dict[str, float]:
    """The scores of the true mixture."""
    joint_NK, k = data.truth.log_joint(data.X), len(data.truth.weights_K)
    labels = joint_NK.argmax(1)
    labels[labels == k] = -1
    certainty = np.exp(joint_NK.max(1) - logsumexp(joint_NK, axis=1))
    return {
        "seconds": 0.0,
        "ari": float(adjusted_rand_score(data.labels, labels)),
        "k": k,
        "true_k": k,
        "held_out": float(logsumexp(data.truth.log_joint(data.held_out), axis=1).mean()),
        "calibration": calibration(labels, data.labels, certainty),
    }


def gaussian_mixture(X: np.ndarray) -> GaussianMixture:
    """Full covariances, and the number of components of least BIC."""
    most = min(MOST, len(X) // 3)
    return min((GaussianMixture(k, random_state=0).fit(X) for k in range(1, most + 1)), key=lambda one: one.bic(X))


METHODS: dict[str, Callable[[np.ndarray], Any]] = {
    "FlowMixture": lambda X: FlowMixture(random_state=0).fit(X),
    "FlowMixture, noise='auto'": lambda X: FlowMixture(noise="auto", random_state=0).fit(X),
    "FlowMixture, noise='auto', posterior": lambda X: FlowMixture(noise="auto", refine="posterior", random_state=0).fit(
        X
    ),
    "GaussianMixture full + BIC": gaussian_mixture,
    "BayesianGaussianMixture": lambda X: BayesianGaussianMixture(n_components=MOST, random_state=0).fit(X),
    "HDBSCAN": lambda X: HDBSCAN(copy=True).fit(X),
}
OTHERS = tuple(METHODS)[3:]
BEST = "the true mixture"


@functools.cache
def _warm_up() -> None:
    """What a process imports and compiles is not part of the seconds."""
    for method in METHODS.values():
        method(drawn("full", 0).X[:100])


def measure(
    X: np.ndarray, truth: np.ndarray, held_out: np.ndarray, methods: dict[str, Callable] = METHODS
) -> dict[str, Any]:
    """The scores of all methods on one data set."""
    _warm_up()
    row: dict[str, Any] = {}
    k = len(np.unique(truth[truth >= 0]))
    for name, method in methods.items():
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # mixtures that do not converge
            model = method(X)
        labels = model.labels_ if hasattr(model, "labels_") else model.predict(X)
        scores = {
            "seconds": time.process_time() - began,
            "ari": float(adjusted_rand_score(truth, labels)),
            "k": len(np.unique(labels[labels >= 0])),
            "true_k": k,
        }
        if name != "HDBSCAN":
            certainty = model.certainty_ if hasattr(model, "certainty_") else model.predict_proba(X).max(1)
            scores |= {"held_out": float(model.score(held_out)), "calibration": calibration(labels, truth, certainty)}
        row[name] = scores
    return row


def calibration(labels: np.ndarray, truth: np.ndarray, certainty: np.ndarray) -> float:
    """Expected calibration error: a label is right if its cluster has most of its rows from the row's own class."""
    right = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        mine = labels == label
        classes, counts = np.unique(truth[mine], return_counts=True)
        right[mine] = truth[mine] == classes[counts.argmax()]
    place = np.minimum((certainty * 10).astype(int), 9)
    return float(
        sum(abs(right[place == b].mean() - certainty[place == b].mean()) * (place == b).mean() for b in set(place))
    )


def _tables(quick: bool) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    found = {}
    for one in list(tables())[: 1 if quick else None]:
        order = np.random.default_rng(SEED).permutation(len(one.X))[:TABLE_ROWS]
        X = StandardScaler().fit_transform(one.X[order])
        half = len(X) // 2
        found[one.name] = X[:half], one.labels[order[:half]], X[half:]
    return found


def run(quick: bool = False, output: Path = Path("results/mixtures")) -> dict:
    """Measure everything, and write ``mixtures.json`` and ``README.md``."""
    output = Path(output)
    output.mkdir(parents=True, exist_ok=True)
    path = output / "mixtures.json"
    rows: dict[str, dict] = {}
    if path.exists() and not quick:
        rows = json.loads(path.read_text())["rows"]
    numbers = {family: 2 if quick else count for family, count in FAMILIES.items()}
    todo: dict[tuple[str, str], Any] = {
        ("tables", name): delayed(measure)(*data) for name, data in _tables(quick).items()
    }
    todo |= {
        (family, str(number)): delayed(_measure_drawn)(family, number)
        for number in range(max(numbers.values()))
        for family in FAMILIES
        if number < numbers[family]
    }
    for family in FAMILIES:  # files of earlier versions lack what is cheap to compute
        for number, row in rows.get(family, {}).items():
            row.setdefault(BEST, best_possible(drawn(family, int(number))))
    left = [key for key in todo if key[1] not in rows.get(key[0], {})]
    result = _write(rows, output, quick)
    for part in (left[begin : begin + CHUNK] for begin in range(0, len(left), CHUNK)):
        for (group, name), row in zip(part, Parallel(n_jobs=2)(todo[key] for key in part)):
            rows.setdefault(group, {})[name] = row
        result = _write(rows, output, quick)
    return result


def _measure_drawn(family: str, number: int) -> dict[str, Any]:
    data = drawn(family, number)
    return {**measure(data.X, data.labels, data.held_out), BEST: best_possible(data)}


def _write(rows: dict[str, dict], output: Path, quick: bool) -> dict[str, Any]:
    rows = {group: rows[group] for group in TITLES if rows.get(group)}
    result = {
        "command": "coterie bench mixtures" + (" --quick" if quick else ""),
        "seed": SEED,
        "summary": {group: summary(list(values.values())) for group, values in rows.items()},
        "differences": {group: differences(list(values.values())) for group, values in rows.items()},
        "rows": rows,
    }
    with replacing(output / "mixtures.json") as file:
        file.write_text(json.dumps(result))
    with replacing(output / "README.md") as file:
        file.write_text(markdown(result))
    return result


def summary(rows: list[dict]) -> dict[str, dict[str, float]]:
    """Means over data sets, for every method."""
    means: dict[str, dict[str, float]] = {}
    for name in (*METHODS, BEST):
        mine = [row[name] for row in rows if name in row]
        if mine:
            means[name] = {key: float(np.mean([one[key] for one in mine])) for key in mine[0] if "k" != key != "true_k"}
            means[name]["exact_k"] = float(np.mean([one["k"] == one["true_k"] for one in mine]))
            means[name]["sets"] = len(mine)
    return means


def differences(rows: list[dict]) -> dict[str, dict[str, list[float]]]:
    """Mean paired difference of the FlowMixtures to the others, with the bounds of its 95% bootstrap interval."""
    found: dict[str, dict[str, list[float]]] = {}
    for ours in tuple(METHODS)[:3]:
        for other in (*OTHERS, BEST):
            both = [row for row in rows if other in row]
            for key in ("ari", "held_out", "exact_k"):
                if not both or (key, other) in (("held_out", "HDBSCAN"), ("exact_k", BEST)):
                    continue
                gap = np.array([_value(row[ours], key) - _value(row[other], key) for row in both])
                picked = np.random.default_rng(0).integers(len(gap), size=(RESAMPLES, len(gap)))
                low, high = np.quantile(gap[picked].mean(1), [0.025, 0.975])
                found.setdefault(f"{ours} - {other}", {})[key] = [float(gap.mean()), float(low), float(high)]
    return found


def _value(scores: dict[str, float], key: str) -> float:
    return float(scores["k"] == scores["true_k"]) if key == "exact_k" else scores[key]


TITLES = {
    "full": "Full covariances",
    "spherical": "Spherical covariances, equal variances",
    "noise": "Full covariances and 10% uniform noise",
    "tables": "Labelled tables",
}


def markdown(result: dict) -> str:
    lines = [
        "# Gaussian mixtures with an unknown number of clusters",
        "",
        f"`{result['command']}`: means over data sets; seconds are CPU seconds of one thread. Differences are paired, "
        "with 95% bootstrap intervals in brackets.",
    ]
    for group, means in result["summary"].items():
        lines += [
            "",
            f"## {TITLES[group]} ({max(int(one['sets']) for one in means.values())} data sets)",
            "",
            "| method | adjusted Rand index | held-out log-likelihood | K exact | calibration error | seconds |",
            "|---|---|---|---|---|---|",
        ]
        for name, one in means.items():
            held = (
                f"{one['held_out']:.3f} | {one['exact_k']:.0%} | {one['calibration']:.3f}" if "held_out" in one else ""
            )
            rest = held or f"- | {one['exact_k']:.0%} | -"
            lines.append(f"| {name} | {one['ari']:.3f} | {rest} | {one['seconds']:.3f} |")
        lines += ["", "| difference | adjusted Rand index | held-out log-likelihood | K exact |", "|---|---|---|---|"]
        for pair, values in result["differences"][group].items():
            cells = [
                "{:+.3f} [{:+.3f}, {:+.3f}]".format(*values[key]) if key in values else "-"
                for key in ("ari", "held_out", "exact_k")
            ]
            lines.append(f"| {pair} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
