"""Jars that Spark needs, and where they are from."""
