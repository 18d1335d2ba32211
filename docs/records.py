"""What the experiments gave, in the documentation: pages, tables and pictures made of ``results/`` when it is built.

``results/`` is copied beside the pages, so that its own pages belong to the documentation. Two directives show parts of
it: ``record`` (picture and table of an experiment, the table laid out in ``tables.py``) and ``shipped-networks`` (the
cards of the weights in the package). What has not been run is said to be so. ``command-help`` shows a command's help,
``estimators`` the catalogue.
"""

import json
import re
import shutil
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from tables import LAYOUTS, estimators, markdown, networks

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results"
BENCHMARKS = ("zeroshot",)
SHOWN = {".md", ".png", ".json", ".csv"}
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")


def copy_results(app: Sphinx) -> None:
    """The tree of ``results/``, with links that lead out of it adapted or taken away."""
    target = Path(app.srcdir) / "results"
    shutil.rmtree(target, ignore_errors=True)
    for source in sorted(RESULTS.rglob("*")):
        place = source.relative_to(RESULTS)
        if source.suffix not in SHOWN or place.parts[0] == "quick":
            continue
        copy = target / place
        copy.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            copy.write_text(adapted(source.read_text(), source))
        else:
            shutil.copyfile(source, copy)


def adapted(text: str, source: Path) -> str:
    """Links to pages of docs/ and to shown files stay; of all others the words remain."""

    def link(found: re.Match) -> str:
        mark, words, target = found.groups()
        if re.match(r"[a-z]+:|#", target):
            return found[0]
        path = (source.parent / target.partition("#")[0]).resolve()
        if path.is_relative_to(ROOT / "docs") and path.is_file():
            up = "../" * len(source.relative_to(RESULTS).parts)
            return f"{mark}[{words}]({up}{path.relative_to(ROOT / 'docs')})"
        shown = path.is_file() and path.suffix in SHOWN and path.is_relative_to(RESULTS)
        return found[0] if shown else "" if mark else words

    title = "" if text.startswith("# ") else f"# {source.parent.name}: {source.stem}\n\n"
    return title + _LINK.sub(link, text)


def links_into_results(app: Sphinx, docname: str, source: list[str]) -> None:
    """On a page, ``../results/x`` is the file in the repository; here it is its copy."""
    if not docname.startswith("results/"):
        source[0] = re.sub(r"\]\(((?:\.\./)*)\.\./results/", r"](\1results/", source[0])


class Record(SphinxDirective):
    """``{record} flow/table2``: the picture ``results/flow/table2.png`` and a table of its JSON, whichever there is.

    The content is the caption; ``layout`` names one of ``tables.LAYOUTS``, if it is not that of the record's own name.
    """

    required_arguments = 1
    option_spec = {"layout": str}  # noqa: RUF012
    has_content = True

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        picture, path = RESULTS / f"{name}.png", RESULTS / f"{name}.json"
        for file in (picture, path):
            self.env.note_dependency(str(file))
        caption = " ".join(self.content)
        record = json.loads(path.read_text()) if path.is_file() else {}
        layout = LAYOUTS.get(self.options.get("layout", name))
        lines = []
        if picture.is_file():
            up = "../" * self.env.docname.count("/")
            lines += [f"![{caption}]({up}results/{name}.png)", ""]
        if record and layout is not None:
            lines += [*markdown(layout(record)), ""]
        told = f"*{caption}* " if caption else ""
        shown = _written(self, [*lines, told + (_made(record, name) if lines else _not_yet(name))])
        for table in (found for node in shown for found in node.findall(nodes.table)):
            table["classes"].append("numbers")
        return shown


class ShippedNetworks(SphinxDirective):
    """The networks that come with the package."""

    def run(self) -> list[nodes.Node]:
        from coterie import checkpoints

        return _written(self, markdown(networks(checkpoints.available(checkpoints.SHELF))))


class Estimators(SphinxDirective):
    """The catalogue of estimators, as a table that helps to choose one."""

    def run(self) -> list[nodes.Node]:
        from coterie.catalogue import CATALOGUE

        table = [re.sub(r"\]\(\.\./results/", "](results/", line) for line in markdown(estimators(CATALOGUE))]
        return _written(self, table)


class CommandHelp(SphinxDirective):
    """``{command-help} cluster``: what ``coterie cluster --help`` prints."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        from typer.testing import CliRunner

        from coterie.cli import app

        environment = {"COLUMNS": "96", "TERM": "dumb", "NO_COLOR": "1"}
        told = CliRunner().invoke(app, [self.arguments[0], "--help"], env=environment, prog_name="coterie").output
        text = "\n".join(line.rstrip() for line in told.strip("\n").splitlines())
        return [nodes.literal_block(text, text, language="text")]


def _made(record: dict[str, Any], name: str) -> str:
    command = record.get("command")
    seconds = f", {record['seconds']:,.0f} s" if isinstance(record.get("seconds"), int | float) else ""
    return f"(`{command}`{seconds})" if command else f"(`results/{name}`)"


def _not_yet(name: str) -> str:
    folder = name.partition("/")[0]
    command = f"bench {folder}" if folder in BENCHMARKS else f"reproduce {name}"
    return f"Not run to the end yet: `coterie {command}`."


def _written(directive: SphinxDirective, lines: list[str]) -> list[nodes.Node]:
    node = nodes.container()
    directive.state.nested_parse(StringList(lines, directive.get_source_info()[0]), directive.content_offset, node)
    return node.children


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("record", Record)
    app.add_directive("shipped-networks", ShippedNetworks)
    app.add_directive("command-help", CommandHelp)
    app.add_directive("estimators", Estimators)
    app.connect("builder-inited", copy_results)
    app.connect("source-read", links_into_results)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
