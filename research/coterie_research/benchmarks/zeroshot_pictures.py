"""Pictures of ``coterie bench zeroshot``: mean scores, calibration, failures, draws of the prior."""

from itertools import pairwise
from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from sklearn.decomposition import PCA

from coterie.estimators import ZeroShotClusterer
from coterie_research.benchmarks.harness import Row
from coterie_research.benchmarks.labelled_sets import fixed_sets

COLOURS = {
    "coterie": "#d55e00",
    "k-means": "#009e73",
    "GMM": "#0072b2",
    "HDBSCAN": "#cc79a7",
    "Genie": "#e69f00",
    "Ward": "#56b4e9",
    "spectral": "#999933",
    "second network": "#f0a890",
    "GMM + BIC": "#0072b2",
    "k-means + silhouette": "#009e73",
}
GREY = "#b4b9c1"
BAR = 0.8  # width of a group of bars
WORST = 6


def draw_all(record: Row, output: Path) -> None:
    scores(record, output / "scores.png")
    if record["calibration"]:
        calibration(record, output / "calibration.png")
    failures(record["rows"], output / "failures.png")


def _save(figure: Figure, path: Path) -> None:
    FigureCanvasAgg(figure)
    figure.savefig(path, dpi=100)


def scores(result: Row, path: Path) -> None:
    """Mean ARI of every method on every group of sets."""
    figure = Figure(figsize=(11, 7.5), layout="constrained")
    titles = {"given": "number of clusters given", "unknown": "number of clusters not given"}
    for axis, (question, title) in zip(figure.subplots(2, 1, sharey=True), titles.items()):
        groups = result["summary"][question]
        methods = list(next(iter(groups.values())))
        width = BAR / len(methods)
        for number, method in enumerate(methods):
            places = np.arange(len(groups)) + (number - (len(methods) - 1) / 2) * width
            heights = [group[method]["ari"] for group in groups.values()]
            axis.bar(places, heights, width * 0.92, color=COLOURS[method], label=method)
            for place, height in zip(places, heights):
                axis.text(place, max(height, 0) + 0.01, f"{height:.2f}".lstrip("0"), ha="center", fontsize=6)
        axis.set_xticks(np.arange(len(groups)), list(groups))
        axis.set_title(title, fontsize=10)
        axis.set_ylabel("mean ARI")
        axis.set_ylim(0, 1.18)
        axis.legend(fontsize=8, ncols=7, loc="upper center", frameon=False)
        axis.spines[["top", "right"]].set_visible(False)
    _save(figure, path)


def calibration(result: Row, path: Path) -> None:
    """On the draws: reliability of P(K), of affinities and of certainty, and the error in the number of clusters."""
    draws = [row for row in result["rows"] if row["group"].startswith("draws")]
    p, right = (np.concatenate(part) for part in zip(*(_numbers(row) for row in draws)))
    figure = Figure(figsize=(13, 3.6), layout="constrained")
    axes = figure.subplots(1, 4)
    for low, high in pairwise([0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8, 1.0001]):
        inside = (p >= low) & (p < high)
        if inside.sum() >= 5:
            share = right[inside].mean()
            error = np.sqrt(max(share * (1 - share), 0.01) / inside.sum())
            axes[0].errorbar(p[inside].mean(), share, error, fmt="o", color=COLOURS["coterie"], capsize=2, ms=5)
    axes[0].set_xlabel("probability of a number of clusters")
    axes[0].set_ylabel("share of draws with that number")
    for axis, name in zip(axes[1:], ("affinity", "certainty")):
        count, total, hits = np.array(result["calibration"][name]).T
        used = count > 0
        axis.plot(total[used] / count[used], hits[used] / count[used], "o", color=COLOURS["coterie"], ms=5)
        axis.set_xlabel({"affinity": "affinity of two rows", "certainty": "certainty of a row"}[name])
        axis.set_ylabel("share that truly share a cluster")
    for axis in axes[:3]:
        axis.plot([0, 1], [0, 1], color=GREY, lw=1)
    off = np.array([row["unknown"]["coterie"]["k"] - row["k"] for row in draws])
    places = np.arange(-6, 7)
    axes[3].bar(places, [(np.clip(off, -6, 6) == place).mean() for place in places], color=COLOURS["coterie"])
    axes[3].set_xticks([-6, -3, 0, 3, 6], ["≤ −6", "−3", "0", "3", "≥ 6"])
    axes[3].set_xlabel("clusters found − true clusters")
    axes[3].set_ylabel("share of draws")
    figure.suptitle(f"{len(draws)} fresh draws; bars are standard errors", fontsize=10)
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    _save(figure, path)


def _numbers(row: Row) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of 1, 2, ... clusters, and which of these numbers is true."""
    p = np.array(row["k_proba"])
    return p, np.arange(1, len(p) + 1) == row["k"]


def failures(rows: list[Row], path: Path) -> None:
    """The sets with the lowest ARI with the number given: the true clusters above, those found below."""
    sets = {(one.group, one.name): one for one in fixed_sets()}
    known = [(row, sets[row["group"], row["name"]]) for row in rows if (row["group"], row["name"]) in sets]
    tables = sorted(known, key=lambda pair: pair[0]["given"]["coterie"]["ari"])[:WORST]
    if not tables:
        return
    figure = Figure(figsize=(2.6 * len(tables), 5.6), layout="constrained")
    axes = figure.subplots(2, len(tables), squeeze=False)
    for column, (row, one) in enumerate(tables):
        found = ZeroShotClusterer(one.n_clusters, random_state=0).fit(one.X).labels_
        scatter(axes[0, column], one.X, np.where(one.labels > 0, one.labels - 1, -1))
        scatter(axes[1, column], one.X, found)
        axes[0, column].set_title(f"{row['group']} {row['name']}\ntrue clusters", fontsize=9)
        axes[1, column].set_title(f"found: ARI {row['given']['coterie']['ari']:.2f}", fontsize=9)
    _save(figure, path)


def prior(path: Path, count: int = 64, seed: int = 1_000) -> Path:
    """Draws of the prior, in two of their columns or, of more, on their first principal axes."""
    from coterie_research.training.zeroshot.prior.problems import Prior

    side = int(np.sqrt(count))
    figure = Figure(figsize=(2 * side, 2 * side), layout="constrained")
    for number, axis in enumerate(figure.subplots(side, side).flat):
        problem = Prior().draw(np.random.default_rng(seed + number), 400)
        scatter(axis, problem.points_ND, problem.labels_N)
        dims = problem.points_ND.shape[1]
        axis.set_title(f"{problem.kind}, K = {problem.n_clusters}, d = {dims}", fontsize=8)
    _save(figure, path)
    return path


def scatter(axis: Axes, X: np.ndarray, labels: np.ndarray) -> None:
    """Points in the colours of their labels; -1 is grey."""
    shown = np.random.default_rng(0).permutation(len(X))[:2_000]
    X, labels = X[shown], labels[shown]
    if X.shape[1] == 1:
        X = np.column_stack([X[:, 0], np.random.default_rng(0).uniform(size=len(X))])
    elif X.shape[1] > 2:
        X = PCA(2).fit_transform(X)
    colours = np.array([*colormaps["tab20"].colors[::2], *colormaps["tab20"].colors[1::2]])  # type: ignore[attr-defined]
    axis.scatter(X[:, 0], X[:, 1], s=3, lw=0, c=[GREY if one < 0 else colours[one % 20] for one in labels])
    axis.set_xticks([])
    axis.set_yticks([])
