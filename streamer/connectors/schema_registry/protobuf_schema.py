"""Protobuf schemas of a registry: messages to JSON and back, compiled once for each worker."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterable, Sequence
from typing import Any, Final

from streamer.connectors.protobuf.compiler import compile_files
from streamer.connectors.protobuf.messages import (
    DEFAULT_OPTIONS,
    MessageTypes,
    ProtobufOptions,
    find_well_known_file,
)
from streamer.connectors.schema_registry.wire_format import (
    read_message_indexes,
    write_message_indexes,
)
from streamer.core.errors import MessageError, StreamerError
from streamer.core.message import Message

_ROOT: Final = "streamer_root_schema.proto"


class ProtobufMessageCodec:
    """Reads and writes messages of one schema. Threads may share it."""

    def __init__(
        self,
        text: str,
        references: Iterable[tuple[str, str]] = (),
        options: ProtobufOptions = DEFAULT_OPTIONS,
    ) -> None:
        """Compile a schema.

        Args:
            text: the schema, as a `.proto` file.
            references: names and texts of the files that it imports.
            options: how messages look as JSON.

        Raises:
            StreamerError: it cannot be compiled.
        """
        others = list(references)
        compiled = read_serialized(text, others) or _compile(text, others)
        self._types = MessageTypes(compiled, options)
        self._messages = self._types.in_file(self._types.names[-1])
        self._last = 0
        self._lock = threading.Lock()

    def decode(self, message: Message, raw: bytes) -> Message:
        """Return a message with the document that bytes stand for.

        Raises:
            MessageError: they are no message of the schema.
        """
        try:
            indexes, body = read_message_indexes(raw)
            kind = self._find(indexes)
        except ValueError as e:
            raise MessageError(str(e)) from None
        return self._types.read_message(kind, message, body)

    def encode(self, message: Message) -> bytes:
        """Return a message's document as bytes, of the first type of the schema that it fits.

        The type that the last document had is tried first. Types within others are not tried.

        Raises:
            MessageError: it fits none.
        """
        text = message.raw
        with self._lock:
            last = self._last
        errors: list[str] = []
        order = [last, *(number for number in range(len(self._messages)) if number != last)]
        for number in order if self._messages else ():
            kind = self._messages[number]
            try:
                body = self._types.write_message(kind, text)
            except MessageError as e:
                errors.append(f"unmarshal '{kind.name}': {e}")
                continue
            with self._lock:
                self._last = number
            return write_message_indexes([number]) + body
        raise MessageError(", ".join(errors) or "the schema has no message")

    def _find(self, indexes: Sequence[int]) -> Any:
        """Return the type at a path."""
        kinds, kind = self._messages, None
        for index in indexes:
            if not 0 <= index < len(kinds):
                raise ValueError(
                    f"message index ({index}) is greater than available message definitions "
                    f"({len(kinds)})"
                )
            kind = kinds[index]
            kinds = kind.nested_types
        return kind


def read_serialized(text: str, references: Iterable[tuple[str, str]]) -> bytes:
    """Return the descriptors of a schema whose text is a descriptor in Base64; empty if it is not.

    Confluent's Python client registers schemas so, and some registries give them back as they came.

    Raises:
        StreamerError: it imports what is not there.
    """
    from google.protobuf import descriptor_pb2

    root = _parse_descriptor(text)
    if root is None:
        return b""
    files = {name: _parse_descriptor(other) for name, other in references}
    made = descriptor_pb2.FileDescriptorSet()
    added: set[str] = set()

    def add(file: Any) -> None:
        for name in file.dependency:
            if name not in added:
                added.add(name)
                add(files.get(name) or find_well_known_file(name))
        made.file.add().CopyFrom(file)

    add(root)
    serialized: bytes = made.SerializeToString()
    return serialized


def _compile(text: str, references: list[tuple[str, str]]) -> bytes:
    try:
        return compile_files({**dict(references), _ROOT: text}, [_ROOT])
    except StreamerError as e:
        raise StreamerError(str(e).replace(_ROOT, "schema")) from None


def _parse_descriptor(text: str) -> Any:
    from google.protobuf import descriptor_pb2
    from google.protobuf.message import DecodeError

    try:
        return descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (ValueError, DecodeError):
        return None
