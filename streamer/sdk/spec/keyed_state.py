"""The processors that keep state by key."""

from __future__ import annotations

from typing import Final

MAPPING_PROCESSORS: Final = frozenset(("mapping", "mutation", "bloblang"))
"""Processors in whose mappings functions such as `lag` keep state by key."""

STATEFUL_PROCESSORS: Final = frozenset(("throttle", "deduplicate"))
"""Processors that keep state by key themselves."""
