"""`json_array`: a message of each element of a JSON array.

It "consumes a stream of one or more JSON elements within a top level array". Arrays may follow one
another. An element keeps its text, but for the white space between its parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from streamer.source.json_values import Values, compacted
from streamer.source.replayable import Raws
from streamer.source.scanning import MOST, START, Cut, Mark, Opened, ScanError, skip
from streamer.spec import BuildContext, Field, Kind, Spec
from streamer.value import parse_json

SPEC: Final = Spec(
    Kind.SCANNER,
    "json_array",
    "Makes a message of each element of a JSON array.",
    description="The whole need not fit into memory, each element does. Arrays may follow arrays.",
    config=Field("", "object", "It has no fields.", default={}),
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

    def cuts(self, source: Opened, since: Mark = START, most: int = MOST) -> Iterator[Cut]:
        """Cut a stream; see `Scanner`."""
        skip(source.stream, since.position)
        elements = _Elements(Values(source.stream, since.position), since.state)
        number = since.number
        while not elements.ended:
            found, fault = elements.some(most)
            if found:
                number += len(found)
                mark = Mark(elements.position, number, elements.state)
                yield Cut(Raws(found, source.meta), mark)
            if fault:
                raise ScanError(f"{source.name}: byte {elements.position}: {fault}")


class _Elements:
    """Arrays on their way through.

    Attributes:
        state: what was read last.
        ended: whether the stream ended where it may.
    """

    def __init__(self, values: Values, state: str | None) -> None:
        self._values = values
        self.state = state
        self.ended = False

    @property
    def position(self) -> int:
        return self._values.position

    def some(self, most: int) -> tuple[list[bytes], str]:
        """Return elements that have been read, but one at least, and what is wrong behind them."""
        values = self._values
        found: list[bytes] = []
        while len(found) < most:
            if not values.waiting():
                if found:
                    break
                if not values.more():
                    self.ended = True
                    return found, self._cut()
                continue
            if not self._at_element():
                fault = self._between(values.data[values.at])
                if fault:
                    return found, fault
                continue
            raw = values.value(wait=not found)
            if not raw:
                break
            try:
                parse_json(raw)
            except ValueError as error:
                return found, f"failed to decode element: {error}"
            found.append(compacted(raw))
            self.state = _ELEMENT
        return found, ""

    def _at_element(self) -> bool:
        first = self._values.data[self._values.at]
        return self.state == _COMMA or (self.state == _OPENED and first != _CLOSING)

    def _between(self, byte: int) -> str:
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

    def _cut(self) -> str:
        """Return what is wrong with a stream that ends here."""
        if self.state in (None, _CLOSED):
            return ""
        what = "read closing token: EOF" if self.state == _ELEMENT else "decode element: EOF"
        return f"failed to {what}"


def build(parsed: object, context: BuildContext) -> JsonArrayScanner:
    """There is nothing to take."""
    return JsonArrayScanner()
