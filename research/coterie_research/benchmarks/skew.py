"""From which skew on a column is compared on a log scale.

``coterie bench skew`` clusters tables with the zero-shot clusterer for several thresholds of the rule in
:func:`coterie.tables.column_encoding.log_shift`: the labelled tables of ``coterie bench tables``, and drawn tables of
which some columns are exponentials.
"""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score

from coterie import ZeroShotClusterer
from coterie.files import replacing
from coterie.tables import column_encoding, encoding
from coterie.tables.columns import Column
from coterie.tables.table import Table, read_table
from coterie_research.benchmarks._table_sets import SETS

THRESHOLDS = (np.inf, 5.0, 3.0, 2.0, 1.5)
SEED = 5_000
ROWS = 300


def real(count: int) -> Iterator[tuple[list[Column], np.ndarray]]:
    """The used columns of labelled tables, and their groups."""
    with tempfile.TemporaryDirectory() as folder:
        for one in [one for one in SETS if one.label is not None][:count]:
            whole = read_table(one.make(Path(folder)))
            read = Table.of(whole.drop(columns=one.label)).read_columns()
            yield [column for column in read if column.used], pd.factorize(whole[one.label].astype(str))[0]


def drawn(count: int) -> Iterator[tuple[list[Column], np.ndarray]]:
    """Tables of the network's prior; about six of ten columns become exponentials."""
    from coterie.zeroshot.prior.latent_tables import table

    for seed in range(SEED, SEED + count):
        rng = np.random.default_rng(seed)
        groups = rng.integers(int(rng.integers(2, 7)), size=ROWS)
        values = table(rng, groups)
        values = (values - values.mean(axis=0)) / values.std(axis=0)
        skewed = rng.random(values.shape[1]) < 0.6
        values = np.where(skewed, np.exp(rng.uniform(0.5, 1.5) * values), values)
        yield [Column(f"x{i}", "number", column) for i, column in enumerate(values.T)], groups


def run(quick: bool = False, output: Path = Path("results/skew")) -> dict[str, Any]:
    """Measure 25 real and 40 drawn tables (1 and 2 with ``quick``)."""
    found: dict[str, dict[str, float]] = {}
    usual = column_encoding.SKEW
    for name, tables in (("labelled", real(1 if quick else 99)), ("drawn", drawn(2 if quick else 40))):
        scores = []
        for read, groups in tables:
            scores.append([_score(read, groups, threshold) for threshold in THRESHOLDS])
        found[name] = {str(one): float(value) for one, value in zip(THRESHOLDS, np.mean(scores, axis=0))}
        found[name]["tables"] = len(scores)
    column_encoding.SKEW = usual
    result = {"command": "coterie bench skew" + (" --quick" if quick else ""), "ari": found}
    output = Path(output)
    output.mkdir(parents=True, exist_ok=True)
    with replacing(output / "skew.json") as file:
        file.write_text(json.dumps(result, indent=1))
    return result


def _score(read: list[Column], groups: np.ndarray, threshold: float) -> float:
    column_encoding.SKEW = threshold
    learned = encoding.Encoding.learn(read)
    rows = learned.encode([column.values for column in read])
    return adjusted_rand_score(groups, ZeroShotClusterer(random_state=0).fit(rows).labels_)


def markdown(result: dict[str, Any]) -> str:
    lines = ["| tables | " + " | ".join(f"from {one}" if np.isfinite(one) else "never" for one in THRESHOLDS) + " |"]
    lines.append("|" + "---|" * (len(THRESHOLDS) + 1))
    for name, row in result["ari"].items():
        cells = [f"{row[str(one)]:.3f}" for one in THRESHOLDS]
        lines.append(f"| {row['tables']:.0f} {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
