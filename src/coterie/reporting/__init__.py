"""The report for people: one self-contained HTML file about a clustering."""

from coterie.reporting.making import Report, report
from coterie.reporting.origin import Origin

__all__ = ["Origin", "Report", "report"]
