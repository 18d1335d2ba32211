"""Training of the measure flow: new mixtures in every step, a loss scaled by the SNR, and a curriculum of stages.

A stage determines the number of points, the number of layers and the number of tokens per step. The flow is a
differential equation with a shared vector field. Early stages therefore use few points and a few long steps, and later
stages refine both.

Where clusters overlap, many mixtures explain the points about as well as the most likely one. A sampler that starts at
the true parameters, which are themselves a draw from the posterior, gives others: the loss averaged over the draws has
the same mean as the distance to the true measure, and a gradient of much smaller variance.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor, nn

from coterie.mixtures.flow import FlowConfig, MeasureFlow
from coterie.mixtures.spherical_sampler import Sweeps
from coterie_research.metrics import own_center_error, squared_w2
from coterie_research.training.flow.cells import in_cells
from coterie_research.training.flow.prior import MixturePrior, Mixtures, sample_mixtures
from coterie_research.training.flow.targets import Atoms, posterior_samples
from coterie_research.training.run import TrainingRun

TARGETS = Sweeps(burn_in=16, apart=16, n_draws=8)


@dataclass(frozen=True)
class Stage:
    """Until step ``until``, data sets have a log-uniform number of points, and a step has ``tokens`` points in all.

    With ``cells``, the network reads points that are much nearer to one another than the noise as one weighted token
    (:mod:`coterie_research.training.flow.cells`), as the columns of the paper's tables are trained.
    """

    until: int
    n_points: tuple[int, int]
    n_layers: int
    tokens: int
    # distance to the centre of each point, or exact W2 to the true measure, or its mean over draws from the posterior
    loss: Literal["own", "w2", "posterior"] = "w2"
    cells: bool = False  # not with the loss "own"


@dataclass(frozen=True)
class FlowRun(TrainingRun):
    """Everything that defines a training run of a measure flow."""

    model: FlowConfig
    stages: tuple[Stage, ...]
    prior: MixturePrior = field(default_factory=MixturePrior)

    kind = "flow"
    drawn = "Gaussian mixtures, new in every step"

    def network(self) -> MeasureFlow:
        if (self.prior.stretch or self.prior.unequal) and any(stage.loss == "posterior" for stage in self.stages):
            raise ValueError(
                'The loss "posterior" samples spherical mixtures, but the prior has stretch or unequal above 0: use '
                'the loss "w2".'
            )
        return MeasureFlow(self.model)

    def matrices(self, network: MeasureFlow) -> Iterable[nn.Parameter]:
        return [p for p in network.blocks.parameters() if p.ndim == 2]

    def about(self) -> str:
        low, high = self.prior.dims
        dims = f"{low}" if low == high else f"{low} to {high}"
        layers = f"{self.model.n_layers} {'shared' if self.model.n_blocks == 1 else 'distinct'} layers"
        speed = "no flow" if self.model.regime == "none" else f"{self.model.regime} flow speed"
        ratios = "{:g} to {:g} dB".format(*self.prior.snr_db)
        return f"Measure flow for {dims} dimensions, {layers}, {speed}, {ratios}"

    def loss(self, model: nn.Module, step: int, generator: torch.Generator) -> tuple[Tensor, dict[str, float]]:
        stage = next((s for s in self.stages if step < s.until), self.stages[-1])
        low, high = (math.log(n) for n in stage.n_points)
        u = torch.rand((), generator=generator, device=generator.device).item()
        n_points = round(math.exp(low + (high - low) * u))
        data = sample_mixtures(self.prior, max(1, stage.tokens // n_points), n_points, generator)
        points, shares = in_cells(data.points_BND, data.var_B) if stage.cells else (data.points_BND, None)
        estimate = model(points, data.snr_db_B, dims_B=data.dims_B, n_layers=stage.n_layers, weights_BN=shares)
        if stage.loss == "own":
            error_B = own_center_error(estimate, data.own_centers_BND)
        elif stage.loss == "w2":
            error_B = squared_w2(estimate, data.centers_BKD, data.empirical_weights_BK, shares)
        else:
            error_B = expected_squared_w2(estimate, data, generator, shares)
        scaled_B = 10 ** (data.snr_db_B / 10) * error_B / data.dims_B * 2
        return scaled_B.mean(), {"log_error": error_B.detach().clamp_min(1e-12).log().mean().item()}


def expected_squared_w2(
    estimate_BND: Tensor, data: Mixtures, generator: torch.Generator, shares_BN: Tensor | None = None
) -> Tensor:
    """Squared W2, averaged over draws from the posterior by Markov chains that start at the true parameters."""
    truth = Atoms(data.centers_BKD, data.weights_BK)
    draws = posterior_samples(
        data.points_BND,
        truth,
        data.var_B,
        torch.ones_like(data.var_B),
        generator,
        TARGETS,
        origin_BD=torch.zeros_like(data.centers_BKD[:, 0]),
        dims_B=data.dims_B,
    )
    repeated_MND = estimate_BND.repeat(TARGETS.n_draws, 1, 1)
    shares_MN = None if shares_BN is None else shares_BN.repeat(TARGETS.n_draws, 1)
    error_M = squared_w2(repeated_MND, draws.centers_BKD.flatten(0, 1), draws.weights_BK.flatten(0, 1), shares_MN)
    return error_M.view(TARGETS.n_draws, -1).mean(0)


RUN = FlowRun
