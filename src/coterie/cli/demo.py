"""``coterie demo``: a real table, points with outliers, and the layers of a transformer that is Lloyd's algorithm."""

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
from coterie.data.tables import sample
from coterie.plot import Panel, save_comparison, save_trajectory
from coterie.tabular import Columns, TableModel, draw, fit_table, make_estimator, summarise

SEED = 0


def run(folder: Path) -> None:
    """Print three short stories and write a picture of each to ``folder``."""
    console = Console(width=None if Console().is_terminal else 110, highlight=False)
    files = {
        "wine": _wine(console, folder / "wine.png"),
        "outliers": _outliers(console, folder / "outliers.png"),
        "layers": _layers(console, folder / "layers.png"),
    }
    console.rule()
    console.print("Pictures:")
    for path in files.values():
        console.print(f"  {path}", soft_wrap=True)
    console.print("\nNow your own table:")
    command = (
        "coterie" if shutil.which("coterie") else escape(sys.argv[0])
    )  # as it was called: not all have it on the path
    console.print(f"  [bold]{command} cluster YOUR.csv --scale --plot clusters.png[/]", soft_wrap=True)


def _wine(console: Console, path: Path) -> Path:
    console.rule("[bold]1. A real table[/]", align="left")
    frame = sample("wine")
    console.print(
        f"{len(frame)} Italian wines by 13 chemical measurements. KMeans is told neither the grape of a wine nor how\n"
        "many grapes there are.\n"
    )
    measured = Columns.of(frame, [name for name in frame.columns if name != "cultivar"], scale=True)
    model = TableModel(make_estimator("kmeans", n_init=10, random_state=SEED), measured)
    with say.counting("Trying numbers of clusters", 7) as advance:
        fitted = fit_table(model, frame, range(2, 9), seed=SEED, on_candidate=advance)
    assert fitted.choice is not None
    console.print("How many clusters, by silhouette:")
    console.print(say.candidates_table(fitted.choice))
    console.print()
    console.print(say.clusters_table(summarise(fitted.model, frame, fitted.labels), console))

    grapes = sorted(frame["cultivar"].unique())
    table = Table(title="\nThe clusters against the grapes", title_justify="left")
    for title in ("cluster", *grapes):
        table.add_column(title, justify="right")
    counts = [[int(((fitted.labels == j) & (frame["cultivar"] == grape)).sum()) for grape in grapes]
              for j in range(fitted.choice.k)]  # fmt: skip
    for j, row in enumerate(counts):
        table.add_row(str(j), *(str(count) if count else "·" for count in row))
    console.print(table)
    right = sum(max(row) for row in counts)
    console.print(f"{right} of {len(frame)} wines are in the cluster that belongs to their grape.\n")
    return draw(path, fitted.model, frame, fitted.labels, "178 wines by 13 measurements: KMeans, scaled")


def mixture_with_outliers(seed: int = SEED) -> tuple[np.ndarray, np.ndarray]:
    """Five blobs of 200 points, 60 points thrown over a wide square, and the true centres."""
    rng = np.random.default_rng(seed)
    angle = 2 * np.pi * np.arange(5) / 5
    centers = 5.0 * np.column_stack([np.cos(angle), np.sin(angle)])
    blobs = np.repeat(centers, 200, axis=0) + rng.normal(size=(1000, 2))
    return np.vstack([blobs, rng.uniform(-20, 20, size=(60, 2))]), centers


def _outliers(console: Console, path: Path) -> Path:
    console.rule("[bold]2. Outliers[/]", align="left")
    console.print("Five groups of 200 points, and 60 points thrown anywhere in a square three times as wide.\n")
    X, centers = mixture_with_outliers()
    estimators = {
        "KMeans": KMeans(5, n_init=10, random_state=SEED),
        "TrimmedKMeans": TrimmedKMeans(5, trim=0.06, n_init=10, random_state=SEED),
        "RobustKMeans": RobustKMeans(5, n_init=10, random_state=SEED),
    }
    table = Table()
    for title in ("", "a true centre is missed by", "points called outliers"):
        table.add_column(title, justify="left" if title == "" else "right")
    runs = []
    with say.working("Clustering"):
        for name, estimator in estimators.items():
            estimator.fit(X)
            found, labels, missed = _matched(centers, estimator)
            table.add_row(name, f"{missed:.2f}", str(int((labels < 0).sum())))
            runs.append(Panel(f"{name}: missed by {missed:.2f}", labels, found))
    console.print(table)
    console.print("(mean distance between a true centre and the one found for it; the groups have deviation 1)\n")
    return save_comparison(path, X, runs, true_centers=centers, window=(-9, 9))


def _matched(true: np.ndarray, estimator: Any) -> tuple[np.ndarray, np.ndarray, float]:
    """Centres and labels in the order of the true centres, and the mean distance between the two."""
    distance = cdist(true, estimator.cluster_centers_)
    _, order = linear_sum_assignment(distance)
    number = np.append(np.argsort(order), -1)  # the last one for the label -1
    return estimator.cluster_centers_[order], number[estimator.labels_], float(distance[range(len(true)), order].mean())


def _layers(console: Console, path: Path) -> Path:
    console.rule("[bold]3. The same thing, as a transformer[/]", align="left")
    X = mixture_with_outliers()[0][:1000]
    start = X[np.random.default_rng(3).choice(len(X), 5, replace=False)]
    literal = KMeans(5, init=start, engine="literal").fit(X)
    fused = KMeans(5, init=start, engine="fused").fit(X)
    centers = np.stack([start, *(np.asarray(layer[0]) for layer in literal.trajectory_)])
    objective = [float(((X[:, None] - layer[None]) ** 2).sum(axis=-1).min(axis=1).sum()) for layer in centers]
    apart = float(np.abs(literal.cluster_centers_ - fused.cluster_centers_).max())
    console.print(
        "A layer attends once from the points to the centres and once back. Its weights are not trained but written\n"
        f"down: after {literal.n_iter_} layers of real query, key and value matrices the centres are those of Lloyd's\n"
        f"algorithm, to {apart:.0e}.\n"
    )
    return save_trajectory(path, X, centers, objective, literal.labels_, title="Centres moving through the layers")
