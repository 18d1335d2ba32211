"""Without an extra, a command says which one to install."""

import json
import subprocess
import sys
from importlib.util import find_spec

PROGRAM = """
import contextlib, io, json, sys
from coterie.cli import main

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in blocked:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
for command, blocked in json.loads(sys.argv[1]):
    sys.argv = ["coterie", *command.split()]
    for name in [name for name in sys.modules if name.split(".")[0] in blocked]:
        del sys.modules[name]
    said, code = io.StringIO(), None
    with contextlib.redirect_stderr(said):
        try:
            main()
        except SystemExit as end:
            code = end.code
    print(json.dumps([code, said.getvalue()]))
"""
CASES = {"studio --no-browser": (["starlette", "uvicorn"], "studio")}  # the missing packages, the extra that has them
if find_spec("coterie_research"):
    CASES |= {
        "bench interruptions --quick": (["dask", "distributed"], "dask"),
        "bench soak --quick": (["psutil"], "test"),
    }


def test_a_command_names_the_extra_that_it_needs(tmp_path):
    asked = json.dumps([[command, blocked] for command, (blocked, _) in CASES.items()])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, asked], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(CASES)
    for (command, (_, extra)), (code, said) in zip(CASES.items(), answers):
        assert code == 2, (command, said)
        assert f"pip install 'coterie[{extra}]'" in said
        assert len(said.strip().splitlines()) == 1
