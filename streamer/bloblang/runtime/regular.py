"""Which regular expressions Python's own engine may run, several times as fast as RE2's binding.

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
_ALL: Final = (1 << 128) - 1


def _bits(text: str) -> int:
    return sum(1 << ord(c) for c in set(text))


def _span(first: str, last: str) -> int:
    return (1 << (ord(last) + 1)) - (1 << ord(first))


_DIGIT: Final = _span("0", "9")
_WORD: Final = _DIGIT | _span("a", "z") | _span("A", "Z") | _bits("_")
_SPACE: Final = _bits("\t\n\f\r ")  # RE2's \s is without \v
_ESCAPED: Final = {
    **{"d": _DIGIT, "D": _ALL & ~_DIGIT, "w": _WORD, "W": _ALL & ~_WORD},
    **{"s": _SPACE, "S": _ALL & ~_SPACE},
    **{"t": _bits("\t"), "n": _bits("\n"), "r": _bits("\r"), "f": _bits("\f")},
}
_SPECIAL: Final = frozenset(".^$*+?()[]{}|\\")
_PUNCTUATION: Final = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_COUNT: Final = re.compile(r"\{(\d{1,3})(?:(,)(\d{0,3}))?\}")
_GROUP: Final = re.compile(r"\((?:\?P<([A-Za-z_][A-Za-z0-9_]*)>|\?:)?")
_WORDS: Final = re.compile(r"([A-Za-z0-9_ -]+(?:\|[A-Za-z0-9_ -]+)+)\)")


class _NotSimple(Exception):
    """The expression is not one of those, or not surely."""


@dataclass(slots=True)
class _Item:
    """A part of the row: what it may begin with, and whether it repeats or may be left out."""

    first: int
    repeats: bool = False
    optional: bool = False


@dataclass(slots=True)
class _Reader:
    """Reads an expression from left to right, and writes Python's."""

    pattern: str
    at: int = 0
    written: list[str] = field(default_factory=list)
    row: list[_Item] = field(default_factory=list)

    def read(self) -> str:
        self.at = int(self.pattern.startswith("^"))
        open_groups = 0
        while self.at < len(self.pattern):
            c = self.pattern[self.at]
            if c == "(":
                open_groups += self._group()
            elif c == ")" and open_groups:
                open_groups -= 1
                self._close()
            elif c == "$" and self.at == len(self.pattern) - 1 and not open_groups:
                self.written.append(r"\Z")
                self.at += 1
            else:
                self._repeated(self._class(), c)
        if open_groups or all(item.optional for item in self.row):
            raise _NotSimple
        self._check()
        return "".join(self.written)

    def _group(self) -> int:
        match = _GROUP.match(self.pattern, self.at)
        assert match is not None
        if match.end() < len(self.pattern) and self.pattern[match.end()] == "?":
            raise _NotSimple
        self.at = match.end()
        self.written.append(match[0])
        words = _WORDS.match(self.pattern, self.at)
        if words is None:
            return 1
        self.written.append("|".join(map(re.escape, words[1].split("|"))))
        self.row.append(_Item(_bits("".join(word[0] for word in words[1].split("|")))))
        self.at = words.end() - 1
        self._close()
        return 0

    def _close(self) -> None:
        self.at += 1
        self.written.append(")")
        if self.pattern[self.at : self.at + 1] in ("*", "+", "?", "{"):
            raise _NotSimple

    def _class(self) -> int:
        c = self.pattern[self.at]
        self.at += 1
        if c == "\\":
            return self._escape()
        if c == "[":
            return self._set()
        if c == ".":
            return _ALL & ~_bits("\n")
        if c in _SPECIAL or not c.isascii():
            raise _NotSimple
        return _bits(c)

    def _escape(self) -> int:
        c = self.pattern[self.at : self.at + 1]
        self.at += 1
        if c in _ESCAPED:
            return _ESCAPED[c]
        if c and c in _PUNCTUATION:
            return _bits(c)
        raise _NotSimple

    def _set(self) -> int:
        end = re.compile(r"\^?(?:[^\]\[\\]|\\.)+\]").match(self.pattern, self.at)
        if end is None or not end[0].isascii():
            raise _NotSimple
        negated = self.pattern[self.at] == "^"
        self.at += negated
        found = 0
        while self.pattern[self.at] != "]":
            one = self._member()
            if self.pattern[self.at] == "-" and self.pattern[self.at + 1] != "]":
                self.at += 1
                last = self._member()
                if one.bit_count() != 1 or last.bit_count() != 1 or last < one:
                    raise _NotSimple
                one = (last << 1) - one
            found |= one
        self.at += 1
        return _ALL & ~found if negated else found

    def _member(self) -> int:
        c = self.pattern[self.at]
        self.at += 1
        return self._escape() if c == "\\" else _bits(c)

    def _repeated(self, first: int, c: str) -> None:
        low, high, text = self._count()
        self.written.append(_spelled(first) + text)
        self.row.append(_Item(first, repeats=high != low, optional=low == 0))
        if self.pattern[self.at : self.at + 1] in ("*", "+", "?", "{"):
            raise _NotSimple  # lazy, possessive, or a repetition of a repetition

    def _count(self) -> tuple[int, int | None, str]:
        c = self.pattern[self.at : self.at + 1]
        if c in ("*", "+", "?"):
            self.at += 1
            return (int(c == "+"), 1 if c == "?" else None, c)
        match = _COUNT.match(self.pattern, self.at)
        if match is None:
            if c == "{":
                raise _NotSimple
            return 1, 1, ""
        self.at = match.end()
        low = int(match[1])
        high = low if match[2] is None else int(match[3]) if match[3] else None
        return low, high, match[0]

    def _check(self) -> None:
        """Refuse a repeated class that shares a character with what may follow it."""
        follow = 0
        for item in reversed(self.row):
            if (item.repeats or item.optional) and item.first & follow:
                raise _NotSimple
            follow = item.first | (follow if item.optional else 0)


def _spelled(bits: int) -> str:
    """Return a class that means just these characters to Python."""
    if not bits:
        raise _NotSimple
    if bits.bit_count() == 1:
        return re.escape(chr(bits.bit_length() - 1))
    inside, sign = (bits, "") if bits.bit_count() <= 64 else (_ALL & ~bits, "^")
    if not inside:
        raise _NotSimple
    members = "".join(f"\\x{c:02x}" for c in range(128) if inside >> c & 1)
    return f"[{sign}{members}]"


def as_python(pattern: str) -> re.Pattern[str] | None:
    """Return the expression for Python's engine, for texts in ASCII; None when it is not for it.

    A leading `^` is left out: such an expression is to be tried at the beginning only. Group 1 is
    the whole, the expression's own groups come behind it.

    Args:
        pattern: an expression that RE2 takes.
    """
    try:
        return re.compile(f"({_Reader(pattern).read()})")
    except (_NotSimple, re.error):  # Python knows no two groups of one name
        return None
