"""The family on Dask: the same step on blocks, statistics summed as a tree, centres the only state that travels.

Nothing here imports dask before a Dask object comes in.
"""

from coterie.distributed.checkpointing import checkpoint

__all__ = ["checkpoint", "is_dask"]


def is_dask(X) -> bool:
    """Whether X is a Dask collection; asks without importing dask."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr")
