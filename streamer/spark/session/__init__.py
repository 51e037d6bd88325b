"""Spark's session."""
