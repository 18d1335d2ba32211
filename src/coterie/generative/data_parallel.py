"""One mixture fitted by several processes, started by torch's launcher: each computes a part of every batch and block.

All have the same rows and draw the same random numbers, so only gradients and bounds are exchanged. Without a process
group, every function here is the identity.
"""

from collections.abc import Iterable

import torch
import torch.distributed as dist
from torch import Tensor, nn


def _place() -> tuple[int, int]:
    """Rank of this process and number of processes."""
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    return 0, 1


def is_first() -> bool:
    return _place()[0] == 0


def own_slice(length: int) -> slice:
    rank, size = _place()
    return slice(length * rank // size, length * (rank + 1) // size)


def own_share(length: int) -> range:
    rank, size = _place()
    return range(rank, length, size)


def total(values: Tensor) -> Tensor:
    """The sum over processes."""
    if _place()[1] > 1:
        dist.all_reduce(values)
    return values


def add_gradients(parameters: Iterable[nn.Parameter]) -> None:
    """Replace every gradient by its sum over the processes, in one exchange."""
    if _place()[1] == 1:
        return
    gradients = [p.grad for p in parameters if p.grad is not None]
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    dist.all_reduce(flat)
    for gradient, summed in zip(gradients, flat.split([gradient.numel() for gradient in gradients])):
        gradient.copy_(summed.view_as(gradient))
