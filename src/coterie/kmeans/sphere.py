"""Normalisation of rows to the unit sphere, for the spherical algorithms."""

import numpy as np
from scipy import sparse


def on_sphere(X):
    """Scale the rows of an array or CSR matrix to length one. A row of zeros is not changed.

    ``sklearn.preprocessing.normalize`` is not used because it does not scale short rows (below ten times the machine
    epsilon).
    """
    if sparse.issparse(X):
        length = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).reshape(-1))
        if np.any(_inaccurate(length, X.dtype)):
            return sparse.csr_matrix(on_sphere(X.toarray()))
        scaled = sparse.diags(1.0 / np.where(length == 0, 1.0, length)) @ X
        return scaled.astype(X.dtype).tocsr()
    length = np.linalg.norm(X, axis=1, keepdims=True)
    odd = _inaccurate(length[:, 0], X.dtype)
    if odd.any():
        X = X.copy()
        X[odd] = np.ldexp(X[odd], -np.frexp(np.abs(X[odd]).max(axis=1, keepdims=True))[1])
        length[odd] = np.linalg.norm(X[odd], axis=1, keepdims=True)
    return X / np.where(length == 0, X.dtype.type(1), length)


def _inaccurate(length: np.ndarray, dtype) -> np.ndarray:
    """Lengths whose squares left the range of the type; such rows are scaled by a power of two first."""
    limits = np.finfo(dtype)
    return (length < np.sqrt(limits.tiny) * 2**30) | (length > np.sqrt(limits.max) / 2**30)
