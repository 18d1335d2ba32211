"""The operations on rows that the fused engine needs, for dense rows on any device and sparse rows on the CPU."""

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from coterie.kmeans import single_pass

# Scores in one block. On the CPU, the three or four arrays of this size that are alive at a time stay in the cache; on
# other devices, they need well under 100 MB.
CPU_SCORES = 2**17
BLOCK_SCORES = 2**22


def rows_of(X, device: str | torch.device = "cpu", n_threads: int | None = None) -> "DenseRows | SparseRows":
    if sparse.issparse(X):
        return SparseRows(X)
    if isinstance(X, Tensor):
        return DenseRows(X, n_threads)
    X = np.require(X, requirements=["C", "W"] if not X.flags.writeable else ["C"])  # torch wants writable memory
    return DenseRows(torch.from_numpy(X).to(device), n_threads)


def _block_list(n: int, d: int, k: int, scores: int = BLOCK_SCORES) -> list[slice]:
    size = max(256, scores // max(d, k, 1))
    return [slice(i, min(i + size, n)) for i in range(0, n, size)]


def _undecided(sq: Tensor, rounding: Tensor) -> Tensor:
    """The rows whose two smallest values, of squared distances (b, k), differ by no more than their rounding (b,)."""
    first, second = sq.topk(2, dim=-1, largest=False).values.unbind(-1)
    return torch.nonzero(second - first <= rounding).flatten()


class DenseRows:
    """X (n, d) as a tensor."""

    def __init__(self, x: Tensor, n_threads: int | None = None):
        self.x, self.n_threads = x, n_threads
        self.n, self.d = x.shape
        self.dtype, self.device = x.dtype, x.device

    def blocks(self, k: int) -> list[slice]:
        return _block_list(self.n, self.d, k, CPU_SCORES if self.device.type == "cpu" else BLOCK_SCORES)

    def dot(self, block: slice, centers: Tensor) -> Tensor:
        """The dot products (b, k) ⟨x, c⟩."""
        return self.x[block] @ centers.mT

    def sq_distances(self, block: slice, centers: Tensor) -> Tensor:
        """The squared distances (b, k) ‖x - c‖².

        On the CPU and without gradients, they are computed from differences in double precision.
        """
        if self.x.requires_grad or centers.requires_grad:
            return self._products(block, centers)[0]
        if self.device.type == "cpu":
            return torch.from_numpy(single_pass.sq_distances(self.x[block].numpy(), centers.numpy(), self.n_threads))
        return self.sq_distances_by_products(block, centers)

    def sq_distances_by_products(self, block: slice, centers: Tensor) -> Tensor:
        """The squared distances from one matrix product, as other devices compute them fastest.

        Rows for which rounding may decide between the two nearest centres are computed from differences in double
        precision, so that labels are those of the CPU.
        """
        expanded, rounding = self._products(block, centers)
        if len(centers) == 1:
            return expanded
        expanded = expanded.double()
        close = _undecided(expanded, rounding)
        for some in close.split(max(1, BLOCK_SCORES // (self.d * len(centers)))):
            apart = self.x[block][some].double()[:, None] - centers.double()
            expanded[some] = apart.square().sum(-1)
        return expanded

    def _products(self, block: slice, centers: Tensor) -> tuple[Tensor, Tensor]:
        """‖x‖² - 2⟨x, c⟩ + ‖c‖² (b, k) relative to the mean of the centres, which reduces cancellation, and a bound
        (b,) on the rounding error of a difference of two of them."""
        origin = centers.mean(0)
        x, c = self.x[block] - origin, centers - origin
        sq_x, sq_c = x.square().sum(-1, keepdim=True), c.square().sum(-1)
        half = torch.addmm(sq_c / 2, x, c.mT, alpha=-1)
        reach = (sq_x[:, 0].sqrt() + sq_c.max().sqrt()) ** 2
        return (sq_x + 2 * half).clamp(min=0.0), 4 * (self.d + 16) * torch.finfo(x.dtype).eps * reach

    def distances(self, block: slice, centers: Tensor) -> Tensor:
        """The distances (b, k) ‖x - c‖ from the differences, which is slower but accurate to the last digits."""
        return torch.cdist(self.x[block], centers, compute_mode="donot_use_mm_for_euclid_dist")

    def own_sq_distances(self, block: slice, centers: Tensor, labels: Tensor) -> Tensor:
        """The squared distance (b,) of each row to its own centre, from the differences."""
        return (self.x[block] - centers[labels]).square().sum(-1)

    def sums(self, block: slice, labels: Tensor, weight: Tensor, k: int) -> Tensor:
        """The weighted sums (k, d) of the rows of each label, as float64."""
        weighted = self.x[block].double() * weight.unsqueeze(-1)
        return weighted.new_zeros(k, self.d).index_add(0, labels, weighted)

    def mixed(self, block: slice, shares: Tensor) -> Tensor:
        """The sums (k, d) of the rows, weighted by memberships (b, k), as float64."""
        return shares.mT.double() @ self.x[block].double()

    def row(self, i: int) -> Tensor:
        return self.x[i]

    def numpy(self):
        return self.x.detach().cpu().numpy()


class SparseRows:
    """X (n, d) as a CSR matrix. Products are computed by scipy in double precision; centres and scores are dense."""

    def __init__(self, X):
        self.x = X
        self.n, self.d = X.shape
        self.dtype = torch.float32 if X.dtype == np.float32 else torch.float64
        self.device = torch.device("cpu")

    def blocks(self, k: int) -> list[slice]:
        return _block_list(self.n, 1, k)

    def dot(self, block: slice, centers: Tensor) -> Tensor:
        return torch.from_numpy(np.asarray(self.x[block].astype(np.float64) @ centers.double().numpy().T))

    def sq_distances(self, block: slice, centers: Tensor) -> Tensor:
        """The squared distances (b, k) as float64, computed as ‖x‖² - 2⟨x, c⟩ + ‖c‖².

        Rows for which rounding may decide between the two nearest centres are made dense, and their distances are
        computed from differences, so that labels are those of dense rows.
        """
        rows, centers = self.x[block].astype(np.float64), centers.double()
        sq_norms = np.asarray(rows.multiply(rows).sum(axis=1)).reshape(-1)
        sq_centers = centers.square().sum(-1)
        expanded = torch.from_numpy(sq_norms)[:, None] - 2 * self.dot(block, centers) + sq_centers
        if len(centers) > 1:
            n_terms = int(np.diff(rows.indptr).max(initial=0)) + 64
            reach = (np.sqrt(sq_norms) + float(sq_centers.max()) ** 0.5) ** 2
            close = _undecided(expanded, torch.from_numpy(4 * n_terms * np.finfo(np.float64).eps * reach)).numpy()
            size = max(1, BLOCK_SCORES // max(self.d, 1))
            for some in np.split(close, range(size, len(close), size)):
                exact = single_pass.sq_distances(rows[some].toarray(), centers.numpy())
                expanded[torch.from_numpy(some)] = torch.from_numpy(exact)
        return expanded.clamp(min=0.0)

    def distances(self, block: slice, centers: Tensor) -> Tensor:
        return self.sq_distances(block, centers).sqrt()

    def own_sq_distances(self, block: slice, centers: Tensor, labels: Tensor) -> Tensor:
        return self.sq_distances(block, centers).gather(1, labels.unsqueeze(1)).squeeze(1)

    def sums(self, block: slice, labels: Tensor, weight: Tensor, k: int) -> Tensor:
        n = len(labels)
        members = sparse.csr_matrix((weight.double().numpy(), (labels.numpy(), np.arange(n))), shape=(k, n))
        return torch.from_numpy((members @ self.x[block]).toarray().astype(np.float64))

    def mixed(self, block: slice, shares: Tensor) -> Tensor:
        return torch.from_numpy(np.asarray(self.x[block].T @ shares.double().numpy()).T.astype(np.float64))

    def row(self, i: int) -> Tensor:
        return torch.from_numpy(self.x[[i]].toarray()[0])

    def numpy(self):
        return self.x
