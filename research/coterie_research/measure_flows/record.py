"""How these experiments write their JSON records."""

from pathlib import Path
from typing import Any

from coterie import checkpoints
from coterie_research import records
from coterie_research.measure_flows.scoring import SEED


def write(record: dict[str, Any], name: str, output: Path, quick: bool) -> None:
    """Write ``record``, and put before it what was written: command, seed, versions and hashes of the networks."""
    weights = {card["name"]: card["sha256"][:12] for card in checkpoints.available() if card["kind"] == "flow"}
    whole = records.save(record, f"flow/{name}", output, quick, seed=SEED, weights=weights)
    record.clear()
    record.update(whole)
