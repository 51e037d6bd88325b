"""Lookup tables: rows by a key, which mappings look up with `table()`.

Who runs mappings says which tables there are: a worker for each micro-batch, a tool for as long as
it runs. A table does not change: what is refreshed is another version of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, Protocol

import orjson

from streamer.core.json.dump import dump_json

TableRow = dict[str, Any]
_NESTED_TYPES: Final = (dict, list)


class LookupTable:
    """One version of a table.

    Rows are copied when they are given out: mappings change documents that they have made.
    """

    def __init__(self, rows: Mapping[str, TableRow]) -> None:
        """Take the rows by the text of their keys, see `key_text`."""
        self._rows = rows
        self._is_flat = not any(
            isinstance(value, _NESTED_TYPES) for row in rows.values() for value in row.values()
        )

    def __len__(self) -> int:
        """Return how many rows there are."""
        return len(self._rows)

    def get(self, key: Any) -> TableRow | None:
        """Return the row of a key; None where there is none.

        Example:
            >>> LookupTable({"7": {"name": "ann"}}).get(7.0)
            {'name': 'ann'}
        """
        text = key if type(key) is str else key_text(key)
        row = None if text is None else self._rows.get(text)
        if row is None:
            return None
        return row.copy() if self._is_flat else _copy(row)

    def all(self) -> dict[str, TableRow]:
        """Return all rows by the text of their keys."""
        return {key: _copy(row) for key, row in self._rows.items()}


def _copy(value: Any) -> Any:
    if type(value) is dict:
        return {name: _copy(item) for name, item in value.items()}
    return [_copy(item) for item in value] if type(value) is list else value


def key_text(key: Any) -> str | None:
    """Return the text that a key is compared by; None for null, which is no key.

    A text is itself and all else its JSON, so that a number finds its row in a CSV file too, which
    has texts alone.

    Example:
        >>> key_text("a"), key_text(7), key_text(7.0), key_text(True), key_text(None)
        ('a', '7', '7', 'true', None)
    """
    if key is None or isinstance(key, str):
        return key
    if isinstance(key, bytes):
        return key.decode("utf-8", "surrogateescape")
    text = dump_json(key).decode()
    # A timestamp is a text in JSON, and equals that text.
    return orjson.loads(text) if text.startswith('"') else text


class LookupTables(Protocol):
    """The tables of a stream, by label."""

    def find(self, label: str) -> LookupTable:
        """Return a table.

        Raises:
            StreamerError: there is none of that label here, or it cannot be read.
        """


_process_tables: LookupTables | None = None
_active_tables: ContextVar[LookupTables | None] = ContextVar("_active_tables", default=None)


def current_tables() -> LookupTables | None:
    """Return the tables that mappings look up here; None where there are none."""
    return _active_tables.get() or _process_tables


def set_process_tables(tables: LookupTables | None) -> None:
    """Set the tables of this process's mappings; a worker does so for each task."""
    global _process_tables
    _process_tables = tables


@contextmanager
def use_tables(tables: LookupTables | None) -> Iterator[None]:
    """Let mappings look up these tables while the block runs, in this context and no other."""
    token = _active_tables.set(tables)
    try:
        yield
    finally:
        _active_tables.reset(token)
