"""Limits for requests of a client."""

from dataclasses import dataclass

MEGABYTE = 2**20


@dataclass(frozen=True)
class Limits:
    """Limits for tables (after decompression) and for jobs."""

    upload_bytes: int = 256 * MEGABYTE
    table_bytes: int = 1024 * MEGABYTE  # of text, or of Parquet pages, after decompression
    rows: int = 1_000_000
    columns: int = 500
    drawn_points: int = 20_000
    request_bytes: int = 2 * MEGABYTE  # of a request that is not an upload
    clusters: int = 100
    reading_seconds: float = 120.0
    run_seconds: float = 900.0
    report_seconds: float = 180.0
    memory_bytes: int = 4096 * MEGABYTE  # of one job, in addition to its libraries
    running: int = 2  # runs at the same time
    reporting: int = 1  # reports, which take fits of their own
    answering: int = 2  # tables that are read, labels, maps and names, which nobody wants to wait for
    waiting: int = 8  # beyond these, of each of the three
    kept_tables: int = 12
    kept_runs: int = 60
