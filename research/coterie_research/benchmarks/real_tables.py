"""The zero-shot clusterer on real tables that its network was not trained on, beside other methods.

``coterie bench real_tables`` reads the folder ``corpus`` below ``COTERIE_DATA`` (``prior.corpus``) and
compares :data:`HELD_OUT`, which was trained as the network of the package but without one fold of the tables, with the
previous network and with other methods, on one problem of every table of that fold: the one whose classes are most
visible to nearest neighbours, if that is ``prior.real_tables.VISIBLE`` or more. All methods get the same
points, those of the estimator's own encoding, and at most 1,024 rows of them.
"""

import json
import time
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import HDBSCAN, AgglomerativeClustering
from sklearn.metrics import adjusted_rand_score

from coterie.files import replacing
from coterie.zeroshot.prior.corpus import RealTable, read_corpus
from coterie.zeroshot.prior.real_tables import MOST_COLUMNS, VISIBLE
from coterie_research.benchmarks.zeroshot import gaussian_mixture, genie, gmm_bic, kmeans, kmeans_silhouette

CORPUS = "corpus"
HELD_OUT, FOLD = "zeroshot-3-fold0", 0  # a network, and the fold that it was trained without
BEFORE = "zeroshot-2"
WITHOUT = ("heplots/peng.pkl", "heart-h", "heart-long-beach", "heart-switzerland")  # (:mod:`._judged_tables`)
ROWS = 1_024
RESAMPLES = 4_000
GIVEN = {
    "k-means": kmeans,
    "GMM": lambda X, k: gaussian_mixture(X, k).predict(X),
    "Ward": lambda X, k: AgglomerativeClustering(k).fit_predict(X),
    "Genie": genie,
}
UNKNOWN = {
    "k-means + silhouette": kmeans_silhouette,
    "GMM + BIC": gmm_bic,
    "HDBSCAN": lambda X: HDBSCAN(copy=True).fit_predict(X),
}


def problems(corpus: str, fold: int, without: tuple[str, ...] = ()) -> list[RealTable]:
    """The most visible problem of every table of the fold."""
    best: dict[str, RealTable] = {}
    for one in read_corpus(corpus, without):
        if one.fold == fold and one.visible >= VISIBLE and one.visible > getattr(best.get(one.table), "visible", 0.0):
            best[one.table] = one
    return [_at_most(one) for _, one in sorted(best.items())]


def _at_most(one: RealTable) -> RealTable:
    rng = np.random.default_rng(0)
    rows = np.sort(rng.permutation(len(one.labels_N))[:ROWS])
    columns = np.sort(rng.permutation(one.points_ND.shape[1])[:MOST_COLUMNS])
    labels_N = np.unique(one.labels_N[rows], return_inverse=True)[1]
    return one._replace(points_ND=one.points_ND[np.ix_(rows, columns)], labels_N=labels_N)


def measure(one: RealTable, networks: tuple[str, ...]) -> dict[str, Any]:
    """The adjusted Rand index of every method on one table."""
    from coterie.estimators import ZeroShotClusterer

    X, k = one.points_ND, int(one.labels_N.max()) + 1
    row: dict[str, Any] = {"table": one.table, "name": one.name, "fold": one.fold, "n": len(X), "d": X.shape[1], "k": k}
    row |= {"visible": one.visible, "given": {}, "unknown": {}}
    permuted = np.random.default_rng(0).permuted(X, axis=0)
    for name in networks:
        model = ZeroShotClusterer(network=name, scale=False, random_state=0).fit(X)
        row["given"][name] = {"ari": adjusted_rand_score(one.labels_N, model.cut(X, k))}
        alone = ZeroShotClusterer(network=name, scale=False, random_state=0).fit(permuted)
        row["unknown"][name] = {
            "ari": adjusted_rand_score(one.labels_N, model.labels_),
            "k": int(model.n_clusters_),
            "expected": float(model.expected_ari_),
            "one": float(model.n_clusters_proba_[0]),
            "permuted_k": int(alone.n_clusters_),
        }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # methods that do not converge
        for name, given in GIVEN.items():
            if name != "Genie" or find_spec("genieclust"):
                row["given"][name] = {"ari": adjusted_rand_score(one.labels_N, given(X, k))}
        for name, unknown in UNKNOWN.items():
            found = unknown(X)
            found_k = len(np.unique(found[found >= 0]))
            row["unknown"][name] = {"ari": adjusted_rand_score(one.labels_N, found), "k": found_k}
    return row


