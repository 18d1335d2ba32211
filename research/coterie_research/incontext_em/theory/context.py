"""The context-augmented matrix H of He et al. (2025), equation (4), with its rows named.

A token (a column of H there, a row here) is one point and what the network knows at its place::

    x (d)         the point
    center (d)    token j < k: the centre μ_j; zero elsewhere
    label (k)     p₁, the point's cluster, one-hot
    marker (m)    p₂, token j < m: the unit vector e_j; zero elsewhere
    one (1)       1
    ...           room for the intermediate values below, zero between iterations

The paper makes the marker d long, which needs k ≤ d; here m = max(k, d), so any k < N will do.
"""

import torch
from torch import Tensor


class Rows:
    """Where in a token each named direction lies."""

    def __init__(self, d: int, k: int):
        self.d, self.k = d, k
        self.width = 0
        self.x = self._next(d)
        self.center = self._next(d)
        self.label = self._next(k)
        self.marker = self._next(max(k, d))
        self.one = self._next(1)
        # Room for the Expectation step of Transformer+ ...
        self.share = self._next(k)  # each cluster's share of the points
        self.own_share = self._next(1)  # token j < k: that of cluster j
        self.reciprocal = self._next(1)  # about 1 / own_share
        self.inverse = self._next(k)  # token j < k: reciprocal · e_j
        # ... for the Maximisation step ...
        self.copy = self._next(k * d)  # x - μ_1, ..., x - μ_k
        self.distance = self._next(k)  # about ‖x - μ_a‖, or its square
        # ... and for the exact one.
        self.inner = self._next(k)  # 2⟨μ_a, x⟩
        self.gram = self._next(k)  # token j < k: ⟨μ_a, μ_j⟩
        self.square = self._next(1)  # token j < k: ‖μ_j‖²

    def _next(self, size: int) -> slice:
        span = slice(self.width, self.width + size)
        self.width += size
        return span

    @property
    def of_center(self) -> slice:
        """The markers of the k tokens that hold centres."""
        return slice(self.marker.start, self.marker.start + self.k)

    def copy_of(self, a: int) -> slice:
        """The copy of x from which centre a is subtracted."""
        start = self.copy.start + a * self.d
        return slice(start, start + self.d)

    def reading(self, span: slice, scale: float = 1.0) -> Tensor:
        """(size of span, D): the matrix that reads these directions of a token."""
        matrix = torch.zeros(span.stop - span.start, self.width, dtype=torch.float64)
        matrix[:, span] = scale * torch.eye(span.stop - span.start, dtype=torch.float64)
        return matrix

    def moving(self, source: slice, target: slice, scale: float = 1.0) -> Tensor:
        """(D, D): the matrix that reads ``source`` and writes it, scaled, to ``target``."""
        return self.reading(target).mT @ self.reading(source, scale)


def context(x_ND: Tensor, centers_KD: Tensor, labels_N: Tensor) -> Tensor:
    """H of (4) with tokens as rows, (N, D): points, start centres and start assignment."""
    n, d = x_ND.shape
    k = len(centers_KD)
    rows = Rows(d, k)
    if n < max(k, d, 2):
        raise ValueError(
            f"The matrix H marks its first max(k, d) = {max(k, d)} tokens, so it needs at least as many points "
            f"(and 2), got {n}. Use more points, fewer clusters or fewer dimensions."
        )
    h = torch.zeros(n, rows.width, dtype=x_ND.dtype, device=x_ND.device)
    h[:, rows.x] = x_ND
    h[:k, rows.center] = centers_KD
    h[torch.arange(n), rows.label.start + labels_N] = 1.0
    h[: max(k, d), rows.marker] = torch.eye(max(k, d), dtype=h.dtype, device=h.device)
    h[:, rows.one] = 1.0
    return h
