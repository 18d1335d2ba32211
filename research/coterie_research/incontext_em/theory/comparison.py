"""A constructed network beside Algorithm 1 of He et al. (2025), iteration by iteration."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from coterie_research.incontext_em.theory.construction import Size
from coterie_research.incontext_em.theory.context import Rows, context
from coterie_research.incontext_em.theory.modules import TransformerPlus


class Iteration(NamedTuple):
    centers: Tensor  # (K, D)
    labels: Tensor  # (N,)


def distances(x_ND: Tensor, centers_KD: Tensor) -> Tensor:
    """‖x - μ‖ for every point and centre, (N, K)."""
    return (x_ND.unsqueeze(1) - centers_KD).norm(dim=-1)


def assign(x_ND: Tensor, centers_KD: Tensor) -> Tensor:
    """The nearest centre of every point; of several, the first."""
    return distances(x_ND, centers_KD).argmin(dim=1)


def means(x_ND: Tensor, labels_N: Tensor, n_clusters: int) -> Tensor:
    """The mean of every cluster. Algorithm 1 does not say what the mean of no points is; here it is an error."""
    counts = torch.bincount(labels_N, minlength=n_clusters)
    if (counts == 0).any():
        raise ValueError(f"cluster {int(counts.argmin())} has no points, so Algorithm 1 has no next centre for it.")
    sums = torch.zeros(n_clusters, x_ND.shape[1], dtype=x_ND.dtype).index_add_(0, labels_N, x_ND)
    return sums / counts.unsqueeze(1)


def lloyd(x_ND: Tensor, centers_KD: Tensor, tau: int) -> list[Iteration]:
    """The start with its assignment (2), then the state after each of ``tau`` iterations."""
    trajectory = [Iteration(centers_KD, assign(x_ND, centers_KD))]
    for _ in range(tau):
        centers = means(x_ND, trajectory[-1].labels, len(centers_KD))
        trajectory.append(Iteration(centers, assign(x_ND, centers)))
    return trajectory


@dataclass(frozen=True)
class Comparison:
    """``labels`` (tau, N, k) from the network and Lloyd's ``trajectory`` (its start first).

    ``distance_error`` is the largest |approximated - true| distance in the iterations before the two part, the one in
    which they part included; None if the network holds no distances. ``parted`` is that iteration, from 1; None if all
    assignments agree. ``gaps`` are there, for each point with another label, by how much Lloyd's distances to the two
    centres differ.
    """

    labels: Tensor
    trajectory: list[Iteration]
    distance_error: float | None
    parted: int | None
    gaps: Tensor

    @property
    def n_different(self) -> int:
        """Points whose rounded label differs in the end."""
        if len(self.labels) == 0:
            return 0
        return int((self.labels[-1].argmax(1) != self.trajectory[-1].labels).sum())

    @property
    def explained(self) -> bool:
        """Every point that parted lay between two centres by less than the two distances' errors together."""
        return self.parted is None or (
            self.distance_error is not None and bool((self.gaps <= 2 * self.distance_error).all())
        )


def size_of(x_ND: Tensor, k: int) -> Size:
    """The size for which a network has to be constructed to hold these points."""
    return Size(len(x_ND), x_ND.shape[1], k, float((x_ND - x_ND.mean(0)).norm(dim=1).max()))


def one_hot(labels_N: Tensor, k: int) -> Tensor:
    """P₁ of equation (1), as rows."""
    return torch.nn.functional.one_hot(labels_N, k).to(torch.float64)


def compare(model: TransformerPlus, x_ND: Tensor, start_KD: Tensor, tau: int, measure: str = "none") -> Comparison:
    """Run both from the same start. ``measure`` says what the network holds as ``distance``: norm, square or none."""
    k = len(start_KD)
    rows = Rows(x_ND.shape[1], k)
    trajectory = lloyd(x_ND, start_KD, tau)
    states = model.states(context(x_ND, start_KD, trajectory[0].labels))
    per_iteration = (len(model.blocks) - 1) // tau if tau else 0
    labels = torch.stack([states[1 + i * per_iteration][:, rows.label] for i in range(1, tau + 1)] or [states[0][:0]])
    error, parted, gaps = 0.0, None, torch.zeros(0, dtype=x_ND.dtype)
    for i in range(1, tau + 1):
        true = distances(x_ND, trajectory[i].centers)
        held = states[i * per_iteration][:, rows.distance]
        error = max(error, float(((held.clamp(min=0).sqrt() if measure == "square" else held) - true).abs().max()))
        chosen = labels[i - 1].argmax(1)
        other = chosen != trajectory[i].labels
        if other.any():
            parted = i
            taken = true.gather(1, torch.stack([chosen, trajectory[i].labels], dim=1))
            gaps = (taken[:, 0] - taken[:, 1])[other]
            break
    return Comparison(labels, trajectory, None if measure == "none" else error, parted, gaps)
