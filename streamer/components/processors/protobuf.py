"""`protobuf`: converts messages between Protobuf and JSON.

It "performs conversions to or from a protobuf message", with types from `.proto` files. Source:
Redpanda Connect's documentation of the processor.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Final

from streamer.connectors.protobuf.compiler import compile_files
from streamer.connectors.protobuf.messages import MessageTypes, ProtobufOptions
from streamer.core.errors import MessageError, StreamerError
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.core.permissions import Permissions
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.processing.per_message import PerMessageProcessor
from streamer.sdk.spec import (
    Access,
    BuildContext,
    Example,
    Field,
    Kind,
    Package,
    ParsedFields,
    Spec,
)

OPERATOR: Final = "operator"
MESSAGE: Final = "message"
DISCARD_UNKNOWN: Final = "discard_unknown"
USE_PROTO_NAMES: Final = "use_proto_names"
IMPORT_PATHS: Final = "import_paths"
USE_ENUM_NUMBERS: Final = "use_enum_numbers"
BSR: Final = "bsr"

TO_JSON: Final = "to_json"
FROM_JSON: Final = "from_json"
DECODE: Final = "decode"

_SUFFIX: Final = ".proto"
_MAX_FILES: Final = 10_000
_MAX_BYTES: Final = 64 << 20


def _refuse_registry(modules: list[Any]) -> str | None:
    if not modules:
        return None
    return (
        "Buf's registry is not asked; `buf export MODULE --output DIRECTORY` writes the module's "
        f"files, and {IMPORT_PATHS} names the directory"
    )


def _problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    if not parsed[MESSAGE]:
        yield MESSAGE, "message field must not be empty"
    if not parsed[IMPORT_PATHS] and not parsed[BSR]:
        yield "", f"{IMPORT_PATHS} must name the directory of the .proto files"


SPEC: Final = Spec(
    Kind.PROCESSOR,
    "protobuf",
    "Converts messages between Protobuf and JSON.",
    description=(
        "`to_json` makes JSON of bytes; `from_json` the other way round; `decode` makes values in "
        "which 64-bit numbers, bytes and times stay what they are. A document "
        "that does not fit marks its message as failed, and so do bytes that are no message.\n\n"
        "Each worker reads and compiles the files once, by Google's compiler. Names in `import` "
        "are relative to the directories. Files whose name begins with a dot are left out. All "
        "other files must compile."
    ),
    fields=(
        Field(OPERATOR, "string", "Operation.", options=(TO_JSON, FROM_JSON, DECODE)),
        Field(MESSAGE, "string", "The full name of the type.", examples=("testing.Person",)),
        Field(
            DISCARD_UNKNOWN,
            "bool",
            "True to leave out fields that the type does not have in `from_json`. Otherwise they "
            "are an error.",
            default=False,
        ),
        Field(
            USE_PROTO_NAMES,
            "bool",
            "True to name fields as in the file. Otherwise names are in lower camel case.",
            default=False,
        ),
        Field(
            IMPORT_PATHS,
            "string",
            "Directories with `.proto` files, at any depth. A file is a set of descriptors, as "
            "`protoc --include_imports --descriptor_set_out` writes it; with such files alone "
            "nothing is compiled.",
            access=Access.FILE,
            default=(),
            shape="array",
            examples=(["./schemas"],),
        ),
        Field(
            USE_ENUM_NUMBERS,
            "bool",
            "True for numbers in place of the names of enumerated values.",
            default=False,
        ),
        Field(
            BSR,
            "object",
            "Buf's registry, which is not supported: `buf export` writes a module's files.",
            default=(),
            shape="array",
            children=(
                Field("module", "string", "A module.", access=Access.NONE),
                Field("url", "string", "The registry.", access=Access.ADDRESS, default=""),
                Field("api_key", "string", "A key of the registry.", secret=True, default=""),
                Field("version", "string", "The module's version.", default=""),
            ),
            check=_refuse_registry,
        ),
    ),
    check=_problems,
    examples=(
        Example(
            "Read Protobuf",
            "pipeline:\n"
            "  processors:\n"
            "    - protobuf:\n"
            "        operator: to_json\n"
            "        message: testing.Person\n"
            "        import_paths: [testing/schema]\n",
        ),
        Example(
            "Write Protobuf",
            "pipeline:\n"
            "  processors:\n"
            "    - protobuf:\n"
            "        operator: from_json\n"
            "        message: testing.Person\n"
            "        import_paths: [testing/schema]\n"
            "        discard_unknown: true\n",
        ),
    ),
    begin={"message": "testing.Person", "import_paths": ["./schemas"]},
    categories=("Parsing",),
    limits="no `bsr`; `import_paths` also takes sets of descriptors",
    requires=(Package("grpc_tools"),),
)


def _read_files(directory: str, permissions: Permissions) -> Iterator[tuple[str, str]]:
    """Return names, as others import them, and texts of the files of a directory.

    Raises:
        OSError: it cannot be read.
        ValueError: a file is no text.
        NotPermittedError: it is out of reach.
    """
    home = permissions.file(directory)

    def fail(error: OSError) -> None:
        raise error

    for place, directories, names in os.walk(home, onerror=fail):
        directories.sort()
        for name in sorted(names):
            if name.endswith(_SUFFIX) and not name.startswith("."):
                path = os.path.join(place, name)
                yield os.path.relpath(path, home), permissions.read(path).decode()


def _load_descriptors(paths: tuple[str, ...], permissions: Permissions) -> bytes:
    """Return the descriptors of all files of all directories, and those that are given as such.

    Raises:
        StreamerError: one cannot be read, or does not compile.
    """
    files: dict[str, str] = {}
    sets: list[bytes] = []
    size = 0
    for path in paths:
        try:
            if os.path.isfile(permissions.file(path)):
                sets.append(permissions.read(path))
                continue
            for name, text in _read_files(path, permissions):
                files[name] = text
                size += len(text)
                if len(files) > _MAX_FILES or size > _MAX_BYTES:
                    raise StreamerError(
                        f"unable to load protos: {path} has more than {_MAX_FILES} files or "
                        f"{_MAX_BYTES >> 20} MiB; name the directory of the schemas alone"
                    )
        except (OSError, ValueError) as e:
            raise StreamerError(f"unable to load protos: {path}: {e}") from None
    if files:
        sets.append(compile_files(files, files))
    # Serialised messages that follow one another are one message, of the files of all.
    return b"".join(sets)


def build(parsed: ParsedFields, context: BuildContext) -> PerMessageProcessor:
    """Read and compile the files, and choose what is done."""
    operator, paths, permissions = parsed[OPERATOR], parsed[IMPORT_PATHS], parsed.permissions
    options = ProtobufOptions(
        use_proto_names=parsed[USE_PROTO_NAMES],
        use_enum_numbers=parsed[USE_ENUM_NUMBERS],
        serialize_to_json=operator == TO_JSON,
    )
    types = context.worker_resource(
        "types", lambda: MessageTypes(_load_descriptors(tuple(paths), permissions), options)
    )
    name, discard_unknown = parsed[MESSAGE], parsed[DISCARD_UNKNOWN]
    kind = types.find(name)

    def read(message: Message, ex: Execution) -> Message:
        return types.read_message(kind, message, message.raw)

    def write(message: Message, ex: Execution) -> Message:
        try:
            return message.with_bytes(types.write_message(kind, message.raw, discard_unknown))
        except MessageError as e:
            raise MessageError(f"unmarshalling JSON message '{name}': {e}") from None

    change = write if operator == FROM_JSON else read
    return PerMessageProcessor(change, ComponentRef(context.component))
