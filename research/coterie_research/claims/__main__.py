"""``python -m coterie_research.claims [--check]``: write research/CLAIMS.md, or say whether it is up to date."""

import sys
from pathlib import Path

from coterie_research.claims import page

ROOT = Path(__file__).parents[3]


def main(arguments: list[str]) -> int:
    """Exit status 1 if the page is not up to date."""
    target, text = ROOT / "research/CLAIMS.md", page(ROOT / "results")
    if "--check" in arguments:
        stale = not target.exists() or target.read_text() != text
        print("research/CLAIMS.md is out of date: run python -m coterie_research.claims" if stale else "up to date")
        return int(stale)
    target.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
