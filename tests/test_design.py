"""The order of the rooms: imports go down only, and `import coterie` is light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import coterie
from coterie.catalogue import CATALOGUE
from tests import data_flow

SOURCE = Path(__file__).parent.parent / "src" / "coterie"

# Lower numbers lie deeper. A module may import from its own level of the same room, or from deeper rooms.
LEVEL = {
    "__main__": 11,
    "cli": 10,
    "studio": 10,
    "explain": 9,
    "tabular": 9,
    "plot": 8,
    "estimators": 7,
    "living": 7,
    "selection": 7,
    "distributed": 6,
    "kmeans": 5,
    "incontext": 5,
    "generative": 5,
    "zeroshot": 5,
    "mixtures": 4,
    "starts": 3,
    "em": 2,
    "geometry": 2,
    "tables": 2,
    "constraints": 2,
    "checkpoints": 2,
    "attention": 1,
    "catalogue": 0,
    "threads": 0,
    "files": 0,
    "wording": 0,
    "palette": 0,
}
MODELS = {"kmeans", "incontext", "generative", "zeroshot"}


def room(module: str) -> str:
    name = module.split(".")[1] if "." in module else ""
    homes = {**dict.fromkeys(CATALOGUE, "coterie.estimators"), **coterie._HOMES}
    return room(homes[name] + ".x") if name in homes else name


def imports(path: Path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "coterie":
            if node.module == "coterie":
                yield from (f"coterie.{alias.name}" for alias in node.names)
            else:
                yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "coterie")


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_go_down_only(path):
    here = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    if here == "__init__":
        return
    assert here in LEVEL, f"the room {here!r} has no level yet: add it here and to the README's map"
    for module in imports(path):
        there = room(module)
        if there in ("", here, "__version__"):
            continue
        assert LEVEL[there] <= LEVEL[here], f"{here} must not import {module}"
        assert not (here in MODELS and there in MODELS), f"the model rooms must not import one another: {module}"


def test_packages_are_loaded_where_they_are_needed_and_k_means_never_needs_torch(tmp_path):
    code = f"""
import sys
def loaded():
    print(*({{'torch', 'numba', 'dask', 'pandas', 'sklearn'}} & set(sys.modules)))
import coterie
loaded()
from coterie import KMeans, load
loaded()
import numpy as np
X = np.random.default_rng(0).normal(size=(100, 3))
KMeans(3, random_state=0).fit(X).save({str(tmp_path / "blobs.model")!r})
model = load({str(tmp_path / "blobs.model")!r})
model.predict(X), model.transform(X), model.score(X)
loaded()
model.partial_fit(X)
loaded()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    package, estimator, small_fit, partial_fit = (set(line.split()) for line in done.stdout.splitlines())
    assert package == set()
    assert not (estimator | small_fit) & {"torch", "numba", "dask"}
    assert partial_fit & {"torch", "numba", "dask"} == {"numba"}


@pytest.mark.parametrize("call", data_flow.CALLS)
def test_the_design_lists_the_files_that_data_pass(call):
    assert data_flow.row(call) == data_flow.written()[call], "write the table anew: python -m tests.data_flow"
