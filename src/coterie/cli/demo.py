"""``coterie demo``: a mixed table, points with outliers, and Lloyd's algorithm as the layers of a transformer."""

import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from coterie import KMeans, RobustKMeans, TrimmedKMeans
from coterie.cli import console as say
from coterie.files import replacing
from coterie.plot import Panel, save_comparison, trajectory
from coterie.studio.samples import SAMPLES
from coterie.tabular import cluster_table

SEED = 0


def run(folder: Path) -> None:
    """Print three examples and write one picture per example to ``folder``."""
    console = Console(width=None if Console().is_terminal else 110, highlight=False)
    files = {
        "customers": _customers(console, folder / "customers.png"),
        "outliers": _outliers(console, folder / "outliers.png"),
        "layers": _layers(console, folder / "layers.html"),
    }
    console.rule()
    console.print("Pictures:")
    for path in files.values():
        console.print(f"  {path}", soft_wrap=True)
    console.print("\nTry it on your own table:")
    command = "coterie" if shutil.which("coterie") else escape(sys.argv[0])  # it may not be on the path
    console.print(f"  [bold]{command} cluster YOUR.csv --plot clusters.png[/]", soft_wrap=True)


def _customers(console: Console, path: Path) -> Path:
    console.rule("[bold]1. A table as it is[/]", align="left")
    frame = SAMPLES["shop"].make()
    console.print(
        f"{len(frame)} invented customers with numbers, a category, missing ages and an identifier. ZeroShotClusterer\n"
        "is given neither the number of groups nor the habit of each customer.\n"
    )
    young, regular = frame["age"] < 30, frame["visits_per_year"] > 100
    frame["payment"] = np.where(young, "phone", np.where(regular, "coins", "card"))
    clustered = cluster_table(frame, watcher=say.ProgressWatcher(), exclude=["habit"], seed=SEED)
    facts = clustered.facts
    for note in facts.notes:
        console.print(f"[dim]{escape(note)}[/]")
    say.print_verdict(console, facts)
    console.print(say.clusters_table(facts.summaries, console))

    habits = sorted(frame["habit"].unique())
    table = Table(title="\nClusters and habits", title_justify="left")
    for title in ("cluster", *habits):
        table.add_column(title, justify="right")
    counts = [[int(((clustered.labels == j) & (frame["habit"] == habit)).sum()) for habit in habits]
              for j in range(clustered.k)]  # fmt: skip
    for j, row in enumerate(counts):
        table.add_row(str(j), *(str(count) if count else "·" for count in row))
    console.print(table)
    right = sum(max(row) for row in counts)
    console.print(f"{right} of {len(frame)} customers are in a cluster whose most frequent habit is theirs.\n")
    return clustered.save_picture(path, "940 customers: ZeroShotClusterer on the table as it is")


def mixture_with_outliers(seed: int = SEED) -> tuple[np.ndarray, np.ndarray]:
    """Five clusters of 200 points, 60 outliers that are uniform in a wide square, and the true centres."""
    rng = np.random.default_rng(seed)
    angle = 2 * np.pi * np.arange(5) / 5
    centers = 5.0 * np.column_stack([np.cos(angle), np.sin(angle)])
    blobs = np.repeat(centers, 200, axis=0) + rng.normal(size=(1000, 2))
    return np.vstack([blobs, rng.uniform(-20, 20, size=(60, 2))]), centers


def _outliers(console: Console, path: Path) -> Path:
    console.rule("[bold]2. Outliers[/]", align="left")
    console.print("Five clusters of 200 points, and 60 outliers that are spread over a square three times as wide.\n")
    X, centers = mixture_with_outliers()
    estimators = {
        "KMeans": KMeans(5, n_init=10, random_state=SEED),
        "TrimmedKMeans": TrimmedKMeans(5, outliers=0.06, n_init=10, random_state=SEED),
        "RobustKMeans": RobustKMeans(5, n_init=10, random_state=SEED),
    }
    table = Table()
    for title in ("", "error of the centres", "points labelled as outliers"):
        table.add_column(title, justify="left" if title == "" else "right")
    runs = []
    with say.working("Clustering"):
        for name, estimator in estimators.items():
            estimator.fit(X)
            found, labels, missed = _matched(centers, estimator)
            table.add_row(name, f"{missed:.2f}", str(int((labels < 0).sum())))
            runs.append(Panel(f"{name}: error {missed:.2f}", labels, found))
    console.print(table)
    console.print(
        "(The error is the mean distance between the true and the estimated centres; the standard deviation is 1.)\n"
    )
    return save_comparison(path, X, runs, true_centers=centers, window=(-9, 9))


def _matched(true: np.ndarray, estimator: Any) -> tuple[np.ndarray, np.ndarray, float]:
    """Centres and labels in the order of the true centres, and the mean distance between the two."""
    distance = cdist(true, estimator.cluster_centers_)
    _, order = linear_sum_assignment(distance)
    number = np.append(np.argsort(order), -1)  # the last one for the label -1
    return estimator.cluster_centers_[order], number[estimator.labels_], float(distance[range(len(true)), order].mean())


def _layers(console: Console, path: Path) -> Path:
    console.rule("[bold]3. The same algorithm, as a transformer[/]", align="left")
    X = mixture_with_outliers()[0][:1000]
    start = X[np.random.default_rng(3).choice(len(X), 5, replace=False)]
    literal = KMeans(5, init=start, engine="literal").fit(X)
    fused = KMeans(5, init=start, engine="fused").fit(X)
    apart = float(np.abs(literal.cluster_centers_ - fused.cluster_centers_).max())
    console.print(
        "In each layer, points attend to centres and centres attend to points. The weights are constructed, not\n"
        f"trained: after {literal.n_iter_} layers of query, key and value matrices, the centres agree with those of\n"
        f"Lloyd's algorithm up to {apart:.0e}.\n"
    )
    with replacing(path) as temporary:
        trajectory(X, literal.trajectory_, start=start, title="The centres in every layer").write_html(temporary)
    return path