def summary(rows: list[dict[str, Any]], ours: str) -> dict[str, Any]:
    """Means, and our mean less that of every other method with a 95% bootstrap interval over tables."""
    rng = np.random.default_rng(0)
    drawn = rng.integers(len(rows), size=(RESAMPLES, len(rows)))
    truth = np.array([row["k"] for row in rows])
    result: dict[str, Any] = {"tables": len(rows), "folds": sorted({row["fold"] for row in rows})}
    for question in ("given", "unknown"):
        result[question] = {}
        mine = np.array([row[question][ours]["ari"] for row in rows])
        for name in rows[0][question]:
            cells = [row[question][name] for row in rows]
            ari = np.array([cell["ari"] for cell in cells])
            found: dict[str, Any] = {"ari": float(ari.mean())}
            if name != ours:
                interval = np.percentile((mine - ari)[drawn].mean(axis=1), (2.5, 97.5))
                found["ours_less"] = [float((mine - ari).mean()), *map(float, interval)]
            if "k" in cells[0]:
                off = np.array([cell["k"] for cell in cells]) - truth
                found |= {"exact": float((off == 0).mean()), "within_one": float((np.abs(off) <= 1).mean())}
            if "expected" in cells[0]:
                found["expected"] = float(np.mean([cell["expected"] for cell in cells]))
                found["permuted_single"] = float(np.mean([cell["permuted_k"] == 1 for cell in cells]))
            result[question][name] = found
    return result


def picture(rows: list[dict[str, Any]], networks: list[str], path: Path) -> None:
    """Expected against reached index of the networks, by fifths of the tables."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 4.5), layout="constrained")
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color="0.7", linewidth=1)
    for name in networks:
        pairs = sorted((row["unknown"][name]["expected"], row["unknown"][name]["ari"]) for row in rows)
        parts = [np.mean(part, axis=0) for part in np.array_split(np.array(pairs), min(5, len(pairs)))]
        axes.plot(*np.transpose(parts), marker="o", label=name)
    axes.set(xlabel="expected adjusted Rand index", ylabel="reached", xlim=(0, 1), ylim=(0, 1))
    axes.legend(title=f"{len(rows)} real tables", frameon=False)
    figure.savefig(path, dpi=120)


def markdown(result: dict[str, Any]) -> str:
    lines = [f"{result['tables']} tables of fold {FOLD}; differences: ours less theirs, with a 95% interval.", ""]
    for question in ("given", "unknown"):
        lines += [
            f"Number of clusters {question}:",
            "",
            "| method | index | difference | K exact | K within one | expected |",
        ]
        lines.append("|---|---|---|---|---|---|")
        for name, found in result[question].items():
            less = "{:+.3f} ({:+.3f} to {:+.3f})".format(*found["ours_less"]) if "ours_less" in found else ""
            counts = [f"{found[key]:.2f}" if key in found else "" for key in ("exact", "within_one", "expected")]
            lines.append(f"| {name} | {found['ari']:.3f} | {less} | {' | '.join(counts)} |")
        lines.append("")
    return "\n".join(lines)


def run(quick: bool = False, output: Path = Path("results/real-tables")) -> dict[str, Any]:
    started = time.perf_counter()
    chosen = problems(CORPUS, FOLD, WITHOUT)
    rows = [measure(one, (HELD_OUT, BEFORE)) for one in (chosen[:3] if quick else chosen)]
    result = summary(rows, HELD_OUT) | {"command": "coterie bench real_tables", "seed": 0, "rows": rows}
    result["seconds"] = time.perf_counter() - started
    output.mkdir(parents=True, exist_ok=True)
    with replacing(output / "real_tables.json") as file:
        file.write_text(json.dumps(result, indent=1))
    with replacing(output / "README.md") as file:
        file.write_text("# Real tables that the network was not trained on\n\n" + markdown(result))
    picture(rows, [HELD_OUT, BEFORE], output / "calibration.png")
    return result
