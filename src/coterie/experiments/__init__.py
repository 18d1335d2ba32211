"""Reproductions of the tables and figures of the papers, by name: ``kmeans/figure3`` is ``kmeans_transformer.figure3``.

Each module treats one subject, and its ``__all__`` lists its experiments. An experiment is a function ``(output: Path,
quick: bool) -> dict``, which writes JSON and pictures to the folder ``output`` and returns the result.
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
    "learned-lloyd": "learned_lloyd",
    "flow": "measure_flow",
    "incontext": "transformers_vs_em",
    "theory": "incontext_theory",
    "vae": "vae_em",
}
_PARTS = re.compile(r"\d+|\D+").findall
Experiment = Callable[[Path, bool], dict]


class UnknownExperiment(ValueError):
    """Raised for an unknown name. The message lists the available experiments."""


def papers() -> list[str]:
    """The subjects whose experiments are available."""
    return [paper for paper, module in MODULES.items() if find_spec(f"{__name__}.{module}") is not None]


def available() -> list[str]:
    """All names that ``find`` accepts, in the order of the tables and figures of each paper."""
    return [f"{paper}/{item}" for paper in papers() for item in _items(_module(paper))]


def find(name: str) -> dict[str, Experiment]:
    """The experiment of that name, or all experiments of a subject for its bare name (``kmeans``)."""
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
    raise UnknownExperiment(f"There is no experiment {name!r}.{hint} Available: {', '.join(known) or 'none'}.")


def _module(paper: str) -> ModuleType:
    return import_module(f"{__name__}.{MODULES[paper]}")


def _items(module: ModuleType) -> list[str]:
    """The experiments in natural order: figure 10 comes after figure 9."""
    return sorted(module.__all__, key=lambda name: [int(part) if part.isdigit() else part for part in _PARTS(name)])
