"""Table 1, Figure 3 and Figure 4 of Clarkson et al. (2025).

The paper is "Finding Clustering Algorithms in the Transformer Architecture". Each function writes ``<name>.json`` to
``output`` and draws from that file alone. "cross" means a finite gamma in the two cross-attentions and limiting
self-attentions; "all" means one finite gamma in all four attentions.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from coterie.attention import Linear, NormMax, Softmax, attend, dot_scores, gumbel_noise, normalise, sq_euclidean_scores
from coterie.kmeans import fused, literal, reference
from coterie.kmeans.algorithm import Algorithm
from coterie.kmeans.family import TABLE
from coterie.kmeans.transformer import Attention, Layer
from coterie.kmeans.weights import Stream
from coterie_research.kmeans_transformers.pictures import KINDS, draw_figure3, draw_figure4, table1_page
from coterie_research.records import experiment

N_LAYERS = 10
SOCKETS = {
    "cross": ("encoder_cross", "decoder_cross"),
    "all": ("encoder_self", "encoder_cross", "decoder_self", "decoder_cross"),
}
AXES: dict[str, list] = {
    "dimension": [2, 4, 8, 16, 32],
    "points": [50, 100, 200, 400, 800],
    "clusters": [2, 4, 8, 16],
    "scale": [0.1, 0.3, 1.0, 3.0, 10.0],
    "seed": [0, 1, 2],
    "gamma": [10.0**e for e in range(-2, 6)],
}
QUICK_AXES = AXES | {"dimension": [2, 8], "points": [40, 120], "clusters": [2, 6], "scale": [0.3, 3.0], "seed": [0]}


def blobs(rng: np.random.Generator, n: int, d: int, k: int, spread: float = 3.0) -> tuple[np.ndarray, np.ndarray]:
    """n points around k centres from N(0, spread² I) with noise N(0, I), and k different points to start from."""
    X = rng.normal(size=(n, d)) + spread * rng.normal(size=(k, d))[rng.integers(k, size=n)]
    return X, X[rng.choice(n, k, replace=False)].copy()


@experiment("kmeans/table1", page=table1_page, seed=0)
def table1(quick: bool) -> dict[str, Any]:
    """Compare every row of Table 1 with its plain algorithm: literal, with rotated weights (Remark 1), and fused."""
    n_instances = 1 if quick else 60
    cases = _cases()
    rows = {name: {"layers": 0, "labels_differ": None, **dict.fromkeys(KINDS)} for name in cases}
    rng = np.random.default_rng(0)
    for _ in range(n_instances):
        n, d, k = int(rng.integers(40, 300)), int(rng.integers(2, 9)), int(rng.integers(2, 8))
        X, C = blobs(rng, n, d, k)
        for name, algorithm in cases.items():
            _compare(algorithm, X, C, rng, rows[name])
    return {
        "instances": n_instances,
        "layers": 8,
        "about": "largest |deviation| of a centre's coordinate from the plain algorithm, over all layers and instances",
        "rows": rows,
        "edges": _edges(quick),
    }


def _cases() -> dict[str, Algorithm]:
    """Every row of the table, and trimming with one gamma for all clusters, which is how norm-max stands there."""
    gammas = {True: 5.0, False: 0.7}
    cases = {
        name: Algorithm(row, gamma=gammas[row.form.spherical], keep=0.873, top=7, delta=1.0, seed=5)
        for name, row in TABLE.items()
        if not row.variant.sized
    }
    trimmed = {name: case for name, case in cases.items() if case.variant.name == "trimmed"}
    return cases | {f"{name}, one gamma": replace(case, trim_gamma=0.05) for name, case in trimmed.items()}


def _reference_path(
    algorithm: Algorithm, X: np.ndarray, C: np.ndarray, n_layers: int
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Centres and labels layer by layer, up to the first empty cluster, where the plain algorithms are undefined."""
    noise, like = torch.Generator().manual_seed(algorithm.seed), torch.zeros(1, dtype=torch.float64)
    centers, labels = [], []
    for _ in range(n_layers):
        a = reference.labels(X, C, algorithm.spherical)
        if len(np.unique(a)) < len(C):
            break
        gumbel = gumbel_noise(torch.Size((len(C), len(X))), like, noise).numpy() if algorithm.draws else None
        C = _one_gamma(algorithm, X, C) if algorithm.trim_gamma else reference.step(algorithm, X, C, gumbel)
        centers.append(C)
        labels.append(a)
    return centers, labels


