"""Running an algorithm on rows in memory: the choice of an engine, and predictions from fitted centres.

Dense rows on the CPU are processed by array operations if the table is small, and otherwise by compiled code where
possible. Sparse rows, other devices, soft memberships and the literal network need torch. Compiled code and torch take
a large part of a second to load and are imported where they are used.
"""

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from coterie.kmeans import small
from coterie.kmeans.algorithm import Algorithm
from coterie.kmeans.iteration import OnIteration, Result


def run_in_one_call(
    X,
    starts: Sequence[np.ndarray],
    algorithm: Algorithm,
    *,
    sample_weight=None,
    max_iter: int,
    tol: float,
    n_threads: int | None = None,
) -> list[Result]:
    """The runs from several starts, of shape (k, d) each, on a table for which :func:`in_one_call` holds."""
    loop = {"sample_weight": sample_weight, "max_iter": max_iter, "tol": tol}
    if small.suits(X, len(starts[0])):
        return small.run(X, np.stack(starts), spherical=algorithm.spherical, **loop)
    from coterie.kmeans import whole_run

    return whole_run.run(X, starts, n_threads=n_threads, **loop)


def in_one_call(X, n_clusters: int, algorithm: Algorithm, device: str = "cpu") -> bool:
    """Whether a run is fastest in one call, by array operations for small tables or by a compiled loop."""
    if algorithm.constraints is not None or not (algorithm.hard_means and _compiled(X, algorithm, device)):
        return False
    if small.suits(X, n_clusters) or algorithm.spherical:
        return small.suits(X, n_clusters)
    from coterie.kmeans import whole_run

    return whole_run.suits(X, n_clusters)


def run(
    X,
    centers: np.ndarray,
    algorithm: Algorithm,
    *,
    engine: str = "auto",
    device: str = "cpu",
    sample_weight=None,
    max_iter: int = 300,
    tol: float = 0.0,
    n_threads: int | None = None,
    on_iteration: OnIteration | None = None,
) -> Result:
    """Perform one run on X (n, d) from centres (k, d). Rows have length one for a spherical algorithm.

    Weights are positive, and ``tol`` is absolute. ``engine="auto"`` is lazy where possible and fused otherwise; all
    engines give the same result, for any number of threads. A true value of ``on_iteration`` ends the run.
    """
    if algorithm.gamma is None:
        algorithm = algorithm.with_gamma(mean_cost(X, centers, algorithm, sample_weight, device), X.shape[1])
    loop = {"sample_weight": sample_weight, "max_iter": max_iter, "tol": tol, "on_iteration": on_iteration}
    if algorithm.constraints is not None:
        from coterie.kmeans import constrained

        return constrained.run(X, centers, algorithm, device=device, n_threads=n_threads, **loop)
    if engine == "literal":
        from coterie.kmeans import literal

        return literal.run(X.toarray() if sparse.issparse(X) else X, centers, algorithm, **loop)
    compiled = _compiled(X, algorithm, device)
    if engine == "lazy" and not (compiled and algorithm.hard_means):
        raise ValueError(
            "engine='lazy' requires dense rows on the CPU: use engine='auto', which selects a suitable engine."
        )
    if engine == "auto" and on_iteration is None and in_one_call(X, len(centers), algorithm, device):
        del loop["on_iteration"]
        return run_in_one_call(X, [centers], algorithm, n_threads=n_threads, **loop)[0]
    if engine != "fused" and compiled and algorithm.hard_means:
        from coterie.kmeans import lazy

        return lazy.run(X, centers, spherical=algorithm.spherical, n_threads=n_threads, **loop)
    from coterie.kmeans import fused, lazy

    assigner = lazy.Assigner(X, n_threads=n_threads) if compiled else None
    return fused.run(X, centers, algorithm, device=device, assigner=assigner, n_threads=n_threads, **loop)


