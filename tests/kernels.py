"""Compile the kernels that most tests use, before several processes of pytest would each compile them.

``python -m tests.kernels`` starts one process for each half of them.
"""

import subprocess
import sys
import warnings

import numpy as np


def centers() -> None:
    from scipy.sparse import csr_array

    from coterie import KMeans, KMedoids, RobustKMeans, SoftKMeans, SphericalKMeans, TrimmedKMeans

    for dtype in (np.float32, np.float64):
        small, large = (np.random.default_rng(0).normal(size=size).astype(dtype) for size in ((60, 3), (9_000, 5)))
        for kind in (KMeans, KMedoids, RobustKMeans, SoftKMeans, SphericalKMeans, TrimmedKMeans):
            for rows in (small, large[:3_000] if kind is KMedoids else large):
                kind(4, n_init=1, max_iter=3, random_state=0).fit(rows).predict(rows)
        KMeans(40, n_init=1, random_state=0).fit(large, sample_weight=np.ones(len(large)))
        KMeans(4, n_init=1, random_state=0).fit(csr_array(small)).predict(csr_array(small))


def networks() -> None:
    from coterie import FlowMixture, SoftKMeans, ZeroShotClusterer

    X = np.random.default_rng(0).normal(size=(150, 2)) + np.repeat([[0, 0], [9, 0], [0, 9]], 50, axis=0)
    ZeroShotClusterer(random_state=0).fit(X).predict(X)
    FlowMixture(random_state=0).fit(X)
    FlowMixture(covariance_type="tied-spherical", refine="posterior", random_state=0).fit(X)
    SoftKMeans(3, refine="posterior", random_state=0).fit(X)


HALVES = {"centers": centers, "networks": networks}

if __name__ == "__main__":
    if len(sys.argv) > 1:
        warnings.simplefilter("ignore")
        HALVES[sys.argv[1]]()
    else:
        started = [subprocess.Popen([sys.executable, "-m", "tests.kernels", half]) for half in HALVES]
        sys.exit(max(process.wait() for process in started))