def _one_gamma(algorithm: Algorithm, X: np.ndarray, C: np.ndarray) -> np.ndarray:
    """The mean of the m best points of each cluster, m maximising gamma · (their mean score) - 1/m (A.4)."""
    scores, a = reference.scores(X, C, algorithm.spherical), reference.labels(X, C, algorithm.spherical)
    new = np.empty_like(C)
    for j in range(len(C)):
        order = np.flatnonzero(a == j)[np.argsort(-scores[a == j, j])]
        count = np.arange(1, len(order) + 1)
        best = np.argmax(algorithm.trim_gamma * scores[order, j].cumsum() / count - 1 / count)
        new[j] = X[order[: best + 1]].mean(0)
    return new / np.linalg.norm(new, axis=1, keepdims=True) if algorithm.spherical else new


def _compare(
    algorithm: Algorithm, X: np.ndarray, C: np.ndarray, rng: np.random.Generator, worst: dict[str, Any]
) -> None:
    row = algorithm.row
    if row.form.spherical:
        X, C = (a / np.linalg.norm(a, axis=1, keepdims=True) for a in (X, C))
    width = Stream(row, X.shape[1], len(C)).width
    turned = partial(rotated, rotation=torch.linalg.qr(torch.from_numpy(rng.normal(size=(width, width))))[0])
    centers, labels = _reference_path(algorithm, X, C, 8)
    # Rotated, equal scores differ in the last bit and the limit would choose among them; exp(-1000) is 0 too.
    finite = {"decoder_cross": Softmax(1e3)} if row.variant.centers == "limiting" else {}
    kinds: dict[str, dict] = {
        "literal": {},
        "rotated": {"changed": turned, "override": finite},
        "rotated_limiting": {"changed": turned},
    }
    for kind, options in kinds.items():
        outputs = list(literal.layers(algorithm, X, C, len(centers), **options))
        worst[kind] = max([worst[kind] or 0.0, *(float(abs(o.centers - c).max()) for o, c in zip(outputs, centers))])
        if kind == "literal" and row.variant.name != "soft":
            differ = sum(int((o.assignments.argmax(1) != a).sum()) for o, a in zip(outputs, labels))
            worst["labels_differ"] = (worst["labels_differ"] or 0) + differ
    worst["layers"] += len(centers)
    if row.variant.name == "medoids" or algorithm.trim_gamma:
        return  # the fast engine has neither
    engine = fused.Fused(X, algorithm)
    state = fused.Centers(torch.from_numpy(C))
    for plain in centers:
        state = engine.m_step(state, engine.e_step(state))
        worst["fused"] = max(worst["fused"] or 0.0, float(abs(state.places.numpy() - plain).max()))


def rotated(built: Layer, rotation: Tensor) -> Layer:
    """Remark 1: queries and keys rotated by one orthogonal matrix give the same scores, hence the same algorithm."""
    sockets = {}
    for name in ("encoder_self", "encoder_cross", "decoder_self", "decoder_cross"):
        socket: Attention = getattr(built, name)
        sockets[name] = Attention(
            socket.score, socket.normaliser, rotation @ socket.query, rotation @ socket.key, socket.value.data
        )
    return Layer(**sockets, norm=built.norm, ffn=built.ffn)


