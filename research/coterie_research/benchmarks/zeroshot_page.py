"""The calibration of the zero-shot clusterer, and the page of ``coterie bench zeroshot``."""

from collections.abc import Callable

import numpy as np

from coterie_research.benchmarks.harness import Row, table
from coterie_research.benchmarks.methods import BINS, told

QUESTIONS = {"given": "The number of clusters is given", "unknown": "The number of clusters is not given"}


def calibration(rows: list[Row], ours: str) -> Row:
    """Over the drawn sets: expected and realised ARI, reliability of affinities and certainty, noise found."""
    drawn = [row for row in rows if row["group"].startswith("draws")]
    if not drawn:
        return {}
    sums = {name: np.sum([row[name] for row in drawn], axis=0) for name in ("affinity", "certainty", "noise")}
    hits, marked, noise = sums["noise"]
    return {
        "expected_ari": float(np.mean([row["expected_ari"] for row in drawn])),
        "realised_ari": float(np.mean([row["unknown"][ours]["ari"] for row in drawn])),
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
