"""The zero-shot clusterer on real tables that its network was not trained on, beside other methods.

The folder ``corpus`` below ``COTERIE_DATA`` (:mod:`~coterie_research.training.zeroshot.prior.real_tables`) is read.
:data:`HELD_OUT`, which was trained as the network of the package but without one fold of the tables, is compared with
the previous network and with other methods on one problem of every table of that fold: the one whose classes are most
visible to nearest neighbours, if that is ``VISIBLE`` (:mod:`~coterie_research.training.zeroshot.prior.real_tables`) or
more. All methods get the same points, those of the estimator's own encoding, and at most 1,024 rows of them.
"""

from functools import partial
from pathlib import Path

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit

from coterie_research.benchmarks import zeroshot
from coterie_research.benchmarks.harness import Benchmark, Cell, Columns, Row, filled
from coterie_research.benchmarks.labelled_sets import LabelledSet
from coterie_research.benchmarks.methods import differences, means
from coterie_research.drawing import Curve, Panel, Picture, draw
from coterie_research.training.zeroshot.prior.real_tables import MOST_COLUMNS, VISIBLE, RealTable, read_corpus

CORPUS = "corpus"
HELD_OUT, FOLD = "zeroshot-3-fold0", 0  # a network, and the fold that it was trained without
BEFORE = "zeroshot-2"
WITHOUT = ("heplots/peng.pkl", "heart-h", "heart-long-beach", "heart-switzerland")  # (:mod:`.judged_tables`)
ROWS = 1_024
PEERS = ("k-means", "GMM", "Ward", "Genie")


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


def measure(one: RealTable) -> Row:
    """All methods, and the networks on the same values in columns that were shuffled apart, too."""
    from coterie.estimators import ZeroShotClusterer

    as_set = LabelledSet("real", one.name, one.points_ND, one.labels_N + 1)
    row = zeroshot.measure(as_set, {name: name for name in (HELD_OUT, BEFORE)}, PEERS, scale=False)
    shuffled = np.random.default_rng(0).permuted(one.points_ND, axis=0)
    for name in (HELD_OUT, BEFORE):
        k = int(ZeroShotClusterer(network=name, scale=False, random_state=0).fit(shuffled).n_clusters_)
        row["unknown"][name] |= {"permuted_k": k, "permuted_single": k == 1}
    return {"table": one.table, "fold": one.fold, "visible": one.visible, **row}


def summary(rows: list[Row]) -> Row:
    """Means, and our mean less that of every other method with a 95% bootstrap interval over tables."""
    result: Row = {"tables": len(rows), "folds": sorted({row["fold"] for row in rows})}
    for question in ("given", "unknown"):
        found, less = means(rows, question), differences(rows, question, HELD_OUT)
        result[question] = {
            name: {**one, **({"ours_less": less[name]} if name in less else {})} for name, one in found.items()
        }
    ours = [row["unknown"][HELD_OUT] for row in rows]
    pairs = np.array([(one["expected"], one["ari"]) for one in ours])
    return {**result, "calibration": calibration(*pairs.T)}


def picture(record: Row, folder: Path) -> None:
    """Expected against reached index of the networks, by fifths of the tables."""
    curves: list[Curve] = [{"x": [0, 1], "y": [0, 1], "color": "0.7", "lw": 1}]
    for name in (HELD_OUT, BEFORE):
        pairs = sorted((row["unknown"][name]["expected"], row["unknown"][name]["ari"]) for row in record["rows"])
        parts = [np.mean(part, axis=0) for part in np.array_split(np.array(pairs), min(5, len(pairs)))]
        curves.append({**dict(zip("xy", np.transpose(parts))), "marker": "o", "label": name})
    limits = {"xlim": (0, 1), "ylim": (0, 1)}
    panel = Panel(f"{record['tables']} real tables", "expected adjusted Rand index", "reached", curves, settings=limits)
    draw(Picture([panel], size=(5, 4.5)), folder / "calibration.png")


COLUMNS: Columns = {
    "method": "{method}",
    "index": "{ari:.3f}",
    "difference": "{ours_less[0]:+.3f} [{ours_less[1]:+.3f}, {ours_less[2]:+.3f}]",
    "K exact": "{exact:.2f}",
    "K within one": "{within_one:.2f}",
    "expected": "{expected:.2f}",
}


def calibration(expected: np.ndarray, reached: np.ndarray) -> dict[str, float]:
    """Shift and factor of the logit of the expected index that fit the reached one, and mean squared errors.

    ``left_out`` is the error on tables that were left out of the fit, one by one, and ``constant`` that of the mean.
    """
    x = np.column_stack([np.ones(len(expected)), logit(np.clip(expected, 0.02, 0.98))])
    y = np.clip(reached, 0, 1)

    def fitted(rows: np.ndarray) -> np.ndarray:
        def loss(line: np.ndarray) -> float:
            return float(((expit(x[rows] @ line) - y[rows]) ** 2).mean() + 1e-3 * line[1] ** 2)

        return minimize(loss, np.array([0.0, 1.0])).x

    every = np.arange(len(y))
    others = [every[every != i] if len(every) > 1 else every for i in every]
    left_out = [float(expit(x[i] @ fitted(rest)) - y[i]) for i, rest in enumerate(others)]
    shift, factor = map(float, fitted(every))
    errors = {"as_it_is": expected - y, "left_out": np.array(left_out), "constant": y - y.mean()}
    return {"shift": shift, "factor": factor, **{name: float((each**2).mean()) for name, each in errors.items()}}


def page(record: Row) -> list[str]:
    lines = []
    for question in ("given", "unknown"):
        rows = ({"method": name, **one} for name, one in record[question].items())
        columns = COLUMNS if question == "unknown" else dict(list(COLUMNS.items())[:3])
        lines += [f"Number of clusters {question}:", "", *filled(columns, rows), ""]
    told = (
        "The logit of the reached index is fitted by {shift:.2f} + {factor:.2f} logit(expected). Mean squared errors: "
        "{as_it_is:.3f} of the expected index as it is, {left_out:.3f} of the fit for tables that were left out of it, "
        "{constant:.3f} of a constant."
    )
    return [*lines, told.format(**record["calibration"])]


def cells(quick: bool) -> list[Cell]:
    chosen = problems(CORPUS, FOLD, WITHOUT)
    return [Cell(one.table, partial(measure, one)) for one in (chosen[:3] if quick else chosen)]


BENCHMARK = Benchmark(
    name="real_tables",
    title="Real tables that the network was not trained on",
    folder="real-tables",
    peers=("genieclust",),
    cells=cells,
    summary=summary,
    intro="{tables} tables of the folds {folds}; differences: ours less theirs, with a 95% interval.",
    page=page,
    pictures=picture,
)
