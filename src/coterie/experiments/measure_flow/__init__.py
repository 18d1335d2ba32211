"""Document 003, "Learning Gaussian Mixture Models via Transformer Measure Flows": Tables 1 to 11 and its figures."""

from coterie.experiments.measure_flow.figures import (
    figure1,
    figure2,
    figure4,
    figure6,
    figure7,
    figure8,
    figure9,
    figure10,
    figure11,
)
from coterie.experiments.measure_flow.tables import (
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
    "figure1",
    "figure2",
    "figure4",
    "figure6",
    "figure7",
    "figure8",
    "figure9",
    "figure10",
    "figure11",
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
]
