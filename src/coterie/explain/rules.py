"""One line per cluster that says which rows belong to it, from a shallow decision tree."""

from dataclasses import dataclass

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from coterie.plot.columns import Column
from coterie.selection import stratified_sample
from coterie.tabular.clustered_table import ClusteredTable

DEPTH = 3  # conditions of a rule, at most
RULE_ROWS = 20_000


@dataclass(frozen=True)
class Rule:
    """Conditions in words, the share of the cluster that meets them, and the share of such rows that belong to it."""

    words: str
    coverage: float
    precision: float

    @property
    def text(self) -> str:
        covers = f"covers {self.coverage:.0%} of the cluster"
        return f"{self.words}: {covers}; {self.precision:.0%} of such rows belong to it"


def rules(clustered: ClusteredTable) -> dict[int, Rule]:
    """The best rule of every cluster with at least two rows: the leaf of a tree with the largest F1 score."""
    if int((clustered.sizes > 0).sum()) < 2:
        return {}
    rows = stratified_sample(clustered.labels, RULE_ROWS)
    values, labels = clustered.values[rows], clustered.labels[rows]
    least = max(2, len(rows) // 200)
    found = {}
    for label in np.unique(labels[labels >= 0]).tolist():
        inside = labels == label
        if inside.sum() < 2 or inside.all():
            continue
        tree = DecisionTreeClassifier(
            max_depth=DEPTH, min_samples_leaf=min(least, int(inside.sum())), class_weight="balanced", random_state=0
        ).fit(values, inside)
        found[label] = _best_leaf(tree, values, inside, clustered.fields)
    return found


def _best_leaf(tree: DecisionTreeClassifier, values: np.ndarray, inside: np.ndarray, fields: list[Column]) -> Rule:
    leaves = tree.apply(values)
    best, score = (-1, 0.0, 0.0), -1.0
    for leaf in np.unique(leaves[inside]).tolist():
        covered = leaves == leaf
        both = float((covered & inside).sum())
        coverage, precision = both / inside.sum(), both / covered.sum()
        f1 = 2 * coverage * precision / (coverage + precision)
        if f1 > score:
            best, score = (leaf, coverage, precision), f1
    return Rule(_words(tree, best[0], fields), best[1], best[2])


def _words(tree: DecisionTreeClassifier, leaf: int, fields: list[Column]) -> str:
    """The conditions on the way from the root to a leaf; several on one column become one."""
    inner = tree.tree_
    parent = {int(child): (node, sign) for sign, children in (("<", inner.children_left), (">", inner.children_right))
              for node, child in enumerate(children) if child >= 0}  # fmt: skip
    bounds: dict[int, dict[str, float]] = {}
    node = leaf
    while node in parent:
        node, sign = parent[node]
        bounds.setdefault(int(inner.feature[node]), {}).setdefault(sign, float(inner.threshold[node]))
    parts = [_condition(place, limits, fields) for place, limits in sorted(bounds.items())]
    return " and ".join(parts) or "all rows"


def _condition(place: int, limits: dict[str, float], fields: list[Column]) -> str:
    one = next(field for field in fields if field.own.start <= place < field.own.stop)
    if one.levels is not None:
        return f"{one.name} is {'' if '>' in limits else 'not '}{one.levels[place - one.first]}"
    if one.cycle:
        low, high = limits.get(">", one.values.min()), limits.get("<", one.values.max())
        return f"{one.name} from {one.show(low)} to {one.show(high)}"
    if len(limits) == 2:
        return f"{one.show(limits['>'])} < {one.name} ≤ {one.show(limits['<'])}"
    ((sign, limit),) = limits.items()
    return f"{one.name} {'>' if sign == '>' else '≤'} {one.show(limit)}"
