"""Document 001, section 3 and its appendices: the errors of the constructed Transformers beside the theorems' bounds.

Each experiment ``(output: Path, quick: bool) -> dict`` measures, writes ``<name>.json`` and then draws ``<name>.png``
from that record alone: ``coterie reproduce theory/<name>``.
"""

from coterie_research.incontext_em.theory_checks.networks import assignments, iterations, parameter_norms
from coterie_research.incontext_em.theory_checks.steps import expectation_error, hardmax_error, maximisation_error
from coterie_research.incontext_em.theory_checks.sums import fits

__all__ = [
    "assignments",
    "expectation_error",
    "fits",
    "hardmax_error",
    "iterations",
    "maximisation_error",
    "parameter_norms",
]
