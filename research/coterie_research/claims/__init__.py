"""Every table, figure, theorem and open question of the four papers beside our records: ``research/CLAIMS.md``.

``coterie-research claims`` writes that page; with ``--check`` it only says whether the page is up to date.
One file per paper, ``NAME.toml``, holds what the paper says and where our number stands in a record of ``results``.
Numbers, intervals, commands, seeds and seconds are read from the records, and verdicts follow from the intervals.

A measure is ``KIND PATH``, as in ``mean levels > high > layers_16 > mean``. A kind is a function of ``measures``; a
path goes down a record by keys, positions in a list, ``key=value`` for the entry of a list that has it, or patterns
with ``*``. The paper's side of a measure is a number, several numbers if it prints several for one quantity, or a
bound such as ``<0``.
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from coterie_research.benchmarks.harness import table
from coterie_research.claims.measures import Measured, measure
from coterie_research.experiments import natural
from coterie_research.records import read_toml

HERE = Path(__file__).parent
PAPERS = ("kmeans_transformers", "incontext_em", "measure_flows", "mixture_of_vaes")
VERDICTS = ("agrees", "differs", "cannot be compared", "not run")
Document = float | str | list[float]


@dataclass(frozen=True)
class Claim:
    """A line of the table. ``document`` and ``ours`` have one entry for each number; ``says`` is the paper in words."""

    item: str
    what: str
    setting: str = ""
    reason: str = ""
    says: str = ""
    record: str = ""
    ours: tuple[str, ...] = ()
    document: tuple[Document, ...] = ()
    verdict: str = ""  # empty: by the intervals
    price: str = ""  # of a claim that was not run
    command: str = ""  # where no record has one
    found: str = ""  # ours in words, where no record has it

    def measured(self, results: Path) -> list[Measured]:
        return [measure(text, read(results, self.record)) for text in self.ours]

    def judged(self, results: Path) -> str:
        """The verdict: every interval against the paper's side, unless the file states one."""
        if self.verdict:
            return self.verdict
        found = [agreement(ours, theirs) for ours, theirs in zip(self.measured(results), self.document)]
        if None in found or not found:
            return "cannot be compared"
        return "agrees" if all(found) else "differs"


def agreement(ours: Measured, theirs: Document) -> bool | None:
    """Whether our interval has the paper's number or lies within its bound; None if it cannot tell."""
    if ours.low is None or ours.high is None:
        return None
    if isinstance(theirs, str):
        below, bound = theirs[0] == "<", float(theirs[1:])
        inside, outside = (ours.high, ours.low) if below else (-ours.low, -ours.high)
        bound = bound if below else -bound
        return True if inside <= bound else False if outside > bound else None
    numbers = theirs if isinstance(theirs, list) else [theirs]
    return ours.low <= max(numbers) and ours.high >= min(numbers)


@cache
def read(results: Path, record: str) -> dict[str, Any]:
    return json.loads((results / f"{record}.json").read_text())


def claims(paper: str, results: Path) -> Iterator[Claim]:
    """The claims of a paper's file; a ``[[table]]`` in it stands for one claim per column of the record."""
    data = read_toml(HERE / f"{paper}.toml")
    for one in data.get("table", []):
        yield from _columns(one, results)
    for entry in data["claim"]:
        fields: dict[str, Any] = {k: tuple(value) if isinstance(value, list) else value for k, value in entry.items()}
        yield Claim(**fields)


def _columns(table: dict[str, Any], results: Path) -> Iterator[Claim]:
    """Squared W2 of each column at the three levels; the paper's numbers stand in the record."""
    record, score = read(results, table["record"]), table["score"]
    base = Claim(table["item"], "", table["setting"], record=table["record"])
    for column, entry in table["columns"].items():
        levels = [(level, record["levels"][level][column]) for level in record["levels"]]
        also = entry.get("also", [[]] * len(levels))
        yield replace(
            base,
            what=f"{entry['what']}, {'mean log' if score == 'log' else 'mean'} squared W2",
            reason=entry["reason"],
            setting=entry.get("setting", base.setting),
            ours=tuple(f"mean levels > {level} > {column} > {score}" for level, _ in levels),
            document=tuple([cell["document"], *more] for (_, cell), more in zip(levels, also)),
            verdict=entry.get("verdict", ""),
        )


def page(results: Path) -> str:
    """``CLAIMS.md``."""
    parts, counts = [], {}
    for paper in PAPERS:
        title = read_toml(HERE / f"{paper}.toml")["title"]
        found = [(claim, claim.judged(results)) for claim in sorted(claims(paper, results), key=_order)]
        counts[title] = Counter(verdict for _, verdict in found)
        lines = [[cell.replace("|", "\\|") for cell in _cells(claim, verdict, results)] for claim, verdict in found]
        parts += [f"## {title}", "", *table(COLUMNS, lines), ""]
    counts["all"] = sum(counts.values(), Counter())
    summary = table(["paper", *VERDICTS], ([name, *(n[verdict] for verdict in VERDICTS)] for name, n in counts.items()))
    return "\n".join([(HERE / "introduction.md").read_text(), *summary, "", *parts]).rstrip() + "\n"


def write(check: bool = False, root: Path = HERE.parents[2]) -> int:
    """Write ``research/CLAIMS.md``, or only say whether it is up to date; exit status 1 if it is not."""
    target, text = root / "research/CLAIMS.md", page(root / "results")
    if not check:
        target.write_text(text)
        return 0
    stale = not target.exists() or target.read_text() != text
    print("research/CLAIMS.md is out of date: run coterie-research claims" if stale else "up to date")
    return int(stale)


COLUMNS = ("item", "claim", "paper", "ours", "comparable in", "command; seed; seconds", "verdict")


def _order(claim: Claim) -> tuple:
    """Theorems and text first, then tables, then figures, then questions; each by number, as it is printed."""
    kinds = [kind for kind, start in enumerate(("Table", "Figure", "Open")) if claim.item.startswith(start)]
    return (1 + kinds[0] if kinds else 0, natural(claim.item))


def _cells(claim: Claim, verdict: str, results: Path) -> list[str]:
    reason = claim.reason + (f" Price: {claim.price}." if claim.price else "")
    theirs = claim.says or "; ".join(map(_text, claim.document))
    ours = claim.found or "; ".join(map(str, claim.measured(results))) or "–"
    return [
        claim.item,
        claim.what,
        theirs or "–",
        ours,
        claim.setting or "–",
        _how(claim, results),
        f"**{verdict}**: {reason}",
    ]


def _text(document: Document) -> str:
    if isinstance(document, list):
        return " or ".join(f"{number:g}" for number in dict.fromkeys(document))
    return document if isinstance(document, str) else f"{document:g}"


def _how(claim: Claim, results: Path) -> str:
    """Command, seed and seconds, as the record has them."""
    if not claim.record:
        return f"`{claim.command}`" if claim.command else "–"
    record = read(results, claim.record)
    parts = [*record.get("runs", []), *record.get("networks", {}).values()]
    seeds = [str(record["seed"])] if "seed" in record else [str(run["seed"]) for run in parts if "seed" in run]
    spent = record.get("cpu_seconds") or sum(part.get("cpu_seconds", 0.0) for part in parts)
    seconds = (
        f"{spent:,.0f} CPU s" if spent else f"{record['seconds']:,.0f} s" if "seconds" in record else "not recorded"
    )
    seed = seeds[0] if len(seeds) == 1 else f"{seeds[0]}–{seeds[-1]}" if seeds else "fixed"
    return f"`{record['command']}`; {seed}; {seconds}"
