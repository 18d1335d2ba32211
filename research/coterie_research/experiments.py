"""Reproductions of tables and figures of the papers, by name: ``kmeans/figure3``.

An experiment is a function ``(output: Path, quick: bool) -> dict``, which writes JSON and pictures to the folder
``output`` and returns the record. Its further parameters are settings, which ``--set NAME=VALUE`` changes. Most are
made by :func:`coterie_research.records.experiment`, which registers them.
"""

import ast
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
Experiment = Callable[..., dict]


def available() -> list[str]:
    """All names, in the order of the tables and figures of each paper."""
    return [name for paper in MODULES for name in find(paper)]


def find(name: str) -> dict[str, Experiment]:
    """The experiment of that name, or all experiments of a paper for its bare name (``kmeans``)."""
    paper = name.partition("/")[0]
    for module in MODULES[paper]:
        import_module(f"coterie_research.{module}")
    if name != paper:
        return {name: records.EXPERIMENTS[name]}
    found = [one for one in records.EXPERIMENTS if one.startswith(f"{paper}/")]
    return {one: records.EXPERIMENTS[one] for one in sorted(found, key=natural)}


def natural(name: str) -> list[tuple[int, str]]:
    """A key by which figure 10 comes after figure 9."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.findall(r"\d+|\D+", name)]


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