def choose(
    X, centers: np.ndarray, algorithm: Algorithm, device: str = "cpu", n_threads: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The best centre of every row as int32, the lowest index in a tie, and its cost as float64."""
    if sparse.issparse(X) or device != "cpu" or algorithm.prices is not None:
        import torch

        from coterie.kmeans.fused import Fused

        fused = Fused(X, algorithm, device=device)
        with torch.no_grad():
            chosen, cost = fused.choose(fused.state(centers).places)
        return chosen.cpu().numpy().astype(np.int32), cost.cpu().numpy()
    nearest = _nearest(X, centers, algorithm, n_threads)
    if algorithm.hard_means and small.suits(X, len(centers)):
        costs = small.costs(X, centers, nearest)
    else:  # costs are compared with thresholds of the fit: they must be the same to the last bit
        from coterie.kmeans import single_pass

        costs = single_pass.costs(X, centers, nearest, n_threads)
    return nearest, costs / 2 if algorithm.spherical else costs


def _nearest(X, centers: np.ndarray, algorithm: Algorithm, n_threads: int | None) -> np.ndarray:
    if small.suits(X, len(centers)):
        nearest = small.choose(X, centers)[0]
    else:
        from coterie.kmeans import single_pass

        nearest = single_pass.assign(X, centers, n_threads)
    if algorithm.spherical:  # rows of zeros are equally far from all centres, whatever their rounding
        nearest[~X.any(axis=1)] = 0
    return nearest


def labels(
    X,
    centers: np.ndarray,
    algorithm: Algorithm,
    weights: np.ndarray | None = None,
    limits: np.ndarray | None = None,
    device: str = "cpu",
    n_threads: int | None = None,
) -> np.ndarray:
    """The cluster (n,) of every row as int32, or -1 if its cost exceeds the threshold of trimming."""
    if algorithm.variant.soft:
        return shares(X, centers, weights, algorithm, device, n_threads).argmax(axis=1).astype(np.int32)
    if limits is None and device == "cpu" and not sparse.issparse(X) and algorithm.prices is None:
        return _nearest(X, centers, algorithm, n_threads)
    chosen, cost = choose(X, centers, algorithm, device, n_threads)
    return chosen if limits is None else np.where(cost <= limits[chosen], chosen, np.int32(-1))


def mean_cost(X, centers, algorithm: Algorithm, sample_weight=None, device: str = "cpu") -> float:
    """The mean cost of the rows at their best centres, from which ``gamma="scale"`` is computed."""
    return float(np.average(choose(X, centers, algorithm, device)[1], weights=sample_weight))


def distances(
    X, centers: np.ndarray, algorithm: Algorithm, device: str = "cpu", n_threads: int | None = None
) -> np.ndarray:
    """The distances (n, k) of the rows to the centres; on the sphere, 1 - cosine."""
    if not (sparse.issparse(X) or device != "cpu" or algorithm.spherical):
        if small.suits(X, len(centers)):
            return np.sqrt(small.sq_distances(X, centers)).astype(X.dtype, copy=False)
        from coterie.kmeans import single_pass

        return single_pass.distances(X, centers, n_threads)
    from coterie.kmeans.fused import Fused

    fused = Fused(X, algorithm, device=device)
    places = fused.state(centers).places
    distance = fused.cost if algorithm.spherical else fused.rows.distances
    blocks = fused.rows.blocks(len(places))
    return np.concatenate([distance(block, places).cpu().numpy() for block in blocks])


def shares(
    X,
    centers: np.ndarray,
    weights: np.ndarray | None,
    algorithm: Algorithm,
    device: str = "cpu",
    n_threads: int | None = None,
) -> np.ndarray:
    """The memberships (n, k) of the rows in the clusters of a soft algorithm. Every row sums to one."""
    from coterie.kmeans.fused import Fused

    fused = Fused(X, algorithm, device=device, n_threads=n_threads)
    state = fused.state(centers, weights)
    return np.concatenate([fused.shares(block, state)[0].cpu().numpy() for block in fused.rows.blocks(len(centers))])


def _compiled(X, algorithm: Algorithm, device: str) -> bool:
    """Whether compiled code makes the assignments: for dense rows on the CPU without rows of zeros on the sphere.

    A row of zeros is equally far from all centres of the sphere. Bounds on sizes need all costs.
    """
    if sparse.issparse(X) or device != "cpu" or algorithm.variant.points != "limiting":
        return False
    return not algorithm.spherical or bool(X.any(axis=1).all())
