"""The documents' tables and figures, by name: ``kmeans/figure3`` is ``kmeans_transformer.figure3``.

A document is one module. Each of its tables and figures is a public function ``tableN`` or ``figureN`` with the
signature ``(output: Path, quick: bool) -> dict``, which writes JSON and pictures to the folder ``output`` and returns
the result.
"""

import difflib
import re
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

MODULES = {
    "kmeans": "kmeans_transformer",
    "flow": "measure_flow",
    "incontext": "transformers_vs_em",
    "vae": "vae_em",
}
Experiment = Callable[[Path, bool], dict]
_ITEM = re.compile(r"(table|figure)(\d+)([a-z]?)")


class UnknownExperiment(ValueError):
    """A name that no table or figure has. The message lists those that exist."""


def papers() -> list[str]:
    """The documents whose experiments are here."""
    return [paper for paper, module in MODULES.items() if find_spec(f"{__name__}.{module}") is not None]


def available() -> list[str]:
    """All names that ``find`` knows, tables and figures of each document in their order."""
    return [f"{paper}/{item}" for paper in papers() for item in _items(_module(paper))]


def find(name: str) -> dict[str, Experiment]:
    """The experiment of that name, or all of a document's for its bare name (``kmeans``)."""
    paper, _, item = name.strip("/").partition("/")
    known = None
    if paper in papers():
        module = _module(paper)
        items = _items(module)
        if not item:
            return {f"{paper}/{one}": getattr(module, one) for one in items}
        if item in items:
            return {f"{paper}/{item}": getattr(module, item)}
        known = [f"{paper}/{one}" for one in items]
    known = known or available()
    near = difflib.get_close_matches(name, known, n=2)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    raise UnknownExperiment(f"There is no experiment {name!r}.{hint} Known are {', '.join(known) or 'none'}.")


def _module(paper: str) -> ModuleType:
    return import_module(f"{__name__}.{MODULES[paper]}")


def _items(module: ModuleType) -> list[str]:
    found = [match for match in map(_ITEM.fullmatch, vars(module)) if match and callable(getattr(module, match[0]))]
    return [match[0] for match in sorted(found, key=lambda m: (m[1], int(m[2]), m[3]))]
