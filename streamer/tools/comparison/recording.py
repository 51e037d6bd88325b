"""Recorded messages: read from lines, records or `streamer tap`, and fed to a program.

A program gets them as envelopes, one a line: the content in base64 and the metadata, so that any
bytes arrive as they were. The first input processor of its config takes the envelope off.
"""

from __future__ import annotations

import base64
import binascii
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import IO, Any, BinaryIO, Final

from streamer.core.errors import StreamerError
from streamer.core.json.dump import dump_json
from streamer.core.message import Message
from streamer.core.timestamps import parse_rfc3339
from streamer.engine.offline.sample_input import read_lines

CONTENT: Final = "c"
METADATA: Final = "m"
ERROR: Final = "e"
OUTPUT: Final = "o"
"""The fields of an envelope; the last two are those of rows only."""

_CONTENTS: Final = ("content", "json_content", "base64_content")
_RECORD_FIELDS: Final = frozenset((*_CONTENTS, "metadata", "key", "timestamp", "failed"))
_TAP_FIELDS: Final = frozenset(("path", "component", "batches"))
_DETECTED_LINES: Final = 20
"""Lines that must be records in order that all are taken for records."""


class RecordingForm(StrEnum):
    """The forms of a recording."""

    AUTO = "auto"
    LINES = "lines"
    RECORDS = "records"


@dataclass(frozen=True, slots=True)
class RecordedMessage:
    """A message as the config's input gives it, before the input's processors.

    Attributes:
        content: its bytes.
        metadata: its metadata, values of JSON.
    """

    content: bytes
    metadata: Mapping[str, Any]


def read_recording(
    path: str, form: RecordingForm, max_messages: int, stdin: BinaryIO | None = None
) -> list[RecordedMessage]:
    """Return the messages of a file, or of all files of a directory in the order of their names.

    Args:
        path: the file or directory; `-` for the standard input.
        form: of the lines; `auto` takes lines for records that have nothing but a record's fields.
        max_messages: how many messages there are at most.
        stdin: the standard input; the process's own when None.

    Raises:
        StreamerError: a file cannot be read, a line is no record, or there are no messages.
    """
    messages: list[RecordedMessage] = []
    for name, file in _open_files(path, stdin):
        left = max_messages - len(messages)
        if left <= 0:
            break
        messages += islice(_read_messages(name, file, form), left)
    if not messages:
        raise StreamerError(f"--input {path} has no messages; expected one a line")
    return messages


def _open_files(path: str, stdin: BinaryIO | None) -> Iterator[tuple[str, BinaryIO]]:
    if path == "-":
        yield path, stdin or sys.stdin.buffer
        return
    place = Path(path)
    try:
        files = sorted(one for one in place.iterdir() if one.is_file()) if place.is_dir() else None
        for one in [place] if files is None else files:
            with one.open("rb") as file:
                yield str(one), file
    except OSError as e:
        raise StreamerError(f"--input {path}: {(e.strerror or str(e)).lower()}") from None


def _read_messages(name: str, file: BinaryIO, form: RecordingForm) -> Iterator[RecordedMessage]:
    lines = read_lines(file, lambda number: f"--input {name}, line {number:,}")
    if form == RecordingForm.AUTO:
        first = list(islice(lines, _DETECTED_LINES))
        is_record = bool(first) and all(_parse_record(line) is not None for _, line in first)
        form = RecordingForm.RECORDS if is_record else RecordingForm.LINES
        lines = _chain(first, lines)
    if form == RecordingForm.LINES:
        for _, line in lines:
            yield RecordedMessage(line, {})
        return
    for number, line in lines:
        record = _parse_record(line)
        if record is None:
            raise StreamerError(
                f"--input {name}, line {number:,} is no record; expected an object with one of "
                f"{', '.join(_CONTENTS)}, and perhaps metadata, key and timestamp"
            )
        yield from _read_record(record, f"--input {name}, line {number:,}")


