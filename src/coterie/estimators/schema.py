"""What a model file may contain: its classes, parameters, and the shapes and values of fitted attributes.

A file is checked before anything computes with it, because compiled code trusts the shapes and indices that it is
given. The same check runs when a file is written, so that every file that can be saved can be loaded.
"""

import re
from typing import Any

import numpy as np

# Shapes are words of letters. A letter is a size that is the same in the whole file: k clusters, d features, n rows. A
# digit is that size itself. "int" and "bool" precede other types than float; "any" allows infinity and NaN.
CENTERS = {"cluster_centers_": "k d"}
NEEDED: dict[str, dict[str, str]] = {  # of estimators that predict with more than centres
    "SoftKMeans": {**CENTERS, "weights_": "k"},
    "TrimmedKMeans": {**CENTERS, "threshold_": "k"},
    "FlowMixture": {**CENTERS, "weights_": "k"},
    "InContextClusterer": {
        **CENTERS,
        "weights_": "k",
        "mean_": "d",
        "components_": "e d",
        "mode_weights_": "s",
        "mode_centers_": "s k 1 e",
        "layer_centers_": "l s k m e",
        "layer_shares_": "p s k",
        "layer_vars_": "p s",
        "layer_tokens_": "p s k t",
        "renaming_": "s k k",
        "coassignment_sums_": "k f",
        "coassignment_sizes_": "k",
    },
    "VAEMixture": {**CENTERS, "weights_": "k", "network_weights_": "w", "offset_": "d", "scale_": "d"},
    "ZeroShotClusterer": {
        "cluster_centers_": "any k d",
        "context_": "c e",
        "context_proba_": "c k",
        "context_noise_": "c",
        "context_indices_": "int c",
        "children_": "int b 2",
    },
}
READ_BY = ({"affinity_": "c c"}, {"communities_": "int c q", "context_certainty_": "c"})  # the network, or as a graph
NUMBERS = {"FlowMixture": ("n_clusters_", "var_")}  # that must be there, too
# What SoftKMeans with ``refine="posterior"`` predicts with: all or none.
POSTERIOR = {
    "posterior_origin_": "d",
    "posterior_centers_": "j k d",
    "posterior_weights_": "j k",
    "posterior_vars_": "j",
    "posterior_names_": "int j k",
    "coassignment_sums_": "k f",
    "coassignment_sizes_": "k",
}
OPTIONAL = {
    **POSTERIOR,
    "labels_": "int n",
    "start_labels_": "int n",
    "weights_": "k",
    "threshold_": "k",
    "sums_": "k d",
    "counts_": "k",
    "medoid_indices_": "int k",
    "atoms_": "a d",
    "noise_": "n",
    "certainty_": "n",
    "outliers_": "bool n",
    "box_": "2 d",
    "draw_indices_": "int m",
    "label_draws_": "int j m",
    "center_covariances_": "k d d",
    "center_intervals_": "2 k d",
    "head_": "h",
    "value_profile_": "u v",
    "point_profile_": "y z",
}
REMOVED = {  # parameters of earlier versions, used by fit only
    "FlowMixture": {"snr_db", "n_layers", "regime"},
    "VAEMixture": {"precision", "move_iter", "dtype"},
}
RENAMED = {"TrimmedKMeans": {"trim": "outliers"}}
FOLDED = {"AttentionClustering": ("settings", ("gamma", "keep", "top", "delta"))}  # parameters that became entries
COUNTS = {"n_features_in_", "n_clusters_", "n_iter_", "n_modes_", "hidden_size_", "latent_size_"}
COUNTS |= {"networks_per_cluster_", "_n_features_out"}
POSITIVE = {"var_", "gamma_"}  # numbers that rows are divided by
TEXTS = {"likelihood_", "encoding_"}
KINDS = {"int": "iu", "bool": "b", "any": "f", "float": "f"}
PREDICTS_WITH_NETWORK = {"InContextClusterer"}


