"""The literal engine: the transformer of Clarkson et al. (2025) with all its tokens and matrices, layer by layer.

A layer takes O(n²) time. The engine is meant for inspection and proofs. ``layers`` is the bare network with the
behaviour of the paper:

* A point that is equally far from two centres is assigned (½, ½). The limiting softmax of the decoder attends only to
  points with label 1, so the point is missing from both means.
* Equal points have equal labels, so their self-attention still cancels.
* A cluster without points has equal scores for all points, so its centre moves to the mean of all points.

``Literal`` is the engine behind the estimators. Its tokens are passed from layer to layer as the network computes them.
Ties go to the lowest index and empty clusters are refilled between layers, as in every other engine. Only a refill
changes tokens from outside the network.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from coterie.attention import Limiting, Normaliser
from coterie.kmeans import iteration
from coterie.kmeans.algorithm import Algorithm
from coterie.kmeans.iteration import Centers, OnIteration, Result
from coterie.kmeans.member_weights import thresholds
from coterie.kmeans.transformer import Layer, unit
from coterie.kmeans.weights import Stream, layer

MAX_POINTS = 20_000


class LayerOutput(NamedTuple):
    """The output of one layer: the centres (k, d), and how much each point belongs to each cluster (n, k)."""

    centers: np.ndarray
    assignments: np.ndarray


def layers(
    algorithm: Algorithm,
    X: np.ndarray,
    centers: np.ndarray,
    n_layers: int,
    override: dict[str, Normaliser] | None = None,
    changed: Callable[[Layer], Layer] = lambda built: built,
) -> Iterator[LayerOutput]:
    """The bare network on arrays, layer by layer. All layers share their weights, which ``changed`` may replace."""
    x, c = torch.as_tensor(np.array(X)), torch.as_tensor(np.array(centers))
    stream = Stream(algorithm.row, x.shape[1], c.shape[0])
    with torch.no_grad():
        built = changed(layer(algorithm, x, c, override))
        points, middle = stream.embed_points(x), stream.embed_centers(c)
        for _ in range(n_layers):
            points, middle = built(points, middle)
            yield LayerOutput(stream.centers(middle).numpy(), stream.assignments(points).numpy())


@dataclass(frozen=True)
class Encoded:
    """The tokens of the encoder after the first half of a layer."""

    points: Tensor
    assignments: Tensor
    labels: Tensor
    objective: float
    moved: float | None


class Literal:
    """An algorithm as an engine: the tokens of the network, and one layer that is applied to them repeatedly.

    Equal rows are represented by one token with a weight, so that they are treated alike regardless of the rounding of
    matrix products. Every row is a token if centres are drawn, since each has its own noise, and if sizes are bounded,
    since equal rows may have different labels. Trimming is always per cluster, as in the network of the paper.
    """

    def __init__(self, X: np.ndarray, centers: np.ndarray, algorithm: Algorithm, sample_weight=None):
        weight = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        each = algorithm.draws or algorithm.variant.sized
        first, inverse = (np.arange(len(X)), np.arange(len(X))) if each else _distinct(X)
        self.inverse = torch.from_numpy(inverse)
        self.x = torch.as_tensor(np.array(X)[first])
        self.weight = torch.as_tensor(np.bincount(inverse, weight), dtype=self.x.dtype)
        c = torch.as_tensor(np.array(centers)).to(self.x)
        self.algorithm = replace(algorithm, per_cluster=True)
        self.labels_decide = algorithm.labels_decide
        self.stream = Stream(algorithm.row, self.x.shape[1], c.shape[0])
        ties = {"encoder_cross": Limiting(ties="first")} if algorithm.variant.points == "limiting" else {}
        self.layer = layer(algorithm, self.x, c, override=dict(ties))
        self.points = self.stream.embed_points(self.x)
        self.middle = self.stream.embed_centers(c)
        self.labels: Tensor | None = None
        self.trajectory: list[LayerOutput] = []

    def state(self) -> Centers:
        """The centres that the decoder's tokens stand for, and equal mixing weights where they are estimated."""
        places = self.stream.centers(self.middle)
        k = len(places)
        return Centers(places, torch.full((k,), 1 / k).to(places) if self.algorithm.mixing_weights else None)

    def e_step(self, state: Centers) -> Encoded:
        """The encoder half of a layer; the centres are in the decoder's tokens, which ``state`` describes."""
        points = self.layer.encode(self.points, self.middle, state.weights)
        assignments = self.stream.assignments(points)
        objective = float((assignments * self._costs(state.places) * self.weight.unsqueeze(-1)).sum())
        labels, before = assignments.argmax(-1), self.labels
        self.labels = labels
        moved = None if before is None else float((labels != before).double().mean())
        return Encoded(points, assignments, labels, objective, moved)

    def m_step(self, state: Centers, encoded: Encoded) -> Centers:
        self.points = encoded.points
        self.middle = self.layer.decode(encoded.points, self.middle, self.weight)
        counts = (encoded.assignments * self.weight.unsqueeze(-1)).sum(0)
        if not self.algorithm.variant.soft and bool((counts <= 0).any()):
            self._refill(state.places, encoded.labels, counts)
        places = self.stream.centers(self.middle)
        self.trajectory.append(LayerOutput(places.numpy().copy(), encoded.assignments[self.inverse].numpy()))
        return Centers(places, None if state.weights is None else counts / counts.sum())

    def _costs(self, places: Tensor) -> Tensor:
        """The costs (n, k): ‖x - c‖², or 1 - ⟨x, c⟩ = ‖x - c‖²/2 on the sphere."""
        sq = (self.x.unsqueeze(1) - places.unsqueeze(0)).square().sum(-1)
        return sq / 2 if self.algorithm.spherical else sq

    def trimmed(self, state: Centers, encoded: Encoded) -> tuple[Tensor, float, Tensor | None]:
        """Labels with -1 for trimmed points, the objective of the other points, and the largest costs kept."""
        if self.algorithm.variant.centers != "norm-max":
            return encoded.labels[self.inverse], encoded.objective, None
        labels, weight = encoded.labels, self.weight.double()
        cost = self._costs(state.places).gather(1, labels.unsqueeze(1)).squeeze(1).double()
        limits = thresholds(self.algorithm, labels, cost, weight, len(state.places))
        inside = cost <= limits[labels]
        trimmed = torch.where(inside, labels, -1)[self.inverse]
        return trimmed, float((weight * inside * cost).sum()), limits

    def _refill(self, old: Tensor, labels: Tensor, counts: Tensor) -> None:
        """Write new centres into the tokens of empty clusters, and of the clusters that lost rows to them."""
        before, weight = counts.double().numpy(), self.weight.double()
        after = before.copy()
        sums = self.stream.centers(self.middle).double().numpy() * before[:, None]
        if self.algorithm.hard_means:  # the network left means of all points in the empty clusters: take the true sums
            one_hot = torch.nn.functional.one_hot(labels, len(old)).double()
            sums = ((one_hot * weight.unsqueeze(-1)).mT @ self.x.double()).numpy()
        cost = (self.x - old[labels]).square().sum(-1).double()
        if self.algorithm.variant.centers == "norm-max":  # a point that was trimmed is no place for a centre
            limits = thresholds(self.algorithm, labels, cost, weight, len(old))
            labels = torch.where(cost <= limits[labels], labels, -1)
        iteration.refill_empty(
            self.algorithm, self.x.numpy(), labels.numpy(), cost.numpy(), sums, after, weight.numpy()
        )
        changed = torch.from_numpy((after != before) | (after <= 0))
        filled = torch.from_numpy(sums / np.where(after > 0, after, 1.0)[:, None])
        filled = torch.where(torch.from_numpy(after > 0).unsqueeze(-1), filled, old.double())
        filled = (unit(filled) if self.algorithm.spherical else filled).to(self.x.dtype)
        self.middle = torch.where(changed.unsqueeze(-1), self.stream.embed_centers(filled), self.middle)


def _distinct(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first of every group of equal rows, in their order, and the group of every row."""
    _, first, inverse = np.unique(X, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return first[order], np.argsort(order)[inverse.reshape(-1)]


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
    """Fit with the actual matrices. The result contains the whole trajectory, one ``LayerOutput`` per layer."""
    if len(X) > MAX_POINTS:
        raise ValueError(
            f"engine='literal' computes the attention between all pairs of the {len(X):,} rows and takes at most "
            f"{MAX_POINTS:,} rows. Use engine='auto' or engine='fused', which give the same result."
        )
    literal = Literal(X, centers, algorithm, sample_weight)
    with torch.no_grad():
        ran = iteration.iterate(literal, literal.state(), max_iter=max_iter, tol=tol, on_iteration=on_iteration)
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
        prices=getattr(literal.layer.encoder_cross.normaliser, "prices", None),
        trajectory=literal.trajectory,
    )
