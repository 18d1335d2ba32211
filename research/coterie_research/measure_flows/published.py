"""The values in the tables of Zimin et al. (2025), for comparison: ``TABLES[number][column][level]``."""

from pathlib import Path

from coterie_research.records import read_toml

LEVELS = {"high": 15.0, "moderate": 10.0, "low": 5.0}
TABLES = {
    int(number): {column: dict(zip(LEVELS, values)) for column, values in table.items()}
    for number, table in read_toml(Path(__file__).with_suffix(".toml")).items()
}
