"""The documentation is whole: names, links, examples and records. ``make docs`` builds it."""

import importlib
import json
import re
import sys
from pathlib import Path

import pytest

import coterie
from coterie import plot
from coterie.cli import app

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(page for folder in (DOCS, DOCS / "papers") for page in folder.glob("*.md"))
EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("*.py"))
ENTRIES = re.findall(r"^   ([\w.]+)$", (DOCS / "api.md").read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def built_with():
    """The modules beside ``docs/conf.py``."""
    sys.path.insert(0, str(DOCS))
    yield importlib.import_module
    sys.path.remove(str(DOCS))


def test_every_public_name_is_in_the_reference():
    text = (DOCS / "api.md").read_text()
    told = set(ENTRIES) | set(re.findall(r"`([\w.]+)`", text))
    modules = {"plot", "selection", "checkpoints", "distributed", "__version__"}
    wanted = {*coterie.__all__, *(f"plot.{name}" for name in plot.__all__)} - modules
    assert wanted - told == set()
    assert {f"coterie.{name}" for name in modules} <= told


def test_every_entry_of_the_reference_exists_and_is_described():
    for entry in ENTRIES:
        path = f"coterie.{entry}"
        home, _, name = path.rpartition(".")
        found = getattr(importlib.import_module(home), name)
        assert found.__doc__, entry
    assert len(set(ENTRIES)) == len(ENTRIES)


def test_names_that_reports_and_messages_tell_users_to_import_are_in_the_reference():
    source = {
        name: (ROOT / f"src/coterie/{name}.py").read_text() for name in ("explain/recipe", "estimators/persistence")
    }
    imported = re.findall(r"from coterie\.([\w.]+) import (\w+)\"", source["explain/recipe"])
    loaded = re.findall(r"\"coterie\.([\w.]+)\.load, or", source["estimators/persistence"])
    assert len(imported) == 2
    assert len(loaded) == 1
    assert {*(f"{home}.{name}" for home, name in imported), *loaded} <= set(ENTRIES)


def target_of(page: Path, link: str) -> Path:
    """What a link of a page leads to, with the source in place of what the build makes of it."""
    path = (page.parent / link.partition("#")[0]).resolve().relative_to(ROOT)
    place = path.relative_to("docs").as_posix() if path.parts[0] == "docs" else ""
    if place == "gallery/index.rst":
        return ROOT / "examples/README.rst"
    if made := re.fullmatch(r"gallery/(?:images/sphx_glr_)?(\w+?)(?:_001\.png|\.rst)", place):
        return ROOT / f"examples/{made[1]}.py"
    if made := re.fullmatch(r"api/coterie\.([\w.]+)\.rst", place):
        return DOCS / "api.md" if made[1] in ENTRIES else DOCS / place
    return ROOT / path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_links_and_pictures_lead_somewhere(page):
    links = [one or other for one, other in re.findall(r"\]\(([^)\s]+)\)|src=\"([^\"]+)\"", page.read_text())]
    broken = [link for link in links if not link.startswith("https://") and not target_of(page, link).exists()]
    assert broken == []


def test_the_examples_on_embeddings_run(capsys):
    names: dict = {}
    for block in re.findall(r"```python\n(.*?)```", (DOCS / "embeddings.md").read_text(), re.DOTALL):
        exec(block, names)
    assert capsys.readouterr().out.splitlines()[-2:-1] == ["counts 4"]
    assert set(names["found"].names.values()) == {"card", "transfer", "app"}


def test_every_page_is_in_a_table_of_contents():
    listed = set(re.findall(r"^([\w/*-]+)$", "\n".join(_blocks("toctree")), re.MULTILINE))
    names = {page.relative_to(DOCS).with_suffix("").as_posix() for page in PAGES}
    assert names - listed == {"index"}
    assert {name for name in listed if not name.startswith(("results/", "gallery/"))} <= names


def test_every_example_is_listed_has_a_title_and_draws_or_shows_something(built_with):
    assert sorted(built_with("order").EXAMPLES) == EXAMPLES
    for name in EXAMPLES:
        text = (ROOT / f"examples/{name}.py").read_text()
        assert re.match(r'"""\n(.+)\n=+\n', text), name
        assert "plt.show()" in text or "coterie.report(" in text, name


def test_every_record_that_is_there_becomes_a_table(built_with):
    tables, shown = built_with("tables"), 0
    for block in _blocks("record"):
        name = block.split()[0]
        layout = re.search(r"^:layout: (\S+)$", block, re.MULTILINE)
        path = ROOT / f"results/{name}.json"
        if layout:
            assert layout[1] in tables.LAYOUTS, name
        make = tables.LAYOUTS.get(layout[1] if layout else name)
        if make is None or not path.exists():
            continue
        head, rows = make(json.loads(path.read_text()))
        assert rows, name
        assert {len(row) for row in rows} == {len(head)}, name
        shown += 1
    assert shown >= 5


def test_every_command_is_described():
    known = {command.name or command.callback.__name__ for command in app.registered_commands}
    assert {block.strip() for block in _blocks("command-help")} == known


def test_flow_tables_put_ours_beside_the_documents(built_with):
    one = {"mean": 0.00123, "mean_se": 0.0002, "document": 0.0016}
    record = {"measure": "mean", "levels": {"high": {"layers_16": one, "layers_64": {"document": 0.0013}}}}
    head, rows = built_with("tables").flow_levels(record)
    assert head == ["squared W2", "15 dB: ours", "15 dB: document"]
    assert rows == [["16 layers", "0.0012 ± 0.0002", "0.0016"], ["64 layers", "not trained", "0.0013"]]


def test_tables_of_seeds_end_with_the_means_of_both(built_with):
    scores = {"accuracy": 0.9, "ari": 0.8, "nmi": 0.85}
    run = {"init": "random", "seed": 0, "start": scores, "end": scores, "networks": scores, "bound": -99.5}
    run["seconds"] = 600
    summary = {"random": {"networks_mean": 0.88, "mean": 0.9, "std": 0.0}}
    record = {"document": {"mean": 0.884, "std": 0.052, "best": 0.946}, "runs": [run], "summary": summary}
    head, rows = built_with("tables").vae_seeds(record)
    assert {len(row) for row in rows} == {len(head)}
    assert rows[0] == ["random", "0", "90.0%", "90.0%", "90.0%", "0.800", "0.850", "-99.50", "10"]
    assert [row[3] for row in rows[1:]] == ["**90.0% ± 0.0%**", "88.4% ± 5.2%, best 94.6%"]
    assert rows[1][4] == "**88.0%**"


def test_zero_shot_tables_leave_out_batteries_that_were_not_run(built_with):
    found = {"ari": 0.9, "nca": 0.85, "exact": 0.5, "within_one": 1.0}
    record = {"summary": {question: {"wut": {"coterie": found}, "draws": {}} for question in ("given", "unknown")}}
    layouts = built_with("tables").LAYOUTS
    assert layouts["zeroshot/given"](record) == (["method", "WUT"], [["coterie", "0.900 (0.850)"]])
    assert layouts["zeroshot/count"](record) == (["method", "WUT"], [["coterie", "50%, 100%"]])


def test_small_numbers_are_written_with_powers_of_ten(built_with):
    small = built_with("tables").small
    values = (0, 0.00141, 3.14e-14, -9e-8, None)
    assert [small(value) for value in values] == ["0", "0.0014", "3.1·10⁻¹⁴", "-9.0·10⁻⁸", "-"]


def test_links_of_a_record_that_lead_out_of_the_documentation_become_words(built_with):
    pytest.importorskip("sphinx")
    records = built_with("records")
    text = "[a](kmeans/table1.json) [b](kmeans) [c](../docs/scale.md) [d](../src) ![e](none.png) [f](https://x.org)"
    adapted = records.adapted(text, ROOT / "results/RESULTS.md")
    assert adapted.splitlines()[0] == "# results: RESULTS"
    assert adapted.splitlines()[2] == "[a](kmeans/table1.json) b [c](../scale.md) d  [f](https://x.org)"


def _blocks(directive: str) -> list[str]:
    pattern = rf"```{{{directive}}}(.*?)```"
    return [block for page in PAGES for block in re.findall(pattern, page.read_text(), re.DOTALL)]
