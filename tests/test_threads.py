import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest

from coterie import catalogue, threads

FIRST_FIT = """
import json
import numpy as np

from numba.core import event

class Compiled(event.Listener):
    names = []
    def on_start(self, event):
        function = event.data["dispatcher"].py_func
        self.names.append(f"{function.__module__}.{function.__name__}")
    def on_end(self, event):
        pass

event.register("numba:compile", Compiled())
from coterie import KMeans
KMeans(8, n_init=1, random_state=0).fit(np.random.default_rng(0).normal(size=(50_000, 16)).astype("float32"))
print(json.dumps(Compiled.names))
"""


def test_the_first_fit_on_a_machine_compiles_only_what_it_needs(tmp_path):
    """A literal as an argument compiles a kernel twice; an assignment to a slice compiles numba's strings."""
    ran = subprocess.run(
        [sys.executable, "-c", FIRST_FIT], env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}, capture_output=True
    )
    assert ran.returncode == 0, ran.stderr.decode()
    compiled = json.loads(ran.stdout)
    ours = [name for name in compiled if name.startswith("coterie.")]
    assert "coterie.kmeans.lazy.single_bound.assign" in ours
    twice = {name for name in ours if ours.count(name) > 1}
    assert twice <= {"coterie.kmeans.lazy.distances.exact_sq_distance"}  # for rows and for centres
    assert not [name for name in compiled if "unicode" in name]
    assert len(compiled) <= 40


FORKING = """
import os, signal, sys, time
import numpy as np, torch
from sklearn.mixture import GaussianMixture
import coterie
torch.set_num_threads(2)
rng = np.random.default_rng(0)
X = np.r_[rng.normal(size=(60, 4)), rng.normal(size=(60, 4)) + 6]
given = {"n_clusters": 2, "random_state": 0, "n_jobs": 2, "max_iter": 2, "hidden_size": 4}
def model(name):
    kind = getattr(coterie, name)
    return kind(**{key: value for key, value in given.items() if key in kind._get_param_names()})
models = [model(name).fit(X) for name in sys.argv[1:]]
torch.rand(400_000, requires_grad=True).exp().sum().backward()  # threads of torch, and those of scikit-learn
GaussianMixture(2, n_init=2).fit(rng.normal(size=(3000, 5)))
child = os.fork()
if not child:
    GaussianMixture(2, n_init=2).fit(rng.normal(size=(3000, 5)))
    again = [(one.predict(X), model(name).fit(X).predict(X)) for name, one in zip(sys.argv[1:], models)]
    os._exit(0 if all((a == b).all() for a, b in again) else 1)
end = time.monotonic() + 120
while (done := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < end:
    time.sleep(0.05)
if done == (0, 0):
    os.kill(child, signal.SIGKILL)
raise SystemExit(done != (child, 0))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_fits_and_predicts_with_every_estimator():
    """It waited for ever for threads of torch, or of scikit-learn, that only its parent has."""
    names = list(catalogue.CATALOGUE)
    two = {"OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "passive"}
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKING, *names],
        env={**os.environ, **two},
        capture_output=True,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr.decode()


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_after_an_error_no_further_task_begins(error):
    """Ctrl-C waited until the other threads had done all that was left."""
    begun = []

    def task(number):
        begun.append(number)
        if number == 0:
            time.sleep(0.1)
            raise error
        time.sleep(0.02)

    with pytest.raises(error):
        threads.run(task, 500, 2)
    assert len(begun) < 100


def test_kernels_are_compiled_where_nothing_can_be_written(monkeypatch):
    """A read-only package with an unwritable home had "no locator available" for the cache, and no kernel."""
    from numba.core import caching

    monkeypatch.setattr(caching.FunctionCache._impl_class, "_locator_classes", [])
    assert threads.kernel()(lambda x: x + 1)(2) == 3


UNCOMPILED = """
import sys, numpy as np, coterie
from tests.releases.write import rows
X = np.random.RandomState(0).randn(80, 70) + 4 * np.repeat(np.arange(20), 4)[:, None]
found = [coterie.KMeans(20, random_state=0, n_init=1, engine="lazy").fit(X).labels_]
found += [coterie.KMeans(3, random_state=0).partial_fit(X[:, :2]).predict(X[:, :2])]
found += [coterie.TrimmedKMeans(3, random_state=0, n_init=1).fit(X.astype("f4")).labels_]
found += [coterie.ZeroShotClusterer(random_state=0).fit(rows()).labels_]
np.save(sys.argv[1], np.concatenate(found))
"""


def test_estimators_give_the_same_labels_without_compilation(tmp_path, monkeypatch):
    """NUMBA_DISABLE_JIT broke three of them: vector instructions have no Python."""
    command = [sys.executable, "-W", "ignore", "-c", UNCOMPILED, str(tmp_path / "uncompiled")]
    subprocess.run(command, check=True, env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, timeout=120)
    monkeypatch.setattr(sys, "argv", ["", str(tmp_path / "compiled")])
    exec(UNCOMPILED, {})
    np.testing.assert_array_equal(np.load(tmp_path / "uncompiled.npy"), np.load(tmp_path / "compiled.npy"))
