"""The literal engine: the transformer of the paper with all its tokens and matrices, layer by layer.

A layer takes O(n²) time. The engine is meant for inspection and proofs. ``layers`` is the bare network with the paper's
own behaviour:

* a point exactly between two centres gets (½, ½). The decoder's limiting softmax then attends only to points with
  label 1, so the point drops out of both updates;
* equal points carry equal labels, so their self-attention still cancels;
* a cluster that no point chose has equal scores for all points, so its centre jumps to the mean of all of them.

``Literal`` is the engine behind estimators: ties go to the lowest index and empty clusters are refilled between layers,
as in every other engine.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from coterie.attention import Limiting, Normaliser
from coterie.kmeans import engine
from coterie.kmeans.algorithm import Algorithm
from coterie.kmeans.engine import Centers, OnIteration, Result
from coterie.kmeans.member_weights import thresholds
from coterie.kmeans.transformer import EncoderDecoder, unit
from coterie.kmeans.weights import Stream, layer, rotated

MAX_POINTS = 20_000


class LayerOutput(NamedTuple):
    """The output of one layer: the centres (k, d), and how much each point belongs to each cluster (n, k)."""

    centers: np.ndarray
    assignments: np.ndarray


def network(
    algorithm: Algorithm,
    x: Tensor,
    c: Tensor,
    n_layers: int,
    *,
    rotation: Tensor | None = None,
    override: dict[str, Normaliser] | None = None,
) -> EncoderDecoder:
    """The network that runs ``n_layers`` iterations of an algorithm; all layers share their weights."""
    built = layer(algorithm, x, c, override)
    if rotation is not None:
        built = rotated(built, rotation)
    return EncoderDecoder([built] * n_layers)


def layers(algorithm: Algorithm, X: np.ndarray, centers: np.ndarray, n_layers: int, **options) -> Iterator[LayerOutput]:
    """The bare network on arrays, layer by layer. ``options``: ``rotation`` and ``override`` of ``network``."""
    x, c = torch.as_tensor(np.array(X)), torch.as_tensor(np.array(centers))
    stream = Stream(algorithm.row, x.shape[1], c.shape[0])
    with torch.no_grad():
        net = network(algorithm, x, c, n_layers, **options)
        for points, middle in net.layers(stream.embed_points(x), stream.embed_centers(c)):
            yield LayerOutput(stream.centers(middle).numpy(), stream.assignments(points).numpy())


@dataclass(frozen=True)
class Encoded:
    """Encoder tokens after a layer's first half."""

    tokens: Tensor
    assignments: Tensor
    labels: Tensor
    objective: float
    moved: float | None


