"""Compile the kernels that most tests use, before several processes of pytest would each compile them.

``python -m tests.kernels`` starts one process for each half of them.
"""

import subprocess
import sys
import warnings

import numpy as np

DTYPES = np.float32, np.float64


def tables(dtype) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Few rows, many rows, and as many rows that are read-only, as those of a file are."""
    small, large = (np.random.default_rng(0).normal(size=size).astype(dtype) for size in ((60, 3), (9_000, 5)))
    readonly = large.copy()
    readonly.flags.writeable = False
    return small, large, readonly


def centers() -> None:
    from scipy.sparse import csr_array

    from coterie import KMeans, KMedoids, RobustKMeans, SoftKMeans, SphericalKMeans, TrimmedKMeans

    for dtype in DTYPES:
        small, large, readonly = tables(dtype)
        for kind in (KMeans, KMedoids, RobustKMeans, SoftKMeans, SphericalKMeans, TrimmedKMeans):
            for rows in (small, large[:3_000] if kind is KMedoids else large):
                kind(4, n_init=1, max_iter=3, random_state=0).fit(rows).predict(rows)
        KMeans(40, n_init=1, random_state=0).fit(large, sample_weight=np.ones(len(large)))
        KMeans(4, n_init=1, random_state=0).fit(csr_array(small)).predict(csr_array(small))
        KMeans(4, n_init=1, max_iter=3, random_state=0).fit(large).predict(readonly)
        TrimmedKMeans(4, n_init=1, max_iter=3, random_state=0).fit(readonly)


def networks() -> None:
    from coterie import FlowMixture, SoftKMeans, ZeroShotClusterer

    X = np.random.default_rng(0).normal(size=(150, 2)) + np.repeat([[0, 0], [9, 0], [0, 9]], 50, axis=0)
    ZeroShotClusterer(random_state=0).fit(X).predict(X)
    FlowMixture(random_state=0).fit(X)
    FlowMixture(covariance_type="tied-spherical", refine="posterior", random_state=0).fit(X)
    SoftKMeans(3, refine="posterior", random_state=0).fit(X)
    for dtype in DTYPES:
        bounds(dtype)


def bounds(dtype) -> None:
    """The bounds for many columns: those of groups of centres, and those of leading dimensions."""
    from coterie.kmeans import lazy

    random = np.random.default_rng(0)
    embedded = random.normal(size=(2_400, 20)) @ random.normal(size=(20, 256))
    for rows, k in ((random.normal(size=(600, 70)), 60), (embedded, 512)):
        assigner = lazy.Assigner(rows.astype(dtype), n_threads=1)
        for _ in range(2):
            assigner.assign(rows[:k])
        assigner.sq_distances()


HALVES = {"centers": centers, "networks": networks}

if __name__ == "__main__":
    if len(sys.argv) > 1:
        warnings.simplefilter("ignore")
        HALVES[sys.argv[1]]()
    else:
        started = [subprocess.Popen([sys.executable, "-m", "tests.kernels", half]) for half in HALVES]
        sys.exit(max(process.wait() for process in started))
