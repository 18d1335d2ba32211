"""How much a few given labels help: the adjusted Rand index on real tables without labels and with 5% of them.

The labels are those of rows drawn at random; the score is that of all rows. The tables need COTERIE_DATA.
"""

from functools import partial

import numpy as np
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from coterie import KMeans, ZeroShotClusterer
from coterie_research.benchmarks.harness import Benchmark, Cell, Row
from coterie_research.benchmarks.labelled_sets import LabelledSet, seen, tables
from coterie_research.benchmarks.methods import grouped

SHARE = 0.05
DRAWS = 3  # of the rows whose labels are given


def cells(quick: bool) -> list[Cell]:
    sets = [*tables(), *seen()]
    return [Cell(one.name, partial(measure, one)) for one in (sets[7:9] if quick else sets)]


def measure(one: LabelledSet) -> list[Row]:
    truth, points = one.labels - 1, StandardScaler().fit_transform(one.X)
    ways = (
        ("zero-shot", one.X, partial(ZeroShotClusterer, random_state=0)),
        ("k-means, K given", points, partial(KMeans, one.n_clusters, n_init=10, random_state=0)),
    )
    rows = []
    for name, X, make in ways:
        without = adjusted_rand_score(truth, make().fit(X).labels_)
        helped = [adjusted_rand_score(truth, make().fit(X, known(truth, seed)).labels_) for seed in range(DRAWS)]
        row = {"table": one.name, "method": name, "without": without, "with": float(np.mean(helped))}
        rows.append({**row, "difference": row["with"] - without})
    return rows


def known(truth: np.ndarray, seed: int) -> np.ndarray:
    """Labels of 5% of the rows, numbered without a gap; -1 for the others."""
    rows = np.random.default_rng(seed).choice(len(truth), max(2, round(SHARE * len(truth))), replace=False)
    y = np.full(len(truth), -1)
    y[rows] = np.unique(truth[rows], return_inverse=True)[1]
    return y


def page(record: Row) -> list[str]:
    changes = {
        method: [row["difference"] for row in members] for method, members in grouped(record["rows"], "method").items()
    }
    return [f"{name}: {np.mean(one):+.3f} in the mean (smallest {min(one):+.3f})." for name, one in changes.items()]


BENCHMARK = Benchmark(
    name="constraints",
    title="A few given labels",
    settings=lambda quick: {"share": SHARE, "draws": DRAWS},
    cells=cells,
    intro="Adjusted Rand index of all rows without labels, and with the labels of {share:.0%} of the rows, drawn at "
    "random (mean of {draws} draws).",
    columns={
        "table": "{table}",
        "method": "{method}",
        "without": "{without:.3f}",
        "with": "{with:.3f}",
        "difference": "{difference:+.3f}",
    },
    page=page,
)
