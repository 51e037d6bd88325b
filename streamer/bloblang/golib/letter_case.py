"""Capital and small letters as Go maps them: letter by letter, whatever the language.

Words are told apart the way Benthos's library for titles does it: digits, marks and `_` belong to
a word; an apostrophe, a dot or a colon does not end one, but two of them do.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Final

# Where a word goes on behind one of these, and ends behind two.
_WORD_MIDDLES: Final = frozenset(
    "'.:\u00b7\u0387\u055f\u05f4\u2018\u2019\u2024\u2027\ufe13\ufe52\ufe55\uff07\uff0e\uff1a"
)
_WORD_CATEGORIES: Final = frozenset(
    ("Lu", "Ll", "Lt", "Lm", "Lo", "Nd", "Nl", "Mn", "Me", "Mc", "Cf", "Pc")
)
# Scripts whose letters stand for themselves: Thai and its kin, Chinese, hiragana.
_STANDALONE_SCRIPTS: Final = (
    (0x0E00, 0x0EFF),
    (0x1000, 0x109F),
    (0x1780, 0x17FF),
    (0x3040, 0x309F),
    (0x3400, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)


def to_upper(text: str) -> str:
    """Return a text in capital letters."""
    return text.upper() if text.isascii() else "".join(map(_upper_letter, text))


def _upper_letter(c: str) -> str:
    if "\udc80" <= c <= "\udcff":
        return "\ufffd"  # a byte that is no UTF-8
    big = c.upper()
    if len(big) == 1:
        return big
    # Some Greek letters have one capital letter in Go, and two in full Unicode.
    big = c.title()
    return big if len(big) == 1 else c


def to_lower(text: str) -> str:
    """Return a text in small letters."""
    return text.lower() if text.isascii() else "".join(map(_lower_letter, text))


def _lower_letter(c: str) -> str:
    if "\udc80" <= c <= "\udcff":
        return "\ufffd"
    return "i" if c == "\u0130" else c.lower()


@lru_cache(maxsize=4096)
def _ends_word(c: str) -> bool:
    if c in _WORD_MIDDLES:
        return False
    if unicodedata.category(c) not in _WORD_CATEGORIES:
        return True
    return any(low <= ord(c) <= high for low, high in _STANDALONE_SCRIPTS)


def to_title(text: str) -> str:
    """Return a text with the first letter of each word as a capital, the others small."""
    inside, after_middle = False, False
    letters = []
    for at, c in enumerate(text):
        middle = c in _WORD_MIDDLES
        if middle and after_middle:
            inside = False
        if c.isupper() or c.islower() or c.istitle():
            letters.append(_lower_at(text, at) if inside else c.title())
            inside = True
        else:
            letters.append(c)
            inside = inside and not _ends_word(c)
        after_middle = middle
    return "".join(letters)


def _lower_at(text: str, at: int) -> str:
    c = text[at]
    if c == "\u03a3" and not text[at + 1 : at + 2].isalpha():
        return "\u03c2"  # the sigma that ends a word
    return c.lower()


def split_letters(raw: bytes) -> list[bytes]:
    """Split bytes into their letters; a byte that is part of none stands alone."""
    text = raw.decode("utf-8", "surrogateescape")
    return [c.encode("utf-8", "surrogateescape") for c in text]
