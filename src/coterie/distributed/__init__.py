"""Fits on Dask collections: the blocks are summed in a tree, and only centres and sums are communicated.

Importing this module does not import dask.
"""

from coterie.distributed.checkpointing import checkpoint

__all__ = ["checkpoint", "is_dask"]


def is_dask(X) -> bool:
    """Whether X is a Dask collection. This does not import dask."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr")
