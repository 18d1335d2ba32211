"""The pictures, made from the records; sheets of samples from a fitted mixture."""

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00")


def save(figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150, bbox_inches="tight")
    plt.close(figure)


def draw_sheet(mixture, path: Path, columns: int = 12) -> None:
    """A row for each cluster, most frequent first: the decoder's means for draws of the latent variables."""
    side = int(np.sqrt(mixture.n_features_in_))
    order = np.argsort(-mixture.weights_)
    rows = [mixture.sample(columns, cluster=int(k), noise=False)[0].reshape(columns, side, side) for k in order]
    sheet = np.concatenate([np.concatenate(list(row), axis=1) for row in rows])
    figure, axes = plt.subplots(figsize=(columns * 0.55, len(rows) * 0.58))
    axes.imshow(sheet, cmap="gray_r", vmin=0, vmax=1)
    axes.set_xticks([])
    axes.set_yticks([side * (i + 0.5) for i in range(len(rows))], [f"{mixture.weights_[k]:.0%}" for k in order])
    axes.tick_params(length=0)
    axes.set_ylabel("share of the cluster")
    axes.set_title("Samples of every cluster")
    save(figure, path)


def draw_seeds(record: dict[str, Any], name: str, path: Path) -> None:
    """Accuracy of every seed, from its start to its end."""
    figure, axes = plt.subplots(figsize=(6.4, 3.6))
    ticks = []
    for x, run in enumerate(record["runs"]):
        colour = COLOURS[0] if run["init"] == "neighbour graph" else COLOURS[1]
        start, end = run["start"]["accuracy"], run["end"]["accuracy"]
        axes.plot([x, x], [start, end], color=colour, linewidth=1)
        axes.plot(x, start, "o", color="white", markeredgecolor=colour)
        axes.plot(x, end, "o", color=colour)
        ticks.append(f"{run['init'].split()[0]}\nseed {run['seed']}")
    mean = record["document"]["mean"]
    axes.axhline(mean, color="0.5", linewidth=1, linestyle="--")
    axes.annotate(f"document's mean {mean:.3f}", (len(ticks) - 0.6, mean), ha="right", va="bottom", color="0.4")
    axes.set_xticks(range(len(ticks)), ticks, fontsize=8)
    axes.set_xlim(-0.5, len(ticks) - 0.5)
    axes.set_ylabel("accuracy")
    axes.set_title(f"{name}, {record['n_samples']:,} images: start (hollow) and end (full)")
    save(figure, path)
