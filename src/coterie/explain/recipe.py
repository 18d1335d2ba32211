"""Python code that makes the same clusters again."""

import inspect
from pprint import pformat
from typing import Any

import numpy as np
from sklearn.base import clone

from coterie.estimators.capabilities import encodes_tables, has_parameter, parameter, parameters
from coterie.tabular.clustered_table import ClusteredTable


def recipe(clustered: ClusteredTable) -> str:
    """Python code that reads the file, if the rows come from one, and fits the estimator."""
    estimator = clustered.pipeline if clustered.pipeline is not None else clustered.estimator
    imports, lines, extra, fitted_to = ["import coterie"], [], "", "X"
    if clustered.run.source is None or clustered.encoding is None:
        lines.append("X = ...  # the same rows, as they were passed to this report")
    else:
        encoding = clustered.encoding
        imports.append("from coterie.tables.table import read_table")
        lines.append(f"table = read_table({clustered.run.source!r})")
        wanted = pformat(encoding.names, width=88, compact=True)
        if encoding.complete or encodes_tables(estimator):
            lines.append(f"X = table[{wanted}]")
            extra = ", table=table"
        else:
            imports.append("from coterie.tabular import EncodedTable")
            lines.append(f"X = EncodedTable.learn(table, {wanted}, encode=True)")
            fitted_to = "X.points"
        if encoding.complete and not encoding.is_identity:
            imports.append("from sklearn.preprocessing import StandardScaler")
            lines.append("X = StandardScaler().fit_transform(X)")
    line, more = _constructor(estimator)
    imports += more
    lines.append(f"estimator = {line}.fit({fitted_to})")
    lines.append(f'coterie.report(estimator, X, "report.html"{extra})')
    seeded = not has_parameter(estimator, "random_state") or isinstance(
        parameter(estimator, "random_state"), int | np.integer
    )
    note = "" if seeded else "\n# Pass random_state=0 to get the same clusters every time."
    return "\n".join([*sorted(set(imports), key=lambda text: (text.startswith("from"), text)), "", *lines]) + note


def _constructor(estimator: Any) -> tuple[str, list[str]]:
    """The call that creates an estimator with its parameters, and the imports that it needs."""
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
            text, more = _constructor(step)
            imports += more
            inner.append(f"({key!r}, {text})")
        return f"{name}([{', '.join(inner)}])", imports
    known = inspect.signature(kind.__init__).parameters
    given = []
    for key, value in parameters(clone(estimator)).items():
        if isinstance(value, np.ndarray | list):
            shape = " × ".join(map(str, np.shape(value)))
            given.append(f"{key}=...  # the {shape} array that was passed\n")
        elif callable(value) or repr(value) != repr(known[key].default if key in known else None):
            given.append(f"{key}={value!r}, ")
    return f"{name}({_call(given)})", imports


def _call(given: list[str]) -> str:
    """Arguments on one line, or one per line if a comment has to end the line."""
    if not any("#" in one for one in given):
        return "".join(given).removesuffix(", ")
    rows = []
    for one in given:
        text, mark, comment = one.strip().rstrip(",").partition("  # ")
        rows.append(f"    {text},{mark}{comment}")
    return "\n" + "\n".join(rows) + "\n"
