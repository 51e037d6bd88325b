"""Splitting text by Unicode's own rules (UAX 29)."""

from __future__ import annotations

from typing import Any, Final

from streamer.bloblang.declare import CONNECT, Example, Param, declare
from streamer.bloblang.errors import QueryError
from streamer.bloblang.golib.convert import text_of
from streamer.bloblang.runtime import segmentation

_SEGMENTERS: Final = {
    "grapheme": segmentation.split_graphemes,
    "word": segmentation.split_words,
    "sentence": segmentation.split_sentences,
}


@declare(
    "unicode_segments",
    "String Manipulation",
    Param("segmentation_type", "string"),
    examples=(
        Example(
            'root = this.a.unicode_segments("word")', '{"a":"it\'s 3.5"}', '["it\'s"," ","3.5"]'
        ),
        Example('root = this.a.unicode_segments("sentence")', '{"a":"A. B?"}', '["A. ","B?"]'),
        Example(
            'root = this.a.unicode_segments("grapheme")', '{"a":"e\\u0301x"}', '["e\\u0301","x"]'
        ),
    ),
    own_errors=True,
    origin=CONNECT,
)
def unicode_segments(value: Any, segmentation_type: str) -> list[str]:
    """The text in pieces by Unicode's rules: `grapheme` (characters seen), `word`, `sentence`."""
    text = text_of(value)
    segments = _SEGMENTERS.get(segmentation_type)
    if segments is None:
        raise QueryError(f"unknown segmentation type: {segmentation_type}")
    return list(segments(text))
