"""Texts of configs that mean something only together with files: code, and names of code."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

_DIGEST_CHARACTERS: Final = 12


@dataclass(frozen=True, slots=True)
class TextPlace:
    """The place of a text in a config.

    Attributes:
        file: the name of the file that it stands in.
        locate: returns the 1-based line in that file of a 1-based line of the text.
    """

    file: str
    locate: Callable[[int], int]


class BadTextError(ValueError):
    """Something in a text is wrong.

    Attributes:
        line: of the text, 1-based; 0 for the whole text.
        column: 1-based.
        message: what is wrong, and what is expected.
        suggestion: what to do; empty for nothing to say.
    """

    def __init__(self, message: str, line: int = 0, column: int = 1, suggestion: str = "") -> None:
        super().__init__(message)
        self.message, self.line, self.column = message, line, column
        self.suggestion = suggestion


class TextProblem(str):
    """A problem that `Spec.check` finds at a place inside of a field's text.

    Attributes:
        line: of the text, 1-based.
        column: 1-based.
        code: of the finding.
    """

    __slots__ = ("line", "column", "code")
    line: int
    column: int
    code: str

    def __new__(cls, problem: str, line: int, column: int, code: str = "bad_value") -> TextProblem:
        """Take the problem, its place, and the code of lint."""
        self = super().__new__(cls, problem)
        self.line, self.column, self.code = line, column, code
        return self


class SourcedText(str):
    """A text with the files that it needs, as they were when the config was read.

    It travels with the config, so that workers need none of the files. Two such texts mean the same
    when their files do, too.

    Attributes:
        file: the config's file.
        lines: the lines there of the lines of the text.
        sources: the contents of the files, by the names that the text knows them by.
        paths: their paths, by the same names.
        digest: names text and contents; it changes when one of them does.
    """

    __slots__ = ("file", "lines", "sources", "paths", "digest")
    file: str
    lines: tuple[int, ...]
    sources: Mapping[str, bytes]
    paths: Mapping[str, str]
    digest: str

    def __new__(
        cls,
        text: str,
        file: str = "",
        lines: tuple[int, ...] = (),
        sources: Mapping[str, bytes] | None = None,
        paths: Mapping[str, str] | None = None,
    ) -> SourcedText:
        """Take a text, its place and its files."""
        self = super().__new__(cls, text)
        self.file, self.lines = file, lines
        self.sources, self.paths = dict(sources or {}), dict(paths or {})
        digest = hashlib.sha256(text.strip().encode("utf-8", "surrogatepass"))
        for name in sorted(self.sources):
            digest.update(f"\0{name}\0{len(self.sources[name])}\0".encode())
            digest.update(self.sources[name])
        self.digest = digest.hexdigest()[:_DIGEST_CHARACTERS]
        return self

    def describe(self) -> str:
        """Return the text with the digest of its code."""
        if "\n" in self.strip():
            return f"{self.rstrip()}\n# code {self.digest}"
        return f"{self.strip()} (code {self.digest})"

    def __reduce__(self) -> tuple[type[SourcedText], tuple[object, ...]]:
        return SourcedText, (str(self), self.file, self.lines, self.sources, self.paths)
