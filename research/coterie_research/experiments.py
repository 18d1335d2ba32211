"""Reproductions of tables and figures of the papers, by name: ``kmeans/figure3`` is ``kmeans_transformers.figure3``.

Each module treats one subject, and its ``__all__`` lists its experiments. An experiment is a function ``(output: Path,
quick: bool) -> dict``, which writes JSON and pictures to the folder ``output`` and returns the result. Its further
parameters are settings, which ``--set NAME=VALUE`` changes.
"""

import ast
import difflib
import inspect
import re
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

MODULES = {
    "kmeans": "kmeans_transformers",
    "learned-lloyd": "kmeans_transformers.random_weights",
    "flow": "measure_flows",
    "incontext": "incontext_em",
    "theory": "incontext_em.theory_checks",
    "vae": "mixture_of_vaes",
}
_PARTS = re.compile(r"\d+|\D+").findall
Experiment = Callable[..., dict]


class UnknownExperiment(ValueError):
    """Raised for an unknown name. The message lists the available experiments."""


def available() -> list[str]:
    """All names that ``find`` accepts, in the order of the tables and figures of each paper."""
    return [f"{paper}/{item}" for paper in MODULES for item in _items(_module(paper))]


def find(name: str) -> dict[str, Experiment]:
    """The experiment of that name, or all experiments of a subject for its bare name (``kmeans``)."""
    paper, _, item = name.strip("/").partition("/")
    known = None
    if paper in MODULES:
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


class UnknownSetting(ValueError):
    """Raised for a setting that an experiment does not have, or that is not written as NAME=VALUE."""


def settings_of(name: str, run: Experiment, texts: Iterable[str]) -> dict[str, Any]:
    """Arguments of an experiment from texts such as ``steps=500``, ``seeds=0,1`` or ``rows=distance``."""
    known = {key: one for key, one in inspect.signature(run).parameters.items() if key not in ("output", "quick")}
    known = {key: one for key, one in known.items() if one.kind is not inspect.Parameter.POSITIONAL_ONLY}
    found: dict[str, Any] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or key not in known:
            has = ", ".join(known) or "none"
            raise UnknownSetting(f"{name} has no setting {key!r}: write NAME=VALUE with one of: {has}.")
        kind = str(known[key].annotation)
        if "Path" in kind:
            found[key] = Path(value)
            continue
        try:
            found[key] = ast.literal_eval(value)
        except (SyntaxError, ValueError):
            found[key] = value
        if "Sequence" in kind and not isinstance(found[key], tuple):
            found[key] = tuple(str(value).split(",")) if isinstance(found[key], str) else (found[key],)
    return found


def _module(paper: str) -> ModuleType:
    return import_module(f"coterie_research.{MODULES[paper]}")


def _items(module: ModuleType) -> list[str]:
    """The experiments in natural order: figure 10 comes after figure 9."""
    return sorted(module.__all__, key=lambda name: [int(part) if part.isdigit() else part for part in _PARTS(name)])
