"""A constructed network beside Lloyd's algorithm, iteration by iteration."""

from dataclasses import dataclass

import torch
from torch import Tensor

from coterie_research.incontext_em.theory.construction import Size
from coterie_research.incontext_em.theory.context import Rows, context
from coterie_research.incontext_em.theory.lloyd import Iteration, distances, lloyd
from coterie_research.incontext_em.theory.modules import TransformerPlus


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
