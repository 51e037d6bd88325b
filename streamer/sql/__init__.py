"""Databases that are asked in SQL: what all components for them have in common.

The drivers are used as they are, without a layer that knows SQL: configs hold whole statements,
in the driver's own dialect and with its own placeholders. What is there besides is what Go's
`database/sql` does for Redpanda Connect's: a pool, and how values become arguments and rows values.
"""

from __future__ import annotations

from streamer.sql.arguments import Arguments
from streamer.sql.database import Database, SqlError
from streamer.sql.drivers import Rows
from streamer.sql.statements import Insert, Select

__all__ = ["Arguments", "Database", "Insert", "Rows", "Select", "SqlError"]
