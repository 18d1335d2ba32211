import json
import os
import subprocess
import sys

import pytest

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
import os, signal, time
import numpy as np, torch
from coterie import RobustKMeans, SoftKMeans
torch.set_num_threads(2)
X = np.random.default_rng(0).normal(size=(20_000, 8))
models = [cls(4, n_jobs=2, max_iter=2, random_state=0).fit(X) for cls in (SoftKMeans, RobustKMeans)]
child = os.fork()
if not child:
    os._exit(0 if all((m.predict(X) == m.fit(X).predict(X)).all() for m in models) else 1)
end = time.monotonic() + 30
while (done := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < end:
    time.sleep(0.05)
if done == (0, 0):
    os.kill(child, signal.SIGKILL)
raise SystemExit(done != (child, 0))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_fits_and_predicts():
    """It waited for ever for threads of torch that only its parent has."""
    ran = subprocess.run([sys.executable, "-W", "ignore", "-c", FORKING], capture_output=True, timeout=60)
    assert ran.returncode == 0, ran.stderr.decode()
