"""Validation of what users pass to estimators. It happens here, once; the other modules assume valid input."""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import _check_sample_weight, validate_data

from coterie.kmeans.scaling import check_size, check_values
from coterie.tables.precision import working_dtype


def check_rows(estimator, X, *, reset: bool, accept_sparse: bool = False) -> Any:
    """X as a C-contiguous float32 or float64 array, or a CSR matrix.

    Values must be finite, and their squares must not overflow. Errors name the row and the column, and say what to do.
    """
    return check_sized_rows(estimator, X, reset=reset, accept_sparse=accept_sparse)[0]


def check_sized_rows(estimator, X, *, reset: bool, accept_sparse: bool = False) -> tuple[Any, float]:
    """The same, and the largest absolute value, which this check computes anyway."""
    if not _is_ready(estimator, X, reset):
        X = _converted(estimator, X, reset, accept_sparse)
    names = getattr(estimator, "feature_names_in_", None)

    def place(row: int, column: int) -> str:
        return f"row {row}, column {column}" + (f" {names[column]!r}" if names is not None else "")

    try:
        return X, check_values(X, place)
    except ValueError as error:
        raise ValueError(f"Input X {error}") from None


def check_size_of_all(largest: float, dtype, n: int, d: int) -> None:
    """The same check of the largest absolute value of data that are read in blocks."""
    try:
        check_size(largest, np.dtype(dtype), n, d)
    except ValueError as error:
        raise ValueError(f"Input X {error}") from None


def _is_ready(estimator, X, reset: bool) -> bool:
    """Whether X is an array that scikit-learn's validation would return as it is; it takes longer than small fits."""
    ready = (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.size > 0
        and X.dtype in (np.float64, np.float32)
        and X.flags.c_contiguous
        and X.flags.aligned
        and not hasattr(estimator, "feature_names_in_")
    )
    if ready and reset:
        estimator.n_features_in_ = X.shape[1]
    return ready and X.shape[1] == getattr(estimator, "n_features_in_", None)


def _converted(estimator, X, reset: bool, accept_sparse: bool) -> Any:
    dtypes = list(X.dtypes) if hasattr(X, "dtypes") and hasattr(X, "columns") else [getattr(X, "dtype", None)]
    dtype = working_dtype(dtypes)
    refuse_equal_names(X)
    _refuse_text_columns(X)
    try:
        X = validate_data(
            estimator,
            X,
            reset=reset,
            accept_sparse="csr" if accept_sparse else False,
            dtype=dtype,
            order="C",
            accept_large_sparse=False,
            ensure_all_finite=False,
        )
    except ValueError as error:
        if "could not convert string" not in str(error):
            raise
        raise ValueError(
            f"X contains text ({error}): encode it first (for example with sklearn.preprocessing.OneHotEncoder), or "
            "use coterie.ZeroShotClusterer, which reads DataFrames with text."
        ) from error
    if sparse.issparse(X):
        X.sort_indices()
    return X


def check_weights(X, sample_weight) -> np.ndarray | None:
    """Sample weights as float64, or None if all rows count equally."""
    if sample_weight is None:
        return None
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if weight.max() > 1e100:
        raise ValueError(f"sample_weight is as large as {weight.max():.2g}, so sums overflow: divide by a constant.")
    if not weight.any():
        raise ValueError("All sample weights are zero: at least n_clusters rows must have a positive sample_weight.")
    return weight


def is_nearest(assign: str | None) -> bool:
    """Whether outliers are to be assigned to the nearest cluster, from the argument of ``predict``."""
    if assign not in (None, "nearest"):
        raise ValueError(f"assign must be 'nearest' or None; got {assign!r}.")
    return assign is not None


def limit_of_share(values: np.ndarray, share: float) -> float:
    """A number that at most this share of the values exceeds, in the middle between two of them."""
    ordered, outside = np.sort(values), int(share * len(values))
    return float(ordered[len(ordered) - outside - 1 :][:2].mean()) if outside else float(ordered[-1]) + 1.0


def check_enough_rows(n: int, n_clusters: int) -> None:
    if isinstance(n_clusters, bool | np.bool_):
        raise TypeError(f"n_clusters must be a number of clusters, for example 8; got {n_clusters}.")
    if n < n_clusters:
        raise ValueError(
            f"n_samples={n} should be >= n_clusters={n_clusters}: pass more rows or set n_clusters to {n} or less."
        )


def check_context(max_context: int, n_clusters: int) -> None:
    if max_context < n_clusters:
        raise ValueError(f"max_context={max_context} must be at least n_clusters={n_clusters}: increase max_context.")


def check_device(device) -> str:
    """The name of an available torch device. None is the CPU, for which torch is not imported."""
    if device is None or str(device) == "cpu":
        return "cpu"
    import torch

    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, TypeError) as error:
        message = str(error).splitlines()[0]
        raise ValueError(f"device={device!r} is not available ({message}): use device='cpu'.") from error
    return str(torch.device(device))


def refuse_equal_names(X) -> None:
    """Raise an error if two columns of a pandas DataFrame have the same name."""
    repeated = getattr(getattr(X, "columns", None), "duplicated", None)
    if repeated is not None and repeated().any():
        name = X.columns[repeated().argmax()]
        raise ValueError(f"X has two columns named {name!r}: rename one of them.")


def _refuse_text_columns(X) -> None:
    if not hasattr(X, "columns") or not hasattr(X, "select_dtypes"):
        return
    other = X.select_dtypes(exclude=["number", "bool", "boolean"])
    text = [
        str(name)
        for name, column in other.items()
        if getattr(column.dtype, "kind", "O") in "mM" or column.map(lambda value: isinstance(value, str)).any()
    ]
    if text:
        raise ValueError(
            f"X has columns that are not numbers: {', '.join(map(repr, text))}. "
            "Remove or encode them first (for example with sklearn.preprocessing.OneHotEncoder)."
        )
