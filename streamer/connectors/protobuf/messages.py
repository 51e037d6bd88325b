"""Messages by descriptors alone: bytes to documents and back.

What a document looks like is Protobuf's own JSON; as values, 64-bit numbers, bytes and times stay
what they are.
"""

from __future__ import annotations

import re
from contextlib import suppress
from importlib import import_module
from typing import Any, Final, NamedTuple

import orjson

from streamer.core.errors import MessageError, StreamerError
from streamer.core.message import Message
from streamer.core.timestamps import Timestamp

_UNKNOWN_FIELD: Final = re.compile(r'has no field named ("[^"]*")')
"""What the library says at length, where tests of configs expect Go's few words at the end."""


class ProtobufOptions(NamedTuple):
    """Settings of documents: the fields of `schema_registry_decode.protobuf`."""

    use_proto_names: bool = False
    use_enum_numbers: bool = False
    emit_unpopulated: bool = False
    emit_default_values: bool = False
    serialize_to_json: bool = True


DEFAULT_OPTIONS: Final = ProtobufOptions()


class MessageTypes:
    """Types of messages by their descriptors. Threads may share it."""

    def __init__(self, descriptors: bytes, options: ProtobufOptions = DEFAULT_OPTIONS) -> None:
        """Read descriptors.

        Args:
            descriptors: a serialised `FileDescriptorSet`, in any order; files that come with
                Protobuf may be left out.
            options: how messages look as documents.

        Raises:
            StreamerError: it is none, or imports what is not there.
        """
        from google.protobuf import descriptor_pb2, descriptor_pool
        from google.protobuf.message import DecodeError

        try:
            files = descriptor_pb2.FileDescriptorSet.FromString(descriptors).file
        except DecodeError:
            raise StreamerError("parsing proto schema: it is no FileDescriptorSet") from None
        self._pool: Any = descriptor_pool.DescriptorPool()
        self._files = {file.name: file for file in files}
        self._options = options
        added: set[str] = set()
        try:
            for name in self._files:
                self._add_file(name, added)
        except (TypeError, RecursionError) as e:
            raise StreamerError(f"parsing proto schema: {e}") from None
        self.names = tuple(self._files)
        """The names of the files."""

    def _add_file(self, name: str, added: set[str]) -> None:
        """Add a file to the pool, behind those that it imports."""
        if name in added:
            return
        added.add(name)
        file = self._files.get(name) or find_well_known_file(name)
        for other in file.dependency:
            self._add_file(other, added)
        self._pool.AddSerializedFile(file.SerializeToString())

    def in_file(self, name: str) -> list[Any]:
        """Return the types of a file, in its order, without those within others."""
        root = self._pool.FindFileByName(name)
        listed = self._files[name].message_type
        return [root.message_types_by_name[one.name] for one in listed]

    def find(self, name: str) -> Any:
        """Return the type of this full name.

        Raises:
            StreamerError: there is none.
        """
        try:
            return self._pool.FindMessageTypeByName(name)
        except KeyError:
            raise StreamerError(f"unable to find message '{name}' definition") from None

    def read_message(self, kind: Any, message: Message, raw: bytes) -> Message:
        """Return a message with the document that bytes of a type stand for.

        Raises:
            MessageError: they are no message of the type.
        """
        from google.protobuf import json_format
        from google.protobuf.message import DecodeError

        try:
            made = _class_of(kind)()
            made.ParseFromString(raw)
            if self._options.serialize_to_json:
                return message.with_bytes(orjson.dumps(self._to_json(made)))
            return message.with_doc(self._to_value(made))
        except (ValueError, DecodeError, json_format.Error, TypeError) as e:
            raise MessageError(str(e) or "the bytes are no Protobuf message") from None

    def write_message(self, kind: Any, text: bytes, discard_unknown: bool = False) -> bytes:
        """Return a document, as JSON, as bytes of a type: the same for the same document.

        Args:
            kind: the type.
            text: the document.
            discard_unknown: whether fields that the type does not have are left out.

        Raises:
            MessageError: it does not fit.
        """
        from google.protobuf import json_format

        try:
            made = json_format.Parse(
                text,
                _class_of(kind)(),
                ignore_unknown_fields=discard_unknown,
                descriptor_pool=self._pool,
            )
            body: bytes = made.SerializeToString(deterministic=True)
            return body
        except (json_format.Error, ValueError, TypeError, RecursionError) as e:
            unknown = _UNKNOWN_FIELD.search(str(e))
            why = f"unknown field {unknown[1]}" if unknown else " ".join(str(e).split())
            raise MessageError(why) from None

    def _to_json(self, made: Any) -> Any:
        from google.protobuf import json_format

        options = self._options
        document = json_format.MessageToDict(
            made,
            preserving_proto_field_name=options.use_proto_names,
            use_integers_for_enums=options.use_enum_numbers,
            always_print_fields_with_no_presence=(
                options.emit_default_values or options.emit_unpopulated
            ),
            descriptor_pool=self._pool,
        )
        if options.emit_unpopulated:
            self._add_nulls(made, document)
        return document

    def _name_of(self, field: Any) -> str:
        name = field.name if self._options.use_proto_names else field.json_name
        return str(name)

    def _add_nulls(self, made: Any, document: Any) -> None:
        """Add what has no value: null for messages outside of a oneof, and in those inside."""
        if not isinstance(document, dict) or _is_well_known(made.DESCRIPTOR):
            return
        for field in made.DESCRIPTOR.fields:
            name = self._name_of(field)
            if _is_repeated(field) or field.message_type is None:
                continue
            if made.HasField(field.name):
                self._add_nulls(getattr(made, field.name), document.get(name))
            elif field.containing_oneof is None:
                document[name] = None

    def _to_value(self, made: Any) -> Any:
        """Return a message as values: numbers as they are, bytes, and times."""
        kind = made.DESCRIPTOR
        if kind.full_name == "google.protobuf.Timestamp":
            return Timestamp(made.seconds * 1_000_000_000 + made.nanos)
        if _is_well_known(kind):
            return self._to_json(made)
        emits = self._options.emit_default_values or self._options.emit_unpopulated
        document: dict[str, Any] = {}
        for field in kind.fields:
            name = self._name_of(field)
            if field.has_presence and not made.HasField(field.name):
                if self._options.emit_unpopulated and field.containing_oneof is None:
                    document[name] = None
                continue
            value = getattr(made, field.name)
            if not emits and not field.has_presence and not value:
                continue
            document[name] = self._field_value(field, value)
        return document

    def _field_value(self, field: Any, value: Any) -> Any:
        if not _is_repeated(field):
            return self._single_value(field, value)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            of = field.message_type.fields_by_name["value"]
            return {_map_key(key): self._single_value(of, value[key]) for key in value}
        return [self._single_value(field, one) for one in value]

    def _single_value(self, field: Any, value: Any) -> Any:
        if field.message_type is not None:
            return self._to_value(value)
        return value if field.enum_type is None else self._enum_value(field, value)

    def _enum_value(self, field: Any, value: int) -> Any:
        """Return a value of an enumeration; one that the schema does not know is its default."""
        if field.enum_type.full_name == "google.protobuf.NullValue":
            return None
        if self._options.use_enum_numbers:
            return value
        known = field.enum_type.values_by_number
        return (known.get(value) or known[field.default_value]).name


def _is_repeated(field: Any) -> bool:
    return bool(field.is_repeated)


def _is_well_known(kind: Any) -> bool:
    return bool(kind.full_name.startswith("google.protobuf."))


def _map_key(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _class_of(kind: Any) -> Any:
    from google.protobuf import message_factory

    return message_factory.GetMessageClass(kind)


def find_well_known_file(name: str) -> Any:
    """Return the descriptor of a file that comes with Protobuf."""
    from google.protobuf import descriptor_pb2

    module, known = name.removesuffix(".proto").replace("/", "."), "google.protobuf."
    if module.startswith(known) and module.removeprefix(known).isidentifier():
        with suppress(ImportError, AttributeError):
            compiled: Any = import_module(f"{module}_pb2")
            return descriptor_pb2.FileDescriptorProto.FromString(compiled.DESCRIPTOR.serialized_pb)
    raise StreamerError(f"parsing proto schema: {name} is not there")
