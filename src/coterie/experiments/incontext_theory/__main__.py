"""Measure the constructed Transformers of document 001."""

import argparse
from pathlib import Path

from coterie.experiments.incontext_theory import EXPERIMENTS
from coterie.experiments.incontext_theory.records import FOLDER


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(EXPERIMENTS)}; all without one")
    parser.add_argument("--quick", action="store_true", help="a small version that takes seconds")
    parser.add_argument(
        "--output", type=Path, default=None, help=f"folder; default: {FOLDER}, below results/quick for --quick"
    )
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in EXPERIMENTS]
    if unknown:
        parser.error(f"there is no {unknown[0]!r}; known are {', '.join(EXPERIMENTS)}")
    folder = arguments.output or (Path("results/quick/incontext/theory") if arguments.quick else FOLDER)
    for name in arguments.names or EXPERIMENTS:
        print(f"{name}: {EXPERIMENTS[name](folder, arguments.quick)['seconds']} s")


if __name__ == "__main__":
    main()
