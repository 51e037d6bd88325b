"""Texts for use in URLs: letters of all scripts spelt with Latin ones, by rules of a language.

The spelling of a character is Text::Unidecode's (the library text-unidecode carries its table);
what a language has otherwise, and its words for `&` and `@`, are those of Go's gosimple/slug.
"""

from __future__ import annotations

import functools
import re
from typing import Any, Final

from streamer.bloblang.declare import CONNECT, Example, Param, declare
from streamer.bloblang.golib.convert import text_of

_COMMON_REPLACEMENTS: Final = {'"': "", "'": "", "’": "", "‒": "-", "–": "-", "—": "-", "―": "-"}


def _parse_letters(text: str) -> dict[str, str]:
    """Read pairs such as `ä=ae`, for the capital too; all becomes lower case in the end."""
    pairs = dict(pair.split("=") for pair in text.split())
    return pairs | {k.upper(): v for k, v in pairs.items() if len(k.upper()) == 1}


def _build_replacements(ampersand: str, at: str | None = None, letters: str = "") -> dict[str, str]:
    words = {"&": ampersand} if at is None else {"&": ampersand, "@": at}
    return words | _parse_letters(letters)


_BULGARIAN: Final = (
    "а=a б=b в=v г=g д=d е=e ж=zh з=z и=i й=y к=k л=l м=m н=n о=o п=p р=r с=s т=t у=u ф=f х=h "
    "ц=ts ч=ch ш=sh щ=sht ъ=a ь=y ю=yu я=ya"
)
_GREEK: Final = "β=v η=i ή=i ι=i ί=i ϊ=i ΐ=i ξ=x υ=y ύ=y ϋ=y ΰ=y φ=f χ=ch ω=o ώ=o"
_KAZAKH: Final = "ә=a ғ=g қ=q ң=n ө=o ұ=u"
_TURKISH: Final = "ş=s ü=u ö=o ğ=g ç=c"
_NORWEGIAN: Final = _build_replacements("og", "at", "æ=ae ø=oe å=aa")

_LANGUAGES: Final[dict[str, dict[str, str]]] = {
    "bg bgr": _parse_letters(_BULGARIAN),
    "cs ces": _build_replacements("a", "zavinac"),
    "de deu": _build_replacements("und", "an", "ä=ae ö=oe ü=ue"),
    "en eng": _build_replacements("and", "at"),
    "es spa": _build_replacements("y", "en"),
    "fi fin": _build_replacements("ja", "at"),
    "fr fra": _build_replacements("et", "arobase"),
    "gr el ell": _build_replacements("kai", None, _GREEK),
    "hu hun": _parse_letters("á=a é=e í=i ó=o ö=o ő=o ú=u ü=u ű=u"),
    "id idn ind": _build_replacements("dan"),
    "it ita": _build_replacements("e", "chiocciola"),
    "kz kk kaz": _build_replacements("jane", None, _KAZAKH),
    "nb nob": _NORWEGIAN,
    "nl nld": _build_replacements("en", "at"),
    "nn nno": _NORWEGIAN,
    "pl pol": _build_replacements("i", "na"),
    "pt prt pt-br br bra por": _build_replacements("e", "em", "á=a é=e í=i ó=o ö=o ú=u ü=u"),
    "ro rou": _build_replacements("si", None, "ă=a â=a î=i ș=s ț=t"),
    "sl slv": _build_replacements("in", None, "đ=dz"),
    "sv swe": _build_replacements("och", "snabel a"),
    "tr tur": _build_replacements("ve", "et", _TURKISH) | {"İ": "i", "ı": "i"},
}
_BY_CODE: Final = {
    code: str.maketrans({**of_language, **_COMMON_REPLACEMENTS})
    for codes, of_language in _LANGUAGES.items()
    for code in codes.split()
}
_ENGLISH: Final = _BY_CODE["en"]

# Where Go's edition of the table says otherwise.
_SPELLING_OVERRIDES: Final = {
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
_UNKNOWN_MARK: Final = "[?]"
# Rows of the table that are known to have no spelling, other than those that are missing in it.
_ROWS_WITHOUT_SPELLING: Final = frozenset((0x22, 0x23, 0x2E, 0x2F, 0x4D))


@functools.cache
def _is_missing(row: int) -> bool:
    from text_unidecode import unidecode

    spelt = (unidecode(chr(row << 8 | low)) for low in range(256))
    return row not in _ROWS_WITHOUT_SPELLING and all(
        not text or text.startswith(_UNKNOWN_MARK) for text in spelt
    )


@functools.lru_cache(maxsize=4096)
def _spell_in_latin(c: str) -> str:
    from text_unidecode import unidecode

    if c in _SPELLING_OVERRIDES:
        return _SPELLING_OVERRIDES[c]
    text: str = unidecode(c)
    if text.startswith(_UNKNOWN_MARK) and (text != _UNKNOWN_MARK or _is_missing(ord(c) >> 8)):
        return ""
    return text


_NON_SLUG_CHARS: Final = re.compile("[^a-z0-9_]+")


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
        text = "".join(c if c < "\x80" else _spell_in_latin(c) for c in text)
    return _NON_SLUG_CHARS.sub("-", text.lower()).strip("-_")
