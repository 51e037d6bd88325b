"""`text_chunker`: the chunks are those of LangChain for Go, which Connect uses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.connectors.formats.text_chunks.separators import SeparatorSplitter
from streamer.connectors.formats.text_chunks.tokens import Tokenizer
from streamer.core.errors import ConfigError, MessageError
from streamer.core.message import Message
from tests.servers import free_port

from .conftest import Make, Run


def chunks(make: Make, a_run: Run, text: str | bytes, **fields: Any) -> list[str]:
    raw = text if isinstance(text, bytes) else text.encode()
    made = make(f"text_chunker: {json.dumps(fields)}").process([Message(raw, {"k": 1})], a_run.ex)
    messages = [message for batch in made for message in batch]
    assert all(dict(message.meta) == {"k": 1} for message in messages)
    return [
        message.raw.decode("utf-8", "backslashreplace")
        if message.error is None
        else f"! {message.error}"
        for message in messages
    ]


PARAGRAPHS = (
    "Ah.\nIt rains.\n\nWho? Me? Him?\nWell, o o o o.\n"
    "On and on went an unbrokennnnn drizzle today.\n\nOh!\n\n-J."
)


class TestRecursiveCharacter:
    @pytest.mark.parametrize(
        ("text", "fields", "expected"),
        [
            (
                "\u6865\u4e0a\n\u4e94\u8f86\u7ea2\u8272\u8f66\n\u5317\u8def\u4e0b\u96e8",
                {"chunk_size": 10, "chunk_overlap": 0, "separators": ["\n\n", "\n", " "]},
                [
                    "\u6865\u4e0a\n\u4e94\u8f86\u7ea2\u8272\u8f66",
                    "\u5317\u8def\u4e0b\u96e8",
                ],
            ),
            (
                "It is late. \nLet us go home now",
                {"chunk_size": 20, "chunk_overlap": 1, "separators": ["\n", "$"]},
                ["It is late.", "Let us go home now"],
            ),
            (
                "city: Bonn\nrain: 30\n\ncity: Ulm\nrain: 32",
                {"chunk_size": 25, "chunk_overlap": 1},
                ["city: Bonn\nrain: 30", "city: Ulm\nrain: 32"],
            ),
            (
                PARAGRAPHS,
                {"chunk_size": 10, "chunk_overlap": 1},
                [
                    *("Ah.", "It rains.", "Who? Me?", "Him?", "Well, o o", "o o o.", "On and on"),
                    *("went an", "unbrokennn", "nnn", "drizzle", "today.", "Oh!\n\n-J."),
                ],
            ),
            ("", {}, []),
            (" \n ", {"chunk_size": 2}, []),
        ],
    )
    def test_chunks(
        self, make: Make, a_run: Run, text: str, fields: Any, expected: list[str]
    ) -> None:
        assert chunks(make, a_run, text, strategy="recursive_character", **fields) == expected

    @pytest.mark.parametrize(
        ("measure", "expected"),
        [
            ("runes", ["e\u0301e\u0301", "e\u0301"]),
            ("graphemes", ["e\u0301e\u0301e\u0301"]),
            ("utf8", ["e\u0301"] * 3),
        ],
    )
    def test_lengths(self, make: Make, a_run: Run, measure: str, expected: list[str]) -> None:
        fields = {"strategy": "recursive_character", "chunk_size": 5, "chunk_overlap": 0}
        text = "e\u0301 e\u0301 e\u0301"
        got = chunks(make, a_run, text, **fields, length_measure=measure, separators=[" "])
        assert [chunk.replace(" ", "") for chunk in got] == expected

    def test_bytes_that_are_no_text_stay(self, make: Make, a_run: Run) -> None:
        fields = {"strategy": "recursive_character", "chunk_size": 3, "chunk_overlap": 0}
        assert chunks(make, a_run, b"a\xff b\xfe", **fields) == ["a\\xff", "b\\xfe"]

    @given(
        st.text(alphabet="ab \n.", max_size=80),
        st.integers(1, 12),
        st.integers(0, 12),
    )
    def test_nothing_is_lost_and_nothing_longer_by_more_than_a_separator(
        self, text: str, size: int, overlap: int
    ) -> None:
        made = SeparatorSplitter(size, overlap, ["\n\n", "\n", " ", ""], len).split(text)
        assert all(0 < len(chunk) <= size + 2 for chunk in made)
        if overlap == 0:
            assert "".join("".join(made).split()) == "".join(text.split())


SECTIONS = """
## Cars
Cars that passed in one hour here.
## Lights
### Colours

