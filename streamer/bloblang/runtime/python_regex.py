"""Finds regular expressions that Python's own engine may run, much faster than RE2's binding.

Those for which it takes linear time for sure: a row of character classes and fixed words in which
no repeated class can take a character that what follows it could begin with, so that there is never
a second way to try. They are rewritten with every class spelled out over ASCII, so that both
engines mean the same by them; texts that are not ASCII, or long, are left to RE2.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

# Characters are bits of an integer: bit 97 is "a".
_ALL_CHARS: Final = (1 << 128) - 1


def _char_bits(text: str) -> int:
    return sum(1 << ord(c) for c in set(text))


def _range_bits(first: str, last: str) -> int:
    return (1 << (ord(last) + 1)) - (1 << ord(first))


_DIGIT: Final = _range_bits("0", "9")
_WORD: Final = _DIGIT | _range_bits("a", "z") | _range_bits("A", "Z") | _char_bits("_")
_SPACE: Final = _char_bits("\t\n\f\r ")  # RE2's \s is without \v
_ESCAPED: Final = {
    **{"d": _DIGIT, "D": _ALL_CHARS & ~_DIGIT, "w": _WORD, "W": _ALL_CHARS & ~_WORD},
    **{"s": _SPACE, "S": _ALL_CHARS & ~_SPACE},
    **{"t": _char_bits("\t"), "n": _char_bits("\n"), "r": _char_bits("\r"), "f": _char_bits("\f")},
}
_SPECIAL: Final = frozenset(".^$*+?()[]{}|\\")
_PUNCTUATION: Final = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_COUNT: Final = re.compile(r"\{(\d{1,3})(?:(,)(\d{0,3}))?\}")
_GROUP: Final = re.compile(r"\((?:\?P<([A-Za-z_][A-Za-z0-9_]*)>|\?:)?")
_WORDS: Final = re.compile(r"([A-Za-z0-9_ -]+(?:\|[A-Za-z0-9_ -]+)+)\)")


class _UnsupportedPattern(Exception):
    """The expression is not one of those, or not surely."""


@dataclass(slots=True)
class _PatternItem:
    """A part of the row: what it may begin with, and whether it repeats or may be left out."""

    first: int
    repeats: bool = False
    optional: bool = False


@dataclass(slots=True)
class _PatternReader:
    """Reads an expression from left to right, and writes Python's."""

    pattern: str
    at: int = 0
    output: list[str] = field(default_factory=list)
    items: list[_PatternItem] = field(default_factory=list)

    def read(self) -> str:
        self.at = int(self.pattern.startswith("^"))
        open_groups = 0
        while self.at < len(self.pattern):
            c = self.pattern[self.at]
            if c == "(":
                open_groups += self._read_group()
            elif c == ")" and open_groups:
                open_groups -= 1
                self._close_group()
            elif c == "$" and self.at == len(self.pattern) - 1 and not open_groups:
                self.output.append(r"\Z")
                self.at += 1
            else:
                self._read_repeated(self._read_class(), c)
        if open_groups or all(item.optional for item in self.items):
            raise _UnsupportedPattern
        self._check_linear()
        return "".join(self.output)

    def _read_group(self) -> int:
        match = _GROUP.match(self.pattern, self.at)
        assert match is not None
        if match.end() < len(self.pattern) and self.pattern[match.end()] == "?":
            raise _UnsupportedPattern
        self.at = match.end()
        self.output.append(match[0])
        words = _WORDS.match(self.pattern, self.at)
        if words is None:
            return 1
        self.output.append("|".join(map(re.escape, words[1].split("|"))))
        self.items.append(
            _PatternItem(_char_bits("".join(word[0] for word in words[1].split("|"))))
        )
        self.at = words.end() - 1
        self._close_group()
        return 0

    def _close_group(self) -> None:
        self.at += 1
        self.output.append(")")
        if self.pattern[self.at : self.at + 1] in ("*", "+", "?", "{"):
            raise _UnsupportedPattern

    def _read_class(self) -> int:
        c = self.pattern[self.at]
        self.at += 1
        if c == "\\":
            return self._read_escape()
        if c == "[":
            return self._read_set()
        if c == ".":
            return _ALL_CHARS & ~_char_bits("\n")
        if c in _SPECIAL or not c.isascii():
            raise _UnsupportedPattern
        return _char_bits(c)

    def _read_escape(self) -> int:
        c = self.pattern[self.at : self.at + 1]
        self.at += 1
        if c in _ESCAPED:
            return _ESCAPED[c]
        if c and c in _PUNCTUATION:
            return _char_bits(c)
        raise _UnsupportedPattern

    def _read_set(self) -> int:
        end = re.compile(r"\^?(?:[^\]\[\\]|\\.)+\]").match(self.pattern, self.at)
        if end is None or not end[0].isascii():
            raise _UnsupportedPattern
        negated = self.pattern[self.at] == "^"
        self.at += negated
        bits = 0
        while self.pattern[self.at] != "]":
            one = self._read_member()
            if self.pattern[self.at] == "-" and self.pattern[self.at + 1] != "]":
                self.at += 1
                last = self._read_member()
                if one.bit_count() != 1 or last.bit_count() != 1 or last < one:
                    raise _UnsupportedPattern
                one = (last << 1) - one
            bits |= one
        self.at += 1
        return _ALL_CHARS & ~bits if negated else bits

    def _read_member(self) -> int:
        c = self.pattern[self.at]
        self.at += 1
        return self._read_escape() if c == "\\" else _char_bits(c)

    def _read_repeated(self, first: int, c: str) -> None:
        low, high, text = self._read_count()
        self.output.append(_format_class(first) + text)
        self.items.append(_PatternItem(first, repeats=high != low, optional=low == 0))
        if self.pattern[self.at : self.at + 1] in ("*", "+", "?", "{"):
            raise _UnsupportedPattern  # lazy, possessive, or a repetition of a repetition

    def _read_count(self) -> tuple[int, int | None, str]:
        c = self.pattern[self.at : self.at + 1]
        if c in ("*", "+", "?"):
            self.at += 1
            return (int(c == "+"), 1 if c == "?" else None, c)
        match = _COUNT.match(self.pattern, self.at)
        if match is None:
            if c == "{":
                raise _UnsupportedPattern
            return 1, 1, ""
        self.at = match.end()
        low = int(match[1])
        high = low if match[2] is None else int(match[3]) if match[3] else None
        return low, high, match[0]

    def _check_linear(self) -> None:
        """Refuse a repeated class that shares a character with what may follow it."""
        follow = 0
        for item in reversed(self.items):
            if (item.repeats or item.optional) and item.first & follow:
                raise _UnsupportedPattern
            follow = item.first | (follow if item.optional else 0)


def _format_class(bits: int) -> str:
    """Return a class that means just these characters to Python."""
    if not bits:
        raise _UnsupportedPattern
    if bits.bit_count() == 1:
        return re.escape(chr(bits.bit_length() - 1))
    inside, sign = (bits, "") if bits.bit_count() <= 64 else (_ALL_CHARS & ~bits, "^")
    if not inside:
        raise _UnsupportedPattern
    members = "".join(f"\\x{c:02x}" for c in range(128) if inside >> c & 1)
    return f"[{sign}{members}]"


def translate_to_python(pattern: str) -> re.Pattern[str] | None:
    """Return the expression for Python's engine, for texts in ASCII; None when it is not for it.

    A leading `^` is left out: such an expression is to be tried at the beginning only. Group 1 is
    the whole, the expression's own groups come behind it.

    Args:
        pattern: an expression that RE2 takes.
    """
    try:
        return re.compile(f"({_PatternReader(pattern).read()})")
    except (_UnsupportedPattern, re.error):  # Python knows no two groups of one name
        return None
