"""`json_array`: a message of each element of a JSON array.

It "consumes a stream of one or more JSON elements within a top level array". Arrays may follow one
another. An element keeps its text, but for the white space between its parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from streamer.connectors.files.json_values import JsonValueReader, compact_json
from streamer.core.json.parse import parse_json
from streamer.sdk.input.replayable import RawMessages
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
    "json_array",
    "Makes a message of each element of a JSON array.",
    description="The whole need not fit into memory, each element does. Arrays may follow arrays.",
    config=NO_FIELDS,
)

_OPENING: Final = 0x5B
_CLOSING: Final = 0x5D

_OPENED: Final = "opened"
_ELEMENT: Final = "element"
_COMMA: Final = "comma"
_CLOSED: Final = "closed"
"""What was read last: a bracket, an element, a comma, or an array. At the beginning it is None."""


@dataclass(frozen=True, slots=True)
class JsonArrayScanner:
    """Reads element after element."""

    def scan_stream(
        self, source: ScanInput, since: ScanMark = START_MARK, max_messages: int = MAX_CUT_MESSAGES
    ) -> Iterator[ScannedCut]:
        """Cut a stream; see `Scanner`."""
        skip_bytes(source.stream, since.position)
        elements = _ElementReader(JsonValueReader(source.stream, since.position), since.state)
        number = since.number
        while not elements.is_ended:
            elements_read, fault = elements.read_elements(max_messages)
            if elements_read:
                number += len(elements_read)
                mark = ScanMark(elements.position, number, elements.state)
                yield ScannedCut(RawMessages(elements_read, source.meta), mark)
            if fault:
                raise ScanError(f"{source.name}: byte {elements.position}: {fault}")


class _ElementReader:
    """Arrays on their way through.

    Attributes:
        state: what was read last.
        is_ended: whether the stream ended where it may.
    """

    def __init__(self, values: JsonValueReader, state: str | None) -> None:
        self._values = values
        self.state = state
        self.is_ended = False

    @property
    def position(self) -> int:
        return self._values.position

    def read_elements(self, max_elements: int) -> tuple[list[bytes], str]:
        """Return elements that have been read, but one at least, and what is wrong behind them."""
        values = self._values
        raws: list[bytes] = []
        while len(raws) < max_elements:
            if not values.has_buffered():
                if raws:
                    break
                if not values.read_more():
                    self.is_ended = True
                    return raws, self._truncation_text()
                continue
            if not self._is_at_element():
                fault = self._skip_separator(values.data[values.at])
                if fault:
                    return raws, fault
                continue
            raw = values.read_value(wait=not raws)
            if not raw:
                break
            try:
                parse_json(raw)
            except ValueError as error:
                return raws, f"failed to decode element: {error}"
            raws.append(compact_json(raw))
            self.state = _ELEMENT
        return raws, ""

    def _is_at_element(self) -> bool:
        first = self._values.data[self._values.at]
        return self.state == _COMMA or (self.state == _OPENED and first != _CLOSING)

    def _skip_separator(self, byte: int) -> str:
        """Go over a bracket or a comma; return what is wrong when it is something else."""
        if self.state in (None, _CLOSED):
            if byte != _OPENING:
                return f"expected opening '[' but got {chr(byte)}"
            self.state = _OPENED
        elif byte == _CLOSING:
            self.state = _CLOSED
        elif byte == 0x2C:
            self.state = _COMMA
        else:
            return "failed to decode element: expected comma after array element"
        self._values.at += 1
        return ""

    def _truncation_text(self) -> str:
        """Return what is wrong with a stream that ends here."""
        if self.state in (None, _CLOSED):
            return ""
        what = "read closing token: EOF" if self.state == _ELEMENT else "decode element: EOF"
        return f"failed to {what}"


def build(parsed: object, context: BuildContext) -> JsonArrayScanner:
    """There is nothing to take."""
    return JsonArrayScanner()
