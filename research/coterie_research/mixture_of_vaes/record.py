"""The head of every JSON record of these experiments, and the scores of a clustering."""

import json
import platform
import resource
from pathlib import Path
from typing import Any

import numpy as np
import torch

import coterie
from coterie.files import replacing
from coterie.metrics import clustering_scores


def head(name: str, quick: bool) -> dict[str, Any]:
    return {
        "command": f"coterie reproduce vae/{name}" + (" --quick" if quick else ""),
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "coterie": coterie.__version__,
        },
        "threads": torch.get_num_threads(),
    }


def write(record: dict[str, Any], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(record, indent=1) + "\n")


def scores(labels: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Accuracy under the best one-to-one matching, ARI and NMI."""
    found = {name: float(values[0]) for name, values in clustering_scores(labels[None], truth[None]).items()}
    return {"accuracy": round(1 - found["error"], 4), "ari": round(found["ari"], 4), "nmi": round(found["nmi"], 4)}


def peak_gigabytes() -> float:
    """Of this process so far."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2)