def _chain(
    first: list[tuple[int, bytes]], rest: Iterator[tuple[int, bytes]]
) -> Iterator[tuple[int, bytes]]:
    yield from first
    yield from rest


def _parse_record(line: bytes) -> dict[str, Any] | None:
    """Return the object of a record, or of a stage of `streamer tap`; None for any other line."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    is_stage = value.keys() >= _TAP_FIELDS and isinstance(value["batches"], list)
    has_content = sum(name in value for name in _CONTENTS) == 1
    return value if is_stage or (has_content and value.keys() <= _RECORD_FIELDS) else None


def _read_record(record: Mapping[str, Any], place: str) -> Iterator[RecordedMessage]:
    if "batches" not in record:
        yield _make_message(record, place)
    elif record["path"] == "input":  # the other stages show what has become of these
        for batch in record["batches"]:
            for one in batch:
                yield _make_message(one, place)


def _make_message(record: Mapping[str, Any], place: str) -> RecordedMessage:
    try:
        if "json_content" in record:
            content = dump_json(record["json_content"])
        elif "base64_content" in record:
            content = base64.b64decode(record["base64_content"], validate=True)
        else:
            content = str(record["content"]).encode()
        metadata = dict(record.get("metadata") or {})
        if (key := record.get("key")) is not None:
            metadata["kafka_key"] = key
        if (timestamp := record.get("timestamp")) is not None:
            metadata |= _time_metadata(timestamp)
    except (ValueError, TypeError, KeyError, binascii.Error) as e:
        raise StreamerError(f"{place}: the record cannot be read: {e}") from None
    return RecordedMessage(content, metadata)


def _time_metadata(timestamp: Any) -> dict[str, Any]:
    """Return the metadata by which Kafka's inputs give the time of a record."""
    if isinstance(timestamp, str):
        ns = parse_rfc3339(timestamp).ns
    else:
        ns = round(float(timestamp) * 1_000_000_000)
    return {
        "kafka_timestamp_unix": ns // 1_000_000_000,
        "kafka_timestamp_ms": ns // 1_000_000,
    }


def make_recorded(message: Message) -> RecordedMessage:
    """Return a message of this program as a recorded one; metadata that JSON cannot hold as text.

    Args:
        message: as the input gives it.
    """
    metadata = json.loads(dump_json(dict(message.meta))) if message.meta else {}
    return RecordedMessage(bytes(message.raw), metadata)


def write_records(messages: Iterable[RecordedMessage], file: IO[bytes]) -> None:
    """Write messages as records, which `read_recording` reads again.

    Raises:
        OSError: the file cannot be written.
    """
    for one in messages:
        record: dict[str, Any] = {}
        try:
            record["content"] = one.content.decode()
        except UnicodeDecodeError:
            record["base64_content"] = base64.b64encode(one.content).decode()
        if one.metadata:
            record["metadata"] = dict(one.metadata)
        file.write(json.dumps(record, ensure_ascii=False).encode() + b"\n")


def write_envelopes(
    messages: Iterable[RecordedMessage], file: IO[bytes], more: Mapping[str, str] | None = None
) -> None:
    """Write messages as a program's input.

    Args:
        messages: in their order.
        file: gets them.
        more: metadata that each has besides.

    Raises:
        OSError: the file cannot be written; a pipe that its reader has closed.
    """
    for one in messages:
        envelope = {
            CONTENT: base64.b64encode(one.content).decode(),
            METADATA: {**one.metadata, **(more or {})},
        }
        file.write(json.dumps(envelope).encode() + b"\n")


def read_envelope(line: bytes) -> tuple[RecordedMessage, str | None, str]:
    """Return a row of a program: its message, its error, and the output that it is for.

    Raises:
        ValueError: the line is none.
    """
    value = json.loads(line)
    message = RecordedMessage(base64.b64decode(value[CONTENT]), value.get(METADATA) or {})
    return message, value.get(ERROR), str(value.get(OUTPUT, ""))
