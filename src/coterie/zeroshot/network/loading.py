"""Networks of both generations for inference: by numpy on the CPU, by torch on other devices."""

import os
from types import ModuleType
from typing import Any

import numpy as np

from coterie import checkpoints
from coterie.zeroshot.features.description import Description
from coterie.zeroshot.network import generation_one
from coterie.zeroshot.network import two_passes as model
from coterie.zeroshot.network.interface import Answer, Network
from coterie.zeroshot.network.without_torch import Arrays, Weights
from coterie.zeroshot.partitions.candidates import flattened


def load(network: str | os.PathLike, device: str = "cpu") -> Network:
    """A network by its name or path. On the CPU it answers by numpy, so that torch need not be imported."""
    if device != "cpu":
        return checkpoints.load(network, kind="zeroshot", device=device)
    return checkpoints.load_arrays(network, kind="zeroshot")


def build(config: dict[str, Any], arrays: dict[str, np.ndarray]) -> "ArrayNetwork":
    """A network from the settings on its card and its weights, which must fit: two points are read as a test."""
    network = ArrayNetwork(config, arrays)
    for name, size in network.generation.sizes(network.weights).items():
        if getattr(network.config, name) != size:
            raise ValueError(f"{name} is {size} in the weights, not {getattr(network.config, name)}")
    network.answer([network.describe(np.array([[0.0], [1.0]]))], np.random.default_rng(0))
    return network


class ArrayNetwork:
    """A network whose weights are numpy arrays."""

    def __init__(self, config: dict[str, Any], arrays: dict[str, np.ndarray]):
        self.config, self.generation = configured(config)
        self.weights = Weights(arrays)
        self.head = flattened(arrays)

    def describe(self, x_ND: np.ndarray) -> Description:
        return self.generation.describe(x_ND)

    def answer(self, seen: list[Description], rng: np.random.Generator) -> Answer:
        return self.generation.forward(Arrays(), self.weights, seen, rng)[-1]

    def clusters_proba(self, answer: Answer) -> np.ndarray:
        return self.generation.clusters_proba(answer)


def configured(config: dict[str, Any]) -> tuple[Any, ModuleType]:
    """The settings on a card, and the module of the generation that has such settings."""
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in config.items()
    }
    if "n_stretches" in config:
        return generation_one.ZeroShotConfig(**values), generation_one
    return model.TwoPassConfig(**values), model
