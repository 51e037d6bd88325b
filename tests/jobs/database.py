"""What stands in a table of a database."""

from __future__ import annotations

from typing import Any

import psycopg


def list_rows(dsn: str, query: str) -> list[list[Any]]:
    """Return the rows of a query to PostgreSQL."""
    with psycopg.connect(dsn) as connection:
        return [list(row) for row in connection.execute(query)]
