"""Decides when a micro-batch starts and what it reads."""
