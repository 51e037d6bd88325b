"""Attacks on what listens: what a stranger gets, and what goes on beside it."""
