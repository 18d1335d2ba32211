"""The keys of :mod:`coterie.starts.row_order`, compiled, for large tables and sparse rows."""

import numpy as np

from coterie.starts.row_order import EXPONENT, HASH, MANTISSA, STEP, mix
from coterie.threads import kernel

_mix = kernel()(mix)


@kernel()
def hash_dense(X, start, stop, values, bits, hashes):
    """``values`` (d,) is room for a row in double precision, and ``bits`` the same memory as uint64."""
    n_features = X.shape[1]
    for i in range(start, stop):
        exponent, total = np.uint64(0), np.uint64(0)
        for j in range(n_features):
            values[j] = X[i, j]
        for j in range(n_features):
            exponent = max(exponent, (bits[j] >> MANTISSA) & EXPONENT)
        for j in range(n_features):
            term = _mix(bits[j] - (exponent << MANTISSA) + np.uint64(j + 1) * STEP)
            total += term if values[j] != 0.0 else np.uint64(0)
        hashes[i] = (_mix(total) & HASH) | exponent


@kernel()
def hash_sparse(data, indices, indptr, start, stop, hashes):
    value = np.empty(1, np.float64)
    bits = value.view(np.uint64)
    for i in range(start, stop):
        exponent, total = np.uint64(0), np.uint64(0)
        for p in range(indptr[i], indptr[i + 1]):
            value[0] = data[p]
            exponent = max(exponent, (bits[0] >> MANTISSA) & EXPONENT)
        for p in range(indptr[i], indptr[i + 1]):
            value[0] = data[p]
            if value[0] != 0.0:
                total += _mix(bits[0] - (exponent << MANTISSA) + np.uint64(indices[p] + 1) * STEP)
        hashes[i] = (_mix(total) & HASH) | exponent
