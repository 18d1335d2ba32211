"""The same tests in many worlds: ``python -m tests.worlds``, or ``make worlds``.

A world is an environment in which the tests run once more: other numbers of threads, no compiled code, small blocks,
models that are saved and loaded before they predict, another source, another code page, folders that cannot be written
to, another order, other seeds. The plugin in this file sets up what an environment variable cannot; pytest loads it
with ``-p tests.worlds``. A table says how each world went.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FAST = (  # every estimator by the files of releases, vector instructions, and what is written
    "tests/releases",
    "tests/kmeans/test_lanes.py",
    "tests/tables/test_label_files.py",
    "tests/checkpoints/test_json_shapes.py",
    "tests/test_wording.py",
)
WORLDS: dict[str, dict[str, str]] = {
    "as it is": {},
    "one thread": {
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "NUMBA_NUM_THREADS": "1",
    },
    "two threads": dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "2"),
    "many threads": {"COTERIE_WORLD": "threads"},
    "no compiled code": {"NUMBA_DISABLE_JIT": "1"},
    "vectors of AVX2": {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx,+avx2,+fma"},
    "checked indices": {"NUMBA_BOUNDSCHECK": "1"},
    "small blocks": {"COTERIE_WORLD": "blocks"},
    "saved and loaded": {"COTERIE_WORLD": "saved"},
    "rows in chunks": {"COTERIE_WORLD": "chunks"},
    "rows on Dask": {"COTERIE_WORLD": "dask"},
    "cp1252": {"PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0", "LC_ALL": "C"},
    "nothing can be cached": {"COTERIE_WORLD": "read-only"},
    "random order": {"COTERIE_WORLD": "order"},
    "another seed": {"COTERIE_WORLD": "seed"},
}
SOURCES = ("chunks", "dask")
BLOCK = 7  # rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("tests", nargs="*", default=FAST, help="files and folders; by default a fast subset")
    parser.add_argument("--world", action="append", choices=WORLDS, help="only this one; can be repeated")
    parser.add_argument("--seconds", type=float, default=900.0, help="limit of one world")
    given = parser.parse_args()
    rows = [run(world, given.tests, given.seconds) for world in given.world or WORLDS]
    print(f"\n{'world':<24}{'passed':>8}{'failed':>8}{'skipped':>9}{'seconds':>9}")
    for world, found, seconds in rows:
        print(f"{world:<24}{found['passed']:>8}{found['failed']:>8}{found['skipped']:>9}{seconds:>9.0f}")
    return int(any(found["failed"] or not found["passed"] for _, found, _ in rows))


def run(world: str, tests: list[str], seconds: float) -> tuple[str, dict[str, int], float]:
    """The tests in one world. Its machine code is kept apart from that of the others where it differs."""
    began = time.monotonic()
    given = dict(os.environ, **WORLDS[world], PYTHONPATH=os.pathsep.join(["src", "research", "."]))
    if any(name.startswith("NUMBA_") and name != "NUMBA_NUM_THREADS" for name in WORLDS[world]):
        given["NUMBA_CACHE_DIR"] = str(Path("build", "worlds", world.replace(" ", "-")).resolve())
    with tempfile.NamedTemporaryFile("r", suffix=".txt") as told:
        given["COTERIE_WORLD_TOLD"] = told.name
        command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.worlds", "--no-header", "--tb=short", *tests]
        try:
            subprocess.run(command, env=given, timeout=seconds)
        except subprocess.TimeoutExpired:
            print(f"{world}: more than {seconds:g} s", flush=True)
        counts = [int(each) for each in told.read().split()] or [0, 1, 0]
    return world, dict(zip(("passed", "failed", "skipped"), counts)), time.monotonic() - began


# --- the plugin ---


def pytest_configure(config):
    here = os.environ.get("COTERIE_WORLD")
    if here == "threads":
        _more_threads()
    elif here == "blocks":
        _small_blocks()
    elif here == "saved":
        _saved_before_predict()
    elif here in SOURCES:
        _other_source(here)
    elif here == "read-only":
        from numba.core import caching

        caching.FunctionCache._impl_class._locator_classes = []
    elif here == "seed":
        _other_seeds()


def pytest_collection_modifyitems(items):
    if os.environ.get("COTERIE_WORLD") == "order":
        random.Random(int(os.environ.get("COTERIE_WORLD_SEED", "1"))).shuffle(items)
    if os.environ.get("COTERIE_WORLD") == "seed":  # stored predictions belong to rows of a known seed
        items[:] = [item for item in items if "tests/releases" not in item.nodeid]


def pytest_terminal_summary(terminalreporter):
    found = terminalreporter.stats
    failed = len(found.get("failed", [])) + len(found.get("error", []))
    if "COTERIE_WORLD_TOLD" in os.environ:
        counts = len(found.get("passed", [])), failed, len(found.get("skipped", []))
        Path(os.environ["COTERIE_WORLD_TOLD"]).write_text(" ".join(map(str, counts)))


def _more_threads():
    """Eight threads for everything, on however few processors."""
    from coterie import threads

    before = threads.count
    threads.count = lambda n_threads=None: before(n_threads) if n_threads else 8


def _small_blocks():
    """Tiles, pieces and chunks of a few rows, so that small tables have many of them."""
    from coterie import threads

    before = threads.blocks
    threads.blocks = lambda n, size, most=64: before(n, min(size, BLOCK), most)


def _saved_before_predict():
    """Every fitted estimator predicts as it does after it was written and read."""
    import coterie
    from coterie import estimators
    from coterie.catalogue import CATALOGUE

    def through_file(method):
        def predict(self, *given, **named):
            if not vars(self).get("_was_loaded"):
                try:
                    with tempfile.TemporaryDirectory() as folder:
                        self.save(Path(folder, "model"))
                        again = coterie.load(Path(folder, "model"))
                except (ValueError, TypeError, AttributeError):  # not fitted, or with parameters that are not saved
                    return method(self, *given, **named)
                vars(again)["_was_loaded"] = True
                return method(again, *given, **named)
            return method(self, *given, **named)

        return predict

    for name in CATALOGUE:
        kind = getattr(estimators, name)
        if "predict" in vars(kind):
            kind.predict = through_file(kind.predict)


def _other_source(source: str):
    """Arrays of numbers are fitted in chunks or as Dask arrays by the estimators that take them."""
    import numpy as np

    from coterie.estimators import KMeans

    before = KMeans.fit

    def fit(self, X, y=None, sample_weight=None, **given):
        fair = isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype in (np.float32, np.float64) and len(X) > 2 * BLOCK
        if not fair or y is not None or sample_weight is not None or given or not _plain(self):
            return before(self, X, y, sample_weight, **given)
        try:
            if source == "dask":
                import dask.array as da

                before(self, da.from_array(X, chunks=(max(BLOCK, len(X) // 3), X.shape[1])))
                self.labels_ = np.asarray(self.labels_)
                return self
            with tempfile.TemporaryDirectory() as folder:
                np.save(Path(folder, "rows.npy"), X)
                return before(self, Path(folder, "rows.npy"))
        except ValueError:  # what this source refuses
            return before(self, X)

    KMeans.fit = fit


def _plain(estimator) -> bool:
    return isinstance(estimator.init, str) and estimator.get_params().get("algorithm") == "lloyd"


def _other_seeds():
    """All seeds that tests give to numpy are others."""
    import numpy as np

    state, generator = np.random.RandomState, np.random.default_rng
    shift = int(os.environ.get("COTERIE_WORLD_SEED", "1"))

    class Shifted(state):
        def __init__(self, seed=None):
            super().__init__(seed + shift if isinstance(seed, int) else seed)

    np.random.RandomState = Shifted
    np.random.default_rng = lambda seed=None: generator(seed + shift if isinstance(seed, int) else seed)


if __name__ == "__main__":
    sys.exit(main())
