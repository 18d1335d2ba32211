"""Document 001, section 3 and its appendices: the errors of the constructed Transformers beside the theorems' bounds.

Each experiment ``(output: Path, quick: bool) -> dict`` measures, writes ``<name>.json`` and then draws ``<name>.png``
from that record alone. Run them with ``python -m coterie.experiments.incontext_theory [--quick] [NAME ...]``.
"""

from collections.abc import Callable
from pathlib import Path

from coterie.experiments.incontext_theory.networks import assignments, iterations, parameter_norms
from coterie.experiments.incontext_theory.steps import expectation_error, hardmax_error, maximisation_error
from coterie.experiments.incontext_theory.sums import fits

EXPERIMENTS: dict[str, Callable[[Path, bool], dict]] = {
    "assignments": assignments,
    "expectation_error": expectation_error,
    "maximisation_error": maximisation_error,
    "hardmax_error": hardmax_error,
    "fits": fits,
    "iterations": iterations,
    "parameter_norms": parameter_norms,
}
__all__ = ["EXPERIMENTS", *EXPERIMENTS]
