"""The smallest parts of the language, each a method from a place in the text to the place after.

A part that is not there raises `ParseFailure`. It is final when nothing else may be tried any more,
as after the opening bracket of a call. Source: Benthos `internal/bloblang/parser/combinators.go`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from streamer.bloblang import literals

Rule = Callable[[int], int]

_BLANKS: Final = re.compile(r"[ \t]*")
_SPACE: Final = re.compile(r"(?:[ \t]+|(?:#[^\n]*)?\r?\n|#[^\n]*\Z)*")
_BREAK: Final = re.compile(r"#[^\n]*(?:\n|\Z)|\r?\n")
_WORD: Final = re.compile(r"[A-Za-z0-9_]+")
_SNAKE: Final = re.compile(r"[a-z0-9_]+")
_NUMBER: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)


class ParseFailure(Exception):
    """A part that is not where it should be.

    Attributes:
        at: the place in the text, from 0.
        expected: what would have done there.
        reason: why no other alternative is tried; empty when others may be.
        valid_chars: how many characters before are whole statements.
    """

    def __init__(self, at: int, *expected: str, reason: str = "") -> None:
        self.at = at
        self.expected = list(expected)
        self.reason = reason
        self.valid_chars = 0
        super().__init__(at)

    @property
    def message(self) -> str:
        """The text of the error: what was expected, and why."""
        parts = list(dict.fromkeys(self.expected))
        if not parts:
            return self.reason or "encountered unexpected input"
        if len(parts) > 1:
            comma = "," if len(parts) > 2 else ""
            parts[-2:] = [f"{parts[-2]}{comma} or {parts[-1]}"]
        expectation = "expected " + ", ".join(parts)
        return f"{self.reason}: {expectation}" if self.reason else expectation


def read_expected(part: Rule, at: int, *expected: str) -> int:
    """Read a part, and call it by a simpler name when it is missing."""
    try:
        return part(at)
    except ParseFailure as miss:
        if not miss.reason:
            miss.expected = list(expected)
        raise


def read_required(part: Rule, at: int) -> int:
    """Read a part without which there is no other way to go on."""
    try:
        return part(at)
    except ParseFailure as miss:
        miss.reason = miss.reason or "required"
        raise


def read_optional(part: Rule, at: int) -> int:
    """Read a part if it is there."""
    try:
        return part(at)
    except ParseFailure as miss:
        if miss.reason:
            raise
        return at


def read_first_of(at: int, *parts: Rule) -> int:
    """Read the first part that is there; when none is, tell of those that got furthest."""
    furthest: ParseFailure | None = None
    for part in parts:
        try:
            return part(at)
        except ParseFailure as miss:
            if miss.reason:
                raise
            if furthest is None or miss.at > furthest.at:
                furthest = miss
            elif miss.at == furthest.at:
                furthest.expected += miss.expected
    assert furthest is not None
    raise furthest


def read_list(at: int, start: Rule, item: Rule, separator: Rule, stop: Rule) -> int:
    """Read items between a start and a stop; a separator may stand before the stop."""
    at = start(at)
    while True:
        try:
            at = item(at)
        except ParseFailure as missing:
            try:
                return stop(at)
            except ParseFailure:
                raise missing from None
        try:
            at = separator(at)
        except ParseFailure as missing:
            try:
                return stop(at)
            except ParseFailure as other:
                missing.expected += other.expected
                missing.reason = missing.reason or other.reason
                raise missing from None


class TokenReader:
    """Reads what all rules are made of.

    Attributes:
        text: the whole text.
    """

    def __init__(self, text: str) -> None:
        self.text = text

    def term(self, text: str) -> Rule:
        """Return the part that is exactly this text."""

        def part(at: int) -> int:
            if not self.text.startswith(text, at):
                raise ParseFailure(at, text)
            return at + len(text)

        return part

    def _match_end(self, pattern: re.Pattern[str], at: int) -> int:
        match = pattern.match(self.text, at)
        return match.end() if match else at

    def _require_match(self, pattern: re.Pattern[str], at: int, *expected: str) -> int:
        end = self._match_end(pattern, at)
        if end == at:
            raise ParseFailure(at, *expected)
        return end

    def blanks(self, at: int) -> int:
        """Skip spaces and tabs, if any."""
        return self._match_end(_BLANKS, at)

    def blank(self, at: int) -> int:
        """Read at least one space or tab."""
        return self._require_match(_BLANKS, at, "whitespace")

    def space(self, at: int) -> int:
        """Skip spaces, line breaks and comments, if any."""
        return self._match_end(_SPACE, at)

    def line_break(self, at: int) -> int:
        """Read a line break, with the comment before it."""
        if self.text.startswith("\r", at) and not self.text.startswith("\r\n", at):
            at += 1
        return self._require_match(_BREAK, at, "line break")

    def word(self, at: int) -> int:
        """Read a name."""
        return self._require_match(_WORD, at, "range(a - z)", "range(A - Z)", "range(0 - 9)", "_")

    def snake_case_name(self, at: int) -> int:
        """Read the name of a function, method or parameter."""
        return self._require_match(_SNAKE, at, "snake-case")

    def keyword(self, text: str) -> Rule:
        """Return the part that is this literal, and not the beginning of a longer name."""

        def part(at: int) -> int:
            if self.text[at : self._match_end(_WORD, at)] != text:
                raise ParseFailure(at, text)
            return at + len(text)

        return part

    def number(self, at: int) -> int:
        """Read a number, which may have a sign right before it."""
        begin = at + self.text.startswith("-", at)
        end = self._require_match(_NUMBER, begin, "number")
        try:
            literals.parse_number(self.text[begin:end])
        except ValueError as e:
            raise ParseFailure(at, reason=str(e)) from None
        return end

    def triple_quoted(self, at: int) -> int:
        """Read a raw string between three quotes."""
        if not self.text.startswith('"""', at) or len(self.text) - at < 6:
            raise ParseFailure(at, "quoted string")
        end = self.text.find('"""', at + 3)
        if end < 0:
            raise ParseFailure(len(self.text), "end triple-quote", reason="required")
        return end + 3

    def quoted_string(self, at: int) -> int:
        """Read a string in quotes."""
        if not self.text.startswith('"', at):
            raise ParseFailure(at, "quoted string")
        match = _STRING.match(self.text, at)
        if match is None:
            raise ParseFailure(len(self.text), "end quote", reason="required")
        try:
            literals.unquote(match[0])
        except ValueError as e:
            reason = f"failed to unescape quoted string contents: {e}"
            raise ParseFailure(at, reason=reason) from None
        return match.end()
