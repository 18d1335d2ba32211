"""The report for people: one self-contained HTML file about a clustering."""

from coterie.reporting.making import Origin, Report, report

__all__ = ["Origin", "Report", "report"]
