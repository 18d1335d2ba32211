"""Problems like real tables: a few latent factors behind many columns, of which some say nothing.

Clusters are groups of rows that differ in the mean, and often the spread, of some factors. How far is a dial, so that
clusters overlap as classes of real tables do. A factor common to all columns (size, say) may outweigh what tells
clusters apart. Then columns become what is measured: skewed, rounded, counted, cut into categories, missing in part.
"""

from collections.abc import Callable

import numpy as np

from coterie_research.training.zeroshot.prior.arrangements import unequal_widths
from coterie_research.training.zeroshot.prior.shapes import log_uniform, rotation

Rng = np.random.Generator


def table(rng: Rng, labels_N: np.ndarray, uneven: bool = False) -> np.ndarray:
    """(N, D) numbers for rows of the given clusters; if ``uneven``, some clusters are much wider than others."""
    x_ND = _columns(rng, labels_N, int(log_uniform(rng, 1.6, 40)), uneven)
    return _measured(rng, x_ND)


def mixed_table(rng: Rng, labels_N: np.ndarray, uneven: bool = False) -> np.ndarray:
    """(N, D) numbers and categories with missing values, encoded as the estimator encodes them."""
    from coterie.tables.encoding import Encoding

    n_columns = int(log_uniform(rng, 2, 20))
    x_ND = _columns(rng, labels_N, n_columns, uneven)
    n_categories = int(rng.integers(0, n_columns + 1))
    numbers = _measured(rng, x_ND[:, n_categories:]) if n_categories < n_columns else x_ND[:, n_columns:]
    columns = list(numbers.T) + [_category(rng, values_N, labels_N) for values_N in x_ND[:, :n_categories].T]
    if rng.random() < 0.5:
        share = log_uniform(rng, 0.01, 0.2)
        columns = [_with_missing(rng, values_N, share) if rng.random() < 0.6 else values_N for values_N in columns]
    return Encoding.of(columns).points(columns)


def _columns(rng: Rng, labels_N: np.ndarray, n_columns: int, uneven: bool) -> np.ndarray:
    """Columns as linear or bent readings of latent factors, with an error of their own; some are pure error."""
    n = len(labels_N)
    n_factors = int(min(log_uniform(rng, 1, 9), n_columns))
    width_K = unequal_widths(rng, np.bincount(labels_N)) if uneven else None
    factors_NQ = _factors(rng, labels_N, n_factors, width_K)
    loading_QD = rng.normal(size=(n_factors, n_columns))
    if rng.random() < 0.5:  # simple structure: every column reads one factor, or few
        loading_QD *= rng.random((n_factors, n_columns)) < 1.5 / n_factors
        loading_QD[rng.integers(n_factors, size=n_columns), np.arange(n_columns)] += 1.0
    if rng.random() < 0.15:
        bent = np.tanh(factors_NQ @ rng.normal(size=(n_factors, 8)) / np.sqrt(n_factors) + rng.normal(size=8))
        read_ND = factors_NQ @ loading_QD + 1.5 * bent @ rng.normal(size=(8, n_columns)) / np.sqrt(8)
    else:
        read_ND = factors_NQ @ loading_QD
    read_ND /= read_ND.std(axis=0) + 1e-9
    error_D = np.exp(np.log(log_uniform(rng, 0.05, 1.2)) + 0.5 * rng.normal(size=n_columns))
    error_ND = error_D * rng.normal(size=(n, n_columns))
    x_ND = read_ND + (error_ND if width_K is None else error_ND * width_K[labels_N, None])
    if rng.random() < 0.35 and n_columns > 1:
        nothing_D = rng.random(n_columns) < rng.uniform(0.1, 0.6)
        nothing_D[rng.integers(n_columns)] = False
        x_ND = np.where(nothing_D, rng.normal(size=(n, n_columns)), x_ND)
    if rng.random() < 0.4:  # a common factor, of which every column has its share
        share_D = log_uniform(rng, 0.3, 2.5) * np.abs(1 + 0.4 * rng.normal(size=n_columns))
        x_ND = x_ND + rng.normal(size=(n, 1)) * share_D * x_ND.std(axis=0)
    return x_ND


