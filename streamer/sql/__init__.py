"""Databases that are asked in SQL: what all components for them have in common.

Connections, their pool and composed statements are SQLAlchemy's. Whole statements of configs go to
the driver as they are, in the database's own dialect and with its own placeholders. What is there
besides is how values become arguments and rows values, as with Go's drivers for Redpanda Connect.
"""

from __future__ import annotations

from streamer.sql.arguments import Arguments
from streamer.sql.database import Database
from streamer.sql.drivers import Rows
from streamer.sql.errors import SqlError
from streamer.sql.statements import Insert, Select

__all__ = ["Arguments", "Database", "Insert", "Rows", "Select", "SqlError"]
