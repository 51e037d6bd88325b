"""`json_documents`: a message of each JSON document.

It will "consume a stream of one or more JSON documents", which stand behind one another with or
without white space between. What is no JSON is an error, and what is left of the stream is lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import orjson

from streamer.connectors.files.json_values import JsonValueReader, parse_decoded
from streamer.core.message import Message
from streamer.sdk.input.scanning import (
    MAX_CUT_MESSAGES,
    START_MARK,
    ScanError,
    ScanInput,
    ScanMark,
    ScannedCut,
    skip_bytes,
)
from streamer.sdk.spec import NO_FIELDS, BuildContext, Kind, Spec

SPEC: Final = Spec(
    Kind.SCANNER,
    "json_documents",
    "Makes a message of each JSON document.",
    description=(
        "Documents may stand on a line each, on many lines, or directly behind one another. A "
        "message is written again from its value: compact, with its keys in order, and numbers in "
        "their shortest form. An integer of 64 bits stays exact."
    ),
    config=NO_FIELDS,
    limits="integers of 64 bits stay exact, where Benthos rounds them",
)


@dataclass(frozen=True, slots=True)
class JsonDocumentsScanner:
    """Parses document after document."""

    def scan_stream(
        self, source: ScanInput, since: ScanMark = START_MARK, max_messages: int = MAX_CUT_MESSAGES
    ) -> Iterator[ScannedCut]:
        """Cut a stream; see `Scanner`."""
        skip_bytes(source.stream, since.position)
        values = JsonValueReader(source.stream, since.position)
        number = since.number
        while values.next_byte() >= 0:
            documents, fault = _read_documents(values, max_messages)
            if documents:
                number += len(documents)
                made = [[Message.from_value(document, source.meta)] for document in documents]
                yield ScannedCut(made, ScanMark(values.position, number))
            if fault:
                raise ScanError(f"{source.name}: {fault}")


def _read_documents(values: JsonValueReader, max_messages: int) -> tuple[list[Any], str]:
    """Parse what has been read, but one document at least.

    Returns:
        The documents, and what is wrong with the one that follows them.
    """
    documents = _read_lines(values, max_messages)
    if documents:
        return documents, ""
    while len(documents) < max_messages and (not documents or values.has_buffered()):
        begin = values.position
        raw = values.read_value(wait=not documents)
        if not raw:
            break
        try:
            documents.append(parse_decoded(raw))
        except ValueError as error:
            return documents, f"byte {begin}: {error}"
    return documents, ""


def _read_lines(values: JsonValueReader, max_messages: int) -> list[Any]:
    """Parse lines that are a document each, as most often all of them are."""
    end = values.data.rfind(b"\n", values.at) + 1
    lines = values.data[values.at : end].split(b"\n", max_messages)[:-1]
    documents: list[Any] = []
    with suppress(ValueError):
        for line in lines:
            if line and not line.isspace():
                documents.append(orjson.loads(line))
            values.at += len(line) + 1
    return documents


def build(parsed: object, context: BuildContext) -> JsonDocumentsScanner:
    """There is nothing to take."""
    return JsonDocumentsScanner()
