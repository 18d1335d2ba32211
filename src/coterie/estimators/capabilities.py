"""What an estimator can do and how it works: the questions that tables, reports and selection ask of any estimator.

The answers come from parameters and fitted attributes, so that estimators of scikit-learn can be asked as well.
"""

import inspect
from typing import Any

import numpy as np


def parameters(estimator: Any) -> dict[str, Any]:
    return estimator.get_params(deep=False)


def has_parameter(estimator: Any, name: str) -> bool:
    return name in parameters(estimator)


def parameter(estimator: Any, name: str, default: Any = None) -> Any:
    return parameters(estimator).get(name, default)


def finds_count(estimator: Any) -> bool:
    """Whether the estimator, with its present parameters, determines the number of clusters itself."""
    return parameter(estimator, "n_clusters") is None


def given_count(estimator: Any) -> int | None:
    """The number of clusters that was asked for, if one was."""
    given = parameter(estimator, "n_clusters")
    return int(given) if isinstance(given, int | np.integer) else None


def is_edited(estimator: Any) -> bool:
    """Whether the clusters have ids of their own, because they were edited or continue those of an earlier model."""
    return hasattr(estimator, "ids_")


def fitted_inside(estimator: Any) -> Any:
    """The estimator that was fitted: that of a model whose clusters were edited, else itself."""
    return estimator.estimator_ if is_edited(estimator) else estimator


def on_sphere(estimator: Any) -> bool:
    """Whether the estimator compares directions instead of positions."""
    from coterie.estimators.base import algorithm_of

    algorithm = algorithm_of(fitted_inside(estimator))
    return algorithm is not None and algorithm.spherical


def takes_blocks(estimator: Any) -> bool:
    """Whether the estimator can be fitted to data in blocks."""
    return bool(getattr(estimator, "_takes_blocks", False))


def encodes_tables(estimator: Any) -> bool:
    """Whether ``fit`` scales and encodes the columns of a table by itself, and accepts rows that are encoded."""
    return bool(getattr(estimator, "_encodes_tables", False))


def of_center_family(kind: type) -> bool:
    """Whether a class is a member of the k-means family, whose members share ``n_init``, ``init`` and ``max_iter``."""
    from coterie.estimators.base import CenterClusterer

    return issubclass(kind, CenterClusterer)


def takes_labels(estimator: Any) -> bool:
    """Whether ``fit`` keeps labels that are given for some of the rows."""
    return "must_link" in inspect.signature(estimator.fit).parameters


def finds_outliers(estimator: Any) -> bool:
    """Whether the estimator tells outliers apart from clusters."""
    return parameter(fitted_inside(estimator), "outliers") is not None


def scales_itself(estimator: Any) -> bool:
    """Whether the fitted estimator brought the columns to a common scale."""
    return hasattr(estimator, "encoding_") or getattr(estimator, "likelihood_", None) == "gaussian"


def start_was_given(estimator: Any) -> bool:
    """Whether the initial centres are an array, so that no random seed is involved."""
    return not isinstance(parameter(estimator, "init", ""), str)


def iteration_limit_reached(estimator: Any) -> int | None:
    """The limit of iterations at which a fit stopped before it converged, if it did."""
    from coterie.estimators.base import algorithm_of

    ran, limit = getattr(estimator, "n_iter_", None), getattr(estimator, "max_iter", None)
    if not isinstance(ran, int | np.integer) or ran != limit or limit <= 1:
        return None
    algorithm = algorithm_of(estimator)
    draws = algorithm is not None and algorithm.draws  # until the limit, whatever it finds
    return None if draws or getattr(estimator, "converged_", False) else int(limit)
