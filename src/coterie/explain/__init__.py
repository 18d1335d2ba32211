"""What a clustering says: facts, verdict, cautions, quality, and the report, one self-contained HTML file."""

from coterie.explain.report import Report, report, report_on

__all__ = ["Report", "report", "report_on"]
