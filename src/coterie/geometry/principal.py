"""Principal axes of rows, with signs that do not depend on the linear algebra library."""

import numpy as np


def principal_axes(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The principal axes (min(n, d), d) of centred rows X (n, d) and the variances along them, the largest first.

    The largest entry of every axis is positive.
    """
    from sklearn.utils.extmath import svd_flip  # slow to import, and reading a table needs no axes

    n, d = X.shape
    if n >= d:  # the covariance is the smaller matrix
        variances, columns = np.linalg.eigh(X.T @ X / n)
        variances, axes = np.maximum(variances[::-1], 0.0), columns.T[::-1].copy()
    else:
        _, values, axes = np.linalg.svd(X, full_matrices=False)
        variances = values**2 / n
    return svd_flip(None, axes, u_based_decision=False)[1], variances
