"""Benchmarks against other packages: what ``coterie bench NAME`` runs."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coterie_research.benchmarks.harness import Benchmark

BENCHMARKS = {  # name: the module, and what it measures
    "calls": ("benchmarks.calls", "single calls of the k-means family beside scikit-learn and FasterPAM"),
    "constraints": ("benchmarks.constraints", "how much a few given labels help"),
    "kmeans": ("benchmarks.kmeans", "KMeans beside scikit-learn, faiss and scikit-learn-intelex"),
    "kmedoids": ("benchmarks.kmedoids", "KMedoids beside FasterPAM"),
    "large": ("benchmarks.large", "whole answers on large tables: the command line, starts, EM and first fits"),
    "learned-lloyd": ("benchmarks.learned_lloyd", "layers with learned parameters beside Lloyd's algorithm"),
    "living": (
        "benchmarks.living",
        "ids of clusters through a year of tables, and checks of unchanged and drifted ones",
    ),
    "mixed": ("benchmarks.mixed", "encodings of text and missing values"),
    "mixtures": ("benchmarks.mixtures", "FlowMixture beside Gaussian mixtures and HDBSCAN"),
    "real-tables": ("benchmarks.real_tables", "the zero-shot clusterer on real tables that it was not trained on"),
    "scale": ("benchmarks.scale", "KMeans on Dask beside dask-ml, up to 200 million rows"),
    "sizes": ("benchmarks.sizes", "KMeans with bounds on sizes beside k-means-constrained"),
    "tables": ("benchmarks.tables", "files as they are: the zero-shot clusterer beside the usual pipeline"),
    "vae": ("benchmarks.vae", "VAEMixture beside the deep clusterers of clustpy"),
    "zeroshot": ("benchmarks.zeroshot", "the zero-shot clusterer beside other methods on many sets"),
    "embeddings": (
        "benchmarks.embeddings",
        "embeddings, pixels and cells beside UMAP + HDBSCAN, Leiden, EVoC and k-means",
    ),
    "interruptions": ("stress.interruptions", "stress: programs are killed, and files and results compared"),
    "tabs": ("stress.tabs", "stress: ten pages of the studio beside two long runs"),
    "soak": ("stress.soak", "stress: a studio and a cluster under load for half an hour"),
}


def find(name: str) -> "Benchmark":
    return import_module(f"coterie_research.{BENCHMARKS[name][0]}").BENCHMARK
