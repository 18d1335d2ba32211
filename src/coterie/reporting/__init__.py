"""The report: one self-contained HTML file about a clustering."""

from coterie.reporting.report import Report, report, report_on

__all__ = ["Report", "report", "report_on"]
