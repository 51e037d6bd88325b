"""Results of a mapping for documents, as they are printed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from streamer.bloblang import Mapping
from streamer.bloblang.methods.parsing import indent_json
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.json.bulk import parse_batch
from streamer.core.json.dump import dump_json, dump_json_each
from streamer.core.message import Message
from streamer.core.value import DELETED, NOTHING

# Benthos's command leaves the place of the assignment out when there is no document to look at.
_NO_DOCUMENT: Final = re.compile(
    r"failed assignment \(line \d+\): (?=unable to reference message as structured)"
)

# So many documents are still in the processor's cache when their results are written.
_DOCUMENTS_PER_CHUNK: Final = 64


@dataclass(frozen=True, slots=True)
class DocumentStyle:
    """Settings of reading and printing documents.

    Attributes:
        raw: they are strings, not JSON.
        pretty: results are printed indented, over several lines.
    """

    raw: bool = False
    pretty: bool = False


class PrintedResults(NamedTuple):
    """The text that is printed for some documents.

    Attributes:
        out: the results, a line end after each.
        failures: for each document that failed, how much of `out` comes before it, and why.
    """

    out: bytes
    failures: list[tuple[int, str]]


def apply_to_all(
    mapping: Mapping, documents: Sequence[bytes], style: DocumentStyle, ex: Execution
) -> PrintedResults:
    """Return what is printed for documents, in their order.

    Args:
        mapping: the mapping.
        documents: the bytes of each.
        style: how they are taken and printed.
        ex: the clock and the counters, which documents share.
    """
    parts: list[bytes] = []
    failures: list[tuple[int, str]] = []
    for start in range(0, len(documents), _DOCUMENTS_PER_CHUNK):
        _apply_chunk(
            mapping, documents[start : start + _DOCUMENTS_PER_CHUNK], style, ex, parts, failures
        )
    if failures:
        failures = _count_bytes_before(parts, failures)
    parts.append(b"")
    return PrintedResults(b"\n".join(parts), failures)


def _apply_chunk(
    mapping: Mapping,
    documents: Sequence[bytes],
    style: DocumentStyle,
    ex: Execution,
    parts: list[bytes],
    failures: list[tuple[int, str]],
) -> None:
    raw = style.raw
    messages = [Message(line, doc=line) if raw else Message(line) for line in documents]
    if not raw and mapping.uses.document:
        parse_batch(messages)
    values = mapping.query_each(messages, ex)
    if not style.pretty and set(map(type, values)) == {dict}:
        with suppress(ValueError):  # it is met again, and told, value by value
            parts += dump_json_each(values)
            return
    for message, value in zip(messages, values, strict=True):
        try:
            if isinstance(value, MessageError):
                raise value
            parts.append(format_result(value, message, style))
        except (MessageError, ValueError) as e:
            # Counted in results for now, so that nothing is added up unless something fails.
            failures.append((len(parts), format_failure(e)))


def _count_bytes_before(
    parts: list[bytes], failures: list[tuple[int, str]]
) -> list[tuple[int, str]]:
    ends = [0]
    for part in parts:
        ends.append(ends[-1] + len(part) + 1)
    return [(ends[count], text) for count, text in failures]


def format_result(value: Any, message: Message, style: DocumentStyle) -> bytes:
    """Return what is printed for a mapping's result.

    Args:
        value: the result; nothing is printed for `DELETED`, and the message for `NOTHING`.
        message: what the mapping was applied to.
        style: how results are printed.

    Raises:
        ValueError: the value has no form as JSON.
    """
    if value is DELETED:
        return b""
    if value is NOTHING:
        try:
            value = message.doc
        except MessageError:
            return message.raw
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode(errors="replace")
    text = dump_json(value)
    return indent_json(text.decode(), "  ").encode() if style.pretty else text


def format_failure(error: Exception) -> str:
    """Return the line that is printed when a mapping fails."""
    return f"failed to execute map: {_NO_DOCUMENT.sub('', str(error), count=1)}"
