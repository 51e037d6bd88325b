"""Files of environment variables, for `--env-file`: `NAME=value` on each line, as in Benthos.

A value is quoted with Go's escapes, or raw between three quotes, which may hold line ends; or it is
a plain text, which ends at a space or `#`. Where Benthos silently stops reading, in the middle of
a line that it does not understand, this is an error.
"""

from __future__ import annotations

import re
from typing import Final

from streamer.bloblang.literals import unquote
from streamer.config.file import read_file
from streamer.config.source_map import Source
from streamer.core.errors import ConfigError, Lint

_BLANK: Final = re.compile(r"[ \t]*")
_NAME: Final = re.compile(r"[^= \t\r\n#]+")
_RAW: Final = re.compile(r'"""(.*?)"""', re.DOTALL)
_QUOTED: Final = re.compile(r'"(?:\\.|[^"\\\r\n])*"')
_PLAIN: Final = re.compile(r"[^# \t\r\n]*")
_END: Final = re.compile(r"[ \t]*(?:#[^\r\n]*)?(?:\r?\n|\Z)")


class _DotenvError(Exception):
    """Something else stands in the text than is expected there."""

    def __init__(self, offset: int, message: str, suggestion: str = "") -> None:
        self.offset, self.message, self.suggestion = offset, message, suggestion


def read_env_file(path: str) -> dict[str, str]:
    """Return the variables of a file, in order; of two of the same name, the later one.

    Raises:
        ConfigError: it cannot be read, or a line of it is no assignment; no value is shown.
    """
    text = read_file(path)
    variables: dict[str, str] = {}
    at = 0
    try:
        while at < len(text):
            at = _read_line(text, at, variables)
    except _DotenvError as e:
        line, column = Source(path, text).locate(e.offset)
        lint = Lint(path, line, column, "bad_variable", e.message, e.suggestion)
        raise ConfigError([lint]) from None
    return variables


def _read_line(text: str, at: int, variables: dict[str, str]) -> int:
    """Add the variable of one line, if it has any; return where the next line begins."""
    at = _skip_blanks(text, at)
    if end := _END.match(text, at):
        return end.end()
    name = _NAME.match(text, at)
    equals = _skip_blanks(text, name.end()) if name else at
    if name is None or not text.startswith("=", equals):
        exports = name is not None and name[0] == "export"
        hint = "remove `export`" if exports else "begin comments with #"
        raise _DotenvError(at, "expected NAME=value", hint)
    value, after = _read_value(text, _skip_blanks(text, equals + 1))
    if "\0" in name[0] + value:
        raise _DotenvError(
            at, f"variable {name[0]!r}: no environment can hold the character U+0000"
        )
    end = _END.match(text, after)
    if end is None:
        hint = 'quote a value that has spaces: "…"'
        raise _DotenvError(
            _skip_blanks(text, after), "expected the end of the line, or # and a comment", hint
        )
    variables[name[0]] = value
    return end.end()


def _read_value(text: str, at: int) -> tuple[str, int]:
    """Return the value that begins at an offset, and where it ends."""
    if text.startswith('"""', at):
        raw = _RAW.match(text, at)
        if raw is None:
            raise _DotenvError(at, 'expected """ at the end of what begins here')
        return raw[1], raw.end()
    if text.startswith('"', at):
        quoted = _QUOTED.match(text, at)
        if quoted is None:
            raise _DotenvError(at, "the quote that begins here is not closed on its line")
        try:
            return unquote(quoted[0]), quoted.end()
        except ValueError:
            hint = r"write \\ for a backslash"
            raise _DotenvError(
                at, "there is an escape in this text that Go does not know", hint
            ) from None
    plain = _PLAIN.match(text, at)
    assert plain is not None
    return plain[0], plain.end()


def _skip_blanks(text: str, at: int) -> int:
    blank = _BLANK.match(text, at)
    return blank.end() if blank else at
