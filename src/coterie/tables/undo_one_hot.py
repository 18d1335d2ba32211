"""Columns that hold one value of a category each (a one-hot encoding), and the category that they were."""

import re
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from coterie.tables.columns import Column, as_texts
from coterie.tables.kinds import CATEGORY


def with_blocks(read: list[Column], free: set[str]) -> list[Column]:
    """Columns of which exactly one is 1 in every row become one category."""
    able = {
        column.name: place
        for place, column in enumerate(read)
        if column.name in free and column.kind == CATEGORY and set(column.values) in ({"0", "1"}, {"True", "False"})
    }
    blocks: list[list[int]] = []
    for prefix_members in _groups(list(able)):
        members = [able[name] for name in prefix_members if not any(able[name] in block for block in blocks)]
        ones = [np.isin(read[place].values.astype(str), ("1", "True")) for place in members]
        if len(members) > 1 and (np.sum(ones, axis=0) == 1).all():
            blocks.append(members)
    firsts = {block[0]: block for block in blocks}
    inside = {place for block in blocks for place in block}
    return [
        _block([read[member] for member in firsts[place]]) if place in firsts else column
        for place, column in enumerate(read)
        if place in firsts or place not in inside
    ]


def _groups(names: Sequence[str]) -> list[list[str]]:
    """Names that begin alike, largest groups first, and runs of neighbours."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name in names:
        ends = {match.start() for match in re.finditer(r"[\W_]+(?=.)", name)} | {len(name.rstrip("0123456789"))}
        for end in ends:
            if 0 < end < len(name):
                groups[name[:end]].append(name)
    return sorted((group for group in groups.values() if len(group) > 1), key=len, reverse=True)


def _block(members: list[Column]) -> Column:
    sources = tuple(column.name for column in members)
    levels = levels_of_block("", sources)
    values = merged([column.values for column in members], levels)
    name = common_name(sources)
    return Column(name, CATEGORY, values, f"{len(sources)} columns that hold one value each", True, sources)


def common_name(sources: Sequence[str]) -> str:
    """What the names of the columns of one category have in common."""
    start = sources[0]
    while not all(source.startswith(start) for source in sources):
        start = start[:-1]
    return start.rstrip("_ .=:-[(") or " / ".join(sources)


def levels_of_block(name: str, sources: Sequence[str]) -> list[str]:
    """The values for which the columns of one category stand."""
    start = len(common_name(sources)) if all(source.startswith(common_name(sources)) for source in sources) else 0
    return [source[start:].strip("_ .=:-[]()") or source for source in sources]


def merged(columns: Sequence[np.ndarray], levels: Sequence[str]) -> np.ndarray:
    """The level whose column says 1; None where none or several do."""
    ones = np.array([np.isin(values.astype(str), ("1", "1.0", "True")) for values in columns])
    texts = as_texts(levels)[ones.argmax(axis=0)]
    texts[ones.sum(axis=0) != 1] = None
    return texts
