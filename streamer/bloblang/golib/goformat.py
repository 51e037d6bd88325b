"""Go's printf: a format read part by part and filled with values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from streamer.bloblang.golib.goverbs import Verb, format_verb
from streamer.bloblang.golib.text import go_type
from streamer.bloblang.limits import check_bytes
from streamer.core.value import parse_bounded_int

# Go refuses a wider field, or more digits, than this.
_MAX_WIDTH = 1_000_000


def sprintf(template: str, args: Sequence[Any]) -> str:
    """Fill a format the way Go does, with Go's notes about arguments that don't fit.

    Args:
        template: text with verbs such as `%v`, `%-8.3f`, `%[2]d`, `%*d`.
        args: Bloblang values.
    """
    return _FormatFiller(template, args).fill()


@dataclass(slots=True)
class _FormatFiller:
    """One format on its way through.

    Attributes:
        at: the place in the format.
        next: the argument that comes next.
        reordered: whether `[n]` was used, which excuses arguments that are left over.
        is_index_valid: whether the `[n]` of the current verb were good.
    """

    template: str
    args: Sequence[Any]
    at: int = 0
    next: int = 0
    reordered: bool = False
    is_index_valid: bool = True

    def fill(self) -> str:
        out: list[str] = []
        end, size = len(self.template), 0
        while self.at < end:
            percent = self.template.find("%", self.at)
            if percent < 0:
                out.append(self.template[self.at :])
                break
            out.append(self.template[self.at : percent])
            self.at = percent + 1
            out.append(self._read_verb())
            size += len(out[-1])
            check_bytes(size, "a formatted text")
        if not self.reordered and self.next < len(self.args):
            out.append(f"%!(EXTRA {', '.join(map(_describe_extra, self.args[self.next :]))})")
        return "".join(out)

    def _peek(self) -> str:
        return self.template[self.at : self.at + 1]

    def _read_verb(self) -> str:
        self.is_index_valid = True
        verb = Verb("")
        while (c := self._peek()) and c in "+-# 0":
            verb.flags += c
            self.at += 1
        notes = ""
        indexed = self._read_index()
        if self._peek() == "*":
            verb.width = self._read_argument()
            notes += "%!(BADWIDTH)" if verb.width is None else ""
            if verb.width is not None and verb.width < 0:
                verb.width, verb.flags = -verb.width, verb.flags.replace("0", "") + "-"
            indexed = False
        else:
            verb.width = self._read_number()
            self.is_index_valid = self.is_index_valid and not (indexed and verb.width is not None)
        if self._peek() == ".":
            self.at += 1
            self.is_index_valid = self.is_index_valid and not indexed
            indexed = self._read_index()
            if self._peek() == "*":
                verb.precision = self._read_argument()
                if verb.precision is None or verb.precision < 0:
                    verb.precision = None
                    notes += "%!(BADPREC)"
                indexed = False
            else:
                verb.precision = self._read_number() or 0
        if not indexed:
            self._read_index()
        verb.name = self._peek()
        self.at += 1
        return notes + self._fill_verb(verb)

    def _fill_verb(self, verb: Verb) -> str:
        if not verb.name:
            return "%!(NOVERB)"
        if verb.name == "%":
            return "%"
        if not self.is_index_valid:
            return f"%!{verb.name}(BADINDEX)"
        if self.next >= len(self.args):
            return f"%!{verb.name}(MISSING)"
        if verb.name in "vw":
            verb.flags = verb.flags.replace("+", "").replace("#", "V")
        self.next += 1
        return format_verb(verb, self.args[self.next - 1])

    def _read_number(self) -> int | None:
        start = self.at
        while self._peek().isdecimal() and self._peek().isascii():
            self.at += 1
        number = parse_bounded_int(self.template[start : self.at] or "-1")
        return number if 0 <= number <= _MAX_WIDTH else None

    def _read_argument(self) -> int | None:
        """Return the argument that a `*` stands for, if it is an integer."""
        self.at += 1
        value = self.args[self.next] if self.next < len(self.args) else None
        self.next = min(self.next + 1, len(self.args))
        if not isinstance(value, int) or type(value) is bool:
            return None
        return int(value) if abs(value) <= _MAX_WIDTH else None

    def _read_index(self) -> bool:
        """Read an `[n]`; return whether there was a well-formed one."""
        if self._peek() != "[":
            return False
        self.reordered = True
        close = self.template.find("]", self.at)
        if close < 0:
            self.at += 1
            self.is_index_valid = False
            return False
        number = self.template[self.at + 1 : close]
        self.at = close + 1
        if not (number.isdecimal() and number.isascii()):
            self.is_index_valid = False
            return False
        if 0 < parse_bounded_int(number) <= len(self.args):
            self.next = int(number) - 1
        else:
            self.is_index_valid = False
        return True


def _describe_extra(value: Any) -> str:
    return "<nil>" if value is None else f"{go_type(value)}={format_verb(Verb('v'), value)}"
