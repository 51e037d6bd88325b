"""Message attributes of SQS and SNS, and the texts that both take."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from streamer.bloblang import Interpolation, compile_interpolation
from streamer.connectors.aws.fields import EXCLUDE_PREFIXES, METADATA
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.json.dump import dump_json
from streamer.core.message import Batch, Message
from streamer.sdk.mapping_query import interpolate
from streamer.sdk.spec import Field, ParsedFields

GROUP_ID: Final = "message_group_id"
DEDUPLICATION_ID: Final = "message_deduplication_id"

_REFUSED_NAME: Final = re.compile(
    r"^\.|\.\.|^aws\.|^amazon\.|\.$|[^a-z0-9_\-.]", re.IGNORECASE | re.ASCII
)
_REFUSED_CHARACTER: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def optional_text(name: str, description: str, *examples: str) -> Field:
    """Return an interpolated field that may be left out."""
    return Field(name, "string", description, optional=True, interpolated=True, examples=examples)


FIFO_FIELDS: Final = (
    optional_text(
        GROUP_ID,
        "The group of the message, whose messages keep their order.",
        "${! @kafka_key }",
    ),
    optional_text(
        DEDUPLICATION_ID,
        "An ID; what has the ID of a message of the last five minutes is dropped.",
        "${! this.id }",
    ),
)


def message_text(raw: bytes) -> str:
    """Return the text of a payload.

    Raises:
        MessageError: it is empty, not UTF-8, or has characters that these services refuse.
    """
    if not raw:
        raise MessageError("the message is empty, which the service refuses")
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise MessageError("the message is not UTF-8; encode it, for instance as base64") from None
    if refused := _REFUSED_CHARACTER.search(text):
        raise MessageError(
            f"the message has the character U+{ord(refused.group()):04X}, which the service refuses"
        )
    return text


class AttributeMaker:
    """Makes the attributes of messages that are sent, of their metadata."""

    def __init__(self, parsed: ParsedFields, limit: int | None = None) -> None:
        """Take the fields, and how many attributes a message has at most: the first by name."""
        self._left_out = tuple(parsed[METADATA][EXCLUDE_PREFIXES])
        self._limit = limit

    def attach(self, entry: dict[str, Any], message: Message) -> int:
        """Give an entry the attributes of its message; return the bytes of both and the payload."""
        attributes = self.make(message.meta)
        if attributes:
            entry["MessageAttributes"] = attributes
        return len(message.raw) + attributes_size(attributes)

    def make(self, metadata: Mapping[str, Any]) -> dict[str, dict[str, str]]:
        """Return the attributes; names that the service refuses and empty values are left out."""
        attributes: dict[str, dict[str, str]] = {}
        for name in sorted(metadata):
            if len(attributes) == self._limit:
                break
            if _REFUSED_NAME.search(name) or (self._left_out and name.startswith(self._left_out)):
                continue
            if value := as_text(metadata[name]):
                attributes[name] = {"DataType": "String", "StringValue": value}
        return attributes


def attributes_size(attributes: Mapping[str, Mapping[str, str]]) -> int:
    """Return the bytes of attributes, as the services count them."""
    return sum(
        len(name.encode()) + sum(len(text.encode()) for text in one.values())
        for name, one in attributes.items()
    )


def as_text(value: Any) -> str:
    """Return the text of a value of metadata: of one that is none, its JSON."""
    if isinstance(value, str):
        return value
    return value.decode(errors="replace") if isinstance(value, bytes) else dump_json(value).decode()


class TextFields:
    """Interpolated fields of a component that may be left out."""

    def __init__(self, parsed: ParsedFields, names: Mapping[str, str]) -> None:
        """Take the names of the fields, and by each the name that a service knows."""
        self._texts: dict[str, tuple[str, Interpolation]] = {
            sent: (name, compile_interpolation(parsed[name]))
            for name, sent in names.items()
            if parsed[name] is not None
        }

    def make(self, batch: Batch, index: int, ex: Execution) -> dict[str, Any]:
        """Return the texts for a message, by the names of the service.

        Raises:
            MessageError: one is empty, or cannot be told.
        """
        made = {}
        for sent, (name, text) in self._texts.items():
            made[sent] = interpolate(name, text, batch, index, ex)
            if not made[sent]:
                raise MessageError(f"{name} is empty")
        return made
