"""Colours of mappings and documents in the editor, and the line under what is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.formatted_text.utils import split_lines
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput
from prompt_toolkit.layout.utils import explode_text_fragments
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.styles import Style

from streamer.tools.playground.trial import Problem

# The names of the groups are the colours' below. A string may go on over lines.
BLOBLANG: Final = re.compile(
    r'(?P<comment>\#[^\n]*) | (?P<string>"""(?:.|\n)*?(?:"""|\Z) | "(?:[^"\\\n]|\\.)*"?)'
    r"| (?P<keyword>\b(?:root|this|meta|let|map|import|from|if|else|match|true|false|null)\b"
    r"| [$@]\w* | -> | =>) | (?P<number>\b\d+(?:\.\d+)?\b) | (?P<call>\b\w+(?=\())",
    re.X,
)
JSON: Final = re.compile(
    r'(?P<call>"(?:[^"\\\n]|\\.)*"(?=\s*:)) | (?P<string>"(?:[^"\\\n]|\\.)*"?)'
    r"| (?P<keyword>\b(?:true|false|null)\b) | (?P<number>-?\b\d[\d.eE+-]*)",
    re.X,
)
STYLE: Final = Style.from_dict(
    {
        "comment": "ansibrightblack italic",
        "string": "ansigreen",
        "keyword": "ansimagenta",
        "number": "ansiyellow",
        "call": "ansiblue",
        "wrong": "ansired underline",
        "problem": "ansired",
        "bar": "reverse",
        "name": "bold",
        "name.focused": "bold reverse",
        "line-number": "ansibrightblack",
    }
)


class SyntaxColours(Lexer):
    """Colours a text by a regular expression whose groups are named like the colours."""

    def __init__(self, language: re.Pattern[str]) -> None:
        self._language = language

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        """Return a function that gives a line in its colours."""
        lines = list(split_lines(self._split_fragments(document.text)))
        return lambda number: lines[number] if number < len(lines) else []

    def _split_fragments(self, text: str) -> StyleAndTextTuples:
        fragments: StyleAndTextTuples = []
        done = 0
        for match in self._language.finditer(text):
            fragments.append(("", text[done : match.start()]))
            fragments.append((f"class:{match.lastgroup}", match[0]))
            done = match.end()
        fragments.append(("", text[done:]))
        return fragments


class ProblemUnderline(Processor):
    """Draws a line under the place of a problem."""

    def __init__(self, problem: Callable[[], Problem | None]) -> None:
        """Begin.

        Args:
            problem: returns the problem that the text has now, if any.
        """
        self._problem = problem

    def apply_transformation(self, ti: TransformationInput) -> Transformation:
        """Return a line of the text, underlined where the problem is."""
        problem = self._problem()
        if problem is None or problem["line"] != ti.lineno + 1:
            return Transformation(ti.fragments)
        letters = explode_text_fragments(ti.fragments)
        start, end = 0, len(letters)
        if problem["column"]:
            start = min(problem["column"] - 1, max(end - 1, 0))
            end = min(start + problem["length"], end)
        for index in range(start, end):
            style, text = letters[index][:2]
            letters[index] = (f"{style} class:wrong", text)
        return Transformation(letters)
