"""Protobuf schemas of a registry: messages to JSON and back, compiled by Google's own compiler.

The compiler runs in a process of its own, once for each schema of a worker: what a registry holds
may be anything, and the compiler is C++.
"""

from __future__ import annotations

import base64
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple

import orjson

from streamer.connectors.schema_registry.wire_format import (
    read_message_indexes,
    write_message_indexes,
)
from streamer.core.errors import MessageError, StreamerError
from streamer.core.message import Message
from streamer.core.timestamps import Timestamp

_ROOT: Final = "streamer_root_schema.proto"
_COMPILE_TIMEOUT_S: Final = 30.0
_WARNING: Final = re.compile(r"WARNING: |[IW]\d{4} |.*: warning: ")


class ProtobufOptions(NamedTuple):
    """Settings of the JSON of messages: the fields of `schema_registry_decode.protobuf`."""

    use_proto_names: bool = False
    use_enum_numbers: bool = False
    emit_unpopulated: bool = False
    emit_default_values: bool = False
    serialize_to_json: bool = True


DEFAULT_OPTIONS: Final = ProtobufOptions()


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
        from google.protobuf import descriptor_pb2, descriptor_pool

        self._pool: Any = descriptor_pool.DescriptorPool()
        others = list(references)
        compiled = read_serialized(text, others) or compile_schema(text, others)
        files = descriptor_pb2.FileDescriptorSet.FromString(compiled).file
        try:
            for file in files:
                self._pool.AddSerializedFile(file.SerializeToString())
            root: Any = self._pool.FindFileByName(files[-1].name)
        except (TypeError, KeyError) as e:
            raise StreamerError(f"parsing proto schema: {e}") from None
        names = [one.name for one in files[-1].message_type]
        self._messages = [root.message_types_by_name[name] for name in names]
        self._options = options
        self._last = 0
        self._lock = threading.Lock()

    def decode(self, message: Message, raw: bytes) -> Message:
        """Return a message with the document that bytes stand for.

        Raises:
            MessageError: they are no message of the schema.
        """
        from google.protobuf import json_format
        from google.protobuf.message import DecodeError

        try:
            indexes, body = read_message_indexes(raw)
            made = self._class_of(self._find(indexes))()
            made.ParseFromString(body)
            if self._options.serialize_to_json:
                return message.with_bytes(orjson.dumps(self._to_json(made)))
            return message.with_doc(self._to_value(made))
        except (ValueError, DecodeError, json_format.Error, TypeError) as e:
            raise MessageError(str(e) or "the bytes are no Protobuf message") from None

    def encode(self, message: Message) -> bytes:
        """Return a message's document as bytes, of the first type of the schema that it fits.

        The type that the last document had is tried first. Types within others are not tried.

        Raises:
            MessageError: it fits none.
        """
        from google.protobuf import json_format

        text = message.raw
        with self._lock:
            last = self._last
        errors: list[str] = []
        order = [last, *(number for number in range(len(self._messages)) if number != last)]
        for number in order if self._messages else ():
            kind = self._messages[number]
            try:
                made = json_format.Parse(text, self._class_of(kind)(), descriptor_pool=self._pool)
            except (json_format.Error, ValueError, TypeError) as e:
                errors.append(f"unmarshal '{kind.name}': {' '.join(str(e).split())}")
                continue
            with self._lock:
                self._last = number
            body: bytes = made.SerializeToString(deterministic=True)
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

    def _class_of(self, kind: Any) -> Any:
        from google.protobuf import message_factory

        return message_factory.GetMessageClass(kind)

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
        if field.enum_type is not None and not self._options.use_enum_numbers:
            known = field.enum_type.values_by_number.get(value)
            return value if known is None else known.name
        return value


def _is_repeated(field: Any) -> bool:
    return bool(field.is_repeated)


def _is_well_known(kind: Any) -> bool:
    return bool(kind.full_name.startswith("google.protobuf."))


def _map_key(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


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
                add(files.get(name) or _find_well_known(name))
        made.file.add().CopyFrom(file)

    add(root)
    serialized: bytes = made.SerializeToString()
    return serialized


def _parse_descriptor(text: str) -> Any:
    from google.protobuf import descriptor_pb2
    from google.protobuf.message import DecodeError

    try:
        return descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (ValueError, DecodeError):
        return None


def _find_well_known(name: str) -> Any:
    """Return the descriptor of a file that comes with Protobuf."""
    from google.protobuf import descriptor_pb2

    module, known = name.removesuffix(".proto").replace("/", "."), "google.protobuf."
    if module.startswith(known) and module.removeprefix(known).isidentifier():
        with suppress(ImportError, AttributeError):
            compiled: Any = import_module(f"{module}_pb2")
            return descriptor_pb2.FileDescriptorProto.FromString(compiled.DESCRIPTOR.serialized_pb)
    raise StreamerError(f"parsing proto schema: {name} is not there")


def compile_schema(text: str, references: Iterable[tuple[str, str]]) -> bytes:
    """Return the descriptors of a schema and of all that it imports, serialised.

    Raises:
        StreamerError: it cannot be compiled; the text says why.
    """
    # The package alone is small; the compiler in it runs in a process of its own.
    import grpc_tools

    with tempfile.TemporaryDirectory(prefix="streamer-proto-") as directory:
        home = Path(directory)
        for name, other in references:
            path = PurePosixPath(name)
            if path.is_absolute() or ".." in path.parts or not path.parts:
                raise StreamerError(f"parsing proto schema: {name!r} is no name of a file")
            (home / path).parent.mkdir(parents=True, exist_ok=True)
            (home / path).write_text(other)
        (home / _ROOT).write_text(text)
        made = home / "descriptors"
        compiler = f"{grpc_tools.__name__}.protoc"
        command = [sys.executable, "-m", compiler, f"-I{home}", "--include_imports"]
        try:
            run = subprocess.run(
                [*command, f"--descriptor_set_out={made}", _ROOT],
                capture_output=True,
                timeout=_COMPILE_TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as e:
            raise StreamerError(f"parsing proto schema: {e}") from None
        if run.returncode or not made.exists():
            why = _read_errors(run.stderr.decode(errors="replace"), f"{home}/")
            raise StreamerError(f"parsing proto schema: {why}")
        return made.read_bytes()


def _read_errors(text: str, directory: str) -> str:
    """Return what the compiler says is wrong, without its warnings and the place of the files."""
    if "No module named" in text:
        return "it needs the package grpcio-tools of the extra schema-registry"
    lines = [line for line in text.splitlines() if not _WARNING.match(line)]
    return " ".join(" ".join(lines).replace(directory, "").replace(_ROOT, "schema").split())
