"""How much a few given labels help: the adjusted Rand index on real tables without labels and with 5% of them.

The labels are those of rows drawn at random; the score is that of all rows. Command: ``coterie bench constraints``. The
tables need COTERIE_DATA.
"""

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from coterie import KMeans, ZeroShotClusterer
from coterie.files import replacing
from coterie_research.benchmarks._zeroshot_sets import seen, tables

SHARE = 0.05
DRAWS = 3  # of the rows whose labels are given


def run(quick: bool = False, output: Path = Path("results/constraints")) -> dict:
    """Measure all tables (2 with ``quick``)."""
    sets = [*tables(), *seen()]
    rows = []
    for one in sets[7:9] if quick else sets:
        truth = one.labels - 1
        points = StandardScaler().fit_transform(one.X)
        ways: dict[str, tuple[Any, Any]] = {
            "zero-shot": (one.X, partial(ZeroShotClusterer, random_state=0)),
            "k-means, K given": (points, partial(KMeans, one.n_clusters, n_init=10, random_state=0)),
        }
        for name, (X, make) in ways.items():
            without = adjusted_rand_score(truth, make().fit(X).labels_)
            helped = [adjusted_rand_score(truth, make().fit(X, known(truth, seed)).labels_) for seed in range(DRAWS)]
            rows.append({"table": one.name, "method": name, "without": without, "with": float(np.mean(helped))})
    result = {"command": "coterie bench constraints", "share": SHARE, "draws": DRAWS, "rows": rows}
    output = Path(output)
    output.mkdir(parents=True, exist_ok=True)
    with replacing(output / "constraints.json") as file:
        file.write_text(json.dumps(result, indent=1) + "\n")
    with replacing(output / "README.md") as file:
        file.write_text(markdown(result))
    return result


def known(truth: np.ndarray, seed: int) -> np.ndarray:
    """Labels of 5% of the rows, numbered without a gap; -1 for the others."""
    rows = np.random.default_rng(seed).choice(len(truth), max(2, round(SHARE * len(truth))), replace=False)
    y = np.full(len(truth), -1)
    y[rows] = np.unique(truth[rows], return_inverse=True)[1]
    return y


def markdown(result: dict) -> str:
    lines = [
        "# A few given labels",
        "",
        f"`{result['command']}`: adjusted Rand index of all rows without labels, and with the labels of "
        f"{result['share']:.0%} of the rows, drawn at random (mean of {result['draws']} draws).",
        "",
        "| table | method | without | with | difference |",
        "|---|---|---|---|---|",
    ]
    for row in result["rows"]:
        change = row["with"] - row["without"]
        lines.append(f"| {row['table']} | {row['method']} | {row['without']:.3f} | {row['with']:.3f} | {change:+.3f} |")
    for method in dict.fromkeys(row["method"] for row in result["rows"]):
        changes = [row["with"] - row["without"] for row in result["rows"] if row["method"] == method]
        lines.append(f"| mean | {method} | | | {np.mean(changes):+.3f} (smallest {min(changes):+.3f}) |")
    return "\n".join(lines) + "\n"
