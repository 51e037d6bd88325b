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
from streamer.bloblang.environment import MappingEnvironment
from streamer.bloblang.errors import BloblangError, QueryError

_SPACE: Final = r"(?:[ \t\r\n]|#[^\n]*(?:\n|\Z))*"
_FROM: Final = re.compile(rf'{_SPACE}from[ \t]+("(?:[^"\\\n]|\\.)*"){_SPACE}')


@dataclass(frozen=True)
class MappingFile:
    """The text of a mapping, and where it is from.

    Attributes:
        text: the mapping.
        environment: the outside as it sees it.
        import_import_trail: the absolute paths of the files that led here, outermost first.
    """

    text: str
    environment: MappingEnvironment
    import_trail: tuple[str, ...] = ()

    def open_import(self, path: str, line: int = 1, column: int = 1) -> MappingFile:
        """Return a file that this one imports.

        Args:
            path: its path, from the directory of this file.
            line: of the import statement.
            column: of the import statement.

        Raises:
            BloblangError: it cannot be read, may not be read, or leads back to itself.
        """
        environment = self.environment
        if not environment.impure:
            reason = "imports are switched off here"
            raise _read_error(line, column, reason, "--no-impure forbids to read files")
        whole = environment.resolve_path(path)
        if whole in self.import_trail:
            reason = f"import cycle: '{path}' is being imported already"
            raise _read_error(line, column, reason, "move what both need into a third file")
        try:
            text = environment.read_file(whole).decode(errors="replace")
        except QueryError as e:
            raise _read_error(line, column, str(e)) from None
        return MappingFile(text, environment.relative_to(path), (*self.import_trail, whole))


def _read_error(line: int, column: int, reason: str, suggestion: str = "") -> BloblangError:
    return BloblangError(line, column, f"failed to read import: {reason}", suggestion)


def find_root_import(text: str) -> str | None:
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


def make_import_error(
    path: str, error: BloblangError, line: int = 1, column: int = 1
) -> BloblangError:
    """Return the error of an import statement whose file has an error."""
    place = f"line {error.line} char {error.column}"
    message = f"failed to parse import '{path}': {place}: {error.message}"
    return BloblangError(line, column, message, error.suggestion)
