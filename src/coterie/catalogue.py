"""The catalogue of estimators. The package, the command line, the studio, saved files and the documentation read it.

An estimator that is added needs its class and one row here.
"""

from typing import NamedTuple


class Row(NamedTuple):
    """One estimator.

    ``short`` is its name on the command line and in the studio; None keeps it out of both. ``data`` and ``why`` are its
    line in docs/choosing.md, beside the picture of ``example``. ``takes`` lists what ``fit`` accepts besides arrays
    (weights, sparse matrices, missing values), and "new rows" if it predicts. Every estimator takes files and Dask;
    ``needs`` says what it reads of them: passes over all rows, a sample, or both, or all rows in random order.
    """

    module: str  # in coterie.estimators
    short: str | None
    about: str
    data: str
    why: str
    example: str
    takes: str
    counts: bool = True  # whether a number of clusters can be given
    finds: bool = False  # whether it determines the number if none is given
    outliers: bool = False  # whether rows can stay outside all clusters
    sized: bool = False  # whether sizes can be bounded
    needs: str = "passes"


_USUAL = "weights, new rows"
CATALOGUE = {
    "ZeroShotClusterer": Row(
        "zero_shot_clusterer",
        "zeroshot",
        "A pretrained network for any shape; finds the number of clusters.",
        "a table about which nothing is known",
        "This pretrained network needs no number of clusters, no scaling and no encoding, and it finds clusters of any "
        "shape ([evaluation](zeroshot.md)).",
        "zero_shot",
        "missing values, new rows",
        finds=True,
        outliers=True,
        needs="sample",
    ),
    "KMeans": Row(
        "kmeans",
        "kmeans",
        "Compact, round clusters.",
        "compact clusters, any number of rows",
        "It is the fastest and runs Lloyd's algorithm exactly.",
        "quick_start",
        "weights, sparse, new rows",
        sized=True,
    ),
    "TrimmedKMeans": Row(
        "trimmed_kmeans",
        "trimmed",
        "Ignores the most distant rows and labels them as outliers.",
        "outliers whose share is roughly known",
        "It excludes a given share of the rows and labels them −1.",
        "outliers",
        _USUAL,
        outliers=True,
        sized=True,
    ),
    "RobustKMeans": Row(
        "robust_kmeans",
        "robust",
        "Keeps all rows, but distant rows have little influence.",
        "outliers whose share is unknown",
        "All rows keep a cluster, but distant rows have almost no influence on the centres.",
        "outliers",
        _USUAL,
    ),
    "SoftKMeans": Row(
        "soft_kmeans",
        "soft",
        "Overlapping clusters: every row belongs to each to some degree.",
        "overlapping clusters",
        'Every row has a degree of membership in every cluster. `refine="posterior"` averages over the posterior of '
        "the mixture, which is slower and better where clusters overlap much.",
        "soft_and_sphere",
        _USUAL,
    ),
    "SphericalKMeans": Row(
        "spherical_kmeans",
        "spherical",
        "Compares directions: for texts and embeddings.",
        "texts, embeddings, directions",
        "It compares directions and ignores the lengths of the rows.",
        "soft_and_sphere",
        "weights, sparse, new rows",
        sized=True,
    ),
    "KMedoids": Row(
        "kmedoids",
        "medoids",
        "Every centre is a row of the table.",
        "clusters to be shown by examples",
        "Every centre is a row of the data.",
        "medoids",
        "weights, new rows",
        needs="sample",
    ),
    "InContextClusterer": Row(
        "in_context_clusterer",
        "incontext",
        "A pretrained network for overlapping clusters; at most 20.",
        "a few overlapping clusters, with probabilities",
        "A pretrained network approximates the posterior of a Gaussian mixture; at most 20 clusters.",
        "in_context",
        "new rows",
        needs="sample",
    ),
    "FlowMixture": Row(
        "flow_mixture",
        "flow",
        "Gaussian clusters of any covariance; finds their number.",
        "Gaussian clusters of any covariance, unknown number, possibly with outliers",
        "A pretrained network starts the search for the number of clusters and the type of their covariances; a "
        "sampler tells how certain they are ([benchmark](../results/mixtures/README.md)).",
        "flow_mixture",
        "weights, new rows",
        counts=False,
        finds=True,
        outliers=True,
        needs="sample and passes",
    ),
    "VAEMixture": Row(
        "vae_mixture",
        "vae",
        "One autoencoder per cluster, for any shape; can generate rows. Slow.",
        "images, from which new ones are to be generated",
        "It trains one autoencoder per cluster, so new rows can be sampled from every cluster.",
        "vae_mixture",
        "new rows",
        needs="all rows",
    ),
    "AttentionClustering": Row(
        "attention_clustering",
        None,
        "Any row of the table of algorithms.",
        "research on attention",
        "It runs any row of [the table of algorithms](family.md), on request with the actual matrices of the "
        "transformer.",
        "layers",
        _USUAL,
    ),
}


def algorithms() -> dict[str, str]:
    """The class of every short name."""
    return {row.short: name for name, row in CATALOGUE.items() if row.short is not None}


def row_of(short: str) -> Row:
    """The row of a short name."""
    return CATALOGUE[algorithms()[short]]
