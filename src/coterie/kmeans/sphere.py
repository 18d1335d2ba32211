"""Rows on the unit sphere, where the spherical algorithms live."""

import numpy as np
from scipy import sparse


def on_sphere(X):
    """Rows of an array or CSR matrix scaled to length one. A row of zeros has no direction and stays as it is.

    ``sklearn.preprocessing.normalize`` is not used because it leaves short rows (below ten times the machine epsilon)
    as they are.
    """
    if sparse.issparse(X):
        length = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).reshape(-1))
        scaled = sparse.diags(1.0 / np.where(length == 0, 1.0, length)) @ X
        return scaled.astype(X.dtype).tocsr()
    length = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(length == 0, X.dtype.type(1), length)