def _factors(rng: Rng, labels_N: np.ndarray, n_factors: int, width_K: np.ndarray | None) -> np.ndarray:
    """Latent factors of rows: means of clusters a drawn number of deviations apart, spreads of their own.

    ``width_K`` makes clusters wider or narrower.
    """
    k = int(labels_N.max()) + 1
    apart = log_uniform(rng, 1.0, 6.0) * max(1.0, (k / 4) ** (1 / n_factors))
    mean_KQ = apart * rng.normal(size=(k, n_factors)) / np.sqrt(n_factors) ** rng.uniform(0, 1)
    if rng.random() < 0.3:  # every cluster is known by few of the factors
        mean_KQ *= rng.random((k, n_factors)) < 0.5
        mean_KQ += 0.3 * apart * rng.normal(size=(k, n_factors))
    spread_KQ = np.exp(rng.uniform(0, 0.6) * rng.normal(size=(k, n_factors)))
    spread_KQ *= np.exp(rng.uniform(0, 0.6) * rng.normal(size=(k, 1)))
    turns = [rotation(rng, n_factors) for _ in range(k)]
    if rng.random() < 0.5:  # the same covariance in all
        spread_KQ, turns = np.repeat(spread_KQ[:1], k, axis=0), [turns[0]] * k
    if width_K is not None:
        spread_KQ = spread_KQ * width_K[:, None]
    noise_NQ = rng.normal(size=(len(labels_N), n_factors))
    if rng.random() < 0.2:
        freedom = log_uniform(rng, 2.5, 8)
        noise_NQ *= np.sqrt(freedom / rng.chisquare(freedom, size=(len(labels_N), 1)))
    elif rng.random() < 0.2:
        noise_NQ = rng.gamma(log_uniform(rng, 1, 6), size=noise_NQ.shape)  # skewed
    factors_NQ = np.empty_like(noise_NQ)
    for cluster in range(k):
        rows = labels_N == cluster
        factors_NQ[rows] = mean_KQ[cluster] + noise_NQ[rows] * spread_KQ[cluster] @ turns[cluster]
    return factors_NQ


MEASURES: tuple[Callable[[Rng, np.ndarray], np.ndarray], ...] = (
    lambda rng, x: np.exp(rng.uniform(0.3, 1.2) * x),  # skewed
    lambda rng, x: np.maximum(x + rng.uniform(0.5, 2.0), 0.0) ** 2,
    lambda rng, x: np.round(x / log_uniform(rng, 0.1, 1.5)),
    # an ordinal: a few levels, their borders anywhere
    lambda rng, x: np.searchsorted(np.sort(rng.normal(size=int(log_uniform(rng, 1, 8)))), x).astype(np.float64),
    # counts
    lambda rng, x: rng.poisson(np.exp(np.clip(rng.uniform(0.3, 0.9) * x + rng.uniform(-0.5, 3.0), None, 7.0))) * 1.0,
    # limited from below or on both sides, as by a detection limit or a scale's ends
    lambda rng, x: np.clip(x, rng.uniform(-1.5, 0.0), rng.uniform(0.5, 4.0)),
)


def _measured(rng: Rng, x_ND: np.ndarray) -> np.ndarray:
    """Every column as something measured: in half of the tables all stay as they are, else a drawn share changes."""
    if rng.random() < 0.45:
        return x_ND
    share = rng.uniform(0.2, 1.0)
    kinds = [MEASURES[rng.integers(len(MEASURES))] for _ in range(rng.integers(1, 4))]  # columns of a table are alike
    x_ND = (x_ND - x_ND.mean(axis=0)) / (x_ND.std(axis=0) + 1e-9)
    columns = []
    for values_N in x_ND.T:
        if rng.random() < share:
            values_N = kinds[rng.integers(len(kinds))](rng, values_N if rng.random() < 0.5 else -values_N)
        columns.append(values_N)
    return np.column_stack(columns)


def _category(rng: Rng, values_N: np.ndarray, labels_N: np.ndarray) -> np.ndarray:
    """Texts: levels of a number in no order, or drawn with probabilities of each cluster."""
    levels = int(log_uniform(rng, 2, 9))
    if rng.random() < 0.5:
        borders = np.sort(rng.normal(size=levels - 1)) * values_N.std() + values_N.mean()
        level_N = np.searchsorted(borders, values_N)
    else:
        share_KL = rng.dirichlet(np.full(levels, log_uniform(rng, 0.15, 2)), size=int(labels_N.max()) + 1)
        below_NL = share_KL.cumsum(axis=1)[labels_N] < rng.random((len(labels_N), 1))
        level_N = np.minimum(below_NL.sum(axis=1), levels - 1)
    return np.array([f"level {level}" for level in level_N], dtype=object)


def _with_missing(rng: Rng, values_N: np.ndarray, share: float) -> np.ndarray:
    values_N = values_N.copy()
    values_N[rng.random(len(values_N)) < share] = None if values_N.dtype == object else np.nan
    return values_N
