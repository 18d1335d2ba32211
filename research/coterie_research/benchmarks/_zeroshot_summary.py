"""What ``coterie bench zeroshot`` makes of its rows: means, paired intervals, calibration, and a page of Markdown."""

from typing import Any

import numpy as np

RESAMPLES = 2_000
BINS = 10
QUESTIONS = {"given": "The number of clusters is given", "unknown": "The number of clusters is not given"}
Row = dict[str, Any]


def groups_of(rows: list[Row]) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["group"], []).append(row)
    return groups


def summary(rows: list[Row], question: str) -> dict[str, dict[str, dict[str, float]]]:
    """Group -> method -> means over the sets on which it was run."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for group, every in groups_of(rows).items():
        found[group] = {}
        for name in every[0][question]:
            members = [row for row in every if name in row[question]]
            truth = np.array([row["k"] for row in members])
            cells = [row[question][name] for row in members]
            off = np.array([cell["k"] for cell in cells]) - truth
            found[group][name] = {
                "ari": float(np.mean([cell["ari"] for cell in cells])),
                "nca": float(np.mean([cell["nca"] for cell in cells])),
                "exact": float(np.mean(off == 0)),
                "within_one": float(np.mean(np.abs(off) <= 1)),
                "k_error": float(np.mean(np.abs(off))),
                "seconds": float(np.mean([cell["seconds"] for cell in cells])),
            }
            if (truth == 1).any():
                found[group][name]["single_recall"] = float(np.mean(off[truth == 1] == 0))
    return found


def differences(rows: list[Row], question: str, ours: str) -> dict[str, dict[str, list[float]]]:
    """Group -> other method -> mean of our ARI less its ARI on the same sets, and a 95% bootstrap interval."""
    rng = np.random.default_rng(0)
    found: dict[str, dict[str, list[float]]] = {}
    for group, every in groups_of(rows).items():
        found[group] = {}
        for name in every[0][question]:
            if name != ours:
                both = [row[question] for row in every if name in row[question]]
                less = np.array([cells[ours]["ari"] - cells[name]["ari"] for cells in both])
                drawn = rng.integers(len(both), size=(RESAMPLES, len(both)))
                low, high = np.percentile(less[drawn].mean(axis=1), (2.5, 97.5))
                found[group][name] = [float(less.mean()), float(low), float(high)]
    return found


def binned(p: np.ndarray, right: np.ndarray) -> list[list[float]]:
    """For every tenth of probability: how many, the sum of their probabilities, and how many are right."""
    place = np.minimum((p * BINS).astype(int), BINS - 1)
    columns = [np.bincount(place, weights, minlength=BINS) for weights in (np.ones(len(p)), p, right.astype(float))]
    return np.stack(columns, axis=1).round(4).tolist()


def calibration(rows: list[Row], ours: str) -> dict[str, Any]:
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


def markdown(result: dict[str, Any]) -> str:
    times = ", ".join(f"{size.replace(' x ', ' × ')} in {value:.2f} s" for size, value in result["speed"].items())
    lines = ["# Zero-shot clustering compared with other methods", ""]
    lines += [f"`{result['command']}`, {result['seconds']:.0f} s in all. One fit: {times}.", ""]
    for question, title in QUESTIONS.items():
        groups = result["summary"][question]
        lines += [
            f"## {title}",
            "",
            "Mean ARI (NCA):",
            "",
            *_table(groups, lambda one: f"{one['ari']:.3f} ({one['nca']:.3f})"),
        ]
        if question == "unknown":
            lines += ["The number of clusters: exact, within one, mean absolute error:", ""]
            lines += _table(groups, lambda one: f"{one['exact']:.0%}, {one['within_one']:.0%}, {one['k_error']:.1f}")
            lines += ["Share of the single clusters that are found to be one:", ""]
            single = {name: group for name, group in groups.items() if "single_recall" in next(iter(group.values()))}
            lines += _table(single, lambda one: f"{one['single_recall']:.0%}") if single else []
        lines += ["Our mean ARI less that of the other method on the same sets, with a 95% bootstrap interval:", ""]
        lines += _table(result["differences"][question], lambda one: "{:+.3f} [{:+.3f}, {:+.3f}]".format(*one))
        lines += ["Mean seconds:", "", *_table(groups, lambda one: f"{one['seconds']:.2f}")]
    return "\n".join(lines + _calibration_lines(result["calibration"]) + _set_table(result["rows"]))


def _table(groups: dict[str, dict[str, Any]], cell: Any) -> list[str]:
    lines = ["| method | " + " | ".join(groups) + " |", "|---|" + "---|" * len(groups)]
    for name in next(iter(groups.values())):
        lines.append(f"| {name} | " + " | ".join(cell(group[name]) for group in groups.values()) + " |")
    return [*lines, ""]


def _calibration_lines(found: dict[str, Any]) -> list[str]:
    if not found:
        return []
    lines = ["## Calibration on the draws", ""]
    lines += [f"Expected ARI {found['expected_ari']:.3f}, realised {found['realised_ari']:.3f}.", ""]
    lines += [f"Noise: precision {found['noise_precision']:.0%}, recall {found['noise_recall']:.0%}.", ""]
    lines += ["| probability | affinity: mean, realised | certainty: mean, realised |", "|---|---|---|"]
    for place in range(BINS):
        cells = []
        for name in ("affinity", "certainty"):
            count, p, right = found[name][place]
            cells.append(f"{p / count:.3f}, {right / count:.3f}" if count else "")
        lines.append(f"| {place / BINS:.1f} to {(place + 1) / BINS:.1f} | {cells[0]} | {cells[1]} |")
    return [*lines, ""]


def _set_table(rows: list[Row]) -> list[str]:
    rows = [row for row in rows if not row["group"].startswith("draws")]
    given, unknown = list(rows[0]["given"]), list(rows[0]["unknown"])
    lines = ["## Every set: ARI with the number given, then ARI (number found) without", ""]
    lines += [
        "| set | n × d | K | " + " | ".join(given + unknown) + " |",
        "|---|" + "---|" * (2 + len(given + unknown)),
    ]
    for row in rows:
        cells = [f"{row['given'][name]['ari']:.2f}" for name in given]
        cells += [f"{row['unknown'][name]['ari']:.2f} ({row['unknown'][name]['k']})" for name in unknown]
        lines.append(
            f"| {row['group']} {row['name']} | {row['n']} × {row['d']} | {row['k']} | " + " | ".join(cells) + " |"
        )
    return [*lines, ""]
