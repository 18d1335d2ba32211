"""Principal axes of rows, with signs that do not depend on the linear algebra library."""

import numpy as np


def principal_axes(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The principal axes of centred rows and the variances along them, the largest first.

    Parameters
    ----------
    X : array of shape (n, d)
        Rows with mean zero.

    Returns
    -------
    axes : array of shape (min(n, d), d)
        Orthonormal rows. The largest entry of every axis is positive.
    variances : array of shape (min(n, d),)
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
