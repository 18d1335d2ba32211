"""Stress programs: processes are killed and loaded for a long time, and no result may be lost or changed."""
