"""How the experiments of the theory are saved and drawn."""

from pathlib import Path
from typing import Any

from coterie_research import records
from coterie_research.incontext_em.theory_checks import pictures


def save(record: dict[str, Any], name: str, output: Path, quick: bool, began: float) -> dict[str, Any]:
    """Write the record, with the CPU seconds since ``began``, and the picture that is drawn from it."""
    record = records.save(record, f"theory/{name}", output, quick, cpu_seconds=records.spent(began))
    pictures.DRAW[name](record, output / f"{name}.png")
    return record
