"""What a clustering says: facts, verdict, cautions, quality, and the report, one self-contained HTML file."""
