"""Messages of windows as an Arrow table: metadata of the window first, then the payload."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

import pyarrow as pa

from streamer.connectors.tables.batch_table import make_batch_table
from streamer.core.json.dump import dump_json
from streamer.core.message import Message, describe_failure
from streamer.core.timestamps import parse_rfc3339
from streamer.core.value import INT64_MAX, INT64_MIN
from streamer.window.pack.window_metadata import (
    WINDOW_COUNT,
    WINDOW_EMIT,
    WINDOW_END,
    WINDOW_END_MS,
    WINDOW_KEY,
    WINDOW_MAX_TIME,
    WINDOW_START,
    WINDOW_START_MS,
)

TIME_TYPE: Final = pa.timestamp("ns", "UTC")
EMITTED_AT: Final = "emitted_at"
CONTENT: Final = "content"
"""The column of payloads that are no JSON objects."""

METADATA: Final = "metadata"
ERROR: Final = "error"

_METADATA_TYPES: Final[Mapping[str, pa.DataType]] = {
    WINDOW_START: TIME_TYPE,
    WINDOW_END: TIME_TYPE,
    WINDOW_MAX_TIME: TIME_TYPE,
    WINDOW_KEY: pa.string(),
    WINDOW_EMIT: pa.string(),
    WINDOW_COUNT: pa.int64(),
}
_UNUSED_METADATA: Final = frozenset({WINDOW_START_MS, WINDOW_END_MS})
"""Metadata that only repeats a column in another unit."""


class EmittedMessage(NamedTuple):
    """A message that a stream has emitted.

    Attributes:
        at: the time of its micro-batch, Unix ns.
        batch: the number of its batch, from 0; the messages of one emission have the same one.
        message: the message, with the metadata of its window.
        extra: further columns of its row, by name.
    """

    at: int
    batch: int
    message: Message
    extra: Mapping[str, Any] = {}


def build_window_frame(
    emitted: Sequence[EmittedMessage], extra_columns: Mapping[str, pa.DataType] | None = None
) -> pa.Table:
    """Return a table with a row for each message, in their order.

    The columns are: `emitted_at` and `batch`; the metadata of windows that any message has, with
    its own names, as times in UTC where it is a time; `metadata`, a JSON object of all other
    metadata; `error`, where a message has failed; the fields of payloads that are JSON objects,
    with inferred types; `content`, with all other payloads. Fields that have the name of another
    column are called `content.NAME`.

    Args:
        emitted: the messages.
        extra_columns: the types of the columns of `EmittedMessage.extra`, by name.

    Example:
        >>> message = Message(b'{"n":2}', {"window_key": "a", "lane": 3})
        >>> build_window_frame([EmittedMessage(0, 0, message)]).drop(["emitted_at"]).to_pylist()
        [{'batch': 0, 'window_key': 'a', 'metadata': '{"lane":3}', 'n': 2}]
    """
    columns: dict[str, Any] = {
        EMITTED_AT: pa.array([one.at for one in emitted], TIME_TYPE),
        "batch": pa.array([one.batch for one in emitted], pa.int64()),
    }
    for name, kind in (extra_columns or {}).items():
        columns[name] = pa.array([one.extra.get(name) for one in emitted], kind)
    metas = [one.message.meta for one in emitted]
    for name, kind in _METADATA_TYPES.items():
        values = [_metadata_value(meta.get(name), kind) for meta in metas]
        if any(value is not None for value in values):
            columns[name] = pa.array(values, kind)
    others = [_other_metadata(meta) for meta in metas]
    if any(others):
        columns[METADATA] = pa.array(others, pa.string())
    errors = [
        None if one.message.error is None else describe_failure(one.message.error)
        for one in emitted
    ]
    if any(error is not None for error in errors):
        columns[ERROR] = pa.array(errors, pa.string())
    for name, column in _payload_columns([one.message for one in emitted], frozenset(columns)):
        columns[name] = column
    return pa.table(columns)


def _metadata_value(value: Any, kind: pa.DataType) -> Any:
    """Return a value for a column; None where a processor has put something else there."""
    if value is None:
        return None
    if kind == TIME_TYPE:
        # Times before 1677 and after 2262 have no nanoseconds in 64 bits.
        with suppress(ValueError, TypeError, AttributeError):
            at = parse_rfc3339(value).ns
            return at if INT64_MIN <= at <= INT64_MAX else None
        return None
    if kind == pa.int64():
        return value if isinstance(value, int) else None
    return value if isinstance(value, str) else dump_json(value).decode()


def _other_metadata(meta: Mapping[str, Any]) -> str | None:
    known = _METADATA_TYPES.keys() | _UNUSED_METADATA
    others = {name: value for name, value in meta.items() if name not in known}
    return dump_json(others).decode() if others else None


def _payload_columns(
    messages: list[Message], used_names: frozenset[str]
) -> Iterator[tuple[str, Any]]:
    rows, indexes, errors = make_batch_table(messages)
    if errors:
        # A row without values for each payload that is none.
        numbers = dict(zip(indexes, range(len(indexes)), strict=True))
        rows = rows.take(pa.array([numbers.get(at) for at in range(len(messages))], pa.int64()))
    for field, column in zip(rows.schema, rows.columns, strict=True):
        is_used = field.name in used_names or (field.name == CONTENT and errors)
        yield (f"{CONTENT}.{field.name}" if is_used else field.name), column
    if errors:
        texts = [messages[at].raw if at in errors else None for at in range(len(messages))]
        yield CONTENT, _text_array(texts)


def _text_array(payloads: Sequence[bytes | None]) -> Any:
    """Return payloads as texts; as bytes where one is no UTF-8."""
    try:
        return pa.array([None if one is None else one.decode() for one in payloads], pa.string())
    except UnicodeDecodeError:
        return pa.array(payloads, pa.binary())
