"""The function that looks up rows of `table_resources`."""

from __future__ import annotations

from typing import Any

from streamer.bloblang.declare import STREAMER, Example, Param, declare
from streamer.bloblang.errors import QueryError
from streamer.core.errors import StreamerError
from streamer.core.lookup_tables import current_tables
from streamer.core.value import NOTHING

_CATEGORY = "Environment"


@declare(
    "table",
    _CATEGORY,
    Param("label", "string", literal=True),
    Param("key", "any", default=NOTHING),
    examples=(
        Example(
            'root.country = table("cities", this.city).country.catch("unknown")',
            '{"city":"Berlin"}',
            '{"country":"unknown"}',
        ),
    ),
    uses=("table",),
    origin=STREAMER,
)
def table(label: str, key: Any) -> Any:
    """The row of a table of `table_resources` with a key, null without one; all rows without a key.

    `table("cities").get(this.city)` is the same as `table("cities", this.city)`.
    """
    tables = current_tables()
    if tables is None:
        raise QueryError(
            f"the table {label!r} cannot be looked up here: tables are loaded for streams, for "
            "tests and for what tries a config, not for a mapping by itself"
        )
    try:
        rows = tables.find(label)
    except StreamerError as e:
        raise QueryError(str(e)) from None
    return rows.all() if key is NOTHING else rows.get(key)
