"""The layouts of tables: from a record of ``results/`` to a head and rows of text."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

Record = Mapping[str, Any]
Table = tuple[list[str], list[list[str]]]


def markdown(table: Table) -> list[str]:
    head, rows = table
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]


def small(value: float | None, digits: int = 2) -> str:
    """Numbers of many sizes: 0.0012, 3.1·10⁻¹⁴."""
    if value is None:
        return "-"
    if value == 0 or 1e-4 <= abs(value) < 1e5:
        return f"{value:.{digits}g}"
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    return f"{mantissa}·10{str(int(exponent)).translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))}"


def plus_minus(value: float | None, error: float | None, digits: int = 4) -> str:
    if value is None:
        return "not trained"
    return f"{value:.{digits}f}" + ("" if error is None else f" ± {error:.{digits}f}")


# --- k-means transformers ---------------------------------------------------------------------------------------------


def kmeans_table1(record: Record) -> Table:
    """The worst of the four forms of every variant."""
    variants: dict[str, list[Record]] = {}
    for name, row in record["rows"].items():
        variants.setdefault(name.partition("/")[0], []).append(row)

    def worst(rows: Iterable[Record], key: str) -> float | None:
        found = [row[key] for row in rows if row[key] is not None]
        return max(found) if found else None

    head = ["variant", "labels that differ", "literal network", "fused engine", "rotated weights (Remark 1)"]
    keys = ("labels_differ", "literal", "fused", "rotated")
    return head, [[f"`{name}`", *(small(worst(rows, key)) for key in keys)] for name, rows in variants.items()]


ATTENTIONS = {"cross": "the two cross attentions", "all": "all four attentions"}


def kmeans_figure3(record: Record) -> Table:
    head = ["finite gamma in", "largest difference of a centre", "log objective less Lloyd's", "labels that differ"]
    return head, [
        [
            words,
            small(max(record["differences"][key]["centers_by_layer"])),
            small(record["differences"][key]["log_objective"]),
            f"{record['differences'][key]['labels_that_differ']:,} of {record['n']:,}",
        ]
        for key, words in ATTENTIONS.items()
    ]


def kmeans_figure4(record: Record) -> Table:
    gammas = record["axes"]["gamma"]
    return ["mean difference, finite gamma in", *(f"{gamma:g}" for gamma in gammas)], [
        [words, *(small(value) for value in np.abs(np.array(record["values"][key])).reshape(-1, len(gammas)).mean(0))]
        for key, words in ATTENTIONS.items()
    ]


# --- EM in context ----------------------------------------------------------------------------------------------------

RIVALS = {
    "lloyd_spectral": "Lloyd, spectral start",
    "kmeans": "k-means++, 10 starts",
    "em": "EM, equal weights",
    "em_weights": "EM, mixing weights",
    "copied": "labels inside P",
    "transformer": "the document's network",
    "shipped": "shipped network",
    "posterior": "posterior",
    "bayes": "Bayes, centres known",
}


def incontext_rows(record: Record) -> Table:
    """Mean adjusted Rand index along every axis of a figure; in bold the best that does not know the centres."""
    points = [(panel["axis"], point) for panel in record["rows"].values() for point in panel["points"]]
    present = [key for key in RIVALS if any("ari" in point.get(key, {}) for _, point in points)]
    rows, before = [], None
    for axis, point in points:
        scores = {key: point.get(key, {}).get("ari") for key in present}
        best = max(score for key, score in scores.items() if score is not None and key != "bayes")
        cells = [
            "-" if score is None else f"**{score:.4f}**" if score == best and key != "bayes" else f"{score:.4f}"
            for key, score in scores.items()
        ]
        rows.append(["" if axis == before else axis, f"{point['value']:g}", *cells])
        before = axis
    return ["axis", "value", *(RIVALS[key] for key in present)], rows


def theory_assignments(record: Record) -> Table:
    head = ["network", "layers", "most heads", "every iteration is Lloyd's", "the last one is", "points that differ"]
    total = record["instances"]
    return head, [
        [
            name,
            str(one["layers"]),
            f"{one['largest_number_of_heads']:,}",
            f"{one['all_iterations_agree']} of {total}",
            f"{one['last_iteration_agrees']} of {total}",
            f"{one['points_that_differ_in_the_end']:,} of {total * record['n']:,}",
        ]
        for name, one in record["networks"].items()
    ]


# --- measure flows ----------------------------------------------------------------------------------------------------

FLOW_ROWS = {
    "kmeans": "k-means, true K, one random start",
    "kmeans_plus_plus": "k-means, true K, one k-means++ start",
    "layers_16": "16 layers",
    "layers_32": "32 layers",
    "layers_64": "64 layers",
    "no_flow": "no flow",
    "refined": "flow + EM, no K given",
    "averaged": "flow + posterior average, no K given",
    "refined_snr_estimated": "flow + EM, SNR estimated",
    "averaged_snr_estimated": "flow + posterior average, SNR estimated",
    "uniform_uniform": "uniform, evaluated as uniform",
    "uniform_unit": "uniform, evaluated as unit",
    "uniform_floor": "uniform, evaluated with ⌊T⌋ steps",
    "unit_uniform": "unit, evaluated as uniform",
    "unit_unit": "unit, evaluated as unit",
    "unit_floor": "unit, evaluated with ⌊T⌋ steps",
    "identical": "one shared layer",
    "unit": "unit flow",
    "distinct": "distinct layers",
}
LEVELS = {"high": "15 dB", "moderate": "10 dB", "low": "5 dB"}


def flow_levels(record: Record) -> Table:
    """Our values and those of the paper, at three levels of noise."""
    measure = record["measure"]
    digits = 4 if measure == "mean" else 2
    levels = [level for level in LEVELS if level in record["levels"]]
    head = ["squared W2" if measure == "mean" else "mean log squared W2"]
    head += [f"{LEVELS[level]}: {whose}" for level in levels for whose in ("ours", "document")]
    rows = []
    for name in record["levels"][levels[0]]:
        cells = []
        for level in levels:
            one = record["levels"][level][name]
            theirs = one.get("document")
            ours = plus_minus(one.get(measure), one.get(f"{measure}_se"), digits)
            cells += [f"identity: {ours}" if one.get("whole_steps") == 0 else ours]
            cells += ["" if theirs is None else f"{theirs:.{digits}f}"]
        rows.append([FLOW_ROWS.get(name, name.replace("_", " ")), *cells])
    return head, rows


# --- mixtures of VAEs -------------------------------------------------------------------------------------------------


def vae_seeds(record: Record) -> Table:
    """Every seed with its start and its end, then our mean and that of the paper."""
    theirs = record["document"]
    head = ["start", "seed", "accuracy of the start", "accuracy", "networks alone", "ARI", "NMI", "bound", "minutes"]
    rows = [
        [
            run["init"],
            str(run["seed"]),
            f"{run['start']['accuracy']:.1%}",
            f"{run['end']['accuracy']:.1%}",
            f"{run['networks']['accuracy']:.1%}",
            f"{run['end']['ari']:.3f}",
            f"{run['end']['nmi']:.3f}",
            f"{run['bound']:.2f}",
            f"{run['seconds'] / 60:.0f}",
        ]
        for run in record["runs"]
    ]
    for init, one in record.get("summary", {}).items():
        mean, alone = f"**{one['mean']:.1%} ± {one['std']:.1%}**", f"**{one['networks_mean']:.1%}**"
        rows.append([f"**{init}: mean**", "", "", mean, alone, "", "", "", ""])
    best = f", best {theirs['best']:.1%}" if "best" in theirs else ""
    rows.append(["the document, random start", "", "", f"{theirs['mean']:.1%} ± {theirs['std']:.1%}{best}", *[""] * 5])
    return head, rows


def vae_digits(record: Record) -> Table:
    """Accuracy of every seed beside k-means and the start."""
    rows = [
        [str(run["seed"]), *(f"{run[key]['accuracy']:.1%}" for key in ("kmeans", "start", "end"))]
        for run in record["runs"]
    ]
    rows.append(["**mean**", "", "", f"**{record['mean']:.1%}**"])
    return ["seed", "k-means", "start", "VAEMixture"], rows


# --- zero-shot ------------------------------------------------------------------------------------------------------

BATTERIES = {"wut": "WUT", "fcps": "FCPS", "tables": "development tables", "seen": "tables of scikit-learn"}


def zeroshot(question: str, cell: Callable[[Record], str]) -> Callable[[Record], Table]:
    """Means over the sets of every battery."""

    def layout(record: Record) -> Table:
        groups = {name: group for name, group in record["summary"][question].items() if group}
        methods = next(iter(groups.values()))
        head = ["method", *(BATTERIES.get(name, name) for name in groups)]
        return head, [[name, *(cell(group[name]) for group in groups.values())] for name in methods]

    return layout


# --- what comes with the package ------------------------------------------------------------------------------------


def networks(cards: Iterable[Record]) -> Table:
    head = ["name", "what it is", "trained on", "weights", "steps", "CPU seconds"]
    return head, [
        [
            f"`{card['name']}`",
            card["about"],
            card["data"]["synthetic"],
            f"{card['training']['weights']:,}",
            f"{card['training']['steps']:,}",
            f"{card['training']['cpu_seconds']:,}",
        ]
        for card in cards
    ]


def estimators(catalogue: Mapping[str, Any]) -> Table:
    head = ["your data", "estimator", "why", "takes", ""]
    picture = "[![](gallery/images/sphx_glr_{0}_001.png)](gallery/{0}.rst)"
    return head, [
        [row.data, f"[`{name}`](api/coterie.{name}.rst)", row.why, row.takes, picture.format(row.example)]
        for name, row in catalogue.items()
    ]


LAYOUTS: dict[str, Callable[[Record], Table]] = {
    "kmeans/table1": kmeans_table1,
    "kmeans/figure3": kmeans_figure3,
    "kmeans/figure4": kmeans_figure4,
    "theory/assignments": theory_assignments,
    "incontext/rows": incontext_rows,
    "flow/levels": flow_levels,
    "vae/seeds": vae_seeds,
    "vae/digits": vae_digits,
    "zeroshot/given": zeroshot("given", lambda one: f"{one['ari']:.3f} ({one['nca']:.3f})"),
    "zeroshot/unknown": zeroshot("unknown", lambda one: f"{one['ari']:.3f} ({one['nca']:.3f})"),
    "zeroshot/count": zeroshot("unknown", lambda one: f"{one['exact']:.0%}, {one['within_one']:.0%}"),
}
