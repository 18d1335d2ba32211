"""Learned Lloyd compared with Lloyd: equal layers, equal random starts, three kinds of held-out instances.

Command: ``coterie bench learned_lloyd``. The images need COTERIE_DATA. Without them that kind is omitted, and the
output says so.
"""

import json
import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from coterie import checkpoints
from coterie.files import replacing
from coterie.kmeans.learned import SHIPPED, inertia, lloyd_layers
from coterie.kmeans.train import Instances, random_rows
from coterie_research import images

BATCH = 20
MOST_LAYERS = 100


def run(quick: bool = False, output: Path = Path("results/learned-lloyd")) -> dict:
    """Measure 1,000 instances of each kind (60 with ``quick``)."""
    began, rows, missing = time.perf_counter(), [], []
    for kind in ("blobs", "uniform", "mnist-pca"):
        generator = torch.Generator().manual_seed(20_000)
        try:
            batches = [_batch(kind, generator) for _ in range((60 if quick else 1000) // BATCH)]
        except FileNotFoundError as error:
            missing.append(f"{kind}: {error}")
            continue
        plain = [lloyd_layers(x, c, MOST_LAYERS) for x, c in batches]
        for n_layers, name in SHIPPED.items():
            rows.append({"kind": kind, "layers": n_layers, **_compare(name, n_layers, batches, plain)})
    result = {
        "command": "coterie bench learned_lloyd" + (" --quick" if quick else ""),
        "instances": 60 if quick else 1000,
        "seed": 20_000,
        "rows": rows,
        "missing": missing,
        "seconds": time.perf_counter() - began,
    }
    output = Path(output)
    output.mkdir(parents=True, exist_ok=True)
    with replacing(output / "learned-lloyd.json") as file:
        file.write_text(json.dumps(result, indent=1))
    with replacing(output / "README.md") as file:
        file.write_text(markdown(result))
    return result


def _batch(kind: str, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Images are drawn like the other kinds: 3 to 20 clusters, 20 to 40 rows per cluster."""
    if kind != "mnist-pca":
        return Instances().draw(BATCH, generator, kind)
    table, sizes = _mnist_pca(), Instances()
    k = int(torch.randint(sizes.clusters[0], sizes.clusters[1] + 1, (), generator=generator))
    n = k * int(torch.randint(sizes.points_per_cluster[0], sizes.points_per_cluster[1] + 1, (), generator=generator))
    x_BND = table[torch.randint(len(table), (BATCH, n), generator=generator)]
    return x_BND, random_rows(x_BND, k, generator)


_TABLES: dict[str, Tensor] = {}


def _mnist_pca(columns: int = 50) -> Tensor:
    if "mnist" not in _TABLES:
        pixels = torch.from_numpy(images.load("mnist")[0]).float() / 255
        pixels = pixels - pixels.mean(0)
        _, vectors = torch.linalg.eigh(pixels.mT @ pixels)
        _TABLES["mnist"] = pixels @ vectors[:, -columns:]
    return _TABLES["mnist"]


@torch.no_grad()
def _compare(name: str, n_layers: int, batches: list, plain: list) -> dict:
    """Inertia after the layers, at the fixed points that Lloyd reaches from there, and the number of layers saved."""
    network = checkpoints.load(name)
    after, fixed, saved = [], [], []
    for (x, start), lloyd in zip(batches, plain):
        centers = network(x, start)[-1]
        after.append(inertia(x, centers) / inertia(x, lloyd[n_layers - 1]))
        onwards = lloyd_layers(x, centers, MOST_LAYERS)
        final = inertia(x, lloyd[-1])
        fixed.append(inertia(x, onwards[-1]) / final)
        saved.append(_reached(x, lloyd, final) - (n_layers + _reached(x, [centers, *onwards], final)))
    ratio, ends, layers = torch.cat(after).numpy(), torch.cat(fixed).numpy(), torch.cat(saved).numpy()
    known = np.isfinite(layers)
    return {
        "ratio": float(ratio.mean()),
        "ratio_standard_error": float(ratio.std() / np.sqrt(len(ratio))),
        "lower": float(np.mean(ratio < 1)),
        "fixed_point_ratio": float(ends.mean()),
        "fixed_point_standard_error": float(ends.std() / np.sqrt(len(ends))),
        "reaches_lloyds_final_inertia": float(known.mean()),
        "median_layers_saved": float(np.median(layers[known])),
    }


def _reached(x: Tensor, path: list[Tensor], goal_B: Tensor) -> Tensor:
    """The number of layers (B,) until the inertia is within 0.1% of the goal; infinite if it is never reached."""
    below_LB = torch.stack([inertia(x, c) for c in path]) <= goal_B * 1.001
    first_B = below_LB.float().argmax(0).float()
    return torch.where(below_LB.any(0), first_B, torch.inf)


def markdown(result: dict) -> str:
    lines = [
        "# Learned Lloyd compared with Lloyd",
        "",
        f"`{result['command']}`: {result['instances']} held-out instances of each kind, with both methods started "
        "from the same random rows. Ratios are means of the inertia of learned Lloyd divided by that of Lloyd, ± "
        "standard errors.",
        "",
        "| instances | layers | inertia ratio after the layers | share of instances with lower inertia "
        "| inertia ratio at the fixed point | reaches the final inertia of Lloyd (within 0.1%) "
        "| layers saved (median) |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in result["rows"]:
        lines.append(
            f"| {row['kind']} | {row['layers']} | {row['ratio']:.4f} ± {row['ratio_standard_error']:.4f} "
            f"| {row['lower']:.0%} | {row['fixed_point_ratio']:.4f} ± {row['fixed_point_standard_error']:.4f} "
            f"| {row['reaches_lloyds_final_inertia']:.0%} | {row['median_layers_saved']:.0f} |"
        )
    lines += [""] + [f"Omitted: {note}" for note in result["missing"]]
    return "\n".join(lines).rstrip() + "\n"
