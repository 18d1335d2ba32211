"""What all estimators share: documentation that is written once, checks of new rows, and a score."""

import inspect
import re
from numbers import Integral
from typing import ClassVar

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    DensityMixin,
    TransformerMixin,
)
from sklearn.utils._param_validation import Interval, Options
from sklearn.utils.validation import check_is_fitted

from coterie.estimators.in_blocks import InBlocks, light, rows_in
from coterie.estimators.persistence import SaveMixin
from coterie.estimators.validation import check_rows

_ENTRY = re.compile(r"^(\w+) : .*\n(?:    .*\n)+", re.MULTILINE)
_NAMES = re.compile(r"^<([\w, ]+)>\n", re.MULTILINE)


class Clusterer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, SaveMixin, BaseEstimator):
    """Base class of the estimators.

    A line of names in the docstring of a subclass, such as ``<device, n_jobs>``, stands for the entries of these names
    in the docstring of the nearest base class that has them.

    Parameters
    ----------
    device : str, torch.device or None, default=None
        Where torch computes, for example "cuda". None is the CPU.
    n_jobs : int or None, default=None
        Number of threads: -1 uses all processors, None the current settings of numpy and torch.

    Attributes
    ----------
    labels_ : int32 array of shape (n_samples,)
        The cluster of every row.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the columns of X, if X is a DataFrame whose column names are all strings.
    """

    _common_constraints: ClassVar[dict] = {
        "device": "no_validation",  # by check_device, which imports torch only if it has to
        "n_jobs": [None, Interval(Integral, 1, None, closed="left"), Options(Integral, {-1})],
        "random_state": ["random_state"],
    }

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        if cls.__doc__ and Clusterer.__doc__:  # neither is there with python -OO
            entries: dict[str, str] = {}
            for base in reversed(cls.__mro__[1:]):
                if issubclass(base, Clusterer):
                    found = _ENTRY.finditer(inspect.cleandoc(base.__doc__ or "") + "\n")
                    entries |= {entry[1]: entry[0] for entry in found}
            text = inspect.cleandoc(cls.__doc__) + "\n"
            cls.__doc__ = _NAMES.sub(lambda names: "".join(entries[name] for name in names[1].split(", ")), text)

    def _checked_new(self, X):
        """New rows as an array."""
        check_is_fitted(self)
        return check_rows(self, X, reset=False)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class DensityClusterer(DensityMixin, Clusterer):
    """Base class of the estimators that give every row a density, by the method ``score_samples``."""

    def score(self, X, y=None):
        """Compute the mean of ``score_samples``.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features), Dask array or DataFrame, path, or ``Chunks``
        y : ignored

        Returns
        -------
        score : float
        """
        total, n_rows = self._total_score(X)
        return total / n_rows

    def _total_score(self, X) -> tuple[float, int]:
        """The sum of ``score_samples`` over rows in any place, and their number."""
        check_is_fitted(self)
        rows = rows_in(X, self)
        if isinstance(rows, InBlocks):
            rows.check(self, reset=False)
            total, n_rows = rows.total(_score_of_block, light(self))
        else:
            scores = self.score_samples(rows)
            total, n_rows = scores.sum(), len(scores)
        return float(total), int(n_rows)


def _score_of_block(block, estimator):
    return np.array([estimator.score_samples(block.X).sum(), len(block.X)])
