"""Sample tables for the studio."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from coterie.tables import table as tables


@dataclass(frozen=True)
class Sample:
    title: str
    about: str
    make: Callable[[], pd.DataFrame]


def _outliers() -> pd.DataFrame:
    """Five round clusters, and outliers that are uniform in a wide square."""
    random = np.random.default_rng(7)
    centers = np.array([[-6.0, -4.0], [5.5, -5.0], [0.0, 0.5], [-5.0, 6.0], [6.0, 5.5]])
    groups = [center + random.normal(scale=1.0, size=(180, 2)) for center in centers]
    return pd.DataFrame(np.vstack([*groups, random.uniform(-16, 16, size=(60, 2))]).round(3), columns=["east", "north"])


def _shop() -> pd.DataFrame:
    """Invented customers: four habits, a text column, and a few missing ages."""
    random = np.random.default_rng(11)
    habits = [  # name, customers, age, visits per year, spending per visit, minutes in the shop
        ("morning coffee", 260, 41, 160, 6, 8),
        ("weekly shopping", 320, 47, 52, 84, 46),
        ("student", 240, 23, 90, 14, 15),
        ("celebrations", 120, 55, 6, 310, 35),
    ]
    parts = [
        pd.DataFrame(
            {
                "age": np.clip(random.normal(age, 7, size), 16, 95).round(),
                "visits_per_year": random.gamma(12, visits / 12, size).round(),
                "spent_per_visit": random.gamma(9, spent / 9, size).round(2),
                "minutes": random.gamma(8, minutes / 8, size).round(1),
                "habit": name,
            }
        )
        for name, size, age, visits, spent, minutes in habits
    ]
    frame = pd.concat(parts).sample(frac=1, random_state=3).reset_index(drop=True)
    frame.insert(0, "customer", [f"C{i + 1:04d}" for i in range(len(frame))])
    frame.loc[random.choice(len(frame), 9, replace=False), "age"] = np.nan
    return frame


def _crowd() -> pd.DataFrame:
    """100,000 points in eight clusters of different width."""
    random = np.random.default_rng(5)
    angles = np.linspace(0, 2 * np.pi, 8, endpoint=False)
    centers = np.column_stack([9 * np.cos(angles), 6 * np.sin(angles)])
    widths = random.uniform(0.5, 1.4, 8)
    group = random.integers(0, 8, 100_000)
    points = centers[group] + widths[group, None] * random.normal(size=(100_000, 2))
    return pd.DataFrame(points.astype(np.float32), columns=["x", "y"])


SAMPLES = {
    "wine": Sample("Wines", "178 Italian wines, 13 measurements", lambda: tables.sample("wine")),
    "shop": Sample("Shop", "940 invented customers, missing ages", _shop),
    "outliers": Sample("Outliers", "five clusters with outliers", _outliers),
    "crowd": Sample("Crowd", "100,000 points in eight clusters", _crowd),
}
