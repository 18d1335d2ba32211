"""``coterie warmup``: compile what first calls would compile, so that nobody waits for it later."""

import subprocess
import sys

from coterie.cli.application import Refused, app

COMPILE = "from coterie.cli import warmup; warmup.{}()"  # in a process of its own
DTYPES = "float32", "float64"


@app.command()
def warmup() -> None:
    """Compile the most used functions for this processor, once after an installation: half a minute on two cores.

    Otherwise the first call that needs one of them compiles it, which takes some seconds.
    """
    started = [
        subprocess.Popen([sys.executable, "-W", "ignore", "-c", COMPILE.format(half)])  # noqa: S603 - this package
        for half in ("centers", "networks")
    ]
    if any([process.wait() for process in started]):
        raise Refused("not everything was compiled: the messages above say why. The first calls will try it again.")


def centers() -> None:
    """The k-means family, on few rows, on many, and on as many that are read-only, as those of a file are."""
    import numpy as np
    from scipy.sparse import csr_array

    from coterie import KMeans, KMedoids, RobustKMeans, SoftKMeans, SphericalKMeans, TrimmedKMeans

    for dtype in DTYPES:
        small, large = (np.random.default_rng(0).normal(size=size).astype(dtype) for size in ((60, 3), (9_000, 5)))
        readonly = large.copy()
        readonly.flags.writeable = False
        for kind in (KMeans, KMedoids, RobustKMeans, SoftKMeans, SphericalKMeans, TrimmedKMeans):
            for rows in (small, large[:3_000] if kind is KMedoids else large):
                kind(4, n_init=1, max_iter=3, random_state=0).fit(rows).predict(rows)
        KMeans(40, n_init=1, random_state=0).fit(large, sample_weight=np.ones(len(large)))
        KMeans(4, n_init=1, random_state=0).fit(csr_array(small)).predict(csr_array(small))
        KMeans(4, n_init=1, max_iter=3, random_state=0).fit(large).predict(readonly)
        TrimmedKMeans(4, n_init=1, max_iter=3, random_state=0).fit(readonly)


def networks() -> None:
    """The pretrained networks, and the bounds of k-means for many columns."""
    import numpy as np

    from coterie import FlowMixture, SoftKMeans, ZeroShotClusterer
    from coterie.kmeans import lazy

    random = np.random.default_rng(0)
    X = random.normal(size=(150, 2)) + np.repeat([[0, 0], [9, 0], [0, 9]], 50, axis=0)
    ZeroShotClusterer(random_state=0).fit(X).predict(X)
    FlowMixture(random_state=0).fit(X)
    FlowMixture(covariance_type="tied-spherical", refine="posterior", random_state=0).fit(X)
    SoftKMeans(3, refine="posterior", random_state=0).fit(X)
    embedded = random.normal(size=(2_400, 20)) @ random.normal(size=(20, 256))
    for dtype in DTYPES:
        for rows, k in ((random.normal(size=(600, 70)), 60), (embedded, 512)):
            assigner = lazy.Assigner(rows.astype(dtype), n_threads=1)
            for _ in range(2):
                assigner.assign(rows[:k])
            assigner.sq_distances()
