"""Labelled sets for benchmarks: two batteries of shapes, real tables, fresh draws of the prior's families."""

import gzip
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn import datasets

BATTERIES = ("wut", "fcps")
SEEN = ("iris", "wine", "breast_cancer", "digits")
DRAW_SEED = 20_000
DRAWS = 400  # of every family
COMPARED = 50  # of these on which other methods are run, which takes most of the time
POINTS = (64, 1024)


class LabelledSet(NamedTuple):
    group: str
    name: str
    X: np.ndarray
    labels: np.ndarray  # 0 is noise, which is clustered but not scored
    compared: bool = True  # whether other methods are run too

    @property
    def n_clusters(self) -> int:
        return len(np.unique(self.labels[self.labels > 0]))

    @property
    def drawn(self) -> bool:
        return self.group.startswith("draws")


def _data() -> Path:
    return Path(os.environ.get("COTERIE_DATA", "data"))


def _files(folder: str, ending: str, what: str) -> dict[str, Path]:
    """Name -> file of a folder below the one that ``COTERIE_DATA`` names."""
    path = _data() / folder
    found = {file.name.removesuffix(ending): file for file in sorted(path.glob(f"*{ending}"))}
    if not found:
        raise FileNotFoundError(
            f"There are no sets in {path}: set COTERIE_DATA to the folder that holds {folder}/*{ending} ({what})."
        )
    return found


def battery(name: str) -> Iterator[LabelledSet]:
    """The sets of ``clustering/NAME``."""
    source = "https://github.com/gagolews/clustering-data-v1"
    for title, path in _files(f"clustering/{name}", ".data.gz", source).items():
        with gzip.open(path, "rt") as data, gzip.open(path.with_name(f"{title}.labels0.gz"), "rt") as labels:
            yield LabelledSet(name, title, np.loadtxt(data, ndmin=2), np.loadtxt(labels, dtype=int))


def tables() -> Iterator[LabelledSet]:
    """Real tables for development, the class in the last column."""
    content = "a header, numeric columns, and the class from 1 in the last column"
    for title, path in _files("tables", ".csv.gz", content).items():
        with gzip.open(path, "rt") as file:
            values = np.loadtxt(file, delimiter=",", skiprows=1, ndmin=2)
        yield LabelledSet("tables", title, values[:, :-1], values[:, -1].astype(int))


def seen() -> Iterator[LabelledSet]:
    """The tables of scikit-learn, which everyone has looked at while choosing."""
    for name in SEEN:
        X, labels = getattr(datasets, f"load_{name}")(return_X_y=True)
        yield LabelledSet("seen", name.replace("_", " "), X, labels + 1)


def draws(count: int) -> Iterator[LabelledSet]:
    """Problems that training has never seen, ``count`` of every family; the same whenever they are drawn."""
    from coterie_research.training.zeroshot.prior.problems import FAMILIES, Prior

    for place, family in enumerate(FAMILIES):
        low, high = np.log((max(POINTS[0], 128), POINTS[1]) if family == "many" else POINTS)
        for number in range(count):
            rng = np.random.default_rng((DRAW_SEED, place, number))
            problem = Prior().draw(rng, round(np.exp(rng.uniform(low, high))), family)
            name, compared = f"{problem.kind} {number}", number < COMPARED
            yield LabelledSet(f"draws {family}", name, problem.points_ND, problem.labels_N + 1, compared)


def fixed_sets() -> list[LabelledSet]:
    return [*(one for name in BATTERIES for one in battery(name)), *tables(), *seen()]


def all_sets(quick: bool) -> list[LabelledSet]:
    """The fixed sets, the draws on which other methods are run, too, and all other draws."""
    drawn = sorted(draws(2 if quick else DRAWS), key=lambda one: not one.compared)
    return [*fixed_sets()[:: 6 if quick else 1], *drawn]