def _edges(quick: bool) -> dict[str, Any]:
    """Cases that the theorems do not cover, and measurements for remarks of the paper."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(50, 2))
    after = next(literal.layers(Algorithm(), X, np.array([[-1.0, 0], [1, 0], [1e3, 0]]), 1)).centers
    line, two = np.array([[-2.0], [-1], [0], [1], [2]]), np.array([[-1.0], [1.0]])
    tie = next(literal.layers(Algorithm(), line, two, 1))
    shared = next(literal.layers(Algorithm(), line, two, 1, override={"decoder_cross": Linear()}))
    return {
        "empty_cluster": {"distance_to_mean_of_all_points": float(np.linalg.norm(after[2] - X.mean(axis=0)))},
        "tie": {
            "points": line.ravel().tolist(),
            "start": two.ravel().tolist(),
            "assignment_of_0": tie.assignments[2].tolist(),
            "limiting": tie.centers.ravel().tolist(),
            "linear": shared.centers.ravel().tolist(),
            "plain_lloyd": reference.lloyd(line, two).ravel().tolist(),
        },
        "norm_max": _norm_max_shares(),
        "gumbel": _gumbel_walk(*((4, 60) if quick else (20, 400))),
    }


def _norm_max_shares() -> dict[str, Any]:
    """The share of the points that norm-max keeps, for clusters of several sizes with the same spread (mean of 50)."""
    sizes, gammas = [20, 60, 200, 600], [1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0]
    generator = torch.Generator().manual_seed(2)
    scores = {n: -torch.randn(50, n, 2, generator=generator, dtype=torch.float64).square().sum(-1) for n in sizes}

    def share(normaliser: NormMax) -> list[float]:
        return [round(float(normaliser(s).mean()), 4) for s in scores.values()]

    return {
        "sizes": sizes,
        "one_gamma": {f"{g:g}": share(NormMax(g)) for g in gammas},
        "gamma_per_cluster_keep_0.9": share(NormMax(keep=0.9)),
    }


def _gumbel_walk(n_seeds: int, n_layers: int) -> dict[str, Any]:
    """The sampler of appendix A.5.2 alone (delta 10, temperature 0), layer by layer, averaged over seeds."""
    ratios = []
    for seed in range(n_seeds):
        X, C = blobs(np.random.default_rng(seed), 200, 2, 5)
        algorithm = Algorithm(TABLE["medoids"], delta=10.0, seed=seed)
        path = [reference.objective(X, o.centers) for o in literal.layers(algorithm, X, C, n_layers)]
        ratios.append(np.array(path) / reference.objective(X, _lloyd(X, C, 100)[-1]))
    ratio = np.array(ratios)
    half, at = n_layers // 2, [t for t in (1, 10, 100, 400) if t <= n_layers]
    return {
        "about": "k-medoids objective of the sampler over the k-means objective that Lloyd reaches from the same start",
        "mean_at_layer": {str(t): round(float(ratio[:, t - 1].mean()), 3) for t in at},
        "mean_of_halves": [round(float(part.mean()), 3) for part in (ratio[:, :half], ratio[:, half:])],
        "best_seen": round(float(ratio.min(axis=1).mean()), 3),
        "steps_that_rise": round(float((np.diff(ratio, axis=1) > 0).mean()), 3),
    }


def _lloyd(X: np.ndarray, C: np.ndarray, n_iterations: int = N_LAYERS) -> list[np.ndarray]:
    """Lloyd's algorithm, including the start. The centre of an empty cluster does not move."""
    path = [C]
    for _ in range(n_iterations):
        a = reference.labels(X, C)
        C = np.stack([X[a == j].mean(axis=0) if (a == j).any() else C[j] for j in range(len(C))])
        path.append(C)
    return path


def finite_gamma(x: Tensor, c: Tensor, gammas: Tensor, attentions: str) -> Iterator[Tensor]:
    """The network of Theorem 1 for several finite gammas at once: centres (G, K, d) layer by layer.

    It computes the same as ``literal.layers`` with overridden normalisers, except that the self-attention of the
    encoder, whose scores never change, is computed once ("all") or known to be the identity ("cross").
    """
    n_gammas, k = len(gammas), len(c)
    soft = Softmax(gammas.reshape(-1, 1, 1))
    eye = torch.eye(k, dtype=x.dtype).expand(n_gammas, k, k)
    x_GND, c_GKD = x.expand(n_gammas, *x.shape), c.expand(n_gammas, *c.shape)
    y_GNK = x.new_zeros(n_gammas, len(x), k)
    looks = normalise(soft(sq_euclidean_scores(x, x))) if attentions == "all" else None
    for _ in range(N_LAYERS):
        chosen = attend(x_GND, c_GKD, eye, sq_euclidean_scores, soft)
        y_GNK = chosen if looks is None else y_GNK - looks @ y_GNK + chosen
        old = 0.0 if looks is None else c_GKD - attend(eye, eye, c_GKD, dot_scores, soft)
        c_GKD = old + attend(eye, y_GNK, x_GND, dot_scores, soft)
        yield c_GKD


