"""ZeroShotClusterer compared with other methods, with and without the number of clusters.

The zero-shot networks get every table as it is. The other methods get real tables standardised, and the other sets as
they are. Points that a set marks as noise are clustered but not scored; HDBSCAN's noise and the outliers of the
networks count as one cluster of their own for the scores, and not for the number of clusters. Of the draws of a family,
all are measured for the networks and the first 50 for the other methods. A network reads a set once: labels for the
given number of clusters are cut from the same hierarchy (:meth:`coterie.ZeroShotClusterer.cut`), which gives the same
as a fit with that number.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from coterie import checkpoints, threads
from coterie.estimators import ZeroShotClusterer
from coterie_research.benchmarks import zeroshot_pictures
from coterie_research.benchmarks.harness import Benchmark, Cell, Row, table
from coterie_research.benchmarks.labelled_sets import LabelledSet, all_sets
from coterie_research.benchmarks.methods import (
    BINS,
    GIVEN,
    binned,
    compared,
    differences,
    grouped,
    means,
    number_of_clusters,
    told,
)
from coterie_research.metrics import normalised_accuracy

OURS = "coterie"
# name in the tables -> network; the first is compared with all others, so that a new network names the previous one
NETWORKS = {OURS: "zeroshot-3", "second network": "zeroshot-2"}
STANDARDISED = ("tables", "seen")
QUESTIONS = {"given": "The number of clusters is given", "unknown": "The number of clusters is not given"}


def score(one: LabelledSet, found: np.ndarray, seconds: float) -> Row:
    inside = one.labels > 0
    return {
        "ari": adjusted_rand_score(one.labels[inside], found[inside]),
        "nca": normalised_accuracy(one.labels[inside], found[inside]),
        "k": number_of_clusters(found),
        "seconds": seconds,
    }


def reliability(one: LabelledSet, model: ZeroShotClusterer) -> Row:
    """What the model says of its own answer, beside the truth."""
    truth, inside = one.labels[model.context_indices_], one.labels[model.context_indices_] > 0
    same = (truth[:, None] == truth)[np.ix_(inside, inside)]
    upper = np.triu_indices(inside.sum(), 1)
    scored = one.labels > 0
    row: Row = {
        "k_proba": model.n_clusters_proba_.round(5).tolist(),
        "expected_ari": model.expected_ari_,
        "affinity": binned(model.affinity_[np.ix_(inside, inside)][upper].astype(float), same[upper]),
        "certainty": binned(np.zeros(0), np.zeros(0)),
        "noise": [int((model.outliers_ & ~scored).sum()), int(model.outliers_.sum()), int((~scored).sum())],
    }
    if len(one.labels) <= 2_000:  # share of a row's cluster that truly is of its own
        true_pairs = (one.labels[:, None] == one.labels) & scored
        mates = (model.labels_[:, None] == model.labels_) & scored & ~model.outliers_
        np.fill_diagonal(mates, False)
        rows = scored & ~model.outliers_ & mates.any(axis=1)
        realised = (mates & true_pairs)[rows].sum(axis=1) / mates[rows].sum(axis=1)
        row["certainty"] = binned(np.clip(model.certainty_[rows], 0, 1), realised)
    return row


def measure(
    one: LabelledSet, networks: dict[str, str] = NETWORKS, peers: Sequence[str] = tuple(GIVEN), scale: bool = True
) -> Row:
    """All methods on one set."""
    X = StandardScaler().fit_transform(one.X) if one.group in STANDARDISED else one.X
    k = one.n_clusters
    row: Row = {"group": one.group, "name": one.name, "n": len(X), "d": X.shape[1], "k": k, "given": {}, "unknown": {}}
    for name, network in networks.items():
        began = time.perf_counter()
        model = ZeroShotClusterer(network=network, scale=scale, random_state=0).fit(one.X)
        seconds = time.perf_counter() - began
        if name == OURS:
            row |= reliability(one, model)
        row["given"][name] = score(one, model.cut(one.X, k), seconds)
        told = {"expected": float(model.expected_ari_), "one": float(model.n_clusters_proba_[0])}
        row["unknown"][name] = score(one, model.labels_, seconds) | told
    for question, methods in compared(peers).items() if one.compared else ():
        for name, method in methods.items():
            began = time.perf_counter()
            found = method(X, k)
            row[question][name] = score(one, found, time.perf_counter() - began)
    return row


def speed() -> dict[str, float]:
    """Seconds of one fit, after a first one that compiles."""
    rng = np.random.default_rng(0)
    ZeroShotClusterer(random_state=0).fit(rng.normal(size=(100, 8)))
    seconds = {}
    for n in (1_000, 100_000):
        X = rng.normal(size=(n, 8)) + 6 * np.eye(8)[rng.integers(5, size=n)]
        began = time.perf_counter()
        ZeroShotClusterer(random_state=0).fit(X)
        seconds[f"{n} x 8"] = time.perf_counter() - began
    return seconds


def summary(rows: list[Row]) -> Row:
    """What the rows say together, for every group of sets."""
    groups = grouped(rows)
    found: Row = {
        "summary": {one: {group: means(members, one) for group, members in groups.items()} for one in QUESTIONS},
        "differences": {
            one: {group: differences(members, one, OURS) for group, members in groups.items()} for one in QUESTIONS
        },
    }
    return found | {"calibration": calibration(rows)}


def calibration(rows: list[Row]) -> Row:
    """Over the drawn sets: expected and realised ARI, reliability of affinities and certainty, noise found."""
    drawn = [row for row in rows if row["group"].startswith("draws")]
    if not drawn:
        return {}
    sums = {name: np.sum([row[name] for row in drawn], axis=0) for name in ("affinity", "certainty", "noise")}
    hits, marked, noise = sums["noise"]
    return {
        "expected_ari": float(np.mean([row["expected_ari"] for row in drawn])),
        "realised_ari": float(np.mean([row["unknown"][OURS]["ari"] for row in drawn])),
        "affinity": sums["affinity"].tolist(),
        "certainty": sums["certainty"].tolist(),
        "noise_precision": float(hits / max(marked, 1)),
        "noise_recall": float(hits / max(noise, 1)),
    }


def page(record: Row) -> list[str]:
    times = ", ".join(f"{size.replace(' x ', ' × ')} in {value:.2f} s" for size, value in record["speed"].items())
    lines = [f"One fit: {times}.", ""]
    for question, title in QUESTIONS.items():
        groups = record["summary"][question]
        lines += [f"## {title}", ""]
        lines += _by_group("Mean ARI (NCA)", groups, lambda one: f"{one['ari']:.3f} ({one['nca']:.3f})")
        if question == "unknown":
            lines += _by_group(
                "The number of clusters: exact, within one, mean absolute error",
                groups,
                lambda one: f"{one['exact']:.0%}, {one['within_one']:.0%}, {one['k_error']:.1f}",
            )
            single = {name: group for name, group in groups.items() if "single_recall" in next(iter(group.values()))}
            found = "Share of the single clusters that are found to be one"
            lines += _by_group(found, single, lambda one: f"{one['single_recall']:.0%}") if single else []
        less = "Our mean ARI less that of the other method on the same sets, with a 95% bootstrap interval"
        lines += _by_group(less, record["differences"][question], told)
        lines += _by_group("Mean seconds", groups, lambda one: f"{one['seconds']:.2f}")
    return lines + _calibration_lines(record["calibration"]) + _set_table(record["rows"])


def _by_group(title: str, groups: dict[str, Row], cell: Callable) -> list[str]:
    methods = next(iter(groups.values()))
    rows = ([name, *(cell(group[name]) for group in groups.values())] for name in methods)
    return [f"{title}:", "", *table(["method", *groups], rows), ""]


def _calibration_lines(found: Row) -> list[str]:
    if not found:
        return []
    lines = []
    for place in range(BINS):
        cells = [found[name][place] for name in ("affinity", "certainty")]
        shown = (f"{p / count:.3f}, {right / count:.3f}" if count else "" for count, p, right in cells)
        lines.append([f"{place / BINS:.1f} to {(place + 1) / BINS:.1f}", *shown])
    return [
        "## Calibration on the draws",
        "",
        f"Expected ARI {found['expected_ari']:.3f}, realised {found['realised_ari']:.3f}.",
        "",
        f"Noise: precision {found['noise_precision']:.0%}, recall {found['noise_recall']:.0%}.",
        "",
        *table(["probability", "affinity: mean, realised", "certainty: mean, realised"], lines),
        "",
    ]


def _set_table(rows: list[Row]) -> list[str]:
    rows = [row for row in rows if not row["group"].startswith("draws")]
    if not rows:
        return []
    lines = [
        [f"{row['group']} {row['name']}", f"{row['n']} × {row['d']}", row["k"]]
        + [f"{one['ari']:.2f}" for one in row["given"].values()]
        + [f"{one['ari']:.2f} ({one['k']})" for one in row["unknown"].values()]
        for row in rows
    ]
    head = ["set", "n × d", "K", *rows[0]["given"], *rows[0]["unknown"]]
    return ["## Every set: ARI with the number given, then ARI (number found) without", "", *table(head, lines)]


BENCHMARK = Benchmark(
    name="zeroshot",
    title="Zero-shot clustering compared with other methods",
    readme=False,
    jobs=threads.count(),
    peers=("genieclust",),
    settings=lambda quick: {"speed": speed()},
    identity=lambda: {name: checkpoints.card(network) for name, network in NETWORKS.items()},
    cells=lambda quick: [Cell(f"{one.group} {one.name}", partial(measure, one)) for one in all_sets(quick)],
    summary=summary,
    page=page,
    pictures=zeroshot_pictures.draw_all,
)
