"""Text cut into characters as read, words and sentences, by Unicode's annex 29.

The properties of characters are the library uniseg's. Each character is turned into a letter that
stands for its property, so that the annex's rules become regular expressions, which run a hundred
times as fast as the library's own loops. As in Connect, whose library knows Unicode 15, the rule
for conjuncts of Indic scripts (GB9c) does not apply.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from typing import Final

# Letters for Grapheme_Cluster_Break; X is an extended pictograph, o anything else.
_GRAPHEME_LETTERS: Final = {
    "CR": "R",
    "LF": "N",
    "CONTROL": "C",
    "EXTEND": "E",
    "ZWJ": "Z",
    "REGIONAL_INDICATOR": "F",
    "PREPEND": "P",
    "PACINGMARK": "S",
    "SPACINGMARK": "S",
    "L": "L",
    "V": "V",
    "T": "T",
    "LV": "A",
    "LVT": "B",
}
_GRAPHEME: Final = re.compile("RN|[RNC]|P*(?:L*(?:V+|AV*|B)T*|L+|T+|FF|X(?:E*ZX)*|[^RNC])[EZS]*")

# Letters for Word_Break; Y is a letter that is a pictograph too.
_WORD_LETTERS: Final = {
    "CR": "R",
    "LF": "N",
    "NEWLINE": "M",
    "EXTEND": "E",
    "ZWJ": "Z",
    "FORMAT": "E",
    "REGIONAL_INDICATOR": "F",
    "KATAKANA": "K",
    "HEBREW_LETTER": "H",
    "ALETTER": "A",
    "SINGLE_QUOTE": "q",
    "DOUBLE_QUOTE": "d",
    "MIDNUMLET": "b",
    "MIDLETTER": "m",
    "MIDNUM": "n",
    "NUMERIC": "D",
    "EXTENDNUMLET": "_",
    "WSEGSPACE": "w",
}
# A character with the marks that belong to it (WB4).
_WORD_ATOM: Final = re.compile("RN|[RNM]|.[EZ]*")
# W is a space with marks, j a pictograph behind a joiner (WB3c).
_WORD: Final = re.compile(
    r"(?:w*W|w+|FF|[AHDK_](?:(?<=[AHD])[AHD]|(?<=K)K|(?<=[AHDK_])_|(?<=_)[AHDK]"
    r"|(?<=[AH])[mbq][AH]|(?<=H)dH|(?<=H)q|(?<=D)[nbq]D)*|.)j*"
)

# Letters for Sentence_Break.
_SENTENCE_LETTERS: Final = {
    "CR": "R",
    "LF": "N",
    "SEP": "s",
    "EXTEND": "E",
    "FORMAT": "E",
    "SP": "p",
    "LOWER": "l",
    "UPPER": "u",
    "OLETTER": "o",
    "NUMERIC": "n",
    "ATERM": "a",
    "SCONTINUE": "c",
    "STERM": "t",
    "CLOSE": "k",
}
_SENTENCE_ATOM: Final = re.compile("RN|[RNs]|.E*")
_SENTENCE: Final = re.compile(
    # What does not end it: SB6, SB7, SB8, SB8a; then what does: SB9 to SB11, or SB4.
    r"(?:[^ats]|a(?=n)|(?<=[ul])a(?=u)|ak*+p*+(?=[^oulsat]*l)|[at]k*+p*+(?=[cat]))*+"
    r"(?:[at]k*+p*+s?|s|\Z)"
)


class _LetterTable(dict[int, str]):
    """A table for `str.translate` that finds a character's letter when it is asked for."""

    def __init__(self, letter: Callable[[str], str]) -> None:
        super().__init__()
        self._letter = letter

    def __missing__(self, code: int) -> str:
        letter = self[code] = self._letter(chr(code))
        return letter


@functools.cache
def _make_grapheme_table() -> _LetterTable:
    from uniseg.emoji import extended_pictographic
    from uniseg.graphemecluster import grapheme_cluster_break

    def letter(c: str) -> str:
        mapped = _GRAPHEME_LETTERS.get(grapheme_cluster_break(c).name)
        return mapped or ("X" if extended_pictographic(c) else "o")

    return _LetterTable(letter)


@functools.cache
def _make_word_table() -> _LetterTable:
    from uniseg.emoji import extended_pictographic
    from uniseg.wordbreak import word_break

    def letter(c: str) -> str:
        mapped = _WORD_LETTERS.get(word_break(c).name, "o")
        pictograph = mapped in "Ao" and extended_pictographic(c)
        return {"A": "Y", "o": "X"}[mapped] if pictograph else mapped

    return _LetterTable(letter)


@functools.cache
def _make_sentence_table() -> _LetterTable:
    from uniseg.sentencebreak import sentence_break

    return _LetterTable(lambda c: _SENTENCE_LETTERS.get(sentence_break(c).name, "x"))


def split_graphemes(text: str) -> Iterator[str]:
    """Go through the characters that a reader sees."""
    for match in _GRAPHEME.finditer(text.translate(_make_grapheme_table())):
        yield text[match.start() : match.end()]


def _split_atoms(text: str, atoms: list[str], heads: str, rule: re.Pattern[str]) -> Iterator[str]:
    """Go through the pieces of a text whose atoms have one letter each."""
    at = done = 0
    for match in rule.finditer(heads):
        end = at + sum(map(len, atoms[done : match.end()]))
        if end > at:
            yield text[at:end]
        at, done = end, match.end()


def split_words(text: str) -> Iterator[str]:
    """Go through the words, and through what is between them."""
    atoms = _WORD_ATOM.findall(text.translate(_make_word_table()))
    heads = "".join(map(_word_head, atoms, ["", *atoms]))
    return _split_atoms(text, atoms, heads, _WORD)


def _word_head(atom: str, before: str) -> str:
    head = atom[0]
    if head in "XY" and before.endswith("Z"):
        return "j"
    if head == "w" and len(atom) > 1:
        return "W"
    return "A" if head == "Y" else head


def split_sentences(text: str) -> Iterator[str]:
    """Go through the sentences, each with the white space behind it."""
    atoms = _SENTENCE_ATOM.findall(text.translate(_make_sentence_table()))
    heads = "".join("s" if atom[0] in "RN" else atom[0] for atom in atoms)
    return _split_atoms(text, atoms, heads, _SENTENCE)
