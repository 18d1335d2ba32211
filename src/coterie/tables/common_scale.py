"""Whether the columns of a table share one scale, as those of embeddings, principal components and pictures do.

Scaling every column to the same spread is right for measurements in different units. Where columns have one unit or
structure, it raises noise: the last principal components or the pixels of the margin then count as much as any other.
The rules were measured on labelled sets and drawn tables (results/LOG.md); they never see labels.
"""

import re
from collections.abc import Sequence

import numpy as np

EACH, COMMON, COSINE, COUNTS = "each", "common", "cosine", "counts"
WORDS = {
    COMMON: "compared on one common scale",
    COSINE: "compared by the cosine",
    COUNTS: "compared as shares of the total of their row, on a log scale",
}
MANY = 30  # columns of an array without names that share a scale, unless their spreads say otherwise
GENES = 60  # columns of counts from which rows have a library size
SOME = 8  # columns with numbered names, or whose rows have length one
ROWS = 20_000  # from which the rules are read
EXACTLY = 1e-3  # correlation of principal components at most, after rounding
NEARLY = 3.0  # the same in a part of the rows, in units of what chance gives
OF_UNIT_LENGTH = 0.01  # deviation of the length of rows, such as those of half precision
UNLIKE = 1.2  # standard deviation of the logarithms of spreads from which columns have units of their own
_NUMBERED = re.compile(r"(.*?)[_ .-]?\d+")
_ANYTHING = {"var", "col", "column", "feat", "feature", "att", "attr", "attribute", "field", "item", "unnamed"}


def shared_scale(columns: Sequence[np.ndarray], names: Sequence[str]) -> tuple[str, str]:
    """One of the scales above, and why."""
    d = len(columns)
    if d < 3 or any(values.dtype == object for values in columns):
        return EACH, ""
    step = -(-len(columns[0]) // ROWS)
    x_ND = np.column_stack([values[::step] for values in columns])
    if not np.isfinite(x_ND).all() or np.abs(x_ND).max() > 1e100:
        return EACH, ""
    deviation_D = x_ND.std(axis=0)
    varying_D = deviation_D > 0
    if varying_D.sum() < 3:
        return EACH, ""
    length_N = np.sqrt((x_ND**2).sum(axis=1))
    if d >= SOME and (np.abs(length_N - 1) < OF_UNIT_LENGTH).mean() > 0.98 and (x_ND < 0).any():
        return COSINE, "rows of length one, as embeddings have"
    if _are_principal(x_ND, deviation_D):
        return COMMON, "principal components"
    whole = bool((x_ND == np.round(x_ND)).all())
    if d >= MANY and x_ND.min() == 0 and (x_ND == 0).mean() > 0.2:
        most_D = x_ND.max(axis=0)[varying_D]
        if np.median(most_D) >= most_D.max() / 2 and most_D.max() < 2 * np.quantile(most_D, 0.75):
            return COMMON, "one range with many zeros, as pixels have"
        if whole and d >= GENES and np.median((x_ND == 0).mean(axis=0)) > 0.2 and most_D.max() >= 10:
            return COUNTS, "counts with many zeros"
    numbered = [_NUMBERED.fullmatch(name) for name in names]
    stems = {match[1].casefold() if match else "" for match in numbered}
    named = len(stems) > 1 or not all(len(stem) == 1 or stem in _ANYTHING for stem in stems)
    one_block = named and d >= SOME and len(stems) == 1 and all(numbered)
    wide = not named and d > MANY and not whole
    if (one_block or wide) and np.log(deviation_D[varying_D]).std() < UNLIKE:
        what = "one numbered block" if one_block else "many columns without names"
        return COMMON, f"{what}, as embeddings have"
    return EACH, ""


def _are_principal(x_ND: np.ndarray, deviation_D: np.ndarray) -> bool:
    """Whether columns are uncorrelated and each is no wider than the one before, or nearly so in a part of the rows."""
    n, d = x_ND.shape
    if n <= d or not deviation_D.all():
        return False
    steps = np.diff(np.log(deviation_D))
    falling, nearly = (steps <= 0).all(), d >= SOME and steps.sum() < -1 and (steps < 0.1).mean() > 0.9
    if not (falling or nearly):
        return False
    z_ND = (x_ND - x_ND.mean(axis=0)) / deviation_D
    between_DD = z_ND.T @ z_ND / n - np.eye(d)
    if falling and np.abs(between_DD).max() <= EXACTLY and (np.abs(x_ND.mean(axis=0)) <= EXACTLY * deviation_D).all():
        return True
    return bool(nearly and np.sqrt((between_DD**2).sum() / (d * (d - 1))) < NEARLY / np.sqrt(n))
