"""JSON schemas of a registry: messages are checked, and may get the values that they type."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from streamer.bloblang.errors import ArgumentError, QueryError
from streamer.bloblang.runtime.json_schemas import compile_schema
from streamer.connectors.schema_registry.json_coercion import JsonCoercer
from streamer.core.errors import MessageError, StreamerError
from streamer.core.message import Message
from streamer.sdk.processing.per_message import parse_document


class JsonMessageCodec:
    """Checks messages of one schema."""

    def __init__(
        self, text: str, references: Iterable[tuple[str, str]] = (), *, coerces: bool = False
    ) -> None:
        """Read a schema.

        Args:
            text: the schema.
            references: names and texts of schemas that it refers to.
            coerces: whether values that are decoded become those that the schema types.

        Raises:
            StreamerError: one of them is no schema.
        """
        references = tuple(references)
        self._coercer = JsonCoercer(text, references) if coerces else None
        try:
            self._check = compile_schema(text, references)
        except ArgumentError as e:
            raise StreamerError(str(e)) from None

    def decode(self, message: Message, raw: bytes) -> Message:
        """Return a message with bytes that fit the schema.

        Raises:
            MessageError: they do not.
        """
        decoded = message.with_bytes(raw)
        document = parse_document(decoded)
        self._check_document(document)
        return decoded if self._coercer is None else self._coerce(decoded, document)

    def _coerce(self, message: Message, document: Any) -> Message:
        assert self._coercer is not None
        try:
            return message.with_doc(self._coercer.coerce(document))
        except MessageError as e:
            raise MessageError(f"coercing message to its schema: {e}") from None

    def encode(self, message: Message) -> bytes:
        """Return the bytes of a message that fits the schema.

        Raises:
            MessageError: it does not.
        """
        self._check_document(parse_document(message))
        return message.raw

    def _check_document(self, document: Any) -> None:
        try:
            self._check(document)
        except QueryError as e:
            lines = " ".join(str(e).splitlines())
            raise MessageError(f"json message does not conform to schema: [{lines}]") from None
        except RecursionError:
            raise MessageError("the document is nested too deep to be checked") from None
