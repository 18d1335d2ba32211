"""The canonical order of rows: by a 64-bit key of their values, independent of their position, storage and scale.

The upper 52 bits of a key are a hash of the values divided by 2^e, where e is the exponent of the row's largest value;
the lower 12 bits are e. If X is multiplied by a power of two, all keys grow by the same small number, so rows keep
their order and their equality, and a start of 2^s X is 2^s times the start of X.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from coterie import threads

BUCKET_BITS = 12
ROWS_PER_BLOCK = 16_384


STEP = np.uint64(0x9E3779B97F4A7C15)  # between the columns
MANTISSA = np.uint64(52)  # bits of a double below its exponent
EXPONENT = np.uint64(0x7FF)
HASH = np.uint64(0xFFFFFFFFFFFFF000)  # the bits of a key that are a hash
SMALL = 2**15  # values that array operations hash in less time than compiled code takes to load


def mix(z):
    """Mix the bits of unsigned 64-bit integers (SplitMix64)."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def hash_small(X: np.ndarray) -> np.ndarray:
    """The keys of the rows of an array by array operations: the definition, which compiled code repeats.

    Zeros of either sign add nothing, so that a sparse row has the key of its dense copy.
    """
    values = np.array(X, dtype=np.float64, order="C")
    bits = values.view(np.uint64)
    exponent = ((bits >> MANTISSA) & EXPONENT).max(axis=1, keepdims=True, initial=np.uint64(0))
    terms = mix(bits - (exponent << MANTISSA) + np.arange(1, X.shape[1] + 1, dtype=np.uint64) * STEP)
    terms[values == 0.0] = 0
    return (mix(terms.sum(axis=1, dtype=np.uint64)) & HASH) | exponent[:, 0]


def hash_rows(X, n_threads: int) -> np.ndarray:
    """Keys (n,) of the rows as uint64. Equal rows have equal keys."""
    if not sparse.issparse(X) and X.size <= SMALL:
        return hash_small(X)
    from coterie.starts.hash_kernels import hash_dense, hash_sparse

    hashes = np.empty(X.shape[0], np.uint64)
    cuts = threads.blocks(X.shape[0], ROWS_PER_BLOCK)

    def task(b):
        if sparse.issparse(X):
            hash_sparse(X.data, X.indices, X.indptr, *cuts[b], hashes)
        else:
            values = np.empty(X.shape[1])
            hash_dense(X, *cuts[b], values, values.view(np.uint64), hashes)

    threads.run(task, len(cuts), n_threads)
    return hashes


def fingerprint(keys: np.ndarray, weight: np.ndarray | None = None) -> int:
    """A sum over rows, given by their keys, that tells tables apart: by values, scale, repetitions and weights."""
    one = np.float64(1.0).view(np.uint64)
    heavy = keys if weight is None else keys + (np.ascontiguousarray(weight, np.float64).view(np.uint64) - one)
    return int(mix(heavy + STEP).sum(dtype=np.uint64))


@dataclass(frozen=True)
class Order:
    """Rows in canonical order, sorted only by the leading bits of their hashes into buckets."""

    hashes: np.ndarray  # (n,)
    bucket: np.ndarray  # (n,) bucket of each row
    rows: np.ndarray  # (n,) rows by bucket
    begin: np.ndarray  # (buckets + 1,) where each bucket begins in rows

    @classmethod
    def of(cls, hashes):
        bucket = (hashes >> np.uint64(64 - BUCKET_BITS)).astype(np.uint16)
        begin = np.zeros(2**BUCKET_BITS + 1, np.int64)
        np.cumsum(np.bincount(bucket, minlength=2**BUCKET_BITS), out=begin[1:])
        return cls(hashes, bucket, np.argsort(bucket, kind="stable"), begin)

    def draw(self, mass, bucket_mass, targets):
        """For each target, the row at which the cumulative mass in canonical order exceeds it."""
        cumulative = np.cumsum(bucket_mass)
        found = []
        for target in targets:
            b = min(int(np.searchsorted(cumulative, target, side="right")), len(cumulative) - 1)
            while b > 0 and bucket_mass[b] <= 0:  # the target was rounded up to the very end
                b -= 1
            rows = self.rows[self.begin[b] : self.begin[b + 1]]
            rows = rows[np.argsort(self.hashes[rows], kind="stable")]
            inner = np.cumsum(mass(rows))
            at = np.searchsorted(inner, target - (cumulative[b] - bucket_mass[b]), side="right")
            last = np.searchsorted(inner, inner[-1], side="left")  # the last row with any mass
            found.append(rows[min(at, last)])
        return np.array(found)


def distinct(hashes, weights):
    """The distinct rows in canonical order, and their total weights."""
    rows = np.argsort(hashes, kind="stable")
    starts = np.flatnonzero(np.r_[True, hashes[rows[1:]] != hashes[rows[:-1]]])
    return rows[starts], np.add.reduceat(weights[rows], starts)


def has_distinct_rows(X, n_clusters: int) -> bool:
    """Whether ``X`` has at least ``n_clusters`` distinct rows."""
    head = 4 * n_clusters + 64  # nearly always enough to know
    return any(count_distinct_rows(rows) >= n_clusters for rows in (X[:head], X))


def require_distinct_rows(X, n_clusters: int) -> None:
    """Raise a ValueError if ``X`` has fewer than ``n_clusters`` distinct rows."""
    if has_distinct_rows(X, n_clusters):
        return
    distinct = count_distinct_rows(X)
    raise ValueError(
        f"n_clusters={n_clusters} requires at least that many distinct rows, but X has only {distinct} distinct "
        f"row{'s' if distinct != 1 else ''} (n_samples={X.shape[0]}): set n_clusters to {distinct} or less."
    )


def count_distinct_rows(X) -> int:
    """The number of distinct rows of ``X``."""
    hashes = np.sort(hash_rows(X, threads.count()))
    return int(np.count_nonzero(hashes[1:] != hashes[:-1])) + (len(hashes) > 0)


def require_spread(total: float, X) -> None:
    """Raise a ValueError if all squared distances of distinct rows are zero in the dtype of ``X``."""
    if not total > 0:
        raise ValueError(
            f"The rows of X differ so little that their squared distances are zero in {X.dtype}: scale the "
            "columns, for example with sklearn.preprocessing.StandardScaler."
        )
