"""`import "file"` and `from "file"`: where a mapping's parts come from other files.

Source: Benthos `internal/bloblang/parser/mapping_parser.go`. Different on purpose: files that
import each other in a circle are an error, where Benthos never ends; what an imported file reads
with `file_rel` is looked for beside that file, as documented.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from streamer.bloblang import literals
from streamer.bloblang.errors import BloblangError, QueryError
from streamer.bloblang.outside import Outside

_SPACE: Final = r"(?:[ \t\r\n]|#[^\n]*(?:\n|\Z))*"
_FROM: Final = re.compile(rf'{_SPACE}from[ \t]+("(?:[^"\\\n]|\\.)*"){_SPACE}')


@dataclass(frozen=True)
class File:
    """The text of a mapping, and where it is from.

    Attributes:
        text: the mapping.
        outside: the outside as it sees it.
        trail: the absolute paths of the files that led here, outermost first.
    """

    text: str
    outside: Outside
    trail: tuple[str, ...] = ()

    def open(self, path: str, line: int = 1, column: int = 1) -> File:
        """Return a file that this one imports.

        Args:
            path: its path, from the directory of this file.
            line: of the import statement.
            column: of the import statement.

        Raises:
            BloblangError: it cannot be read, may not be read, or leads back to itself.
        """
        outside = self.outside
        if not outside.impure:
            reason = "imports are switched off here"
            raise _refuse(line, column, reason, "--no-impure forbids to read files")
        whole = outside.path(path)
        if whole in self.trail:
            reason = f"import cycle: '{path}' is being imported already"
            raise _refuse(line, column, reason, "move what both need into a third file")
        try:
            text = outside.fetch(whole).decode(errors="replace")
        except QueryError as e:
            raise _refuse(line, column, str(e)) from None
        return File(text, outside.beside(path), (*self.trail, whole))


def _refuse(line: int, column: int, reason: str, suggestion: str = "") -> BloblangError:
    return BloblangError(line, column, f"failed to read import: {reason}", suggestion)


def replaced_by(text: str) -> str | None:
    """Return the path of the file that stands for the whole mapping, when it is `from "file"`.

    Raises:
        BloblangError: something comes after it, or the path is no string.
    """
    match = _FROM.match(text)
    if match is None:
        return None
    if rest := text[match.end() :]:
        raise BloblangError(1, 1, f"unexpected content after single root import: {rest}")
    try:
        return literals.unquote(match[1])
    except ValueError:
        return None


def failed_import(path: str, error: BloblangError, line: int = 1, column: int = 1) -> BloblangError:
    """Return the error of an import statement whose file has an error."""
    place = f"line {error.line} char {error.column}"
    message = f"failed to parse import '{path}': {place}: {error.message}"
    return BloblangError(line, column, message, error.suggestion)
