"""Regular expressions that a config has, in the syntax of Go's (RE2)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from streamer.bloblang.errors import ArgumentError
from streamer.bloblang.runtime.regex import compile_re2


def compile_pattern(text: str) -> Any:
    """Return a compiled expression; its `search` tells whether a text has it somewhere.

    Raises:
        ValueError: it is none; the text says why.
    """
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(text, options)
    except re2.error as e:
        reason = e.args[0].decode() if isinstance(e.args[0], bytes) else e
        raise ValueError(f"{text!r} is not a regular expression (RE2): {reason}") from None


def patterns_problem(texts: Iterable[str]) -> str | None:
    """Return what is wrong with the expressions of a field, or None."""
    for text in texts:
        try:
            compile_pattern(text)
        except ValueError as error:
            return f"has {error}"
    return None


def pattern_problem(text: str) -> str | None:
    """Return what is wrong with the expression of a field, in the words of Bloblang, or None."""
    try:
        compile_re2(text)
    except ArgumentError as error:
        return str(error)
    return None
