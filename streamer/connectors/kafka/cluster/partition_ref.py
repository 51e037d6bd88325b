"""The reference to a partition of a topic."""

from __future__ import annotations

PartitionRef = tuple[str, int]
"""A partition: its topic and number."""
