"""A place in a line that moves on byte by byte, and says what it would have expected there."""

from __future__ import annotations

from typing import Any, Final

from streamer.core.errors import MessageError

DIGITS: Final = frozenset(b"0123456789")
NONZERO: Final = frozenset(b"123456789")
GRAPH: Final = frozenset(range(0x21, 0x7F))
PRINT: Final = frozenset(range(0x20, 0x7F))

# Two bytes of which the first says what the second may be.
Pair = dict[int, frozenset[int]]
MONTH: Final[Pair] = {ord("0"): NONZERO, ord("1"): frozenset(b"012")}
DAY: Final[Pair] = {
    **{ord("0"): NONZERO, ord("3"): frozenset(b"01")},
    **dict.fromkeys(b"12", DIGITS),
}
HOUR: Final[Pair] = {**dict.fromkeys(b"01", DIGITS), ord("2"): frozenset(b"0123")}
SIXTY: Final[Pair] = dict.fromkeys(b"012345", DIGITS)

PRIORITY_ERROR: Final = "expecting a priority value in the range 1-191 or equal to 0"
BRACKETS_ERROR: Final = "expecting a priority value within angle brackets"
PARSE_ERROR: Final = "parsing error"


class LineCursor:
    """A line, and how far it has been read.

    Attributes:
        data: the line.
        at: the column of the next byte.
    """

    __slots__ = ("data", "at")

    def __init__(self, data: bytes) -> None:
        """Stand at the line's begin."""
        self.data = data
        self.at = 0

    def next_byte(self) -> int:
        """Return the next byte, or -1 at the end."""
        return self.data[self.at] if self.at < len(self.data) else -1

    def error_at(self, text: str) -> MessageError:
        """Return an error that names the column."""
        return MessageError(f"{text} [col {self.at}]")

    def expect_byte(self, allowed: frozenset[int] | bytes, error: str) -> int:
        """Read a byte that is one of those allowed.

        Raises:
            MessageError: it is not; the text is `error`, and so for the other methods.
        """
        byte = self.next_byte()
        if byte < 0 or byte not in allowed:
            raise self.error_at(error)
        self.at += 1
        return byte

    def expect_pair(self, allowed: Pair, error: str) -> None:
        """Read two bytes."""
        first = self.next_byte()
        if first not in allowed:
            raise self.error_at(error)
        self.at += 1
        self.expect_byte(allowed[first], error)

    def expect_time(self, error: str) -> None:
        """Read a time of day: `hh:mm:ss`."""
        self.expect_pair(HOUR, error)
        for _ in range(2):
            self.expect_byte(b":", error)
            self.expect_pair(SIXTY, error)

    def expect_date(self, error: str) -> None:
        """Read a date: `yyyy-mm-dd`."""
        for _ in range(4):
            self.expect_byte(DIGITS, error)
        self.expect_byte(b"-", error)
        self.expect_pair(MONTH, error)
        self.expect_byte(b"-", error)
        self.expect_pair(DAY, error)

    def expect_offset(self, error: str) -> None:
        """Read a distance from UTC: `Z` or `+hh:mm`."""
        if self.expect_byte(b"Z+-", error) != ord("Z"):
            self.expect_pair(HOUR, error)
            self.expect_byte(b":", error)
            self.expect_pair(SIXTY, error)

    def read_run(self, allowed: frozenset[int], max_bytes: int, error: str) -> str:
        """Read one byte or more that are allowed, as many as there are."""
        start = self.at
        while self.at - start < max_bytes and self.next_byte() in allowed:
            self.at += 1
        if self.at == start:
            raise self.error_at(error)
        return self.data[start : self.at].decode()

    def text_since(self, start: int) -> str:
        """Return what has been read since a column."""
        return self.data[start : self.at].decode()

    def read_priority(self) -> dict[str, Any]:
        """Read `<n>`; return the priority, and the facility and severity in it."""
        self.expect_byte(b"<", BRACKETS_ERROR)
        start = self.at
        first = self.expect_byte(DIGITS, PRIORITY_ERROR)
        if first != ord("0"):
            while self.next_byte() in DIGITS and int(self.data[start : self.at + 1]) <= 191:
                self.at += 1
        value = int(self.data[start : self.at])
        self.expect_byte(b">", PRIORITY_ERROR)
        return {"priority": value, "facility": value >> 3, "severity": value & 7}
