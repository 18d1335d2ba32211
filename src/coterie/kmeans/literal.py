"""The literal engine: the real transformer of document 002, every token, every matrix, layer by layer.

It is O(n²) a layer, to look at and to prove with. ``layers`` is the bare network with the document's own behaviour:

* a point exactly between two centres gets (½, ½); the decoder's limiting softmax then looks only at points with
  label 1, so the point drops out of both updates;
* equal points carry equal labels, so their self-attention still cancels;
* a cluster that no point chose has equal scores for all points, so its centre jumps to the mean of all of them.

``run`` is the engine behind estimators: ties go to the lowest index and empty clusters are refilled between layers,
as in every other engine.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from coterie import em
from coterie.attention import Limiting, Normaliser
from coterie.kmeans import engine, member_weights
from coterie.kmeans.engine import Centers
from coterie.kmeans.family import Row
from coterie.kmeans.refill import refill
from coterie.kmeans.result import Result
from coterie.kmeans.transformer import EncoderDecoder, unit
from coterie.kmeans.weights import Settings, Stream, layer, rotated

MAX_POINTS = 20_000


class LayerOutput(NamedTuple):
    """What one layer says: centres (k, d) after it, and how much each point belongs to each cluster, (n, k)."""

    centers: np.ndarray
    assignments: np.ndarray


def network(
    row: Row,
    x: Tensor,
    c: Tensor,
    n_layers: int,
    settings: Settings | None = None,
    *,
    rotation: Tensor | None = None,
    override: dict[str, Normaliser] | None = None,
) -> EncoderDecoder:
    """The network that runs ``n_layers`` iterations of a row; all layers share their weights."""
    built = layer(row, x, c, settings or Settings(), override)
    if rotation is not None:
        built = rotated(built, rotation)
    return EncoderDecoder([built] * n_layers)


def layers(
    row: Row,
    X: np.ndarray,
    centers: np.ndarray,
    n_layers: int,
    settings: Settings | None = None,
    **kind,
) -> Iterator[LayerOutput]:
    """The bare network on arrays, layer by layer. ``kind``: ``rotation`` and ``override`` of ``network``."""
    x, c = torch.as_tensor(np.array(X)), torch.as_tensor(np.array(centers))
    stream = Stream(row, x.shape[1], c.shape[0])
    with torch.no_grad():
        net = network(row, x, c, n_layers, settings, **kind)
        for points, middle in net.layers(stream.embed_points(x), stream.embed_centers(c)):
            yield LayerOutput(stream.centers(middle).numpy(), stream.assignments(points).numpy())


@dataclass(frozen=True)
class Encoded:
    """Encoder tokens after a layer's first half."""

    tokens: Tensor
    assignments: Tensor
    labels: Tensor
    objective: float


class Literal:
    """A row of the table as an engine. It keeps the encoder's tokens, whose old labels self-attention cancels."""

    labels_decide: bool

    def __init__(self, X: np.ndarray, centers: np.ndarray, row: Row, settings: Settings, sample_weight=None):
        self.x = torch.as_tensor(np.array(X))
        c = torch.as_tensor(np.array(centers)).to(self.x)
        self.row, self.settings = row, settings
        self.stream = Stream(row, self.x.shape[1], c.shape[0])
        first = {"encoder_cross": Limiting(ties="first")} if row.variant.points == "limiting" else {}
        self.layer = layer(row, self.x, c, settings, override=dict(first))
        self.weight = torch.ones(len(self.x), dtype=self.x.dtype)
        if sample_weight is not None:
            self.weight = torch.as_tensor(np.asarray(sample_weight), dtype=self.x.dtype)
        self.tokens = self.stream.embed_points(self.x)
        self.labels_decide = row.variant.centers == "limiting"
        self.trajectory: list[LayerOutput] = []

    def e_step(self, state: Centers) -> Encoded:
        # A refilled centre is put into the decoder's tokens here; otherwise embedding changes nothing.
        tokens = self.layer.encode(self.tokens, self.stream.embed_centers(state.places), state.weights)
        assignments = self.stream.assignments(tokens)
        cost = -self._scores(state.places)
        objective = float((assignments * cost * self.weight.unsqueeze(-1)).sum())
        return Encoded(tokens, assignments, assignments.argmax(-1), objective)

    def m_step(self, state: Centers, encoded: Encoded) -> Centers:
        self.tokens = encoded.tokens
        decoded = self.layer.decode(encoded.tokens, self.stream.embed_centers(state.places), self.weight)
        places = self.stream.centers(decoded)
        counts = (encoded.assignments * self.weight.unsqueeze(-1)).sum(0)
        if self.row.variant.points == "limiting" and bool((counts <= 0).any()):
            places = self._refilled(state.places, encoded.labels, places, counts)
        self.trajectory.append(LayerOutput(places.numpy().copy(), encoded.assignments.numpy().copy()))
        return Centers(places, None if state.weights is None else counts / counts.sum())

    def _scores(self, places: Tensor) -> Tensor:
        """(n, k): -‖x - c‖² or ⟨x, c⟩ - 1."""
        sq = (self.x.unsqueeze(1) - places.unsqueeze(0)).square().sum(-1)
        return -sq / 2 if self.row.form.spherical else -sq

    def _refilled(self, old: Tensor, labels: Tensor, places: Tensor, counts: Tensor) -> Tensor:
        plain = self.row.variant.centers == "limiting"
        new_counts = counts.double().numpy().copy()
        sums = places.double().numpy() * new_counts[:, None]
        if plain:  # the network left means of all points in the empty clusters: start from the true sums
            one_hot = torch.nn.functional.one_hot(labels, len(old)).double()
            sums = ((one_hot * self.weight.double().unsqueeze(-1)).mT @ self.x.double()).numpy()
        cost = (self.x - old[labels]).square().sum(-1).double()
        weight = self.weight.double()
        if self.row.variant.centers == "norm-max":  # a point that was trimmed is no place for a centre
            limits = member_weights.thresholds(labels, cost, weight, len(old), self.settings.keep, per_cluster=True)
            labels = torch.where(cost <= limits[labels], labels, -1)
        fill = refill if plain else engine.fill_empty
        fill(self.x.numpy(), labels.numpy(), cost.numpy(), sums, new_counts, weight.numpy())
        filled = torch.from_numpy(sums / np.where(new_counts > 0, new_counts, 1.0)[:, None])
        filled = torch.where(torch.from_numpy(new_counts > 0).unsqueeze(-1), filled, old.double())
        return (unit(filled) if self.row.form.spherical else filled).to(self.x.dtype)


def run(
    X: np.ndarray,
    centers: np.ndarray,
    row: Row,
    settings: Settings | None = None,
    *,
    sample_weight=None,
    max_iter: int = 300,
    tol: float = 0.0,
    on_iteration: Callable[[em.Iteration], Any] | None = None,
) -> Result:
    """Fit with the real matrices; the result carries the whole trajectory, a ``LayerOutput`` a layer."""
    if len(X) > MAX_POINTS:
        raise ValueError(
            f"engine='literal' computes the attention of all {len(X):,} rows to one another and takes at most "
            f"{MAX_POINTS:,}: use engine='fused' (any device) or engine='auto', which give the same result."
        )
    literal = Literal(X, centers, row, settings or Settings(), sample_weight)
    places = torch.as_tensor(np.array(centers)).to(literal.x)
    with torch.no_grad():
        state, expectation, ran = engine.run(literal, places, max_iter=max_iter, tol=tol, on_iteration=on_iteration)
    return engine.as_result(state, expectation, ran, literal.trajectory)
