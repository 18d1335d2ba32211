"""Figure 1 of the paper: five half-moons, as clusters and as samples."""

import time
from pathlib import Path
from typing import Any

from coterie import VAEMixture
from coterie_research.mixture_of_vaes import pictures
from coterie_research.mixture_of_vaes.half_moons import LAYOUT, N_SAMPLES, NOISE, five_moons
from coterie_research.mixture_of_vaes.record import head, scores, write


def figure1(output: Path, quick: bool = False) -> dict[str, Any]:
    """Ten data sets, each fitted with the defaults; the first is drawn."""
    record: dict[str, Any] = {
        **head("figure1", quick),
        "layout": {"n_samples": N_SAMPLES, "noise": NOISE, "centers_and_angles": LAYOUT},
        "runs": [],
    }
    for seed in range(2 if quick else 10):
        X, truth = five_moons(seed)
        cpu = time.process_time()
        mixture = VAEMixture(5, random_state=seed).fit(X)
        record["runs"].append(
            {
                "seed": seed,
                "start": scores(mixture.start_labels_, truth),
                "end": scores(mixture.labels_, truth),
                "bound": round(mixture.bound_, 4),
                "n_iter": mixture.n_iter_,
                "cpu_seconds": round(time.process_time() - cpu, 1),
            }
        )
        if seed == 0:
            rows, labels = mixture.sample(len(X))
            pictures.draw_moons(X, mixture.labels_, rows, labels, output / "figure1.png")
    record["separated"] = sum(run["end"]["ari"] >= 0.95 for run in record["runs"])
    write(record, output / "figure1.json")
    return record