class Literal:
    """An algorithm as an engine. It keeps the encoder's tokens, whose old labels self-attention cancels.

    Trimming is always per cluster, as in the paper's network.
    """

    def __init__(self, X: np.ndarray, centers: np.ndarray, algorithm: Algorithm, sample_weight=None):
        self.x = torch.as_tensor(np.array(X))
        c = torch.as_tensor(np.array(centers)).to(self.x)
        self.algorithm = algorithm
        self.labels_decide = algorithm.labels_decide
        self.stream = Stream(algorithm.row, self.x.shape[1], c.shape[0])
        first = {} if algorithm.variant.soft else {"encoder_cross": Limiting(ties="first")}
        self.layer = layer(algorithm, self.x, c, override=dict(first))
        self.weight = torch.ones(len(self.x), dtype=self.x.dtype)
        if sample_weight is not None:
            self.weight = torch.as_tensor(np.asarray(sample_weight), dtype=self.x.dtype)
        self.tokens = self.stream.embed_points(self.x)
        self.labels: Tensor | None = None
        self.trajectory: list[LayerOutput] = []

    def e_step(self, state: Centers) -> Encoded:
        # A refilled centre is put into the decoder's tokens here; otherwise embedding changes nothing.
        tokens = self.layer.encode(self.tokens, self.stream.embed_centers(state.places), state.weights)
        assignments = self.stream.assignments(tokens)
        objective = float((assignments * self._costs(state.places) * self.weight.unsqueeze(-1)).sum())
        labels, before = assignments.argmax(-1), self.labels
        self.labels = labels
        moved = None if before is None else float((labels != before).double().mean())
        return Encoded(tokens, assignments, labels, objective, moved)

    def m_step(self, state: Centers, encoded: Encoded) -> Centers:
        self.tokens = encoded.tokens
        decoded = self.layer.decode(encoded.tokens, self.stream.embed_centers(state.places), self.weight)
        places = self.stream.centers(decoded)
        counts = (encoded.assignments * self.weight.unsqueeze(-1)).sum(0)
        if not self.algorithm.variant.soft and bool((counts <= 0).any()):
            places = self._refilled(state.places, encoded.labels, places, counts)
        self.trajectory.append(LayerOutput(places.numpy().copy(), encoded.assignments.numpy().copy()))
        return Centers(places, None if state.weights is None else counts / counts.sum())

    def _costs(self, places: Tensor) -> Tensor:
        """(n, k): ‖x - c‖², or 1 - ⟨x, c⟩ = ‖x - c‖²/2 on the sphere."""
        sq = (self.x.unsqueeze(1) - places.unsqueeze(0)).square().sum(-1)
        return sq / 2 if self.algorithm.spherical else sq

    def trimmed(self, state: Centers, encoded: Encoded) -> tuple[Tensor, float, Tensor | None]:
        """Labels with -1 for trimmed points, the objective of the others, and the largest costs that were kept."""
        if self.algorithm.variant.centers != "norm-max":
            return encoded.labels, encoded.objective, None
        labels, weight = encoded.labels, self.weight.double()
        cost = self._costs(state.places).gather(1, labels.unsqueeze(1)).squeeze(1).double()
        limits = thresholds(replace(self.algorithm, per_cluster=True), labels, cost, weight, len(state.places))
        inside = cost <= limits[labels]
        return torch.where(inside, labels, -1), float((weight * inside * cost).sum()), limits

    def _refilled(self, old: Tensor, labels: Tensor, places: Tensor, counts: Tensor) -> Tensor:
        new_counts = counts.double().numpy().copy()
        sums = places.double().numpy() * new_counts[:, None]
        if self.algorithm.hard_means:  # the network left means of all points in the empty clusters: take the true sums
            one_hot = torch.nn.functional.one_hot(labels, len(old)).double()
            sums = ((one_hot * self.weight.double().unsqueeze(-1)).mT @ self.x.double()).numpy()
        cost = (self.x - old[labels]).square().sum(-1).double()
        weight = self.weight.double()
        if self.algorithm.variant.centers == "norm-max":  # a point that was trimmed is no place for a centre
            limits = thresholds(replace(self.algorithm, per_cluster=True), labels, cost, weight, len(old))
            labels = torch.where(cost <= limits[labels], labels, -1)
        engine.refill_empty(
            self.algorithm, self.x.numpy(), labels.numpy(), cost.numpy(), sums, new_counts, weight.numpy()
        )
        filled = torch.from_numpy(sums / np.where(new_counts > 0, new_counts, 1.0)[:, None])
        filled = torch.where(torch.from_numpy(new_counts > 0).unsqueeze(-1), filled, old.double())
        return (unit(filled) if self.algorithm.spherical else filled).to(self.x.dtype)


def run(
    X: np.ndarray,
    centers: np.ndarray,
    algorithm: Algorithm,
    *,
    sample_weight=None,
    max_iter: int = 300,
    tol: float = 0.0,
    on_iteration: OnIteration | None = None,
) -> Result:
    """Fit with the real matrices; the result carries the whole trajectory, one ``LayerOutput`` per layer."""
    if len(X) > MAX_POINTS:
        raise ValueError(
            f"engine='literal' computes the attention between all pairs of the {len(X):,} rows and takes at most "
            f"{MAX_POINTS:,} rows. Use engine='auto' or engine='fused', which give the same result."
        )
    literal = Literal(X, centers, algorithm, sample_weight)
    places = torch.as_tensor(np.array(centers)).to(literal.x)
    weights = torch.full((len(places),), 1 / len(places)).to(places) if algorithm.mixing_weights else None
    with torch.no_grad():
        ran = engine.iterate(literal, Centers(places, weights), max_iter=max_iter, tol=tol, on_iteration=on_iteration)
        last = literal.e_step(ran.state)
        labels, inertia, limits = literal.trimmed(ran.state, last)
    return Result(
        centers=ran.state.places.numpy(),
        labels=labels.numpy().astype(np.int32),
        inertia=inertia,
        n_iter=ran.n_iter,
        converged=ran.converged,
        gamma=algorithm.gamma,
        weights=None if ran.state.weights is None else ran.state.weights.double().numpy(),
        limits=None if limits is None else limits.numpy(),
        trajectory=literal.trajectory,
    )