- Red is the colour for a full stop.
- Green is for those that wait.

 *Yellow* comes before **red** again.

# Roads
Roads that lead out of the town.
## Bridges
#### Old ones

Bridges of more than a century.
"""

LISTS = """
- [Cars](#cars-that-passed)
- [Lights and their colours](#lights)
    - [Red](#red-lights)
        - [At night](#night)
"""

TABLE = "| Lane      | Cars |\n| --- | --- |\n| left | twelve |\n| right | none at all |"
HEAD = "| Lane | Cars |\n| --- | --- |\n"


class TestMarkdown:
    @pytest.mark.parametrize(
        ("text", "fields", "expected"),
        [
            (
                SECTIONS,
                {"chunk_size": 32, "chunk_overlap": 64},
                [
                    "## Cars\nCars that passed in one hour here.",
                    "## Lights",
                    "### Colours\n- Red is the colour for a full stop.",
                    "### Colours\n- Green is for those that wait.",
                    "### Colours\n*Yellow* comes before **red** again.",
                    "# Roads\nRoads that lead out of the town.",
                    "## Bridges",
                    "#### Old ones\nBridges of more than a century.",
                ],
            ),
            (
                LISTS,
                {"chunk_size": 80},
                [
                    "- [Cars](#cars-that-passed)\n- [Lights and their colours](#lights)",
                    "  - [Red](#red-lights)\n    - [At night](#night)",
                ],
            ),
            (
                LISTS,
                {},
                [
                    "- [Cars](#cars-that-passed)\n- [Lights and their colours](#lights)\n"
                    "  - [Red](#red-lights)\n    - [At night](#night)",
                ],
            ),
            (TABLE, {}, [f"{HEAD}| left | twelve |", f"{HEAD}| right | none at all |"]),
            ("1. a\n\n2. b\n3. c", {}, ["1. a\n2. b\n3. c"]),
            ("> # x\n> a\n>\n> - b", {}, ["> # x\n> a\n> - b"]),
            ("text:\n```go\nfunc main() {}\n```", {}, ["text:"]),
            (
                "text:\n```go\nfunc main() {}\n```",
                {"include_code_blocks": True},
                ["text:\n\n```go\nfunc main() {}\n```\n"],
            ),
            (
                "text:\n\n    func main() {\n\t}\n    ",
                {"include_code_blocks": True},
                ["text:\n\n    func main() {\n    }\n    "],
            ),
            ("text:\n\n---\nmore", {}, ["text:\n\n---\nmore"]),
            ("with\\\nhard\nsoft *a*, ~~b~~", {}, ["with\\\nhard\nsoft *a*, ~~b~~"]),
            (
                'links:\n[foo][bar] ![i](/i "t")\n\n[bar]: /url "title"\n\n[regular](/url)',
                {},
                ['links:\n[foo][bar] ![i](/i "t")\n[regular](/url)'],
            ),
            (
                'links:\n[foo][bar] ![i](/i "t")\n\n[bar]: /url "title"\n\n[regular](/url) `c`',
                {"keep_reference_links": True},
                ['links:\n[foo](/url "title") ![i](/i "t")\n[regular](/url) `c`'],
            ),
            ("# only", {}, ["# only"]),
            (
                "# t\n" + "word " * 9,
                {"chunk_size": 12, "chunk_overlap": 0},
                ["# t\nword word"] * 4 + ["# t\nword"],
            ),
            ("", {}, []),
        ],
    )
    def test_chunks(
        self, make: Make, a_run: Run, text: str, fields: Any, expected: list[str]
    ) -> None:
        assert chunks(make, a_run, text, strategy="markdown", **fields) == expected

    def test_deep_nesting_ends(self, make: Make, a_run: Run) -> None:
        assert chunks(make, a_run, "> " * 5000 + "x\n\ny", strategy="markdown")[-1] == "y"


class TestTokens:
    @pytest.fixture(autouse=True)
    def encoding(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        """An encoding of tiktoken's with a table of this test: the real ones are downloads."""
        import tiktoken

        ranks = {bytes([byte]): byte for byte in range(256)} | {b"ab": 256, b" c": 257}
        small = tiktoken.Encoding(
            "small", pat_str=r" ?\w+|\W", mergeable_ranks=ranks, special_tokens={"<|end|>": 300}
        )
        monkeypatch.setattr("tiktoken.get_encoding", lambda name: small)
        yield

    def test_chunks_have_so_many_tokens(self, make: Make, a_run: Run) -> None:
        fields = {"strategy": "token", "chunk_size": 3, "chunk_overlap": 1}
        assert chunks(make, a_run, "abab c\u00e9", **fields) == ["abab c", " c\u00e9", "\\xa9"]

    def test_lengths_in_tokens(self, make: Make, a_run: Run) -> None:
        fields = {"strategy": "recursive_character", "chunk_size": 4, "chunk_overlap": 0}
        fields |= {"length_measure": "token", "token_encoding": "o200k_base"}
        assert chunks(make, a_run, "abab abab ab", **fields) == ["abab", "abab ab"]

    def test_special_tokens_fail_a_message_unless_they_are_allowed(
        self, make: Make, a_run: Run
    ) -> None:
        fields = {"strategy": "token", "chunk_size": 2, "chunk_overlap": 0}
        [text] = chunks(make, a_run, "ab<|end|>", **fields)
        assert text.startswith("! Encountered text corresponding to disallowed special token")
        allowed = chunks(make, a_run, "ab<|end|>", **fields, allowed_special=["<|end|>"])
        assert allowed == ["ab<|end|>"]

    def test_a_table_that_cannot_be_had_is_tried_again_after_a_while(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        now, tries = [0.0], []

        def fail(name: str) -> None:
            tries.append(name)
            raise OSError("nobody is there")

        monkeypatch.setattr("tiktoken.get_encoding", fail)
        tokenizer = Tokenizer("cl100k_base", [], ["all"], now=lambda: now[0])
        for time in (0.0, 9.9, 10.1):
            now[0] = time
            with pytest.raises(MessageError, match="nobody is there; let this machine reach"):
                tokenizer.encode("a")
        assert tries == ["cl100k_base"] * 2


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"strategy": "token", "chunk_size": 5, "chunk_overlap": 5}, "chunks would not advance"),
        ({"strategy": "recursive_character", "separators": []}, "is empty; expected separators"),
        ({"strategy": "markdown", "length_measure": "token"}, "is needed by length_measure token"),
        ({"strategy": "markdown", "chunk_size": 0}, "must be at least 1"),
        ({"strategy": "token", "token_encoding": "x"}, "cl100k_base"),
    ],
)
def test_what_is_wrong_is_found_beforehand(make: Make, fields: Any, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        make(f"text_chunker: {json.dumps(fields)}")


def test_a_table_is_downloaded_by_the_client_with_bounds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{free_port()}")
    with pytest.raises(MessageError) as caught:
        Tokenizer("p50k_base", [], ["all"]).load()
    text = str(caught.value)
    assert "openaipublic.blob.core.windows.net/encodings/p50k_base.tiktoken: " in text
    assert text.endswith("or set TIKTOKEN_CACHE_DIR to a directory that has its table")
