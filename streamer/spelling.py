"""JSON texts searched for numbers that orjson and Go's encoding/json spell or read differently.

Every payload that is parsed and every document that is written passes here, so both searches are
made for the usual case, where there is nothing to find: one pass of RE2's automaton over some
hundred payloads at once on the way in, a few calls of C's memchr on the way out.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

import orjson

# What may stand where a number can, and would not come back from orjson as it was: an exponent, a
# fraction that ends in 0, a tiny fraction, integers near the end of int64 or beyond it, -0; and
# fractions of a million and more, which as text are spelled with an exponent unless the document's
# spelling is kept. A string that looks so costs time only.
_ODD: Final = (
    rb"(?:^|[\[:,\s])(?:-?(?:\d+(?:\.\d+)?[eE][+-]?\d+|\d+\.\d*0|0\.0{4}\d+|\d{7,}\.\d+"
    rb"|9[2-9]\d{17}|\d{20,})"
    rb"|-0)(?:[,}\]\s]|$)"
)
# Of so many digits that orjson may change it, if it is not odd; some with fewer are caught as well.
_LONG: Final = rb"(?:^|[\[:,\s])-?(?:\d+\.\d{12,}|\d{5,}\.\d{8,}|\d{9,}\.\d{4,}|\d{13,}\.\d)"
_UNUSUAL: Final = _ODD + b"|" + _LONG
_DIGITS: Final = bytes(48 if c in b"0123456789." else 32 for c in range(256))
_MANY: Final = b"0" * 17
_LONG_NUMBER: Final = re.compile(rb"(?=[\d.]{17})\d+\.\d+")

# Each begins with one plain character and looks around from there: such a search runs at the speed
# of memchr.
_WHOLE: Final = re.compile(rb"\.(?=0(?:[,}\]]|$))")
_LARGE: Final = re.compile(rb"\+(?<=e\+)(?=(?:1\d|20)(?:[,}\]]|$))")
_SMALL: Final = re.compile(rb"-(?<=e-)(?=[56](?:[,}\]]|$))")


@cache
def _search(pattern: bytes) -> Any:
    import re2  # not with the module: the command line need not wait for it

    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.never_capture = True
    return re2.compile(pattern, options=options).search


def has_plain_numbers(raw: bytes) -> bool:
    """Whether all numbers of a JSON text (or several, joined by commas) surely pass orjson."""
    return _search(_UNUSUAL)(raw) is None


def has_odd_number(raw: bytes) -> bool:
    """Whether there may be a number that orjson would change whatever its digits."""
    return _search(_ODD)(raw) is not None


def has_long_number(raw: bytes) -> bool:
    """Whether there is a number of so many digits that orjson may change it; `is_kept` knows."""
    return raw.translate(_DIGITS).find(_MANY) >= 0


def is_kept(raw: bytes, document: Any) -> bool:
    """Whether the long numbers of a text are spelled by their values in the document.

    Args:
        raw: a JSON text without odd numbers.
        document: what orjson made of it.
    """
    if orjson.dumps(document) == raw:
        return True
    return all(repr(float(number)).encode() == number for number in _LONG_NUMBER.findall(raw))


def differs_from_go(out: bytes) -> bool:
    """Whether a text that orjson wrote may hold a float that Go would spell in another way."""
    return (
        (46 in out and _WHOLE.search(out) is not None)
        or (43 in out and _LARGE.search(out) is not None)
        or (45 in out and _SMALL.search(out) is not None)
    )
