"""Starting centres for batches of data sets: k-means++ and a few Lloyd iterations.

The starts of the estimators take one table. These functions take many small data sets at once, as training needs.
"""

import torch
from torch import Tensor


def sq_to_centers(x_BND: Tensor, centers_BKD: Tensor) -> Tensor:
    """Squared distances (B, N, K), computed relative to the mean of the centres to reduce cancellation."""
    origin_B1D = centers_BKD.mean(1, keepdim=True)
    x_BND, centers_BKD = x_BND - origin_B1D, centers_BKD - origin_B1D
    cross_BNK = x_BND @ centers_BKD.mT
    return (x_BND.square().sum(-1)[..., None] - 2 * cross_BNK + centers_BKD.square().sum(-1)[:, None]).clamp_min(0)


def plus_plus(x_BND: Tensor, n_clusters: int, generator: torch.Generator, *, tries: int = 1) -> Tensor:
    """k-means++: each further centre is a row drawn by its squared distance to the nearest one so far.

    With more than one of ``tries``, the greedy version: the best of that many drawn rows is taken each time.
    """
    B, N, D = x_BND.shape
    row_B = torch.randint(N, (B,), generator=generator)
    sq_BN = torch.full((B, N), torch.inf, dtype=x_BND.dtype)
    centers = []
    for number in range(n_clusters):
        if number:
            mass_BN = torch.where(sq_BN.sum(1, keepdim=True) > 0, sq_BN, 1.0)
            drawn_BT = torch.multinomial(mass_BN, tries, replacement=True, generator=generator)
            row_B = drawn_BT[:, 0]
            if tries > 1:
                tried_BTD = x_BND.gather(1, drawn_BT[..., None].expand(-1, -1, D))
                left_BT = torch.minimum(sq_BN[..., None], sq_to_centers(x_BND, tried_BTD)).sum(1)
                row_B = drawn_BT.gather(1, left_BT.argmin(1, keepdim=True)).squeeze(1)
        center_B1D = x_BND.gather(1, row_B[:, None, None].expand(-1, 1, D))
        centers.append(center_B1D)
        sq_BN = torch.minimum(sq_BN, (x_BND - center_B1D).square().sum(-1))
    return torch.cat(centers, 1)


def lloyd_step(x_BND: Tensor, centers_BKD: Tensor) -> Tensor:
    """The mean of the rows nearest to each centre. The centre of an empty cluster does not move."""
    nearest_BN = sq_to_centers(x_BND, centers_BKD).argmin(-1)
    own_BNK = torch.nn.functional.one_hot(nearest_BN, centers_BKD.shape[1]).to(x_BND)
    count_BK1 = own_BNK.sum(1)[..., None]
    return torch.where(count_BK1 > 0, own_BNK.mT @ x_BND / count_BK1.clamp_min(1), centers_BKD)


def lloyd(x_BND: Tensor, centers_BKD: Tensor, n_iter: int) -> Tensor:
    """The centres after ``n_iter`` iterations of Lloyd's algorithm."""
    for _ in range(n_iter):
        centers_BKD = lloyd_step(x_BND, centers_BKD)
    return centers_BKD
