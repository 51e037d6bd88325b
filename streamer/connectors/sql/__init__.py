"""Databases that are asked in SQL: what all components for them have in common.

Connections, their pool and composed statements are SQLAlchemy's. Whole statements of configs go to
the driver as they are, in the database's own dialect and with its own placeholders. What is there
besides is how values become arguments and rows values, as with Go's drivers for Redpanda Connect.
"""

from __future__ import annotations

from streamer.connectors.sql.arguments import ArgumentsMapping
from streamer.connectors.sql.database import Database
from streamer.connectors.sql.drivers import QueryRows
from streamer.connectors.sql.errors import SqlError
from streamer.connectors.sql.statements import InsertStatement, SelectStatement

__all__ = [
    "ArgumentsMapping",
    "Database",
    "InsertStatement",
    "QueryRows",
    "SelectStatement",
    "SqlError",
]
