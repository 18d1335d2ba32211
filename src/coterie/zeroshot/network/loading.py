"""Networks for inference: by numpy on the CPU, by torch on other devices."""

import os
from types import ModuleType
from typing import Any

import numpy as np

from coterie import checkpoints
from coterie.zeroshot.features.description import Description
from coterie.zeroshot.network import two_passes
from coterie.zeroshot.network.head import flattened
from coterie.zeroshot.network.interface import Answer, Network
from coterie.zeroshot.network.numpy_operations import Arrays, Weights


def load(network: str | os.PathLike, device: str = "cpu") -> Network:
    """A network by its name or path. On the CPU it answers by numpy, so that torch need not be imported."""
    return checkpoints.load_arrays(network, kind="zeroshot", device=device)


def build(config: dict[str, Any], arrays: dict[str, np.ndarray], device: str) -> "ArrayNetwork":
    """A network from the settings on its card and its weights, which must fit: two points are read as a test."""
    return checked(ArrayNetwork(two_passes, two_passes.TwoPassConfig.from_card(config), arrays, device))


class ArrayNetwork:
    """A network for inference: numpy arrays on the device "cpu", torch's tensors on others.

    ``architecture`` is a module like :mod:`coterie.zeroshot.network.two_passes`, with the functions ``describe``,
    ``forward``, ``clusters_proba`` and ``sizes``.
    """

    def __init__(self, architecture: ModuleType, config: Any, arrays: dict[str, np.ndarray], device: str = "cpu"):
        self.architecture, self.config = architecture, config
        self._xp = _operations(device)
        self.weights = Weights({name: self._xp.array(weight.copy()) for name, weight in arrays.items()})
        self.head = flattened(arrays)

    def describe(self, x_ND: np.ndarray) -> Description:
        return self.architecture.describe(x_ND)

    def answer(self, seen: list[Description], rng: np.random.Generator) -> Answer:
        return Answer(*map(self._xp.numpy, self.architecture.forward(self._xp, self.weights, seen, rng)[-1]))

    def clusters_proba(self, answer: Answer) -> np.ndarray:
        return self.architecture.clusters_proba(answer)


def _operations(device: str) -> Any:
    if device == "cpu":
        return Arrays()
    import torch

    from coterie.zeroshot.network.torch_operations import Tensors

    return Tensors(torch.device(device))


def checked(network: ArrayNetwork) -> ArrayNetwork:
    """Raise an error unless the weights have the sizes of the settings and answer for two points."""
    for name, size in network.architecture.sizes(network.weights).items():
        if getattr(network.config, name) != size:
            raise ValueError(f"{name} is {size} in the weights, not {getattr(network.config, name)}")
    network.answer([network.describe(np.array([[0.0], [1.0]]))], np.random.default_rng(0))
    return network
