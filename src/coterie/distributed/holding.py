"""Blocks that the workers keep in memory during a fit, so that files are read once and not in every pass."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from coterie.distributed.blocks import Blocks
from coterie.distributed.cluster import client, workers

SHARE = 0.25  # of the memory of all workers; Dask begins to write blocks to disk at 0.6


@contextmanager
def held(blocks: Blocks) -> Iterator[Blocks]:
    """The same blocks, kept by the workers of the cluster until the end if they fit into a quarter of its memory.

    Without a cluster, for blocks of unknown sizes and for larger tables, every pass computes or reads the blocks anew.
    """
    here = client()
    if here is None or not _fits(blocks, here):
        yield blocks
        return
    from distributed.client import futures_of

    rows = here.persist(list(blocks.rows), optimize_graph=False)
    try:
        yield replace(blocks, rows=rows, origin=blocks)
    finally:
        for future in futures_of(rows):
            future.release()


def _fits(blocks: Blocks, here) -> bool:
    if blocks.n_rows is None or here.status != "running":
        return False
    n_bytes = blocks.n_rows * blocks.layout.n_features * np.dtype(blocks.layout.dtype).itemsize
    limits = [worker.get("memory_limit") or 0 for worker in workers(here).values()]
    return all(limits) and n_bytes <= SHARE * sum(limits)
