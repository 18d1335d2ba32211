"""Reproductions of tables and figures of the papers, by name: ``kmeans/figure3``.

An experiment is a function ``(output: Path, quick: bool) -> dict``, which writes JSON and pictures to the folder
``output`` and returns the record. Its further parameters are settings, which ``--set NAME=VALUE`` changes. Most are
made by :func:`coterie_research.records.experiment`, which registers them.
"""

import ast
import difflib
import inspect
import re
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from coterie_research import records

MODULES = {  # paper -> modules with its experiments
    "kmeans": ("kmeans_transformers.experiments", "kmeans_transformers.robust"),
    "learned-lloyd": ("kmeans_transformers.random_weights",),
    "flow": tuple(f"measure_flows.{name}" for name in ("ablation", "columns", "figures", "tables")),
    "incontext": ("incontext_em.figures",),
    "theory": ("incontext_em.theory.checks",),
    "vae": tuple(f"mixture_of_vaes.{name}" for name in ("defaults", "described", "from_random", "questions")),
}
_PARTS = re.compile(r"\d+|\D+").findall
Experiment = Callable[..., dict]


class UnknownExperiment(ValueError):
    """Raised for an unknown name. The message lists the available experiments."""


def available() -> list[str]:
    """All names that ``find`` accepts, in the order of the tables and figures of each paper."""
    return [name for paper in MODULES for name in _of(paper)]


def find(name: str) -> dict[str, Experiment]:
    """The experiment of that name, or all experiments of a subject for its bare name (``kmeans``)."""
    name = name.strip("/")
    paper = name.partition("/")[0]
    found = _of(paper) if paper in MODULES else {}
    if found and name in (paper, *found):
        return found if name == paper else {name: found[name]}
    known = list(found) or available()
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


def _of(paper: str) -> dict[str, Experiment]:
    """The experiments of a paper in natural order: figure 10 comes after figure 9."""
    for name in MODULES[paper]:
        module = import_module(f"coterie_research.{name}")
        for item in getattr(module, "__all__", ()):
            records.EXPERIMENTS.setdefault(f"{paper}/{item}", getattr(module, item))
    found = [name for name in records.EXPERIMENTS if name.startswith(f"{paper}/")]
    return {name: records.EXPERIMENTS[name] for name in sorted(found, key=_natural)}


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in _PARTS(name)]