@experiment("kmeans/figure3", draw_figure3, seed=3)
def figure3(quick: bool) -> dict[str, Any]:
    """Compare Lloyd's algorithm with 10 layers of the literal network: 10,000 points, 5 clusters, gamma 1e4."""
    gamma, n = 1e4, 400 if quick else 10_000
    X, C = blobs(np.random.default_rng(3), n, 2, 5)
    sides, attended = {"lloyd": _lloyd(X, C)}, {}
    for attentions, sockets in SOCKETS.items():
        override: dict = {name: Softmax(gamma) for name in sockets}
        outputs = list(literal.layers(Algorithm(), X, C, N_LAYERS, override=override))
        sides[attentions] = [C, *(o.centers for o in outputs)]
        attended[attentions] = [_points_attended(o.assignments, gamma) for o in outputs]
    record: dict[str, Any] = {"n": n, "k": 5, "gamma": gamma, "layers": N_LAYERS, "attentions": SOCKETS}
    record["points"] = X.round(3).tolist()
    record["sides"] = {
        name: {
            "objective": [reference.objective(X, c) for c in path],
            "centers": [c.tolist() for c in path],
            "labels": reference.labels(X, path[-1]).tolist(),
        }
        for name, path in sides.items()
    }
    record["differences"] = {name: _difference(X, sides["lloyd"], sides[name]) for name in SOCKETS}
    record["points_attended_by_layer"] = attended
    record["other_seeds"] = _figure3_seeds(n, gamma, 3 if quick else 20)
    return record


def _points_attended(labels: np.ndarray, gamma: float) -> dict[str, Any]:
    """The largest label, and the effective number of points 1 / Σ weight² in the attention of each centre."""
    weights = normalise(Softmax(gamma)(torch.from_numpy(labels.T.copy())))
    return {"largest_label": float(labels.max()), "points": (1 / weights.square().sum(-1)).round(decimals=1).tolist()}


def _difference(X: np.ndarray, lloyd: list[np.ndarray], network: list[np.ndarray]) -> dict[str, Any]:
    ours, plain = reference.objective(X, network[-1]), reference.objective(X, lloyd[-1])
    return {
        "centers_by_layer": [float(abs(a - b).max()) for a, b in zip(lloyd, network)],
        "log_objective": math.log(ours) - math.log(plain),
        "labels_that_differ": int((reference.labels(X, lloyd[-1]) != reference.labels(X, network[-1])).sum()),
    }


def _figure3_seeds(n: int, gamma: float, n_seeds: int) -> dict[str, Any]:
    """The same comparison on other data, and with soft k-means, which has linear attention in the decoder."""
    found: dict[str, list] = {"cross": [], "soft": []}
    for seed in range(100, 100 + n_seeds):
        X, C = blobs(np.random.default_rng(seed), n, 2, 5)
        layers = finite_gamma(torch.from_numpy(X), torch.from_numpy(C), torch.tensor([gamma]).double(), "cross")
        soft, lloyd = [C], _lloyd(X, C)
        for _ in range(N_LAYERS):
            soft.append(reference.soft(X, soft[-1], gamma))
        found["cross"].append(_difference(X, lloyd, [C, *(c[0].numpy() for c in layers)]))
        found["soft"].append(_difference(X, lloyd, soft))
    return {"seeds": n_seeds} | {
        name: {
            "largest_center_difference": max(max(f["centers_by_layer"]) for f in each),
            "largest_log_objective": max(abs(f["log_objective"]) for f in each),
            "most_labels_that_differ": max(f["labels_that_differ"] for f in each),
            "seeds_with_equal_labels": sum(f["labels_that_differ"] == 0 for f in each),
        }
        for name, each in found.items()
    }


