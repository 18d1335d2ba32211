"""What every JSON record of these experiments begins with."""

import json
import platform
from pathlib import Path
from typing import Any

import torch

import coterie
from coterie import checkpoints
from coterie.experiments.measure_flow.scoring import SEED


def write(record: dict[str, Any], name: str, output: Path, quick: bool) -> Path:
    """Put the command, the seed, versions and the hashes of the shipped weights before ``record`` and write it."""
    head = {
        "command": f"coterie reproduce flow/{name}" + (" --quick" if quick else ""),
        "seed": SEED,
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "coterie": coterie.__version__,
        },
        "weights": {card["name"]: card["sha256"][:12] for card in checkpoints.available() if card["kind"] == "flow"},
    }
    body = {**head, **record}
    record.clear()
    record.update(body)
    output.mkdir(parents=True, exist_ok=True)
    path = output / f"{name}.json"
    compact = json.dumps(record)
    path.write_text((json.dumps(record, indent=1) if len(compact) < 20_000 else compact) + "\n")
    return path
