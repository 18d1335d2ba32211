"""Pictures of ``coterie bench zeroshot``: mean scores, calibration, failures, draws of the prior."""

from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from sklearn.decomposition import PCA

from coterie.estimators import ZeroShotClusterer
from coterie_research.benchmarks.harness import Row
from coterie_research.benchmarks.labelled_sets import fixed_sets
from coterie_research.drawing import Curve, Panel, Picture, draw

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
    draw(scores(record), output / "scores.png")
    if record["calibration"]:
        draw(calibration(record), output / "calibration.png")
    draw(failures(record["rows"]), output / "failures.png")


def scores(record: Row) -> Picture:
    """Mean ARI of every method on every group of sets."""
    titles = {"given": "number of clusters given", "unknown": "number of clusters not given"}
    panels = [
        Panel(title, "", "mean ARI", draw=partial(_bars, record["summary"][question]), settings={"ylim": (0, 1.18)})
        for question, title in titles.items()
    ]
    return Picture(panels, columns=1, size=(11, 3.7), share=True)


def _bars(groups: dict[str, Row], axes: Axes) -> None:
    methods = list(next(iter(groups.values())))
    width = BAR / len(methods)
    for number, method in enumerate(methods):
        places = np.arange(len(groups)) + (number - (len(methods) - 1) / 2) * width
        heights = [group[method]["ari"] for group in groups.values()]
        axes.bar(places, heights, width * 0.92, color=COLOURS[method], label=method)
        for place, height in zip(places, heights):
            axes.text(place, max(height, 0) + 0.01, f"{height:.2f}".lstrip("0"), ha="center", fontsize=6)
    axes.set_xticks(np.arange(len(groups)), list(groups))
    axes.legend(fontsize=8, ncols=7, loc="upper center", frameon=False)


def calibration(record: Row) -> Picture:
    """On the draws: reliability of P(K), of affinities and of certainty, and the error in the number of clusters."""
    draws = [row for row in record["rows"] if row["group"].startswith("draws")]
    p = np.concatenate([row["k_proba"] for row in draws])
    right = np.concatenate([np.arange(1, len(row["k_proba"]) + 1) == row["k"] for row in draws])
    even: Curve = {"x": [0, 1], "y": [0, 1], "color": GREY, "lw": 1}
    dots = {"color": COLOURS["coterie"], "marker": "o", "ls": "", "ms": 5}
    numbers = [even]
    for low, high in pairwise([0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8, 1.0001]):
        inside = (p >= low) & (p < high)
        if inside.sum() >= 5:
            share = right[inside].mean()
            error = np.sqrt(max(share * (1 - share), 0.01) / inside.sum())
            numbers.append({"x": [p[inside].mean()], "y": [share], "error": [error], "capsize": 2, **dots})
    panels = [Panel("", "probability of a number of clusters", "share of draws with that number", numbers)]
    for name, x in (("affinity", "affinity of two rows"), ("certainty", "certainty of a row")):
        count, total, hits = np.array([each for each in record["calibration"][name] if each[0]]).T
        found = {"x": total / count, "y": hits / count, **dots}
        panels.append(Panel("", x, "share that truly share a cluster", [even, found]))
    off = np.array([row["unknown"]["coterie"]["k"] - row["k"] for row in draws])

    def errors(axes: Axes) -> None:
        places = np.arange(-6, 7)
        shares = [(np.clip(off, -6, 6) == place).mean() for place in places]
        axes.bar(places, shares, color=COLOURS["coterie"])
        axes.set_xticks([-6, -3, 0, 3, 6], ["≤ −6", "−3", "0", "3", "≥ 6"])

    panels.append(Panel("", "clusters found − true clusters", "share of draws", draw=errors))
    return Picture(panels, f"{len(draws)} fresh draws; bars are standard errors", size=(3.2, 3.2))


def failures(rows: list[Row]) -> Picture:
    """The sets with the lowest ARI with the number given: the true clusters above, those found below."""
    sets = {(one.group, one.name): one for one in fixed_sets()}
    known = [(row, sets[row["group"], row["name"]]) for row in rows if (row["group"], row["name"]) in sets]
    above, below = [], []
    for row, one in sorted(known, key=lambda pair: pair[0]["given"]["coterie"]["ari"])[:WORST]:
        found = ZeroShotClusterer(one.n_clusters, random_state=0).fit(one.X).labels_
        true = partial(scatter, one.X, np.where(one.labels > 0, one.labels - 1, -1))
        above.append(Panel(f"{row['group']} {row['name']}\ntrue clusters", draw=true))
        below.append(Panel(f"found: ARI {row['given']['coterie']['ari']:.2f}", draw=partial(scatter, one.X, found)))
    return Picture([*above, *below], columns=len(above) or 1, size=(2.6, 2.6))


def prior(count: int = 64, seed: int = 1_000) -> Picture:
    """Draws of the prior, in two of their columns or, of more, on their first principal axes."""
    from coterie_research.training.zeroshot.prior.problems import Prior

    panels = []
    for number in range(count):
        one = Prior().draw(np.random.default_rng(seed + number), 400)
        title = f"{one.kind}, K = {one.n_clusters}, d = {one.points_ND.shape[1]}"
        panels.append(Panel(title, draw=partial(scatter, one.points_ND, one.labels_N)))
    return Picture(panels, columns=int(np.sqrt(count)), size=(2, 2))


def scatter(X: np.ndarray, labels: np.ndarray, axes: Axes) -> None:
    """Points in the colours of their labels; -1 is grey."""
    shown = np.random.default_rng(0).permutation(len(X))[:2_000]
    X, labels = X[shown], labels[shown]
    if X.shape[1] == 1:
        X = np.column_stack([X[:, 0], np.random.default_rng(0).uniform(size=len(X))])
    elif X.shape[1] > 2:
        X = PCA(2).fit_transform(X)
    colours = np.array([*colormaps["tab20"].colors[::2], *colormaps["tab20"].colors[1::2]])  # type: ignore[attr-defined]
    axes.scatter(X[:, 0], X[:, 1], s=3, lw=0, c=[GREY if one < 0 else colours[one % 20] for one in labels])
    axes.set(xticks=[], yticks=[])
