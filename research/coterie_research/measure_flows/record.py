"""The common header of the JSON records of these experiments."""

import json
import platform
from pathlib import Path
from typing import Any

import torch

import coterie
from coterie import checkpoints
from coterie_research.measure_flows.scoring import SEED


def write(record: dict[str, Any], name: str, output: Path, quick: bool) -> Path:
    """Write ``record`` after a header with the command, the seed, the versions and the hashes of the networks."""
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
