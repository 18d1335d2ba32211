"""The report for people: one self-contained HTML file about a clustering."""

from coterie.reporting.origin import Origin
from coterie.reporting.report import Report, report

__all__ = ["Origin", "Report", "report"]
