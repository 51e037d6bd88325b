"""`unarchive`: takes messages out of one.

It "unarchives messages according to the selected archive format into multiple messages within a
batch". They stand where the message stood, with its metadata.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from streamer.bloblang.errors import QueryError
from streamer.bloblang.limits import check_messages
from streamer.bloblang.runtime.gocsv import read_csv
from streamer.errors import MessageError
from streamer.failure import Origin
from streamer.formats.archives import Item, read_binary, read_tar, read_zip
from streamer.jsontext.fault import end_of_value
from streamer.limits import used_limits
from streamer.message import Batch, Execution, Message
from streamer.pipeline.per_message import document
from streamer.source.json_values import parse_decoded
from streamer.spec import BuildContext, Example, Field, Kind, Parsed, Spec

FORMAT: Final = "format"
FILENAME: Final = "archive_filename"
KEY: Final = "archive_key"

_CSV: Final = "csv:"

Take = Callable[[Message], list[Message]]


def _files(read: Callable[[bytes], list[Item]]) -> Take:
    return lambda message: [
        _named(message.with_bytes(content), FILENAME, name) for name, content in read(message.raw)
    ]


def _named(message: Message, key: str, name: str) -> Message:
    """Return a message with its name; in Benthos setting an empty text takes the key away."""
    if name:
        return message.with_meta(**{key: name})
    return message.told({k: v for k, v in message.meta.items() if k != key})


def _binary(message: Message) -> list[Message]:
    return [message.with_bytes(raw) for raw in read_binary(message.raw)]


def _lines(message: Message) -> list[Message]:
    raw = message.raw
    check_messages(raw.count(b"\n") + 1)
    return [message.with_bytes(line) for line in raw.split(b"\n")]


def _json_documents(message: Message) -> list[Message]:
    raw = message.raw
    found: list[Message] = []
    while rest := raw.lstrip(b" \t\r\n"):
        try:
            end = end_of_value(rest)
            check_messages(len(found) + 1)
            found.append(message.with_doc(parse_decoded(rest[:end])))
        except ValueError as error:
            raise QueryError(str(error)) from None
        raw = rest[end:]
    return found


_GO_TYPES: Final[Mapping[type, str]] = {
    bool: "bool",
    dict: "map[string]interface {}",
    float: "json.Number",
    int: "json.Number",
    list: "[]interface {}",
    str: "string",
    type(None): "<nil>",
}


def _document(message: Message, wanted: type, name: str) -> Any:
    try:
        found: Any = document(message)
    except MessageError as error:
        raise QueryError(f"failed to parse message into JSON {name}: {error}") from None
    if not isinstance(found, wanted):
        kind = _GO_TYPES.get(type(found), "json.Number")
        raise QueryError(f"failed to parse message into JSON {name}: invalid type '{kind}'")
    return found


def _json_array(message: Message) -> list[Message]:
    found = _document(message, list, "array")
    check_messages(len(found))
    return [message.with_doc(element) for element in found]


def _json_map(message: Message) -> list[Message]:
    found = _document(message, dict, "map")
    check_messages(len(found))
    return [_named(message.with_doc(found[key]), KEY, key) for key in sorted(found)]


def _csv(delimiter: str) -> Take:
    letter = delimiter.encode()

    def take(message: Message) -> list[Message]:
        try:
            # The first row is the header.
            rows = read_csv(message.raw, letter, False, used_limits().messages + 1)
        except QueryError as error:
            raise QueryError(f"failed to parse message as csv: {error}") from None
        check_messages(len(rows) - 1)
        texts = ([field.decode("utf-8", "surrogateescape") for field in row] for row in rows)
        names = next(texts, [])
        return [message.with_doc(dict(zip(names, row, strict=True))) for row in texts]

    return take


_FORMATS: Final[Mapping[str, Take]] = {
    "binary": _binary,
    "csv": _csv(","),
    "json_array": _json_array,
    "json_documents": _json_documents,
    "json_map": _json_map,
    "lines": _lines,
    "tar": _files(read_tar),
    "zip": _files(read_zip),
}


def _problem(text: str) -> str | None:
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
        "`lines` gives a message for each line, `csv` for each row below the header (`csv:x` with "
        "x between fields), `json_documents` for each document, `json_array` for each element, "
        "`json_map` for each value, with its key in the metadata `archive_key`; `tar` and `zip` "
        "for each file, with its path in `archive_filename`; `binary` for each payload that "
        "`archive` has put together. A message that cannot be read stays as it is, and is marked "
        "as failed; so is one that holds more than the section `limits` allows. Put `split` behind "
        "it to have each message in a batch by itself."
    ),
    fields=(Field(FORMAT, "string", "The format.", check=_problem, examples=("csv:|",)),),
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

    def __init__(self, take: Take, origin: Origin) -> None:
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


def build(parsed: Parsed, context: BuildContext) -> UnarchiveProcessor:
    """Take the format."""
    form: str = parsed[FORMAT]
    take = _FORMATS.get(form) or _csv(form.removeprefix(_CSV))
    return UnarchiveProcessor(take, Origin(context.component))
