"""The tables and figures of Zimin et al. (2025), "Learning Gaussian Mixture Models via Transformer Measure Flows"."""

from coterie_research.measure_flows.ablation import ablation
from coterie_research.measure_flows.columns import columns
from coterie_research.measure_flows.figures import (
    figure1,
    figure2,
    figure4,
    figure6,
    figure7,
    figure8,
    figure9,
    figure10,
    figure11,
    training_curve,
)
from coterie_research.measure_flows.tables import (
    orderings,
    table1,
    table2,
    table3,
    table4,
    table5,
    table6,
    table7,
    table8,
    table9,
    table10,
    table11,
)

__all__ = [
    "ablation",
    "columns",
    "figure1",
    "figure2",
    "figure4",
    "figure6",
    "figure7",
    "figure8",
    "figure9",
    "figure10",
    "figure11",
    "orderings",
    "table1",
    "table2",
    "table3",
    "table4",
    "table5",
    "table6",
    "table7",
    "table8",
    "table9",
    "table10",
    "table11",
    "training_curve",
]
