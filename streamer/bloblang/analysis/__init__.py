"""Analyses of a mapping that has been parsed."""
