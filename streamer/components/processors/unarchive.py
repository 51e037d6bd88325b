"""`unarchive`: takes messages out of one.

It "unarchives messages according to the selected archive format into multiple messages within a
batch". They stand where the message stood, with its metadata.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from streamer.bloblang.errors import QueryError
from streamer.bloblang.golib.gocsv import read_csv
from streamer.bloblang.limits import check_messages
from streamer.connectors.files.json_values import parse_decoded
from streamer.connectors.formats.archives import Item, read_binary, read_tar, read_zip
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.json.json_fault import find_end_of_value
from streamer.core.limits import current_limits
from streamer.core.message import Batch, Message
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.processing.per_message import parse_document
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec

FORMAT: Final = "format"
FILENAME: Final = "archive_filename"
KEY: Final = "archive_key"

_CSV: Final = "csv:"

Take = Callable[[Message], list[Message]]


def _make_file_reader(read: Callable[[bytes], list[Item]]) -> Take:
    return lambda message: [
        _with_name(message.with_bytes(content), FILENAME, name)
        for name, content in read(message.raw)
    ]


def _with_name(message: Message, key: str, name: str) -> Message:
    """Return a message with its name; in Benthos setting an empty text takes the key away."""
    if name:
        return message.with_added_metadata(**{key: name})
    return message.with_metadata({k: v for k, v in message.meta.items() if k != key})


def _read_binary_messages(message: Message) -> list[Message]:
    return [message.with_bytes(raw) for raw in read_binary(message.raw)]


def _read_lines(message: Message) -> list[Message]:
    raw = message.raw
    check_messages(raw.count(b"\n") + 1)
    return [message.with_bytes(line) for line in raw.split(b"\n")]


def _read_json_documents(message: Message) -> list[Message]:
    raw = message.raw
    messages: list[Message] = []
    while rest := raw.lstrip(b" \t\r\n"):
        try:
            end = find_end_of_value(rest)
            check_messages(len(messages) + 1)
            messages.append(message.with_doc(parse_decoded(rest[:end])))
        except ValueError as error:
            raise QueryError(str(error)) from None
        raw = rest[end:]
    return messages


_GO_TYPES: Final[Mapping[type, str]] = {
    bool: "bool",
    dict: "map[string]interface {}",
    float: "json.Number",
    int: "json.Number",
    list: "[]interface {}",
    str: "string",
    type(None): "<nil>",
}


def _parse_document(message: Message, expected_type: type, name: str) -> Any:
    try:
        value: Any = parse_document(message)
    except MessageError as error:
        raise QueryError(f"failed to parse message into JSON {name}: {error}") from None
    if not isinstance(value, expected_type):
        kind = _GO_TYPES.get(type(value), "json.Number")
        raise QueryError(f"failed to parse message into JSON {name}: invalid type '{kind}'")
    return value


def _read_json_array(message: Message) -> list[Message]:
    elements = _parse_document(message, list, "array")
    check_messages(len(elements))
    return [message.with_doc(element) for element in elements]


def _read_json_map(message: Message) -> list[Message]:
    entries = _parse_document(message, dict, "map")
    check_messages(len(entries))
    return [_with_name(message.with_doc(entries[key]), KEY, key) for key in sorted(entries)]


def _make_csv_reader(delimiter: str) -> Take:
    letter = delimiter.encode()

    def take(message: Message) -> list[Message]:
        try:
            # The first row is the header.
            rows = read_csv(message.raw, letter, False, current_limits().messages + 1)
        except QueryError as error:
            raise QueryError(f"failed to parse message as csv: {error}") from None
        check_messages(len(rows) - 1)
        texts = ([field.decode("utf-8", "surrogateescape") for field in row] for row in rows)
        names = next(texts, [])
        return [message.with_doc(dict(zip(names, row, strict=True))) for row in texts]

    return take


_FORMATS: Final[Mapping[str, Take]] = {
    "binary": _read_binary_messages,
    "csv": _make_csv_reader(","),
    "json_array": _read_json_array,
    "json_documents": _read_json_documents,
    "json_map": _read_json_map,
    "lines": _read_lines,
    "tar": _make_file_reader(read_tar),
    "zip": _make_file_reader(read_zip),
}


def _format_problem(text: str) -> str | None:
    if text in _FORMATS:
        return None
    delimiter = text.removeprefix(_CSV)
    if delimiter == text:
        return f"archive format not recognised: {text}; expected {', '.join(_FORMATS)} or csv:x"
    if len(delimiter) != 1 or delimiter in '"\r\n\0':
        return f"is {text!r}; expected a single letter behind csv:, such as csv:|"
    return None


SPEC: Final = Spec(
    Kind.PROCESSOR,
    "unarchive",
    "Takes messages out of one message, in its place within the batch.",
    description=(
        "`lines` gives a message for each line, `csv` for each row below the header (`csv:x` "
        "with x between fields), `json_documents` for each document, `json_array` for each "
        "element, `json_map` for each value, with its key in the metadata `archive_key`; "
        "`tar` and `zip` for each file, with its path in `archive_filename`; `binary` for "
        "each payload that `archive` has put together. An unreadable message stays unchanged "
        "and is marked as failed, and so is a message above the section `limits`. Put `split` "
        "behind it to make each message a separate batch."
    ),
    fields=(Field(FORMAT, "string", "The format.", check=_format_problem, examples=("csv:|",)),),
    examples=(
        Example(
            "A message for each row",
            "pipeline:\n  processors:\n    - unarchive:\n        format: csv\n    - split: {}\n",
        ),
    ),
    categories=("Parsing", "Utility"),
)


class UnarchiveProcessor:
    """Puts many messages in the place of one."""

    def __init__(self, take: Take, origin: ComponentRef) -> None:
        """Take what reads a message, and who speaks."""
        self._take = take
        self._origin = origin

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Return one batch of what was in the messages."""
        made: Batch = []
        for message in batch:
            try:
                made += self._take(message)
            except QueryError as error:
                line = f"Failed to unarchive message part: {error}"
                made.append(self._origin.fail(message, str(error), ex, line))
        return [made] if made else []


def build(parsed: ParsedFields, context: BuildContext) -> UnarchiveProcessor:
    """Take the format."""
    form: str = parsed[FORMAT]
    take = _FORMATS.get(form) or _make_csv_reader(form.removeprefix(_CSV))
    return UnarchiveProcessor(take, ComponentRef(context.component))
