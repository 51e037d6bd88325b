"""Splitting text by Unicode's own rules (UAX 29)."""

from __future__ import annotations

from typing import Any, Final

from streamer.bloblang.declare import CONNECT, Example, Param, declare
from streamer.bloblang.errors import QueryError
from streamer.bloblang.runtime import segmentation
from streamer.bloblang.runtime.convert import text_of

_KINDS: Final = {
    "grapheme": segmentation.graphemes,
    "word": segmentation.words,
    "sentence": segmentation.sentences,
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
    segments = _KINDS.get(segmentation_type)
    if segments is None:
        raise QueryError(f"unknown segmentation type: {segmentation_type}")
    return list(segments(text))
