"""Python code that makes the same clusters again."""

from pprint import pformat
from typing import Any

import numpy as np
from sklearn.base import clone

from coterie.estimators.capabilities import encodes_tables, has_parameter, parameter
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
    line, more, told = _constructor(estimator)
    imports += more
    lines += [*told, f"estimator = {line}.fit({fitted_to})"]
    lines.append(f'coterie.report(estimator, X, "report.html"{extra})')
    seeded = not has_parameter(estimator, "random_state") or isinstance(
        parameter(estimator, "random_state"), int | np.integer
    )
    note = "" if seeded else "\n# Pass random_state=0 to get the same clusters every time."
    return "\n".join([*sorted(set(imports), key=lambda text: (text.startswith("from"), text)), "", *lines]) + note


class _Array:
    """A parameter that the code cannot write."""

    def __repr__(self) -> str:
        return "..."


def _constructor(estimator: Any) -> tuple[str, list[str], list[str]]:
    """The call that creates an estimator with its parameters, the imports that it needs, and comments on arrays."""
    made, given = clone(estimator), estimator.get_params(deep=True)
    kinds = {type(one) for one in (estimator, *given.values()) if hasattr(one, "get_params")}
    homes = {kind: kind.__module__.split(".") for kind in kinds}
    imports = [
        f"from {'coterie' if home[0] == 'coterie' else '.'.join(part for part in home if part[0] != '_')} "
        f"import {kind.__name__}"
        for kind, home in homes.items()
    ]
    arrays = {name: np.shape(value) for name, value in given.items() if isinstance(value, np.ndarray)}
    made.set_params(**{name: _Array() for name in arrays})
    told = [f"# {name}: the {' × '.join(map(str, shape))} array that was passed" for name, shape in arrays.items()]
    return made.__repr__(N_CHAR_MAX=100_000), imports, told  # the whole text
