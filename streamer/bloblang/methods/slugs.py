"""Texts for use in URLs: letters of all scripts spelt with Latin ones, by rules of a language.

The spelling of a character is Text::Unidecode's (the library text-unidecode carries its table);
what a language has otherwise, and its words for `&` and `@`, are those of Go's gosimple/slug.
"""

from __future__ import annotations

import functools
import re
from typing import Any, Final

from streamer.bloblang.declare import CONNECT, Example, Param, declare
from streamer.bloblang.runtime.convert import text_of

_ALL: Final = {'"': "", "'": "", "’": "", "‒": "-", "–": "-", "—": "-", "―": "-"}


def _letters(text: str) -> dict[str, str]:
    """Read pairs such as `ä=ae`, for the capital too; all becomes lower case in the end."""
    pairs = dict(pair.split("=") for pair in text.split())
    return pairs | {k.upper(): v for k, v in pairs.items() if len(k.upper()) == 1}


def _signs(ampersand: str, at: str | None = None, letters: str = "") -> dict[str, str]:
    words = {"&": ampersand} if at is None else {"&": ampersand, "@": at}
    return words | _letters(letters)


_BULGARIAN: Final = (
    "а=a б=b в=v г=g д=d е=e ж=zh з=z и=i й=y к=k л=l м=m н=n о=o п=p р=r с=s т=t у=u ф=f х=h "
    "ц=ts ч=ch ш=sh щ=sht ъ=a ь=y ю=yu я=ya"
)
_GREEK: Final = "β=v η=i ή=i ι=i ί=i ϊ=i ΐ=i ξ=x υ=y ύ=y ϋ=y ΰ=y φ=f χ=ch ω=o ώ=o"
_KAZAKH: Final = "ә=a ғ=g қ=q ң=n ө=o ұ=u"
_TURKISH: Final = "ş=s ü=u ö=o ğ=g ç=c"
_NORWEGIAN: Final = _signs("og", "at", "æ=ae ø=oe å=aa")

_LANGUAGES: Final[dict[str, dict[str, str]]] = {
    "bg bgr": _letters(_BULGARIAN),
    "cs ces": _signs("a", "zavinac"),
    "de deu": _signs("und", "an", "ä=ae ö=oe ü=ue"),
    "en eng": _signs("and", "at"),
    "es spa": _signs("y", "en"),
    "fi fin": _signs("ja", "at"),
    "fr fra": _signs("et", "arobase"),
    "gr el ell": _signs("kai", None, _GREEK),
    "hu hun": _letters("á=a é=e í=i ó=o ö=o ő=o ú=u ü=u ű=u"),
    "id idn ind": _signs("dan"),
    "it ita": _signs("e", "chiocciola"),
    "kz kk kaz": _signs("jane", None, _KAZAKH),
    "nb nob": _NORWEGIAN,
    "nl nld": _signs("en", "at"),
    "nn nno": _NORWEGIAN,
    "pl pol": _signs("i", "na"),
    "pt prt pt-br br bra por": _signs("e", "em", "á=a é=e í=i ó=o ö=o ú=u ü=u"),
    "ro rou": _signs("si", None, "ă=a â=a î=i ș=s ț=t"),
    "sl slv": _signs("in", None, "đ=dz"),
    "sv swe": _signs("och", "snabel a"),
    "tr tur": _signs("ve", "et", _TURKISH) | {"İ": "i", "ı": "i"},
}
_BY_CODE: Final = {
    code: str.maketrans({**of_language, **_ALL})
    for codes, of_language in _LANGUAGES.items()
    for code in codes.split()
}
_ENGLISH: Final = _BY_CODE["en"]

# Where Go's edition of the table says otherwise.
_OTHERWISE: Final = {
    "€": "EU",
    "™": "",
    "Ъ": "'",
    "ъ": "'",
    "Є": "Ie",
    "є": "ie",
    "׀": "",
    "ʰ": "k",
    "一": "-",
}
_UNKNOWN: Final = "[?]"
# Rows of the table that are known to have no spelling, other than those that are missing in it.
_SIGNS: Final = frozenset((0x22, 0x23, 0x2E, 0x2F, 0x4D))


@functools.cache
def _is_missing(row: int) -> bool:
    from text_unidecode import unidecode

    spelt = (unidecode(chr(row << 8 | low)) for low in range(256))
    return row not in _SIGNS and all(not text or text.startswith(_UNKNOWN) for text in spelt)


@functools.lru_cache(maxsize=4096)
def _spelt(c: str) -> str:
    from text_unidecode import unidecode

    if c in _OTHERWISE:
        return _OTHERWISE[c]
    text: str = unidecode(c)
    if text.startswith(_UNKNOWN) and (text != _UNKNOWN or _is_missing(ord(c) >> 8)):
        return ""
    return text


_OTHER: Final = re.compile("[^a-z0-9_]+")


@declare(
    "slug",
    "String Manipulation",
    Param("lang", "string", default="en"),
    examples=(
        Example("root = this.a.slug()", '{"a":"Tea & cakes, at 4!"}', "tea-and-cakes-at-4"),
        Example('root = this.a.slug("de")', '{"a":"Öl & Käse"}', "oel-und-kaese"),
        Example("root = this.a.slug()", '{"a":"Москва"}', "moskva"),
    ),
    own_errors=True,
    origin=CONNECT,
)
def slug(value: Any, lang: str) -> str:
    """The text as part of a URL: lower case, Latin letters and digits, the rest as hyphens."""
    text = text_of(value).strip().translate(_BY_CODE.get(lang.lower(), _ENGLISH))
    if not text.isascii():
        text = "".join(c if c < "\x80" else _spelt(c) for c in text)
    return _OTHER.sub("-", text.lower()).strip("-_")
