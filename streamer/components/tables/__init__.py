"""Lookup tables, one file each."""
