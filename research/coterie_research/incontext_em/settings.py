"""The settings of He et al. (2025), as data: what each row of a figure varies, and how long a run is.

The paper prints neither how centres are drawn, nor the dimension of Figure 1's first and third row, nor the batch size,
nor the values along the axes. Ours: 10 dimensions, as in Figure 3, and the values below. Of the readings that the text
allows, the main one has batches of 32 fresh data sets, centres at least the minimum distance apart, and 500 steps for
every layer in Figure 3. Figure 9 prints the others beside it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from coterie_research.training.incontext.prior import Separated, sample_separated

Source = Callable[[int, torch.Generator], Separated]


@dataclass(frozen=True)
class Budget:
    """How much is computed for a point of a figure."""

    steps: int
    batch: int
    seeds: int
    instances: int  # test data sets
    per_layer: bool = False  # ``steps`` for every layer of the network, MOST_STEPS at most
    settings: int | None = None  # per row of a figure; None is all

    at_least: bool = True  # centres at least the minimum distance apart; otherwise the two nearest exactly

    def of(self, row: "Row") -> "Row":
        """The settings of a row that are measured at this budget."""
        row = row.thinned(self.settings)
        if self.at_least:
            return row
        return replace(row, settings=tuple(replace(setting, at_least=False) for setting in row.settings))


# The paper: 300 steps, 10 seeds, 512 test data sets, batch not given.
BUDGETS = {
    "full": Budget(steps=300, batch=32, seeds=5, instances=512),
    "short": Budget(steps=300, batch=32, seeds=1, instances=128, settings=2),  # minutes a figure instead of hours
    "strict": Budget(steps=300, batch=8, seeds=2, instances=512, at_least=False),
    "quick": Budget(steps=40, batch=8, seeds=1, instances=48, settings=2),
}


def budget_of(figure: str, kind: str) -> Budget:
    """The budget of a figure; ``kind`` is a name in BUDGETS."""
    changes: dict[str, dict[str, Any]] = {
        "figure3": {"steps": 500, "per_layer": kind != "strict"},
        "figure6": {"steps": 400, "batch": 16},
        "figure8": {"steps": 0, "batch": 0, "seeds": 0},  # trains nothing
        "discussion": {"batch": 16, "seeds": 2, "instances": 256},
        "figure9": {"seeds": 5, "settings": 1} if kind == "short" else {},
    }
    if kind == "quick" and figure != "figure8":
        changes = {"figure3": {"per_layer": True}}
    return replace(BUDGETS[kind], **changes.get(figure, {}))


MOST_STEPS = 1500  # the printed decay of 0.995 per step leaves 0.0005 of the learning rate


@dataclass(frozen=True)
class Setting:
    """One point of a figure: the data, and what differs in the network or its training."""

    value: float  # along the axis
    counts: tuple[int, ...] = (50, 50, 50, 50)
    dims: int = 10
    distance: float = 5.0
    var: tuple[float, float] = (10.0, 20.0)
    training_instances: int | None = None
    network: dict[str, Any] = field(default_factory=dict)
    at_least: bool = True  # centres at least ``distance`` apart; otherwise the two nearest exactly

    @property
    def n_clusters(self) -> int:
        return len(self.counts)

    def source(self) -> Source:
        """Data sets of this setting; the variance is drawn anew for each."""

        def draw(batch: int, generator: torch.Generator) -> Separated:
            low, high = self.var
            var_B = low + (high - low) * torch.rand(batch, generator=generator)
            distance_B = torch.full((batch,), self.distance)
            counts = list(self.counts)
            return sample_separated(counts, self.dims, distance_B, var_B, generator, at_least=self.at_least)

        return draw

    def data_key(self) -> tuple:
        """Settings with equal keys share their test data."""
        return (self.counts, self.dims, self.distance, self.var, self.at_least)


@dataclass(frozen=True)
class Row:
    """A row of panels: settings along one axis."""

    name: str
    axis: str
    settings: tuple[Setting, ...]

    def thinned(self, n: int | None) -> "Row":
        """``n`` of the settings, the first and the last among them; all for None."""
        if n is None:
            return self
        chosen = torch.linspace(0, len(self.settings) - 1, min(n, len(self.settings))).round().int().tolist()
        return replace(self, settings=tuple(self.settings[i] for i in chosen))


def sizes(ratio: float) -> tuple[int, ...]:
    """Figure 2's imbalance: two clusters of 50, one of 50 · ratio, one of 50 · (1 - ratio)."""
    return (50, 50, round(50 * ratio), round(50 * (1 - ratio)))  # 50/50/25/25 for .5, the most equal that it has


DISTANCE = Row(
    "distance",
    "minimum distance",
    tuple(Setting(value=d, distance=d, var=(10.0, 40.0)) for d in (5.0, 7.5, 10.0, 15.0, 20.0, 30.0)),
)
DIMENSION = Row("dimension", "dimensions", tuple(Setting(value=d, dims=d) for d in (2, 5, 10, 20)))
POINTS = Row(
    "points",
    "points N",
    tuple(Setting(value=4 * n, counts=(n,) * 4, var=(0.5, 5.0)) for n in (5, 12, 50, 100)),
)
INSTANCES = Row(
    "instances",
    "training instances n",
    tuple(Setting(value=n, var=(0.5, 5.0), training_instances=n) for n in (8, 128, 2048)),
)
CLASSES = Row("classes", "classes", tuple(Setting(value=k, counts=(50,) * k) for k in (2, 4, 6, 8)))
IMBALANCE = Row("imbalance", "imbalance ratio", tuple(Setting(value=r, counts=sizes(r)) for r in (0.5, 0.7, 0.8, 0.9)))

# The test of the shipped network: one for all, never told the variance. No other network is trained for these.
VARIANCE = Row(
    "variance",
    "variance, d = 10, k = 4",
    tuple(Setting(value=v, var=(v, v), at_least=False) for v in (0.5, 2.0, 3.5, 5.0, 10.0, 20.0, 40.0)),
)
VARIANCE_WIDE = Row(
    "variance, d = 3, k = 8",
    "variance, d = 3, k = 8, sizes 20 to 80",
    tuple(
        Setting(value=v, var=(v, v), dims=3, counts=(20, 20, 30, 30, 40, 40, 80, 80), at_least=False)
        for v in (1.0, 4.0, 16.0)
    ),
)

# Figure 3. The paper's distance is 1, at which little can be found; 5 and 15 stand beside it.
LAYERS = tuple(
    Row(
        f"distance {distance:g}",
        "layers",
        tuple(
            Setting(n, counts=(50,) * 6, distance=distance, var=(20.0, 30.0), network={"n_layers": n})
            for n in (3, 6, 10, 20)
        ),
    )
    for distance in (1.0, 5.0, 15.0)
)


def averaged(row: Row) -> Row:
    """The same settings for a network that averages its heads."""
    return replace(row, settings=tuple(replace(s, network={"heads": "averaged"}) for s in row.settings))


@dataclass(frozen=True)
class Reading:
    """What the text allows where it is silent."""

    batch: int
    at_least: bool

    @property
    def name(self) -> str:
        return f"batch {self.batch}, centres {'at least' if self.at_least else 'exactly'} the distance apart"

    def row(self, distances: tuple[float, ...] = (15.0, 5.0)) -> Row:
        """Figure 1's first row under this reading."""
        settings = (Setting(value=d, distance=d, var=(10.0, 40.0), at_least=self.at_least) for d in distances)
        return Row(self.name, "minimum distance", tuple(settings))


READINGS = tuple(Reading(batch, at_least) for batch in (8, 32, 128) for at_least in (False, True))
