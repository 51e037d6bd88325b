"""Comparison of the rows that two programs make of the same recorded messages."""
