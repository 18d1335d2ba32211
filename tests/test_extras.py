"""Without an extra, a command says which one to install."""

import json
import subprocess
import sys

import pytest

BLOCKED = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocked())
from coterie.cli import main
main()
"""


@pytest.mark.parametrize(
    "command, blocked, extra",
    [
        (["studio", "--no-browser"], ["starlette", "uvicorn"], "studio"),
        (["bench", "kills", "--quick"], ["dask", "distributed"], "dask"),
        (["bench", "soak", "--quick"], ["psutil"], "test"),
        (["train", "learned-lloyd", "--config", "run.json", "--output", "run"], ["lightning"], "train"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else value,
)
def test_a_command_names_the_extra_that_it_needs(command, blocked, extra, tmp_path):
    (tmp_path / "run.json").write_text(json.dumps({"model": {"n_layers": 2}, "training": {"steps": 1}}))
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED.format(blocked=blocked), *command], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 2, done.stderr
    assert f"pip install 'coterie[{extra}]'" in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
