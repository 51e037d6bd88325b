"""Evaluates a buffer's mappings for many messages."""
