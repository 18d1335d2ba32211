"""Print the lower bounds that both pyproject.toml declare as pip constraints.

    python .ci/lower_bounds.py [NAME==VERSION ...] > constraints-lowest.txt

``make test-lowest`` installs these versions, so that the bounds are declared in one place and tested as declared. An
argument replaces the bound of that package.
"""

import re
import sys
from itertools import chain
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    from pip._vendor import tomli as tomllib

ROOT = Path(__file__).parent.parent
PYPROJECTS = (ROOT / "pyproject.toml", ROOT / "research" / "pyproject.toml")
REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(\[[^]]*\])?(>=(?P<bound>[\w.]+))?")


def lower_bounds() -> dict[str, str]:
    """The lowest declared version of every package, over the dependencies and all extras."""
    bounds: dict[str, str] = {}
    for pyproject in PYPROJECTS:
        bounds |= _bounds(pyproject)
    return bounds


def _bounds(pyproject: Path) -> dict[str, str]:
    project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
    bounds = {}
    for requirement in chain(project["dependencies"], *project.get("optional-dependencies", {}).values()):
        found = REQUIREMENT.fullmatch(requirement.partition(";")[0].strip())
        if found is None:
            raise SystemExit(f"{requirement!r} is not of the form NAME>=VERSION: write it so in {pyproject}.")
        if found["name"] == "coterie":  # an extra that is made of other extras
            continue
        if found["bound"] is None:
            raise SystemExit(
                f"{requirement!r} has no lower bound: declare the lowest version that works in {pyproject}."
            )
        bounds[found["name"]] = found["bound"]
    return bounds


if __name__ == "__main__":
    bounds = lower_bounds()
    bounds.update(argument.split("==", 1) for argument in sys.argv[1:])
    for name in sorted(bounds, key=str.lower):
        print(f"{name}=={bounds[name]}")
