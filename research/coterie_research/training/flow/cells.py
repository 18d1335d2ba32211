"""Points of one cell of a grid as one weighted token: attention is quadratic in the number of points.

Shapes: B data sets, N points, D dimensions, M cells.
"""

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

CELL = 0.5  # side of the cells, in noise standard deviations


def grid_cells(points_ND: Tensor, side: float) -> tuple[Tensor, Tensor, Tensor]:
    """Means (M, D) and counts (M,) of the points in the cells of a grid that are not empty, and the cell of each point.

    The grid begins at the mean of the points, so that it moves with them.
    """
    centred_ND = points_ND - points_ND.mean(0)
    place_ND = centred_ND / max(side, torch.finfo(points_ND.dtype).tiny)
    _, cell_N, counts_M = torch.unique(place_ND.round(), dim=0, return_inverse=True, return_counts=True)
    counts_M = counts_M.to(points_ND.dtype)
    sums_MD = points_ND.new_zeros(len(counts_M), points_ND.shape[1]).index_add_(0, cell_N, points_ND)
    return sums_MD / counts_M[:, None], counts_M, cell_N


def in_cells(points_BND: Tensor, var_B: Tensor) -> tuple[Tensor, Tensor]:
    """Means (B, M, D) and shares (B, M) of cells of half the noise's standard deviation; padding has no share."""
    found = [grid_cells(points, side) for points, side in zip(points_BND, (CELL * var_B.sqrt()).tolist())]
    means_BMD = pad_sequence([means for means, _, _ in found], batch_first=True)
    return means_BMD, pad_sequence([n for _, n, _ in found], batch_first=True) / points_BND.shape[1]
