"""JSON texts searched for numbers that orjson and Go's encoding/json spell or read differently.

Every payload that is parsed and every document that is written passes here, so both searches are
made for the usual case, where there is nothing to find, and for some dozens of texts at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import orjson

# What may stand where a number can, and would not come back from orjson as it was: an exponent, a
# fraction that ends in 0, a tiny fraction, integers near the end of int64 or beyond it, -0; and
# fractions of a million and more, which as text are spelled with an exponent unless the document's
# spelling is kept. A string that looks so costs time only.
_ODD_NUMBER: Final = (
    rb"(?:-?(?:\d+(?:\.\d+)?[eE][+-]?\d+|\d+\.\d*0|0\.0{4}\d+|\d{7,}\.\d+|9[2-9]\d{17}|\d{20,})"
    rb"|-0)[,}\]\s]"
)
# Of so many digits that orjson may change it, if it is not odd; some with fewer are caught as well.
_LONG_DECIMAL: Final = rb"-?(?:\d+\.\d{12,}|\d{5,}\.\d{8,}|\d{9,}\.\d{4,}|\d{13,}\.\d)"
_UNUSUAL_NUMBER: Final = rb"(?:" + _ODD_NUMBER + rb"|" + _LONG_DECIMAL + rb")"
# What a number may stand behind. One search for each takes half the time of one for all: RE2 skips
# to a plain character that a match begins with, and walks through all of the text otherwise.
_NUMBER_PREFIXES: Final = (rb":\s*", rb",\s*", rb"\[\s*")
_DIGITS: Final = bytes(48 if c in b"0123456789." else 32 for c in range(256))
_MANY_DIGITS: Final = b"0" * 17
_LONG_NUMBER: Final = re.compile(rb"(?=[\d.]{17})\d+\.\d+")

# Each begins with one plain character and looks around from there: such a search runs at the speed
# of memchr.
_WHOLE_FLOAT: Final = re.compile(rb"\.(?=0(?:[,}\]]|$))")
_LARGE_EXPONENT: Final = re.compile(rb"\+(?<=e\+)(?=(?:1\d|20)(?:[,}\]]|$))")
_SMALL_EXPONENT: Final = re.compile(rb"-(?<=e-)(?=[56](?:[,}\]]|$))")


@cache
def _compile_searches(number: bytes) -> tuple[Callable[[bytes], Any], ...]:
    import re2  # not with the module: the command line need not wait for it

    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.never_capture = True
    return tuple(
        re2.compile(before + number, options=options).search for before in _NUMBER_PREFIXES
    )


def _holds(number: bytes, raw: bytes) -> bool:
    text = b",%b," % raw  # a comma is what may stand around a number
    return any(search(text) is not None for search in _compile_searches(number))


def has_plain_numbers(raw: bytes) -> bool:
    """Whether all numbers of a JSON text (or several, joined by commas) surely pass orjson."""
    return not _holds(_UNUSUAL_NUMBER, raw)


def has_odd_number(raw: bytes) -> bool:
    """Whether there may be a number that orjson would change whatever its digits."""
    return _holds(_ODD_NUMBER, raw)


def has_long_number(raw: bytes) -> bool:
    """Whether a number has so many digits that `keeps_long_numbers` must look at it."""
    return raw.translate(_DIGITS).find(_MANY_DIGITS) >= 0


def keeps_long_numbers(raw: bytes, document: Any) -> bool:
    """Whether the long numbers of a text are spelled by their values in the document.

    Args:
        raw: a JSON text without odd numbers.
        document: what orjson made of it.
    """
    if orjson.dumps(document) == raw:
        return True
    return all(repr(float(number)).encode() == number for number in _LONG_NUMBER.findall(raw))


def differs_from_go(out: bytes) -> bool:
    """Whether texts that orjson wrote, joined by commas, may hold a float that Go spells otherwise.

    A string that looks so costs time only.
    """
    return (46 in out and _WHOLE_FLOAT.search(out) is not None) or has_exponent(out)


def has_exponent(out: bytes) -> bool:
    """Whether texts that orjson wrote may hold a float with an exponent where Go has none."""
    return (43 in out and _LARGE_EXPONENT.search(out) is not None) or (
        45 in out and _SMALL_EXPONENT.search(out) is not None
    )


def remove_decimal_points(out: bytes) -> bytes | None:
    """Return a text that orjson wrote with its whole floats written as integers: `15`, not `15.0`.

    A number with a blank in front keeps its point and loses the blank.

    Returns:
        None when there are escapes in the text, so that it is not plain to see where strings end.
    """
    if 92 in out:
        return None
    parts: list[bytes] = []
    kept = searched = quotes = 0
    for match in _WHOLE_FLOAT.finditer(out):
        place = match.start()
        quotes += out.count(b'"', searched, place)
        searched = place
        if quotes & 1:  # it stands in a string
            continue
        blank = out.rfind(b" ", kept, place)
        if blank >= 0 and out[blank + 1 : place].lstrip(b"-").isdigit():
            parts.append(out[kept:blank])
            kept = blank + 1
        else:
            parts.append(out[kept:place])
            kept = place + 2
    return b"".join((*parts, out[kept:]))