def check_attributes(kind: type, attributes: dict[str, Any]) -> None:
    """Raise ValueError unless these can be the fitted attributes of an estimator of this class."""
    for name, value in attributes.items():
        # Names of methods and properties, and those of Python itself, cannot be attributes of a fit.
        if not re.fullmatch(r"[a-z]\w*[a-z0-9]_|_n_features_out", name) or hasattr(kind, name):
            raise ValueError(f"{name!r} cannot be an attribute of {kind.__name__}")
        _check_number(name, value)
    sizes = {"d": attributes.get("n_features_in_", 0)}
    if "_n_features_out" in attributes and kind.__name__ != "VAEMixture":  # whose features are the latent dimensions
        sizes["k"] = attributes["_n_features_out"]
    needed = NEEDED.get(kind.__name__, CENTERS)
    if kind.__name__ == "SoftKMeans" and any(name.startswith(("posterior_", "coassignment_")) for name in attributes):
        needed = {**needed, **POSTERIOR}
    if kind.__name__ == "ZeroShotClusterer":
        needed = {**needed, **READ_BY["communities_" in attributes]}
    missing = [name for name in (*NUMBERS.get(kind.__name__, ()), "n_features_in_", *needed) if name not in attributes]
    if missing:
        raise ValueError(f"there is no {missing[0]}")
    for name, shape in {**OPTIONAL, **needed}.items():
        if name in attributes:
            _check_array(name, attributes[name], shape, sizes)
    _check_indices(attributes, sizes)
    names = attributes.get("feature_names_in_")
    if names is not None and len(names) != sizes["d"]:
        raise ValueError(f"there are {len(names)} names for {sizes['d']} columns")
    if kind.__name__ == "ZeroShotClusterer":
        _check_encoding(attributes.get("encoding_"), sizes["e"])
        if sizes.get("h"):
            from coterie.zeroshot.network.head import width_of

            width_of(sizes["h"])


def renewed(kind: type, attributes: dict[str, Any]) -> dict[str, Any]:
    """The attributes of an earlier version as those of today."""
    noise = attributes.get("noise_")
    if kind.__name__ == "ZeroShotClusterer" and isinstance(noise, np.ndarray) and noise.dtype == bool:
        return {**attributes, "noise_": noise.astype(np.float64)}  # in 0.1.0 true or false
    return attributes


def unfolded(kind: type, given: dict[str, Any]) -> dict[str, Any]:
    """Parameters as they are saved: the entries of a dictionary as parameters of their own, as in the first version."""
    into, _ = FOLDED.get(kind.__name__, ("", ()))
    return {**{name: value for name, value in given.items() if name != into}, **(given.get(into) or {})}


def check_parameters(kind: Any, given: dict[str, Any]) -> Any:
    """The estimator with these parameters, or a ValueError if a name or type is not one of this class."""
    given = {name: value for name, value in given.items() if name not in REMOVED.get(kind.__name__, ())}
    renamed = RENAMED.get(kind.__name__, {})
    given = {renamed.get(name, name): one for name, one in given.items() if name not in renamed or one is not None}
    into, names = FOLDED.get(kind.__name__, ("", ()))
    if entries := {name: given.pop(name) for name in names if name in given}:
        given[into] = entries
    unknown = sorted(set(given) - set(kind._get_param_names()))
    if unknown:
        raise ValueError(f"{kind.__name__} has no parameter {unknown[0]!r}")
    estimator = kind(**given)
    if not isinstance(given.get("device"), str | None):
        raise ValueError("device must be a string or None")
    callable_init = given.get("init", "") is None  # functions are not saved: such an estimator predicts only
    if callable_init:
        estimator.init = kind().init
    try:
        estimator._validate_params()
    except Exception as error:  # InvalidParameterError is private; array parameters raise others
        raise ValueError(str(error).splitlines()[0]) from error
    if callable_init:
        estimator.init = None
    return estimator


