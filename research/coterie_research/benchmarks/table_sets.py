"""Tables as people have them: real ones with their source and licence, and drawn ones with the flaws of real files.

A drawn table is written to a file as an export would be, with identifiers, dates, missing values, codes or a decimal
comma, and then read like any other file.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

FILES = Path(__file__).parent / "table_files"
UCI = "UCI Machine Learning Repository, CC BY 4.0"
DRAWN = "drawn by this module"
Rng = np.random.Generator


@dataclass(frozen=True)
class TableSet:
    """One table. ``label`` is the column with the true groups, which is removed; None if there are none."""

    name: str
    label: str | None
    source: str
    make: Callable[[Path], Path]  # writes the table into a folder, or finds it, and returns its path


def real(name: str, label: str | None, source: str, ending: str = ".csv") -> TableSet:
    return TableSet(name, label, source, lambda folder: FILES / f"{name}{ending}")


def of_sklearn(name: str, loader: str, source: str) -> TableSet:
    def make(folder: Path) -> Path:
        from sklearn import datasets

        read = getattr(datasets, loader)(as_frame=True)
        frame = read.frame.rename(columns={"target": "class"})
        frame.to_csv(folder / f"{name}.csv", index=False)
        return folder / f"{name}.csv"

    return TableSet(name, "class", source, make)


def drawn(name: str, draw: Callable[[Rng], pd.DataFrame], **written: object) -> TableSet:
    def make(folder: Path) -> Path:
        frame = draw(np.random.default_rng(0))
        frame.to_csv(folder / f"{name}.csv", **{"index": False, **written})
        return folder / f"{name}.csv"

    return TableSet(name, "group", DRAWN, make)


def _normal(rng: Rng, groups: np.ndarray, means: list[float], spread: float) -> np.ndarray:
    return rng.normal(np.array(means)[groups], spread)


def _choice(rng: Rng, groups: np.ndarray, shares: list[list[float]], values: list[object]) -> np.ndarray:
    places = [rng.choice(len(values), p=shares[group]) for group in groups]
    return np.array(values, dtype=object)[places]


def _days(rng: Rng, first: str, count: int) -> pd.DatetimeIndex:
    return pd.DatetimeIndex(pd.Timestamp(first) + pd.to_timedelta(rng.integers(0, 3000, count), "D"))


def customers(rng: Rng) -> pd.DataFrame:
    """Identifiers, e-mail addresses, dates and missing ages."""
    groups = rng.choice(4, 500, p=[0.4, 0.3, 0.2, 0.1])
    age = _normal(rng, groups, [24, 42, 67, 35], 5).round()
    frame = pd.DataFrame(
        {
            "customer_id": rng.permutation(90_000)[:500] + 10_000,
            "email": [f"user{i}@example.org" for i in rng.permutation(500)],
            "joined": _days(rng, "2015-01-01", 500).strftime("%d/%m/%Y"),
            "age": np.where(rng.random(500) < 0.1, np.nan, age),
            "visits": rng.poisson(np.array([30, 12, 5, 2])[groups]),
            "basket": _normal(rng, groups, [20, 55, 40, 160], 8).round(2),
            "newsletter": rng.choice(["yes", "no"], 500),
            "channel": _choice(rng, groups, [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.3, 0.4, 0.3]],
                               ["app", "web", "shop"]),
            "group": groups,
        }
    )  # fmt: skip
    return frame


def european(rng: Rng) -> pd.DataFrame:
    """A semicolon between cells, decimal commas, thousands, currency and percent, in Windows text."""
    groups = rng.integers(3, size=360)
    money = _normal(rng, groups, [900, 2400, 5200], 350).clip(50)
    return pd.DataFrame(
        {
            "Lfd.Nr.": np.arange(1, 361),
            "Gehalt": [f"{value:,.2f} €".translate(str.maketrans(",.", ".,")) for value in money],
            "Anteil": [f"{value:.1f} %".replace(".", ",") for value in _normal(rng, groups, [12, 30, 22], 3)],
            "Größe": _normal(rng, groups, [165.0, 172.0, 181.0], 4).round(1),
            "Eintritt": _days(rng, "2010-01-01", 360).strftime("%d.%m.%Y"),
            "Führung": np.where(groups == 2, rng.choice(["ja", "nein"], 360, p=[0.8, 0.2]), "nein"),
            "group": groups,
        }
    )  # fmt: skip


def incomes(rng: Rng) -> pd.DataFrame:
    """Log-normal amounts with a few very large values."""
    groups = rng.choice(3, 450, p=[0.5, 0.35, 0.15])
    return pd.DataFrame(
        {
            "income": np.exp(_normal(rng, groups, [9.8, 11.0, 12.6], 0.35)).round(),
            "wealth": np.exp(_normal(rng, groups, [8.0, 11.0, 14.5], 0.9)).round(),
            "debt": (np.exp(_normal(rng, groups, [8.5, 10.5, 9.0], 0.8)) * (rng.random(450) < 0.8)).round(),
            "age": _normal(rng, groups, [35, 42, 55], 9).round(),
            "group": groups,
        }
    )


def forest(rng: Rng) -> pd.DataFrame:
    """Cover types: numbers beside two categories with one column per value."""
    groups = rng.integers(4, size=600)
    soil = _choice(rng, groups, _soils(), [f"Soil_Type{i}" for i in range(1, 8)])
    area = _choice(rng, groups, [[0.7, 0.1, 0.2], [0.1, 0.7, 0.2], [0.2, 0.1, 0.7], [0.34, 0.33, 0.33]],
                   [f"Wilderness_Area{i}" for i in range(1, 4)])  # fmt: skip
    frame = pd.DataFrame(
        {
            "Elevation": _normal(rng, groups, [2400, 2750, 3050, 3350], 90).round(),
            "Slope": _normal(rng, groups, [22, 15, 12, 14], 4).round(1),
            "Hillshade_Noon": _normal(rng, groups, [212, 224, 226, 220], 9).round(),
        }
    )
    dummies = [pd.get_dummies(values, dtype=int) for values in (area, soil)]
    return pd.concat([frame, *dummies, pd.Series(groups, name="group")], axis=1)


def _soils() -> list[list[float]]:
    shares = np.full((4, 7), 0.04)
    shares[[0, 0, 1, 1, 2, 2, 3], np.arange(7)] = [0.5, 0.3, 0.4, 0.4, 0.5, 0.3, 0.76]
    return (shares / shares.sum(axis=1, keepdims=True)).tolist()


def survey(rng: Rng) -> pd.DataFrame:
    """Answers True and False and 1 to 5, a row number, and a comment in some rows."""
    groups = rng.integers(3, size=420)
    flags = {f"q{i}": rng.random(420) < np.array([0.85, 0.2, 0.5])[(groups + i) % 3] for i in range(5)}
    scales = {
        f"agree_{i}": np.clip(np.round(_normal(rng, groups, [1.8, 3.2, 4.5], 0.7)), 1, 5).astype(int) for i in range(4)
    }
    comments = [f"remark number {i}" if rng.random() < 0.2 else "" for i in range(420)]
    return pd.DataFrame({"row": np.arange(420), **flags, **scales, "comment": comments, "group": groups})


def patients(rng: Rng) -> pd.DataFrame:
    """Sex as 1 and 2, regions and wards as codes, question marks for missing values."""
    groups = rng.integers(3, size=480)
    pressure = _normal(rng, groups, [118, 135, 160], 8).round()
    return pd.DataFrame(
        {
            "patient": [f"P{i:05d}" for i in rng.permutation(480)],
            "sex": rng.integers(1, 3, 480),
            "region": rng.choice([1, 2, 3, 4, 7], 480),
            "age": _normal(rng, groups, [31, 52, 70], 8).round(),
            "pressure": [("?" if rng.random() < 0.06 else f"{value:.0f}") for value in pressure],
            "cholesterol": _normal(rng, groups, [180, 215, 250], 18).round(),
            "smoker": rng.choice(["Y", "N"], 480),
            "group": groups,
        }
    )


def machines(rng: Rng) -> pd.DataFrame:
    """Sensor rows with a time stamp, units in the cells, a constant and an empty column."""
    groups = rng.choice(3, 540, p=[0.6, 0.3, 0.1])
    times = pd.Timestamp("2024-03-01") + pd.to_timedelta(np.arange(540) * 7, "min")
    return pd.DataFrame(
        {
            "time": times.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "plant": "north",
            "note": "",
            "temperature": [f"{value:.1f} °C" for value in _normal(rng, groups, [61, 78, 95], 4)],
            "vibration": np.exp(_normal(rng, groups, [-1.0, 0.2, 2.2], 0.4)).round(4),
            "speed": _normal(rng, groups, [1500, 1420, 900], 45).round(),
            "serial": rng.permutation(5400)[:540],
            "group": groups,
        }
    )


def one_group(rng: Rng) -> pd.DataFrame:
    """No groups at all: correlated measurements of one population, with an identifier."""
    size = rng.normal(size=(400, 1))
    values = (size + 0.6 * rng.normal(size=(400, 4))) * [9, 4, 12, 2] + [170, 60, 70, 40]
    frame = pd.DataFrame(values.round(1), columns=["height", "arm", "weight", "shoe"])
    return frame.assign(id=np.arange(400), group=0)


SETS = (
    real("penguins", "species", "palmerpenguins (Gorman, Williams and Fraser 2014), CC0"),
    real("penguins-raw", "Species", "palmerpenguins (Gorman, Williams and Fraser 2014), CC0", ".csv.gz"),
    real("zoo", "type", UCI),
    real("heart-disease", "diameter narrowing", UCI),
    real("auto-mpg", "origin", "StatLib, 1983 exposition of the American Statistical Association, CC0"),
    real("glass", "type", UCI, ".csv.gz"),
    real("ionosphere", "y", UCI, ".csv.gz"),
    real("phishing", "is_phishing", UCI, ".csv.gz"),
    real("seeds", "class", UCI, ".csv.gz"),
    real("dermatology", "class", UCI, ".csv.gz"),
    real("vote", "class", UCI, ".csv.gz"),
    real("wisc", "class", UCI, ".csv.gz"),
    real("haberman", "class", UCI, ".csv.gz"),
    of_sklearn("wine", "load_wine", UCI),
    of_sklearn("iris", "load_iris", UCI),
    of_sklearn("breast-cancer", "load_breast_cancer", UCI),
    of_sklearn("digits", "load_digits", UCI),
    real("automobiles", None, UCI),
    real("titanic", None, "passenger list, public domain", ".csv.gz"),
    drawn("customers", customers),
    drawn("european", european, sep=";", decimal=",", encoding="cp1252"),
    drawn("incomes", incomes, index=True),
    drawn("forest", forest),
    drawn("survey", survey),
    drawn("patients", patients),
    drawn("machines", machines),
    drawn("one-group", one_group),
)
