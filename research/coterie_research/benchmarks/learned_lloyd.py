"""Learned Lloyd compared with Lloyd: equal layers, equal random starts, three kinds of held-out instances.

The images need COTERIE_DATA. Without them that kind is omitted, and the output says so.
"""

from functools import cache, partial

import numpy as np
import torch
from torch import Tensor

from coterie import checkpoints
from coterie_research import images
from coterie_research.benchmarks.harness import Benchmark, Cell, Row
from coterie_research.kmeans_transformers.learned import SHIPPED, inertia, layers, lloyd_layers
from coterie_research.training.learned_lloyd import Instances, random_rows

BATCH = 20
MOST_LAYERS = 100
SEED = 20_000


def _instances(quick: bool) -> int:
    return 60 if quick else 1_000


def measure(kind: str, instances: int) -> list[Row]:
    """One row per network; for images that are not there, one that says so."""
    generator = torch.Generator().manual_seed(SEED)
    try:
        batches = [_batch(kind, generator) for _ in range(instances // BATCH)]
    except FileNotFoundError as error:
        return [{"missing": f"{kind}: {error}"}]
    plain = [lloyd_layers(x, c, MOST_LAYERS) for x, c in batches]
    return [
        {"kind": kind, "layers": n_layers, **_compare(name, n_layers, batches, plain)}
        for n_layers, name in SHIPPED.items()
    ]


def _batch(kind: str, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Images are drawn like the other kinds: 3 to 20 clusters, 20 to 40 rows per cluster."""
    if kind != "mnist-pca":
        return Instances().draw(BATCH, generator, kind)
    pixels, sizes = _mnist_pca(), Instances()
    k = int(torch.randint(sizes.clusters[0], sizes.clusters[1] + 1, (), generator=generator))
    n = k * int(torch.randint(sizes.points_per_cluster[0], sizes.points_per_cluster[1] + 1, (), generator=generator))
    x_BND = pixels[torch.randint(len(pixels), (BATCH, n), generator=generator)]
    return x_BND, random_rows(x_BND, k, generator)


@cache
def _mnist_pca(columns: int = 50) -> Tensor:
    pixels = torch.from_numpy(images.load("mnist")[0]).float() / 255
    pixels = pixels - pixels.mean(0)
    _, vectors = torch.linalg.eigh(pixels.mT @ pixels)
    return pixels @ vectors[:, -columns:]


@torch.no_grad()
def _compare(name: str, n_layers: int, batches: list, plain: list) -> Row:
    """Inertia after the layers, at the fixed points that Lloyd reaches from there, and the number of layers saved."""
    network = checkpoints.load(name)
    after, fixed, saved = [], [], []
    for (x, start), lloyd in zip(batches, plain):
        centers = layers(network, x, start)[-1]
        after.append(inertia(x, centers) / inertia(x, lloyd[n_layers - 1]))
        onwards = lloyd_layers(x, centers, MOST_LAYERS)
        final = inertia(x, lloyd[-1])
        fixed.append(inertia(x, onwards[-1]) / final)
        saved.append(_reached(x, lloyd, final) - (n_layers + _reached(x, [centers, *onwards], final)))
    ratio, ends, n_saved = torch.cat(after).numpy(), torch.cat(fixed).numpy(), torch.cat(saved).numpy()
    known = np.isfinite(n_saved)
    return {
        "ratio": float(ratio.mean()),
        "ratio_standard_error": float(ratio.std() / np.sqrt(len(ratio))),
        "lower": float(np.mean(ratio < 1)),
        "fixed_point_ratio": float(ends.mean()),
        "fixed_point_standard_error": float(ends.std() / np.sqrt(len(ends))),
        "reaches_lloyds_final_inertia": float(known.mean()),
        "median_layers_saved": float(np.median(n_saved[known])),
    }


def _reached(x: Tensor, path: list[Tensor], goal_B: Tensor) -> Tensor:
    """The number of layers (B,) until the inertia is within 0.1% of the goal; infinite if it is never reached."""
    below_LB = torch.stack([inertia(x, c) for c in path]) <= goal_B * 1.001
    first_B = below_LB.float().argmax(0).float()
    return torch.where(below_LB.any(0), first_B, torch.inf)


BENCHMARK = Benchmark(
    name="learned_lloyd",
    title="Learned Lloyd compared with Lloyd",
    folder="learned-lloyd",
    file="learned-lloyd",
    rows=None,
    seed=SEED,
    settings=lambda quick: {"instances": _instances(quick)},
    cells=lambda quick: [
        Cell(kind, partial(measure, kind, _instances(quick))) for kind in ("blobs", "uniform", "mnist-pca")
    ],
    summary=lambda rows: {
        "rows": [row for row in rows if "missing" not in row],
        "missing": [row["missing"] for row in rows if "missing" in row],
    },
    intro="{instances} held-out instances of each kind, with both methods started from the same random rows. Ratios "
    "are means of the inertia of learned Lloyd divided by that of Lloyd, ± standard errors.",
    columns={
        "instances": "{kind}",
        "layers": "{layers}",
        "inertia ratio after the layers": "{ratio:.4f} ± {ratio_standard_error:.4f}",
        "share of instances with lower inertia": "{lower:.0%}",
        "inertia ratio at the fixed point": "{fixed_point_ratio:.4f} ± {fixed_point_standard_error:.4f}",
        "reaches the final inertia of Lloyd (within 0.1%)": "{reaches_lloyds_final_inertia:.0%}",
        "layers saved (median)": "{median_layers_saved:.0f}",
    },
    page=lambda record: [f"Omitted: {note}" for note in record["missing"]],
)
