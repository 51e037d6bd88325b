"""Messages of AMQP 0.9.1 as records of the spool."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from streamer.connectors.spool.blocks import Record, pack_each

_PROPERTIES: Final = {
    "content_type": "content_type",
    "content_encoding": "content_encoding",
    "delivery_mode": "delivery_mode",
    "correlation_id": "correlation_id",
    "reply_to": "reply_to",
    "expiration": "expiration",
    "message_id": "message_id",
    "message_type": "type",
    "user_id": "user_id",
    "app_id": "app_id",
}


def make_record(message: Any) -> Record:
    """Return a delivered message (`aiormq.abc.DeliveredMessage`) as a record of the spool."""
    return pack_each([bytes(message.body)], read_metadata(message))


def read_metadata(message: Any) -> dict[str, str]:
    """Return headers and properties of a message as metadata; all are texts, as in Connect."""
    properties, delivery = message.header.properties, message.delivery
    values: dict[str, Any] = dict(properties.headers or {})
    values |= {
        f"amqp_{name}": getattr(properties, attribute) for attribute, name in _PROPERTIES.items()
    }
    values["amqp_priority"] = properties.priority or 0
    if properties.timestamp is not None:
        values["amqp_timestamp"] = int(properties.timestamp.timestamp())
    values |= {
        "amqp_consumer_tag": delivery.consumer_tag,
        "amqp_delivery_tag": delivery.delivery_tag,
        "amqp_redelivered": bool(delivery.redelivered),
        "amqp_exchange": delivery.exchange,
        "amqp_routing_key": delivery.routing_key,
    }
    return {key: text for name, value in values.items() for key, text in _flatten(name, value)}


def _flatten(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """Return a value as texts, tables and lists part by part; what has no text is left out."""
    key = name.replace("-", "_")
    if isinstance(value, Mapping):
        for inner, item in value.items():
            yield from _flatten(f"{key}_{inner}", item)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _flatten(f"{key}_{number}", item)
    elif text := _to_text(value):
        yield key, text


def _to_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode(errors="replace")
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, float):
        return f"{value:f}".rstrip("0").rstrip(".") if value == value else "NaN"
    return str(value) if isinstance(value, str | int | Decimal) else ""
