"""The lines of Python that make the same clusters again."""

import inspect
from typing import Any

import numpy as np
from sklearn.base import clone

from coterie.reporting.origin import Origin
from coterie.reporting.subject import Subject


def recipe(subject: Subject, origin: Origin | None = None) -> str:
    """Python text. ``origin`` is the file that was read, if one was."""
    estimator = subject.pipeline if subject.pipeline is not None else subject.estimator
    imports, lines = ["import coterie"], []
    if origin is not None:
        imports.append("from coterie.data.tables import read_table")
        lines.append(f"table = read_table({origin.source!r})")
        wanted = _wrapped([repr(str(name)) for name in origin.made_from or origin.columns])
        if origin.made_from:
            imports.append("from coterie.tabular import Columns")
            lines.append(f"columns = Columns.of(table, {wanted}, encode=True)")
            lines.append("X = columns.matrix(table)")
        else:
            lines.append(f"X = table[{wanted}]")
        if origin.scaled and not origin.made_from:
            imports.append("from sklearn.preprocessing import StandardScaler")
            lines.append("X = StandardScaler().fit_transform(X)")
    else:
        lines.append("X = ...  # the same rows, as they were given to this report")
    line, more = _made(estimator)
    imports += more
    lines.append(f"estimator = {line}.fit(X)")
    extra = "" if origin is None else ", table=columns.table(table)" if origin.made_from else ", table=table"
    lines.append(f'coterie.report(estimator, X, "report.html"{extra})')
    seed = estimator.get_params().get("random_state", 0) if subject.pipeline is None else 0
    note = "" if isinstance(seed, int | np.integer) else "\n# Give random_state=0 to get the same clusters every time."
    return "\n".join([*sorted(set(imports), key=lambda text: (text.startswith("from"), text)), "", *lines]) + note


def _made(estimator: Any) -> tuple[str, list[str]]:
    """The call that makes an estimator with its settings, and the imports it needs."""
    kind = type(estimator)
    imports: list[str] = []
    if kind.__module__.startswith("coterie."):
        name = f"coterie.{kind.__name__}"
    else:
        home = ".".join(part for part in kind.__module__.split(".") if not part.startswith("_"))
        name = kind.__name__
        imports.append(f"from {home} import {name}")
    if hasattr(estimator, "steps"):
        inner = []
        for key, step in estimator.steps:
            text, more = _made(step)
            imports += more
            inner.append(f"({key!r}, {text})")
        return f"{name}([{', '.join(inner)}])", imports
    known = inspect.signature(kind.__init__).parameters
    given = []
    for key, value in clone(estimator).get_params(deep=False).items():
        if isinstance(value, np.ndarray | list):
            shape = " × ".join(map(str, np.shape(value)))
            given.append(f"{key}=...  # the {shape} array that was given\n")
        elif callable(value) or repr(value) != repr(known[key].default if key in known else None):
            given.append(f"{key}={value!r}, ")
    return f"{name}({_call(given)})", imports


def _call(given: list[str]) -> str:
    """Arguments on one line, or one a line where a comment has to end the line."""
    if not any("#" in one for one in given):
        return "".join(given).removesuffix(", ")
    rows = []
    for one in given:
        text, mark, comment = one.strip().rstrip(",").partition("  # ")
        rows.append(f"    {text},{mark}{comment}")
    return "\n" + "\n".join(rows) + "\n"


def _wrapped(items: list[str], width: int = 88) -> str:
    one = f"[{', '.join(items)}]"
    if len(one) <= width:
        return one
    lines, line = [], "   "
    for item in items:
        if len(line) + len(item) > width:
            lines.append(line)
            line = "   "
        line += f" {item},"
    return "[\n" + "\n".join([*lines, line]) + "\n]"
