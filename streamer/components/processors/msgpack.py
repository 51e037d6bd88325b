"""`msgpack`: converts messages between JSON and MessagePack."""

from __future__ import annotations

from typing import Final

from streamer.bloblang.errors import QueryError
from streamer.bloblang.methods.msgpack import format_msgpack, parse_msgpack
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.processing.per_message import PerMessageProcessor
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec

OPERATOR: Final = "operator"

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "msgpack",
    "Converts messages to or from MessagePack.",
    description=(
        "`to_json` reads MessagePack and makes JSON of it, `from_json` the other way round. "
        "Numbers are written with 8 bytes."
    ),
    status="beta",
    fields=(
        Field(
            OPERATOR,
            "string",
            "Operation.",
            options=("to_json", "from_json"),
        ),
    ),
    examples=(
        Example(
            "Read MessagePack",
            "pipeline:\n  processors:\n    - msgpack:\n        operator: to_json\n",
        ),
    ),
    categories=("Parsing",),
)


def _to_json(message: Message, ex: Execution) -> Message:
    try:
        return message.with_doc(parse_msgpack(message.raw))
    except QueryError as e:
        raise MessageError(f"failed to convert MsgPack document to JSON: {e}") from None


def _from_json(message: Message, ex: Execution) -> Message:
    document = message.doc
    try:
        return message.with_bytes(format_msgpack(document))
    except QueryError as e:
        raise MessageError(f"failed to convert JSON to MsgPack: {e}") from None


def build(parsed: ParsedFields, context: BuildContext) -> PerMessageProcessor:
    """Choose the direction."""
    change = _to_json if parsed[OPERATOR] == "to_json" else _from_json
    return PerMessageProcessor(change, ComponentRef(context.component))