def check_predicts(estimator: Any) -> None:
    """Raise ValueError unless an estimator with networks can label a row with what the file says about them."""
    if type(estimator).__name__ == "VAEMixture":
        d, k, given = estimator.n_features_in_, len(estimator.weights_), vars(estimator)
        latent = given.get("latent_size_", 0)
        size = k * given.get("networks_per_cluster_", 0) * given.get("hidden_size_", 0) * (d + latent)
        if not latent or not 0 < size <= len(estimator.network_weights_):
            raise ValueError("network_weights_ does not fit the sizes of the networks")
    elif type(estimator).__name__ not in PREDICTS_WITH_NETWORK:
        return
    device, estimator.device = estimator.device, None  # another machine may not have the device
    try:
        if hasattr(estimator, "network_weights_"):
            needed = sum(weight.numel() for weight in estimator._networks().parameters())
            if needed != len(estimator.network_weights_):
                raise ValueError(f"network_weights_ must have {needed} values")
        estimator._labels(estimator.cluster_centers_[:1].astype(np.float64))
    except (RuntimeError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise ValueError(f"its networks cannot be rebuilt ({str(error).splitlines()[0]})") from error
    finally:
        estimator.device = device


def _check_number(name: str, value: Any) -> None:
    if name in COUNTS and (type(value) is not int or not 0 <= value < 2**40):
        raise ValueError(f"{name} must be a count, got {value!r:.40}")
    if name in POSITIVE and not (isinstance(value, int | float) and 0 < value < np.inf):
        raise ValueError(f"{name} must be a positive number, got {value!r:.40}")
    if name in TEXTS and not isinstance(value, str):
        raise ValueError(f"{name} must be a text, got {value!r:.40}")


def _check_array(name: str, value: Any, shape: str, sizes: dict[str, int]) -> None:
    first, *rest = shape.split()
    kind, letters = (first, rest) if first in KINDS else ("float", [first, *rest])
    if not isinstance(value, np.ndarray) or value.dtype.kind not in KINDS[kind] or value.dtype == np.float16:
        raise ValueError(f"{name} must be an array of type {'float' if kind == 'any' else kind}")
    if value.ndim != len(letters):
        raise ValueError(f"{name} must have {len(letters)} dimensions, got the shape {value.shape}")
    for letter, size in zip(letters, value.shape):
        expected = int(letter) if letter.isdigit() else sizes.setdefault(letter, size)
        if size != expected or (size == 0 and letter in "kdces"):
            raise ValueError(f"{name} has the shape {value.shape}, which does not fit the other arrays")
    if kind == "float" and not np.isfinite(value).all():
        raise ValueError(f"{name} contains NaN or infinity")


def _check_indices(attributes: dict[str, Any], sizes: dict[str, int]) -> None:
    """Indices must exist: compiled code does not check them."""
    limits = {"labels_": (-1, sizes.get("k", 0)), "start_labels_": (-1, sizes.get("k", 0))}
    limits |= {name: (0, 2**62) for name in ("medoid_indices_", "context_indices_", "draw_indices_", "communities_")}
    limits["posterior_names_"] = (0, sizes.get("k", 0))
    for name, (low, high) in limits.items():
        values = attributes.get(name)
        if values is not None and values.size and not (values.min() >= low and values.max() < high):
            raise ValueError(f"{name} has values outside of {low} to {high - 1}")
    if "children_" in attributes:
        merges, c = attributes["children_"], sizes["c"]
        new = c + np.arange(len(merges))[:, None]
        if len(merges) != c - 1 or (merges < 0).any() or (merges >= new).any():
            raise ValueError("children_ is not a hierarchy of the rows in context_")
        if len(np.unique(merges)) != merges.size:
            raise ValueError("children_ merges a cluster twice")
    if "layer_shares_" in attributes and sizes["p"] != sizes["l"] + 1:
        raise ValueError("layer_shares_ must have one more layer than layer_centers_")


def _check_encoding(text: str | None, width: int) -> None:
    from coterie.tables.encoding import Encoding

    if text is None:
        raise ValueError("there is no encoding_")
    found = len(Encoding.from_json(text).point_names)
    if found != width:
        raise ValueError(f"encoding_ gives {found} values per row, context_ has {width}")
