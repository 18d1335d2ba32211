"""The sets of ``coterie bench zeroshot``: two batteries, four real tables, fresh draws of the prior."""

import gzip
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn import datasets

BATTERIES = ("wut", "fcps")
REAL = ("iris", "wine", "breast_cancer", "digits")
DRAW_SEED = 20_000


class LabelledSet(NamedTuple):
    group: str
    name: str
    X: np.ndarray
    labels: np.ndarray  # 0 is noise, which is clustered but not scored

    @property
    def n_clusters(self) -> int:
        return len(np.unique(self.labels[self.labels > 0]))


def battery(name: str) -> Iterator[LabelledSet]:
    """The sets of ``clustering/NAME`` below the folder that ``COTERIE_DATA`` names."""
    folder = Path(os.environ.get("COTERIE_DATA", "data")) / "clustering" / name
    files = sorted(folder.glob("*.data.gz"))
    if not files:
        raise FileNotFoundError(
            f"There are no sets in {folder}: set COTERIE_DATA to the folder that holds clustering/{name}/*.data.gz "
            "(https://github.com/gagolews/clustering-data-v1)."
        )
    for path in files:
        title = path.name.removesuffix(".data.gz")
        with gzip.open(path, "rt") as data, gzip.open(path.with_name(f"{title}.labels0.gz"), "rt") as labels:
            yield LabelledSet(name, title, np.loadtxt(data, ndmin=2), np.loadtxt(labels, dtype=int))


def real() -> Iterator[LabelledSet]:
    for name in REAL:
        X, labels = getattr(datasets, f"load_{name}")(return_X_y=True)
        yield LabelledSet("real", name.replace("_", " "), X, labels + 1)


def draws(count: int) -> Iterator[LabelledSet]:
    """Problems that training has never seen, of 64 to 1,024 points."""
    from coterie.zeroshot.prior import Prior

    for number in range(count):
        rng = np.random.default_rng(DRAW_SEED + number)
        problem = Prior().draw(rng, round(np.exp(rng.uniform(np.log(64), np.log(1024)))))
        yield LabelledSet("draws", f"{problem.kind} {number}", problem.points_ND, problem.labels_N + 1)


def all_sets(quick: bool) -> list[LabelledSet]:
    tables = [one for name in BATTERIES for one in battery(name)] + list(real())
    return (tables[::6] if quick else tables) + list(draws(6 if quick else 200))