@experiment("kmeans/figure4", draw_figure4, seed=0)
def figure4(quick: bool) -> dict[str, Any]:
    """Log objective of the network minus that of Lloyd, over gamma, dimension, points, clusters and scale."""
    axes = QUICK_AXES if quick else AXES
    shape = tuple(map(len, axes.values()))
    values = {attentions: np.zeros(shape) for attentions in SOCKETS}
    gammas = torch.tensor(axes["gamma"], dtype=torch.float64)
    left_out: list[float] = []
    for at in np.ndindex(shape[0], shape[1], shape[2], shape[4]):
        d, n, k = axes["dimension"][at[0]], axes["points"][at[1]], axes["clusters"][at[2]]
        rng = np.random.default_rng([0, d, n, k, at[3]])
        X, C = blobs(rng, n, d, k)
        while _empties(X, path := _lloyd(X, C)):
            left_out.append(_log_ratio(X, torch.from_numpy(C), gammas[-1:], path))
            C = X[rng.choice(n, k, replace=False)].copy()
        lloyd = math.log(reference.objective(X, path[-1]))
        for i, scale in enumerate(axes["scale"]):
            x, c = torch.from_numpy(scale * X), torch.from_numpy(scale * C)
            for attentions in SOCKETS:
                final = list(finite_gamma(x, c, gammas, attentions))[-1].numpy() / scale
                logs = [math.log(reference.objective(X, f)) for f in final]
                values[attentions][at[0], at[1], at[2], i, at[3]] = np.array(logs) - lloyd
    return {
        "layers": N_LAYERS,
        "attentions": SOCKETS,
        "data": "centres N(0, 3² I), noise N(0, I), times scale; start: k different points",
        "engine": "finite_gamma, a batch over gamma",
        "largest_difference_from_literal_network": _against_literal(axes),
        "starts_left_out": {
            "about": "Lloyd empties a cluster: value at the largest gamma, scale 1, cross attentions; then drawn again",
            "values": left_out,
        },
        "axes": axes,
        "values": {name: np.round(v, 6).tolist() for name, v in values.items()},
        "trends": {name: _trends(v, axes) for name, v in values.items()},
    }


def _empties(X: np.ndarray, path: list[np.ndarray]) -> bool:
    return any(len(np.unique(reference.labels(X, c))) < len(c) for c in path[:-1])


def _log_ratio(X: np.ndarray, c: Tensor, gamma: Tensor, lloyd: list[np.ndarray]) -> float:
    final = list(finite_gamma(torch.from_numpy(X), c, gamma, "cross"))[-1][0].numpy()
    return round(math.log(reference.objective(X, final) / reference.objective(X, lloyd[-1])), 4)


def _against_literal(axes: dict[str, list]) -> dict[str, float]:
    """Largest difference of a centre between ``finite_gamma`` and the literal network, in any layer, per gamma."""
    X, C = blobs(np.random.default_rng(7), 100, 4, 5)
    worst, gammas = {}, torch.tensor(axes["gamma"], dtype=torch.float64)
    for attentions, sockets in SOCKETS.items():
        batch = list(finite_gamma(torch.from_numpy(X), torch.from_numpy(C), gammas, attentions))
        worst[attentions] = 0.0
        for g, gamma in enumerate(axes["gamma"]):
            override: dict = {name: Softmax(gamma) for name in sockets}
            for one, many in zip(literal.layers(Algorithm(), X, C, N_LAYERS, override=override), batch):
                worst[attentions] = max(worst[attentions], float(abs(one.centers - many[g].numpy()).max()))
    return worst


def _trends(values: np.ndarray, axes: dict[str, list]) -> dict[str, Any]:
    """Mean |difference| at every value of every parameter, over all the others, and per gamma."""
    size, everything = abs(values), tuple(range(len(axes)))
    found: dict[str, Any] = {}
    for i, name in enumerate(axes):
        found[name] = {"mean": size.mean(axis=everything[:i] + everything[i + 1 :]).round(6).tolist()}
        if name not in ("gamma", "seed"):
            by_gamma = size.mean(axis=everything[:i] + everything[i + 1 : -1])
            found[name]["mean_by_gamma"] = by_gamma.T.round(6).tolist()
    found["share_within_1e-3"] = (size < 1e-3).mean(axis=everything[:-1]).round(4).tolist()
    found["share_below_Lloyd_by_1e-3"] = (values < -1e-3).mean(axis=everything[:-1]).round(4).tolist()
    found["share_of_gamma_steps_that_worsen"] = round(float((np.diff(size, axis=-1) > 1e-3).mean()), 4)
    return found
