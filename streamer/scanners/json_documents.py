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

from streamer.message import Message
from streamer.source.json_values import Values, parse_decoded
from streamer.source.scanning import MOST, START, Cut, Mark, Opened, ScanError, skip
from streamer.spec import BuildContext, Field, Kind, Spec

SPEC: Final = Spec(
    Kind.SCANNER,
    "json_documents",
    "Makes a message of each JSON document.",
    description=(
        "Documents may stand on a line each, on many lines, or directly behind one another. A "
        "message is written again from its value: compact, with its keys in order, and numbers in "
        "their shortest form. An integer of 64 bits stays exact."
    ),
    config=Field("", "object", "It has no fields.", default={}),
    limits="integers of 64 bits stay exact, where Benthos rounds them",
)


@dataclass(frozen=True, slots=True)
class JsonDocumentsScanner:
    """Parses document after document."""

    def cuts(self, source: Opened, since: Mark = START, most: int = MOST) -> Iterator[Cut]:
        """Cut a stream; see `Scanner`."""
        skip(source.stream, since.position)
        values = Values(source.stream, since.position)
        number = since.number
        while values.next() >= 0:
            documents, fault = _documents(values, most)
            if documents:
                number += len(documents)
                made = [[Message.of(document, source.meta)] for document in documents]
                yield Cut(made, Mark(values.position, number))
            if fault:
                raise ScanError(f"{source.name}: {fault}")


def _documents(values: Values, most: int) -> tuple[list[Any], str]:
    """Parse what has been read, but one document at least.

    Returns:
        The documents, and what is wrong with the one that follows them.
    """
    found = _lines(values, most)
    if found:
        return found, ""
    while len(found) < most and (not found or values.waiting()):
        begin = values.position
        raw = values.value(wait=not found)
        if not raw:
            break
        try:
            found.append(parse_decoded(raw))
        except ValueError as error:
            return found, f"byte {begin}: {error}"
    return found, ""


def _lines(values: Values, most: int) -> list[Any]:
    """Parse lines that are a document each, as most often all of them are."""
    end = values.data.rfind(b"\n", values.at) + 1
    lines = values.data[values.at : end].split(b"\n", most)[:-1]
    found: list[Any] = []
    with suppress(ValueError):
        for line in lines:
            if line and not line.isspace():
                found.append(orjson.loads(line))
            values.at += len(line) + 1
    return found


def build(parsed: object, context: BuildContext) -> JsonDocumentsScanner:
    """There is nothing to take."""
    return JsonDocumentsScanner()
