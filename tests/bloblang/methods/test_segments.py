"""Text in pieces by the rules of Unicode's annex 29."""

import json

import pytest

from tests.bloblang.running import run


@pytest.mark.parametrize(
    ("kind", "pieces"),
    [
        ("word", ["Hello", ",", " ", "world", "!", " ", "It's", " ", "3.14", " ", "e", "-"]),
        ("word", ["snake_case", "  ", "한국", " ", "漢", "字", "\r\n", "カナ"]),
        ("word", ["👩‍🚀", "🇩🇪", "🇫🇷", " ", "a\u0301b"]),
        ("sentence", ["Hello world. ", "Are you? ", "Mr. ", "Smith e.g. x. ", "3.5 Yes!\n", "New"]),
        ("word", ["a\u0301", "\r", "\u2028", "\n", "\n", "  ", "x_1", "'", "q", " ", "א\"ב", ","]),
        ("sentence", ["a.b ü. c 1.5 U.S. x\u2028", "\r", "\u2028"]),
        ("sentence", ["It ended?! ", "“Yes.” ", "No.\r", "\u2028", "4 is it. ", "(A) b"]),
        ("grapheme", ["क्", "ष", "नि", "\r", "\u2028", "\u0600a", "👩‍👩‍👧‍"]),
        ("sentence", ["He said “Go!” ", "Then.\r\n", "etc.) and so on"]),
        ("grapheme", ["👨‍👩‍👧‍👦", "❤️", "e\u0301", "\r\n", "🇩🇪", "🇫🇷", "한", "👍🏽", "x"]),
        ("grapheme", []),
    ],
)  # fmt: skip
def test_a_text_falls_into_pieces(kind, pieces):
    found = run(f'root = this.t.unicode_segments("{kind}")', json.dumps({"t": "".join(pieces)}))
    assert json.loads(found) == pieces


@pytest.mark.parametrize("kind", ["word", "sentence", "grapheme"])
def test_the_pieces_make_up_the_text(kind):
    text = "Dr. Who?  “No.” 12,5 % – naïve café’s 漢字かな. 👩‍🚀🇩🇪\n\n(x) y… e.g. z"
    found = run(f'root = this.t.unicode_segments("{kind}").join("")', json.dumps({"t": text}))
    assert found == text


def test_an_unknown_kind_of_piece_is_an_error():
    found = run('root = this.t.unicode_segments("x")', '{"t":""}')
    assert found == 'Error("failed assignment (line 1): unknown segmentation type: x")'


@pytest.mark.parametrize(
    "part", [".", ".)", ". ", "a.", "1.", "\u0301", "👩\u200d", "🇩", "_", "'a"]
)
@pytest.mark.parametrize("kind", ["word", "sentence", "grapheme"])
def test_the_time_grows_with_the_length_only(kind, part):
    # A quadratic search would need minutes for this.
    found = run(
        f'root = this.t.unicode_segments("{kind}").length() > 0', f'{{"t":"{part * 30_000}"}}'
    )
    assert found == "true"
