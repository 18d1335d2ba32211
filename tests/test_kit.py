"""The project's own files agree with one another: version, dependencies, workflows."""

import re
import sys
from pathlib import Path

import pytest
from packaging.version import Version

import coterie

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / ".ci"))
from lower_bounds import lower_bounds  # noqa: E402

sys.path.pop(0)


def pins(name: str) -> dict[str, str]:
    """Package -> version of a file of constraints."""
    return dict(re.findall(r"^([\w.-]+)==([^\s\\]+)", (ROOT / name).read_text(), re.MULTILINE))


def normal(name: str) -> str:
    return name.lower().replace("_", "-")


def test_the_version_of_the_package_is_cited_and_has_a_dated_section_in_the_changelog():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    released = cited["date-released"].isoformat()
    assert cited["version"] == coterie.__version__
    assert f"\n## {coterie.__version__} - {released}\n" in (ROOT / "CHANGELOG.md").read_text()
    assert not re.search(r"^version = \"", (ROOT / "pyproject.toml").read_text(), re.MULTILINE)


def test_every_dependency_has_a_lower_bound_that_the_pinned_version_meets():
    pinned = {normal(name): version for name, version in pins("constraints.txt").items()}
    bounds = {normal(name): bound for name, bound in lower_bounds().items()}
    assert {"numpy", "torch", "dask", "pytest"} <= bounds.keys()
    low = {name: (pinned[name], bound) for name, bound in bounds.items() if name in pinned}
    assert [name for name, (version, bound) in low.items() if Version(version) < Version(bound)] == []


def test_the_hashed_constraints_hold_the_same_versions():
    plain, hashed = pins("constraints.txt"), pins("constraints-hashed.txt")
    assert {name: version for name, version in plain.items() if name != "torch"} == hashed, "run `make lock`"


def test_the_supply_chain_is_checked_and_promises_are_written_down():
    settings, makefile = (ROOT / "pyproject.toml").read_text(), (ROOT / "Makefile").read_text()
    assert re.search(r'^select = \[.*"S"', settings, re.MULTILINE)  # ruff's security rules
    assert "--require-hashes" in makefile
    assert "cyclonedx-py environment" in makefile
    promises = (ROOT / "SECURITY.md").read_text()
    assert all(
        f"\n### {part}\n" in promises for part in ("Tables", "Models, networks and checkpoints", "Studio", "Dask")
    )


FORMS = [*(ROOT / ".github").rglob("*.yml"), ROOT / ".pre-commit-config.yaml", ROOT / "CITATION.cff"]


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_forms_and_workflows_can_be_parsed(path):
    assert isinstance(yaml.safe_load(path.read_text()), dict)


def test_workflows_run_targets_that_the_makefile_has():
    targets = set(re.findall(r"^([\w-]+):(?!=)", (ROOT / "Makefile").read_text(), re.MULTILINE))
    text = "\n".join(path.read_text() for path in (ROOT / ".github" / "workflows").glob("*.yml"))
    asked = {word for line in re.findall(r"run: make ([^\n]+)", text) for word in line.split() if "=" not in word}
    assert asked
    assert asked <= targets


def test_the_supported_pythons_are_those_that_the_workflow_runs():
    declared = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text())
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text())
    assert workflow["jobs"]["newest"]["strategy"]["matrix"]["python"] == declared


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"])
def test_links_of_the_root_pages_lead_somewhere(name):
    links = re.findall(r"\]\(([^)\s]+)\)", (ROOT / name).read_text())
    paths = [link.partition("#")[0] for link in links if not link.startswith("https://")]
    assert [path for path in paths if not (ROOT / path).exists()] == []
