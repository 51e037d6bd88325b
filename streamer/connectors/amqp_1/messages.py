"""Messages of AMQP 1.0 as records of the spool."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from streamer.connectors.spool.blocks import Record, pack_each
from streamer.core.durations import SECOND, format_duration
from streamer.core.json.dump import dump_json

_PROPERTIES: Final = {
    "amqp_to": "address",
    "amqp_content_type": "content_type",
    "amqp_content_encoding": "content_encoding",
    "amqp_message_id": "id",
    "amqp_correlation_id": "correlation_id",
    "amqp_subject": "subject",
    "amqp_reply_to": "reply_to",
    "amqp_group_id": "group_id",
    "amqp_reply_to_group_id": "reply_to_group_id",
    "amqp_user_id": "user_id",
}
_UNSET: Final = "None"
"""Proton's text of a content type or an encoding that a message has not."""

_TIMES: Final = {
    "amqp_creation_time": "creation_time",
    "amqp_absolute_expiry_time": "expiry_time",
}


def make_record(message: Any, *, reads_header: bool) -> Record:
    """Return a `proton.Message` as a record of the spool."""
    metadata = dict(read_metadata(message, reads_header=reads_header))
    return pack_each([_read_body(message.body)], metadata)


def _read_body(body: Any) -> bytes:
    if isinstance(body, bytes | memoryview):
        return bytes(body)
    if isinstance(body, str):
        return str(body).encode(errors="replace")
    return b"" if body is None else dump_json(_as_plain(body))


def _as_plain(value: Any) -> Any:
    """Return a value of AMQP as one of JSON; types that JSON has not become texts."""
    if isinstance(value, Mapping):
        return {str(key): _as_plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_as_plain(one) for one in value]
    if value is None or isinstance(value, bool):
        return value
    for kind in (int, float, str):
        # Proton has classes of its own for widths and symbols.
        if isinstance(value, kind):
            return kind(value)
    if isinstance(value, bytes | memoryview):
        return bytes(value).decode(errors="replace")
    if hasattr(value, "elements"):
        return [_as_plain(one) for one in value.elements]
    return str(value)


def read_metadata(message: Any, *, reads_header: bool) -> Iterator[tuple[str, str]]:
    """Return properties and texts among the annotations as metadata, as in Connect.

    Args:
        message: a `proton.Message`.
        reads_header: whether those of its header are wanted too.
    """
    for name, attribute in _PROPERTIES.items():
        text = _to_text(getattr(message, attribute))
        if text and not (text == _UNSET and attribute.startswith("content_")):
            yield name, text
    for name, attribute in _TIMES.items():
        if seconds := getattr(message, attribute):
            yield name, _format_time(seconds)
    if message.group_id or message.group_sequence:
        yield "amqp_group_sequence", str(message.group_sequence)
    if reads_header:
        yield "amqp_durable", _to_text(message.durable)
        yield "amqp_priority", str(message.priority)
        yield "amqp_ttl", format_duration(round(message.ttl * SECOND))
        yield "amqp_first_acquirer", _to_text(message.first_acquirer)
        yield "amqp_delivery_count", str(message.delivery_count)
    for key, value in (message.annotations or {}).items():
        if isinstance(key, str) and isinstance(value, str) and value:
            yield str(key).replace("-", "_"), str(value)


def _to_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes | memoryview):
        return bytes(value).decode(errors="replace")
    return str(value) if isinstance(value, str | int | UUID) else ""


def _format_time(seconds: float) -> str:
    try:
        time = datetime.fromtimestamp(int(seconds), UTC)
    except (ValueError, OverflowError, OSError):
        return str(seconds)
    return time.isoformat().replace("+00:00", "Z")
