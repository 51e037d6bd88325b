"""Go's printf: a format read part by part and filled with values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from streamer.bloblang.limits import check_bytes
from streamer.bloblang.runtime.goverbs import Verb, write
from streamer.bloblang.runtime.text import go_type
from streamer.value import bounded_int

# Go refuses a wider field, or more digits, than this.
_LIMIT = 1_000_000


def sprintf(template: str, args: Sequence[Any]) -> str:
    """Fill a format the way Go does, with Go's notes about arguments that don't fit.

    Args:
        template: text with verbs such as `%v`, `%-8.3f`, `%[2]d`, `%*d`.
        args: Bloblang values.
    """
    return _Filling(template, args).run()


@dataclass(slots=True)
class _Filling:
    """One format on its way through.

    Attributes:
        at: the place in the format.
        next: the argument that comes next.
        reordered: whether `[n]` was used, which excuses arguments that are left over.
        good: whether the `[n]` of the current verb were good.
    """

    template: str
    args: Sequence[Any]
    at: int = 0
    next: int = 0
    reordered: bool = False
    good: bool = True

    def run(self) -> str:
        out: list[str] = []
        end, size = len(self.template), 0
        while self.at < end:
            percent = self.template.find("%", self.at)
            if percent < 0:
                out.append(self.template[self.at :])
                break
            out.append(self.template[self.at : percent])
            self.at = percent + 1
            out.append(self._verb())
            size += len(out[-1])
            check_bytes(size, "a formatted text")
        if not self.reordered and self.next < len(self.args):
            out.append(f"%!(EXTRA {', '.join(map(_extra, self.args[self.next :]))})")
        return "".join(out)

    def _char(self) -> str:
        return self.template[self.at : self.at + 1]

    def _verb(self) -> str:
        self.good = True
        verb = Verb("")
        while (c := self._char()) and c in "+-# 0":
            verb.flags += c
            self.at += 1
        notes = ""
        indexed = self._index()
        if self._char() == "*":
            verb.width = self._argument()
            notes += "%!(BADWIDTH)" if verb.width is None else ""
            if verb.width is not None and verb.width < 0:
                verb.width, verb.flags = -verb.width, verb.flags.replace("0", "") + "-"
            indexed = False
        else:
            verb.width = self._number()
            self.good = self.good and not (indexed and verb.width is not None)
        if self._char() == ".":
            self.at += 1
            self.good = self.good and not indexed
            indexed = self._index()
            if self._char() == "*":
                verb.precision = self._argument()
                if verb.precision is None or verb.precision < 0:
                    verb.precision = None
                    notes += "%!(BADPREC)"
                indexed = False
            else:
                verb.precision = self._number() or 0
        if not indexed:
            self._index()
        verb.name = self._char()
        self.at += 1
        return notes + self._fill(verb)

    def _fill(self, verb: Verb) -> str:
        if not verb.name:
            return "%!(NOVERB)"
        if verb.name == "%":
            return "%"
        if not self.good:
            return f"%!{verb.name}(BADINDEX)"
        if self.next >= len(self.args):
            return f"%!{verb.name}(MISSING)"
        if verb.name in "vw":
            verb.flags = verb.flags.replace("+", "").replace("#", "V")
        self.next += 1
        return write(verb, self.args[self.next - 1])

    def _number(self) -> int | None:
        start = self.at
        while self._char().isdecimal() and self._char().isascii():
            self.at += 1
        number = bounded_int(self.template[start : self.at] or "-1")
        return number if 0 <= number <= _LIMIT else None

    def _argument(self) -> int | None:
        """Return the argument that a `*` stands for, if it is an integer."""
        self.at += 1
        value = self.args[self.next] if self.next < len(self.args) else None
        self.next = min(self.next + 1, len(self.args))
        if not isinstance(value, int) or type(value) is bool:
            return None
        return int(value) if abs(value) <= _LIMIT else None

    def _index(self) -> bool:
        """Read an `[n]`; return whether there was a well-formed one."""
        if self._char() != "[":
            return False
        self.reordered = True
        close = self.template.find("]", self.at)
        if close < 0:
            self.at += 1
            self.good = False
            return False
        number = self.template[self.at + 1 : close]
        self.at = close + 1
        if not (number.isdecimal() and number.isascii()):
            self.good = False
            return False
        if 0 < bounded_int(number) <= len(self.args):
            self.next = int(number) - 1
        else:
            self.good = False
        return True


def _extra(value: Any) -> str:
    return "<nil>" if value is None else f"{go_type(value)}={write(Verb('v'), value)}"
